//! A file -> chunks of documents. The first bytes show its compression and its format. The name of the file decides
//! if these bytes are damaged or do not show the format, and for texts and pages, which may begin with any bytes. The
//! code here must never know how chunks are sent or answered.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::chunk::{Chunk, Origin, Place};
use super::format::{BEGIN_BYTES, FORMAT_BYTES, Format, HEADER_BYTES, Named, is_certain, told_by};
use super::gather::{Gather, Part};
use super::lines;
use super::parquet;
use super::reason::{InputError, Reason};
use super::table;
use super::table_header::TableHeader;
use super::text;
use super::units::{UnitError, Units};
use super::wanted::Wanted;
use super::warc::Records;

/// The memory that a zstd frame may require, as a power of two: corpora are often compressed with `zstd --long=31`.
const WINDOW_LOG_MAX: u32 = 31;

/// Reads `path` (`-` is stdin) to its end and passes full chunks to `give`, in order. Stops if `give` returns false.
pub fn read_chunks(path: &Path, wanted: &Wanted, mut give: impl FnMut(Chunk) -> bool) -> Result<(), InputError> {
    let name = path.to_string_lossy();
    if path == Path::new("-") {
        let units = Units::open(Box::new(io::stdin()), WINDOW_LOG_MAX)?;
        return read_units(units, &name, wanted, &mut give);
    }
    let mut file = File::open(path)?;
    if file.metadata()?.is_file() && parquet::is_parquet(&mut file)? {
        return parquet::read(file, &name.into(), wanted, &mut give);
    }
    read_units(Units::of_file(file, WINDOW_LOG_MAX)?, &name, wanted, &mut give)
}

/// Opens `path` and determines its format, as [`read_chunks`] does before it reads the first line. Returns the header of
/// a table. It does not read from stdin, pipes and devices, because their bytes can be read only once.
pub fn look_at(path: &Path, wanted: &Wanted) -> Result<Option<Arc<TableHeader>>, InputError> {
    if path == Path::new("-") || !is_readable_twice(&path.metadata()?) {
        return Ok(None);
    }
    let mut file = File::open(path)?;
    if path.is_file() && parquet::is_parquet(&mut file)? {
        return parquet::look_at(file, wanted).map(|()| None);
    }
    let mut units = Units::of_file(file, WINDOW_LOG_MAX)?;
    match format(&mut units, &path.to_string_lossy(), wanted)? {
        Format::Table(separator) => table::header(units, separator, wanted),
        Format::Lines | Format::Warc | Format::Text | Format::Page => Ok(None),
    }
}

/// Whether a file begins like Parquet.
pub fn is_parquet(path: &Path) -> io::Result<bool> {
    Ok(path.is_file() && parquet::is_parquet(&mut File::open(path)?)?)
}

/// Returns the names of the columns of a Parquet file.
pub fn columns_of_parquet(path: &Path) -> Result<Vec<String>, InputError> {
    parquet::columns(File::open(path)?)
}

/// Whether the same bytes can be read again after the file is opened again. A folder counts as readable twice, so that
/// the error of reading it is found early.
fn is_readable_twice(data: &Metadata) -> bool {
    data.is_file() || data.is_dir()
}

/// Does the same as [`read_chunks`], for any reader. `name` is the name of the file. A zstd frame may require 2 to the
/// power of `window_log_max` bytes of memory.
pub fn read(
    input: Box<dyn Read + Send>,
    name: &str,
    window_log_max: u32,
    wanted: &Wanted,
    give: &mut dyn FnMut(Chunk) -> bool,
) -> Result<(), InputError> {
    read_units(Units::open(input, window_log_max)?, name, wanted, give)
}

fn read_units(
    mut units: Units,
    name: &str,
    wanted: &Wanted,
    give: &mut dyn FnMut(Chunk) -> bool,
) -> Result<(), InputError> {
    let file = name.into();
    match format(&mut units, name, wanted)? {
        Format::Lines => lines::read(units, &file, wanted, give),
        Format::Warc => records(units, &file, give),
        Format::Table(separator) => table::read(units, separator, &file, wanted, give),
        Format::Text => text::read(units, &file, false, give),
        Format::Page => text::read(units, &file, true, give),
    }
}

/// Returns the size of the input on disk, if it is known.
pub fn input_bytes(paths: &[PathBuf]) -> Option<u64> {
    paths.iter().map(|path| path.metadata().ok().filter(|data| data.is_file()).map(|data| data.len())).sum()
}

fn format(units: &mut Units, name: &str, wanted: &Wanted) -> Result<Format, InputError> {
    let named = Named::of(name);
    if let Named::Whole(format) = named {
        return Ok(format);
    }
    let is_enough = match units.peek(BEGIN_BYTES) {
        Ok(begin) => named == Named::Warc || is_certain(begin),
        // A damaged WARC file is still read: only its damaged records are lost.
        Err(UnitError::Damaged(_)) if named == Named::Warc => return Ok(Format::Warc),
        Err(error) => return Err(io::Error::from(error).into()),
    };
    // Damage that is found here is an error of the whole file: the lines and the records before the damage are lost.
    // For this reason, only `BEGIN_BYTES` are read here if they show one of the usual formats.
    let mut begin = units.peek(if is_enough { BEGIN_BYTES } else { FORMAT_BYTES }).map_err(io::Error::from)?;
    if !is_enough && begin.len() >= FORMAT_BYTES && !begin.contains(&b'\n') {
        begin = units.peek(HEADER_BYTES).map_err(io::Error::from)?;
    }
    told_by(begin, named, &[&wanted.form.text_field, &wanted.form.html_field])
}

/// Passes the pages of a WARC file to `give`, until it returns false.
fn records(units: Units, file: &Arc<str>, give: &mut dyn FnMut(Chunk) -> bool) -> Result<(), InputError> {
    let (mut records, mut gather) = (Records::new(units), Gather::new(give));
    // The records before an error are used like all other records.
    let read = loop {
        let record = match records.next() {
            Ok(Some(record)) => record,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error.into()),
        };
        let place = Place::Record { number: record.number, offset: record.offset };
        let origin = Origin { file: Arc::clone(file), place };
        let document = match record.document {
            Ok(None) if gather.skip(records.taken())? => continue,
            Ok(None) => return Ok(()),
            Ok(Some(line)) => Ok(line),
            Err(reason) => Err(Reason::other("unreadable_record", reason)),
        };
        let text_bytes = document.as_ref().map_or(0, Vec::len) as u64;
        if !gather.add(Part { origin, document, original: None, ranked: None, text_bytes }, records.taken())? {
            return Ok(());
        }
    };
    gather.finish(records.taken())?;
    read
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::write::GzEncoder;

    use super::*;
    use crate::input::wanted::{Ids, LineForm};

    const WARC: &[u8] = b"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: u\r\nContent-Type: text/plain\r\n\
        Content-Length: 5\r\n\r\nwords\r\n\r\n";

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("compress");
        encoder.finish().expect("compress")
    }

    fn form() -> LineForm {
        LineForm { id_field: "url".into(), text_field: "body".into(), ids: Ids::Optional, ..LineForm::default() }
    }

    fn chunks(name: &str, bytes: &[u8]) -> Result<Vec<Chunk>, InputError> {
        let wanted = Wanted { form: form(), originals: true, ..Wanted::default() };
        let mut chunks = Vec::new();
        read(Box::new(io::Cursor::new(bytes.to_vec())), name, 27, &wanted, &mut |chunk| {
            chunks.push(chunk);
            true
        })?;
        Ok(chunks)
    }

    fn only(name: &str, bytes: &[u8]) -> Vec<String> {
        let chunks = chunks(name, bytes).expect("readable");
        let lines = chunks.iter().flat_map(|chunk| &chunk.lines);
        lines.map(|line| String::from_utf8(line.clone()).expect("UTF-8")).collect()
    }

    #[test]
    fn the_content_tells_the_format_not_the_name() {
        let page = r#"{"id":"u","text":"words"}"#;
        let line = br#"{"url":"u","body":"words"}"#;
        let packed = |bytes: &[u8]| zstd::encode_all(bytes, 1).expect("compress");
        // The form that `pzstd` writes.
        let parallel = |bytes: &[u8]| [b"\x50\x2A\x4D\x18\x04\0\0\0size", &*packed(bytes)].concat();
        for bytes in [WARC.to_vec(), gzip(WARC), packed(WARC), parallel(WARC), [b"\r\n\r\n", WARC].concat()] {
            assert_eq!(only("x.jsonl", &bytes), [page]);
        }
        assert_eq!(only("x", &[parallel(WARC), parallel(WARC)].concat()), [page, page]);
        for bytes in [line.to_vec(), gzip(line), packed(line), parallel(line), [&b"\xEF\xBB\xBF"[..], line].concat()] {
            assert_eq!(only("x.warc.gz", &bytes), [page]);
        }
        assert!(only("x", b"").is_empty() && only("x.warc", b"").is_empty());
    }

    #[test]
    fn other_formats_are_told_once() {
        let refused = |bytes: &[u8]| chunks("x", bytes).unwrap_err().to_string();
        assert!(refused(b"PAR1\x15\x04").contains("this is Parquet"));
        assert!(refused(b"filedesc://x.arc 0.0.0.0 2026 text/plain 200").contains("this is ARC"));
        assert!(refused(&gzip(b"filedesc:///x.arc 0.0.0.0")).contains("this is ARC"));
        let mut damaged = gzip(WARC);
        damaged.truncate(15);
        assert!(matches!(chunks("x.gz", &damaged), Err(InputError::Read(_))));
    }

    #[test]
    fn a_field_that_all_lines_lack_is_told_once() {
        let lines = "{\"url\":1,\"content\":\"a\"}\n".repeat(5000);
        let Err(InputError::NoField(field)) = chunks("x", lines.as_bytes()) else { panic!("it lacks a field") };
        assert_eq!(field.to_string(), r#"no field "body"; there is "content""#);
        // Some lines have the field, so the file is read, and each line without the field fails.
        let mixed = format!("{lines}{{\"url\":2,\"body\":\"a\"}}\n{lines}");
        assert!(matches!(chunks("x", mixed.as_bytes()), Err(InputError::NoField(_))), "none of the first 2,000 lines");
        let mixed = format!("{{\"url\":2,\"body\":\"a\"}}\n{lines}");
        let chunks = chunks("x", mixed.as_bytes()).expect("readable");
        assert_eq!(chunks.iter().map(|chunk| chunk.failures.len()).sum::<usize>(), 5000);
    }

    #[test]
    fn chunks_hold_every_line_once_and_in_order() {
        let lines: String = (0..5_001).map(|n| format!("{{\"url\":{n},\"body\":\"text {n}\"}}\n\n")).collect();
        // Two members in one file: parallel compressors write such files.
        let zstd = [&lines[..1000], &lines[1000..]]
            .map(|part| zstd::encode_all(part.as_bytes(), 1).expect("compress"))
            .concat();
        for (name, bytes) in [("plain", lines.clone().into_bytes()), ("gz", gzip(lines.as_bytes())), ("zst", zstd)] {
            let chunks = chunks(name, &bytes).expect("readable");
            assert_eq!(chunks.iter().map(|chunk| chunk.lines.len()).collect::<Vec<_>>(), [2000, 2000, 1001], "{name}");
            assert_eq!(
                chunks[2].origins.last().expect("lines").place,
                Place::Line { number: 10_001, offset: lines.len() as u64 - 33 }
            );
            assert_eq!(chunks[2].lines[1000], br#"{"id":"5000","text":"text 5000"}"#);
            assert_eq!(chunks[2].originals[1000], br#"{"url":5000,"body":"text 5000"}"#);
            assert_eq!(chunks.iter().map(|chunk| chunk.input_bytes).sum::<u64>(), bytes.len() as u64, "{name}");
            assert_eq!(chunks.iter().map(|chunk| chunk.text_bytes).sum::<u64>(), lines.len() as u64, "{name}");
        }
    }

    #[test]
    fn the_lines_before_damage_are_given_and_zeros_behind_a_member_are_none() {
        let lines: String = (0..3_000).map(|n| format!("{{\"url\":{n},\"body\":\"text {n}\"}}\n")).collect();
        let whole = gzip(lines.as_bytes());
        let (mut given, wanted) = (0, Wanted { form: form(), ..Wanted::default() });
        let cut = whole[..whole.len() * 99 / 100].to_vec();
        let result = read(Box::new(io::Cursor::new(cut)), "x", 27, &wanted, &mut |chunk| {
            given += chunk.lines.len();
            true
        });
        assert!(
            matches!(result, Err(InputError::Cut { .. })) && (2_800..3_000).contains(&given),
            "{result:?}, {given}"
        );
        let two = gzip(b"{\"url\":1,\"body\":\"t\"}\n{\"url\":2,\"body\":\"t\"}\n");
        given = 0;
        let short = read(Box::new(io::Cursor::new(two[..two.len() - 8].to_vec())), "x", 27, &wanted, &mut |chunk| {
            given += chunk.lines.len();
            true
        });
        assert!(matches!(short, Err(InputError::Cut { line: 3, offset: 42, .. })) && given == 2, "{short:?}, {given}");
        for rest in [vec![0; 300_000], [&[0; 512], &*whole].concat()] {
            let chunks = chunks("x", &[&*whole, &rest].concat()).expect("readable");
            let lines: usize = chunks.iter().map(|chunk| chunk.lines.len()).sum();
            assert_eq!(lines, if rest.len() == 300_000 { 3_000 } else { 6_000 });
        }
    }

    #[test]
    fn a_broken_line_is_named_with_its_byte_after_decompression() {
        let lines =
            b"\xEF\xBB\xBF{\"url\":1,\"body\":\"\xC3\xA4\"}\r\n\n[1]\n{\"url\":2}\n\xFF\n{\"url\":3,\"body\":\"t\"}";
        for bytes in [lines.to_vec(), gzip(lines), [gzip(&lines[..9]), gzip(&lines[9..])].concat()] {
            let chunks = chunks("x", &bytes).expect("readable");
            let of_line = |origin: &Origin| match origin.place {
                Place::Line { number, offset } => (number, &lines[offset as usize..][..3]),
                place => panic!("{place:?}"),
            };
            let failed: Vec<_> = chunks[0].failures.iter().map(|(origin, _)| of_line(origin)).collect();
            assert_eq!(failed, [(3, &b"[1]"[..]), (4, b"{\"u"), (5, b"\xFF\n{")]);
            assert_eq!(of_line(&chunks[0].origins[1]), (6, &b"{\"u"[..]));
            assert!(chunks[0].failures[0].0.to_string().starts_with("x:3 at byte "));
        }
    }

    #[test]
    fn a_chunk_is_bounded_with_the_lines_that_it_keeps() {
        let page = "x".repeat(1_000_000);
        let lines: String = (0..20).map(|n| format!("{{\"url\":{n},\"body\":\"a\",\"html\":\"{page}\"}}\n")).collect();
        let chunks = chunks("x", lines.as_bytes()).expect("readable");
        assert_eq!(chunks.iter().map(|chunk| chunk.lines.len()).collect::<Vec<_>>(), [4; 5]);
    }

    #[test]
    fn an_endless_line_is_one_failure() {
        let mut text = vec![b'x'; (16 << 20) + 100_000];
        text.extend_from_slice(b"\n{\"url\":1,\"body\":\"t\"}");
        let chunks = chunks("long", &text).expect("readable");
        assert_eq!(chunks.len(), 1);
        assert_eq!((chunks[0].failures.len(), chunks[0].lines.len()), (1, 1));
        assert_eq!(chunks[0].origins[0].place, Place::Line { number: 2, offset: (16 << 20) + 100_001 });
    }
}
