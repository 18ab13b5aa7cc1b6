//! Files of JSON Lines -> documents in the form of the API, in chunks that fit into one bulk request. Input: files or
//! stdin, plain, gzip or zstd (recognised by the first bytes). Output: [`Chunk`]s. It must never know how chunks are
//! sent, or how they are answered.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Longest line that is read. A longer one fails.
pub const LINE_BYTES_MAX: usize = 16 << 20;
/// Lines of one chunk, well below the server's default limit of 20,000: if a connection is lost, its chunk is sent
/// again.
const CHUNK_LINES_MAX: usize = 2_000;
/// Bytes at which a chunk is full. A longer line is a chunk of its own.
const CHUNK_BYTES_MAX: usize = 4 << 20;

/// The names of the fields that hold the id and the text.
#[derive(Clone, Debug, clap::Args)]
pub struct FieldArgs {
    /// Field that holds the id of the document
    #[arg(long, value_name = "FIELD", default_value = "id")]
    pub id_field: String,
    /// Field that holds the text of the document
    #[arg(long, value_name = "FIELD", default_value = "text")]
    pub text_field: String,
}

/// The place that a line came from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The file as it was given; `-` is stdin.
    pub file: Arc<str>,
    /// The number of the line, from 1.
    pub line: u64,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Documents that are sent together.
#[derive(Clone, Debug, Default)]
pub struct Chunk {
    /// Documents in the form of the API, one a line.
    pub lines: Vec<Vec<u8>>,
    /// The place that each line came from.
    pub origins: Vec<Origin>,
    /// Lines that are not documents, and the reasons.
    pub failures: Vec<(Origin, String)>,
    /// Bytes of the file that these lines take, as they are on disk.
    pub input_bytes: u64,
    /// The same, decompressed.
    pub text_bytes: u64,
    bytes: usize,
}

impl Chunk {
    /// Returns a chunk with one document, which is not a line of a file.
    pub fn single(origin: Origin, line: Vec<u8>) -> Self {
        let mut chunk = Self::default();
        chunk.push(origin, line);
        chunk
    }

    fn is_full(&self, next: usize) -> bool {
        !self.lines.is_empty() && (self.lines.len() >= CHUNK_LINES_MAX || self.bytes + next > CHUNK_BYTES_MAX)
            || self.failures.len() >= CHUNK_LINES_MAX
    }

    fn push(&mut self, origin: Origin, line: Vec<u8>) {
        self.bytes += line.len() + 1;
        self.lines.push(line);
        self.origins.push(origin);
    }
}

/// Reads `path` (`-` is stdin) to its end and passes full chunks to `give`, in order. Stops if `give` returns false.
pub fn read_chunks(path: &Path, fields: &FieldArgs, mut give: impl FnMut(Chunk) -> bool) -> io::Result<()> {
    let (mut reader, consumed) = open(path)?;
    let file: Arc<str> = path.to_string_lossy().into();
    let (mut chunk, mut number, mut reported) = (Chunk::default(), 0, 0);
    let mut buffer = Vec::new();
    loop {
        let length = read_line(&mut reader, &mut buffer)?;
        if length == 0 {
            break;
        }
        number += 1;
        let origin = Origin { file: Arc::clone(&file), line: number };
        if buffer.trim_ascii().is_empty() {
            chunk.text_bytes += length;
            continue;
        }
        let document = if length > LINE_BYTES_MAX as u64 {
            Err(format!("the line has {length} bytes; the most is {LINE_BYTES_MAX}"))
        } else {
            document(&buffer, fields, number == 1)
        };
        if chunk.is_full(document.as_ref().map_or(0, Vec::len)) {
            let total = consumed.load(Ordering::Relaxed);
            chunk.input_bytes = total - std::mem::replace(&mut reported, total);
            if !give(std::mem::take(&mut chunk)) {
                return Ok(());
            }
        }
        chunk.text_bytes += length;
        match document {
            Ok(line) => chunk.push(origin, line),
            Err(reason) => chunk.failures.push((origin, reason)),
        }
    }
    chunk.input_bytes = consumed.load(Ordering::Relaxed) - reported;
    give(chunk);
    Ok(())
}

/// Returns the size of the input on disk, if it is known.
pub fn input_bytes(paths: &[PathBuf]) -> Option<u64> {
    paths.iter().map(|path| path.metadata().ok().filter(|data| data.is_file()).map(|data| data.len())).sum()
}

/// Returns a JSON line: a document with this text.
pub fn text_document(text: &str) -> Vec<u8> {
    serde_json::to_vec(&serde_json::json!({ "text": text })).expect("a string is JSON")
}

/// Returns the document of a page.
pub fn page_document(html: &str) -> Vec<u8> {
    serde_json::to_vec(&serde_json::json!({ "html": html })).expect("a string is JSON")
}

/// The fields of a JSON object in their order, with their values as they were written.
#[derive(Debug)]
pub struct Fields<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Returns the value of the first field with this name.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| *value)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    fields.push((name, value));
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(InOrder).map(Self)
    }
}

/// A field's name, borrowed unless it has escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Other content that the API accepts, and the fields that belong to it. They are sent unchanged.
const PASSED_ON: [&str; 4] = ["set", "signature", "fingerprint", "metadata"];

/// Turns a record of the input into a document of the API: the id and the text get the API's names, and other fields
/// are dropped.
fn document(line: &[u8], fields: &FieldArgs, first: bool) -> Result<Vec<u8>, String> {
    let line = if first { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line) } else { line };
    let text =
        std::str::from_utf8(line).map_err(|error| format!("not valid UTF-8 (column {})", error.valid_up_to() + 1))?;
    // serde_json numbers the lines of one record, so its "line 1" would contradict the line of the file.
    let record: Fields<'_> = serde_json::from_str(text).map_err(|error| match error.is_eof() {
        true => format!("not a complete JSON object: it ends too early (column {})", error.column()),
        false => format!("not a JSON object (column {})", error.column().max(1)),
    })?;
    let mut document = Vec::with_capacity(line.len() + 16);
    let mut add = |name: &str, value: &str| {
        document.extend_from_slice(if document.is_empty() { b"{\"" } else { b",\"" });
        document.extend_from_slice(name.as_bytes());
        document.extend_from_slice(b"\":");
        document.extend_from_slice(value.as_bytes());
    };
    if let Some(id) = record.get(&fields.id_field).map(RawValue::get) {
        // Ids in data sets are often numbers, but the API accepts only strings.
        let number = id.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        if number { add("id", &format!("\"{id}\"")) } else { add("id", id) }
    }
    let content = record.get(&fields.text_field);
    if let Some(text) = content {
        add("text", text.get());
    }
    for name in PASSED_ON {
        if let Some(value) = record.get(name) {
            add(name, value.get());
        }
    }
    // Data sets often have the page next to its text. Then the text counts.
    let page = record.get("html").filter(|_| content.is_none());
    if let Some(page) = page {
        add("html", page.get());
    }
    let others = [page, record.get("set"), record.get("signature")];
    if content.is_none() && others.iter().all(Option::is_none) {
        return Err(format!("no field {:?}; name the field of the text with --text-field", fields.text_field));
    }
    document.push(b'}');
    Ok(document)
}

/// Reads one line without its newline into `buffer`, and returns the bytes that it took; 0 at the end of the input. Of
/// a line over [`LINE_BYTES_MAX`], only the beginning is kept.
fn read_line(reader: &mut impl BufRead, buffer: &mut Vec<u8>) -> io::Result<u64> {
    buffer.clear();
    let mut length = reader.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', buffer)? as u64;
    let mut ended = buffer.pop_if(|&mut last| last == b'\n').is_some() || length <= LINE_BYTES_MAX as u64;
    while !ended {
        let available = reader.fill_buf()?;
        if available.is_empty() {
            break;
        }
        let end = available.iter().position(|&byte| byte == b'\n');
        let taken = end.map_or(available.len(), |end| end + 1);
        ended = end.is_some();
        reader.consume(taken);
        length += taken as u64;
    }
    Ok(length)
}

type Input = (Box<dyn BufRead>, Arc<AtomicU64>);

/// Opens a file, and decompresses it if its first bytes say that it is compressed.
fn open(path: &Path) -> io::Result<Input> {
    let consumed = Arc::new(AtomicU64::new(0));
    let raw: Box<dyn Read> =
        if path == Path::new("-") { Box::new(io::stdin().lock()) } else { Box::new(File::open(path)?) };
    let mut raw = BufReader::with_capacity(1 << 17, Counting { raw, consumed: Arc::clone(&consumed) });
    let magic = raw.fill_buf()?;
    let reader: Box<dyn BufRead> = if magic.starts_with(&[0x1F, 0x8B]) {
        Box::new(BufReader::with_capacity(1 << 17, flate2::bufread::MultiGzDecoder::new(raw)))
    } else if magic.starts_with(&[0x28, 0xB5, 0x2F, 0xFD]) {
        let mut decoder = zstd::stream::read::Decoder::with_buffer(raw)?;
        // `zstd --long=31` is common for corpora.
        decoder.window_log_max(31)?;
        Box::new(BufReader::with_capacity(1 << 17, decoder))
    } else {
        Box::new(raw)
    };
    Ok((reader, consumed))
}

/// Counts the bytes that are read from the disk.
struct Counting<R> {
    raw: R,
    consumed: Arc<AtomicU64>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.raw.read(buffer)?;
        self.consumed.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> FieldArgs {
        FieldArgs { id_field: "url".into(), text_field: "body".into() }
    }

    fn mapped(line: &str) -> Result<String, String> {
        document(line.as_bytes(), &fields(), true).map(|line| String::from_utf8(line).expect("UTF-8"))
    }

    #[test]
    fn records_become_documents() {
        assert_eq!(
            mapped(r#"{"x": 1, "body" : "a\nb", "url": "https://a.example/"}"#),
            Ok(r#"{"id":"https://a.example/","text":"a\nb"}"#.into())
        );
        assert_eq!(mapped("\u{FEFF}{\"url\": 17, \"body\": \"\"}"), Ok(r#"{"id":"17","text":""}"#.into()));
        assert_eq!(
            mapped(r#"{"url":"a","set":[1, 2],"metadata":{"n": 1}}"#),
            Ok(r#"{"id":"a","set":[1, 2],"metadata":{"n": 1}}"#.into())
        );
        assert_eq!(mapped(r#"{"body":"t"}"#), Ok(r#"{"text":"t"}"#.into()));
        assert!(mapped("{\"\\u0075rl\":\"a\",\"body\":\"t\"}").is_ok_and(|line| line.contains("\"id\":\"a\"")));
    }

    #[test]
    fn lines_that_are_no_documents_say_why() {
        assert_eq!(mapped("[1]"), Err("not a JSON object (column 1)".into()));
        assert_eq!(mapped("nonsense"), Err("not a JSON object (column 2)".into()));
        assert_eq!(mapped("{\"url\":"), Err("not a complete JSON object: it ends too early (column 7)".into()));
        assert!(mapped(r#"{"url":"a"}"#).is_err_and(|reason| reason.contains("\"body\"")));
        let broken = document(b"{\"body\":\"\xFF\"}", &fields(), false);
        assert_eq!(broken, Err("not valid UTF-8 (column 10)".into()));
    }

    #[test]
    fn chunks_hold_every_line_once_and_in_order() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let lines: String = (0..5_001).map(|n| format!("{{\"url\":{n},\"body\":\"text {n}\"}}\n\n")).collect();
        let gzip = {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            io::Write::write_all(&mut encoder, lines.as_bytes()).expect("compress");
            encoder.finish().expect("compress")
        };
        // Two members in one file: parallel compressors write such files.
        let zstd = [&lines[..1000], &lines[1000..]]
            .map(|part| zstd::encode_all(part.as_bytes(), 1).expect("compress"))
            .concat();
        for (name, bytes) in [("plain", lines.clone().into_bytes()), ("gz", gzip), ("zst", zstd)] {
            let path = dir.path().join(name);
            std::fs::write(&path, &bytes).expect("write");
            let mut chunks = Vec::new();
            read_chunks(&path, &fields(), |chunk| {
                chunks.push(chunk);
                true
            })
            .expect("readable");
            assert_eq!(chunks.iter().map(|chunk| chunk.lines.len()).collect::<Vec<_>>(), [2000, 2000, 1001], "{name}");
            let last = chunks[2].origins.last().expect("lines").line;
            assert_eq!(last, 10_001);
            assert_eq!(chunks[2].lines[1000], br#"{"id":"5000","text":"text 5000"}"#);
            assert_eq!(chunks.iter().map(|chunk| chunk.input_bytes).sum::<u64>(), bytes.len() as u64, "{name}");
            assert_eq!(chunks.iter().map(|chunk| chunk.text_bytes).sum::<u64>(), lines.len() as u64, "{name}");
        }
    }

    #[test]
    fn an_endless_line_is_one_failure() {
        let mut text = vec![b'x'; LINE_BYTES_MAX + 100_000];
        text.extend_from_slice(b"\n{\"url\":1,\"body\":\"t\"}");
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("long");
        std::fs::write(&path, &text).expect("write");
        let mut chunks = Vec::new();
        read_chunks(&path, &fields(), |chunk| {
            chunks.push(chunk);
            true
        })
        .expect("readable");
        assert_eq!(chunks.len(), 1);
        assert_eq!(chunks[0].failures.len(), 1);
        assert_eq!(chunks[0].lines.len(), 1);
        assert_eq!(chunks[0].origins[0].line, 2);
    }
}
