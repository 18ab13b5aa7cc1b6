//! Whole files of records, good and damaged.

use std::io::{Cursor, Seek as _, Write};

use super::*;

/// A record with a text, and the blank line after it.
fn page(uri: &str, text: &str) -> Vec<u8> {
    record(&format!("WARC-Type: conversion\r\nWARC-Target-URI: {uri}\r\nContent-Type: text/plain"), text.as_bytes())
}

fn record(fields: &str, block: &[u8]) -> Vec<u8> {
    let head = format!("WARC/1.0\r\n{fields}\r\nContent-Length: {}\r\n\r\n", block.len());
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// zstd writes no checksum by default.
fn zstd_with_checksum(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Bytes that do not compress.
fn noise(count: usize) -> String {
    let mut random = hapax_core::SplitMix64::new(5);
    (0..count).map(|_| char::from(b'a' + (random.next_u64() % 26) as u8)).collect()
}

/// Returns a line for each record: its number, its offset, and its id or the reason why it has none.
fn read(bytes: &[u8]) -> Vec<String> {
    read_units(Units::open(Box::new(Cursor::new(bytes.to_vec())), 27).unwrap(), bytes.len())
}

/// Does the same with a file on the disk, whose bytes can be read in any order.
fn read_file(bytes: &[u8]) -> Vec<String> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    read_units(Units::of_file(file, 27).unwrap(), bytes.len())
}

fn read_units(units: Units, bytes: usize) -> Vec<String> {
    let mut records = Records::new(units);
    let mut lines = Vec::new();
    while let Some(Record { number, offset, document }) = records.next().unwrap() {
        let told = match document {
            Ok(Some(line)) => {
                let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
                format!("{} {}", line["id"].as_str().unwrap(), line["text"].as_str().unwrap().len())
            }
            Ok(None) => "no page".to_owned(),
            Err(reason) => reason,
        };
        lines.push(format!("{number} @{offset} {told}"));
    }
    assert_eq!(records.taken(), bytes as u64, "the file was read to its end");
    lines
}

fn pages() -> [Vec<u8>; 3] {
    [page("a", "first"), page("b", &noise(3000)), page("c", "third")]
}

/// Returns the offset of each piece.
fn offsets(pieces: &[Vec<u8>]) -> Vec<usize> {
    let mut begin = 0;
    let mut next = |piece: &Vec<u8>| {
        begin += piece.len();
        begin - piece.len()
    };
    pieces.iter().map(&mut next).collect()
}

#[test]
fn records_have_their_numbers_and_offsets() {
    let plain = pages();
    let at = offsets(&plain);
    let wanted = [format!("1 @{} a 5", at[0]), format!("2 @{} b 3000", at[1]), format!("3 @{} c 5", at[2])];
    assert_eq!(read(&plain.concat()), wanted);
    for packed in [pages().map(|page| gzip(&page)), pages().map(|page| zstd::encode_all(&*page, 1).unwrap())] {
        let at = offsets(&packed);
        let wanted = [format!("1 @{} a 5", at[0]), format!("2 @{} b 3000", at[1]), format!("3 @{} c 5", at[2])];
        assert_eq!(read(&packed.concat()), wanted);
    }
    // All records are in one member, as plain gzip writes them.
    assert_eq!(read(&gzip(&pages().concat())), ["1 @0 a 5", "2 @0 b 3000", "3 @0 c 5"]);
}

#[test]
fn frames_may_share_a_dictionary() {
    let texts: Vec<_> = (0..200).map(|n| page(&n.to_string(), &format!("{n} words of a page"))).collect();
    let dictionary = zstd::dict::from_samples(&texts, 4096).unwrap();
    for stored in [dictionary.clone(), zstd::encode_all(&*dictionary, 1).unwrap()] {
        let mut file = vec![0x5D, 0x2A, 0x4D, 0x18];
        file.extend_from_slice(&(stored.len() as u32).to_le_bytes());
        file.extend_from_slice(&stored);
        let mut compressor = zstd::bulk::Compressor::with_dictionary(3, &dictionary).unwrap();
        for text in &texts {
            file.extend_from_slice(&compressor.compress(text).unwrap());
        }
        let read = read(&file);
        assert_eq!((read.len(), read[0].as_str()), (200, format!("1 @{} 0 17", stored.len() + 8).as_str()));
    }
}

#[test]
fn a_damaged_member_costs_its_record_alone() {
    for pack in [gzip, zstd_with_checksum] {
        let packed = pages().map(|page| pack(&page));
        let at = offsets(&packed);
        let (first, third) = (format!("1 @{} a 5", at[0]), |at: usize| format!("3 @{at} c 5"));
        // The damage is in the middle of the data, in the magic number, and in the checksum.
        let middle = at[1] + packed[1].len() / 2;
        for place in [middle, at[1] + 1, at[2] - 6] {
            let mut damaged = packed.concat();
            damaged[place..place + 2].iter_mut().for_each(|byte| *byte ^= 0x55);
            let read = read(&damaged);
            assert_eq!((read.len(), &read[0], &read[2]), (3, &first, &third(at[2])), "{place}: {read:?}");
            assert!(read[1].starts_with(&format!("2 @{} ", at[1])), "{read:?}");
            assert!(read[1].contains("the compressed data is damaged"), "{read:?}");
        }
        // A piece of the file is missing, so that the next member begins inside this one.
        let mut cut = packed.concat();
        cut.drain(middle..middle + 100);
        let read = read(&cut);
        assert_eq!((read.len(), &read[2]), (3, &third(at[2] - 100)), "{read:?}");
        // The end of the file is missing.
        let whole = packed.concat();
        let read = self::read(&whole[..whole.len() - 5]);
        assert_eq!((read.len(), &read[0]), (3, &first), "{read:?}");
        assert!(read[2].contains("the compressed data is damaged"), "{read:?}");
    }
}

#[test]
fn a_record_may_go_on_in_the_next_member() {
    let [first, second, third] = pages();
    let (head, tail) = second.split_at(500);
    let packed = [gzip(&first), gzip(head), gzip(tail), gzip(&third)];
    let read = read(&packed.concat());
    assert_eq!((read.len(), &read[1][read[1].len() - 7..]), (3, " b 3000"), "{read:?}");
    // The end of the record is missing.
    let packed = [gzip(&first), gzip(head), gzip(&third)];
    let read = self::read(&packed.concat());
    assert_eq!((read.len(), &read[2][read[2].len() - 4..]), (3, " c 5"), "{read:?}");
    assert!(read[1].contains("cut off"), "{read:?}");
}

#[test]
fn a_wrong_length_costs_its_record_alone() {
    let whole = String::from_utf8(pages().concat()).unwrap();
    let at = offsets(&pages());
    for (length, reason) in [
        ("2990", "the record continues after the 2990 bytes that its Content-Length says"),
        ("3005", "its Content-Length is 3005, but"),
        ("3050", "its Content-Length is 3050, but the next record begins after 3000 bytes"),
        ("900000", "its Content-Length is 900000, but the next record begins after 3000 bytes"),
        ("99999999999", "its Content-Length is 99999999999, but the next record begins after 3000 bytes"),
        ("-1", "its Content-Length is not a number"),
        ("", "its Content-Length is not a number"),
    ] {
        let read = read(whole.replace("Content-Length: 3000", &format!("Content-Length: {length}")).as_bytes());
        assert_eq!(read.len(), 3, "{length}: {read:?}");
        let shift = at[2] + length.len() - 4;
        assert_eq!((read.len(), &read[2]), (3, &format!("3 @{shift} c 5")), "{length}: {read:?}");
        assert!(length == "3005" || read[1] == format!("2 @{} {reason}", at[1]), "{length}: {read:?}");
    }
    let read = read(whole.replace("Content-Length: 3000\r\n", "").as_bytes());
    assert_eq!((read.len(), read[1].ends_with("it has no Content-Length")), (3, true), "{read:?}");
}

#[test]
fn bytes_that_belong_to_no_record_are_told_once() {
    let [first, second, third] = pages();
    let file = [&first[..], b"nonsense\n\nmore of it\n", &second, &third].concat();
    let read = read(&file);
    let places: Vec<_> = read.iter().map(|line| line.split(' ').nth(2).unwrap()).collect();
    assert_eq!(places, ["a", "no", "b", "c"], "{read:?}");
    assert_eq!(read[1], format!("2 @{} no record begins here", first.len()));
    let long = [&first[..], b"WARC/1.0\r\nX: ", &[b'x'; 100_000], b"\r\n\r\n", &second].concat();
    let read = self::read(&long);
    assert!(read.len() == 3 && read[1].contains("more than 65536 bytes") && read[2].contains(" b 3000"), "{read:?}");
    let read = self::read(&first[..20]);
    assert_eq!(read, ["1 @0 the header of the record is cut off"]);
}

#[test]
fn long_records_are_skipped_and_named_if_they_are_pages() {
    let long = "x".repeat(RECORD_BYTES_MAX + 1);
    let image = record("WARC-Type: resource\r\nWARC-Target-URI: i\r\nContent-Type: image/png", long.as_bytes());
    let file = [page("a", &long[1..]), page("b", &long), image, page("c", "third")].concat();
    let read = read(&file);
    assert_eq!(read[0], format!("1 @0 a {RECORD_BYTES_MAX}"));
    assert!(read[1].ends_with("the record has 16777217 bytes; the limit is 16777216"), "{}", read[1]);
    assert!(read[2].ends_with("no page") && read[3].ends_with("c 5"), "{:?}", &read[2..]);
}

#[test]
fn many_lies_about_lengths_take_linear_time() {
    let lie = b"WARC/1.0\r\nContent-Length: 16000000\r\n\r\n\r\n\r\n";
    let begun = std::time::Instant::now();
    let read = read(&lie.repeat(100_000));
    assert_eq!(read.len(), 100_000);
    // The test would take longer if each record copied the 4 MB after it.
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

/// Returns the lines without their numbers and offsets.
fn told(lines: &[String]) -> Vec<&str> {
    lines.iter().map(|line| line.splitn(3, ' ').last().unwrap()).collect()
}

// A record inside a page must not count. Otherwise, the author of any archived page could add false pages of other
// sites to the archive.
#[test]
fn a_page_that_looks_like_records_hides_no_record_in_it() {
    let fake = [b"\r\n\r\n".as_slice(), &page("https://victim.example/", "fake")].concat();
    // In the first case, the body has too many bytes after the beginning of the false record to be kept. In the second
    // case, it has few enough.
    for before in [10, RECORD_BYTES_MAX] {
        let mut body = vec![b'x'; RECORD_BYTES_MAX + 2_000_000];
        body[before..before + fake.len()].copy_from_slice(&fake);
        let image = record("WARC-Type: resource\r\nWARC-Target-URI: i\r\nContent-Type: image/png", &body);
        let file = [page("a", "first"), image, page("c", "third")].concat();
        for lines in [read(&file), read_file(&file), read(&gzip(&file))] {
            assert_eq!(told(&lines), ["a 5", "no page", "c 5"], "{before}");
        }
    }
}

#[test]
fn a_wrong_length_of_a_long_record_costs_that_record() {
    let body = vec![b'x'; RECORD_BYTES_MAX + 100];
    let image = record("WARC-Type: resource\r\nWARC-Target-URI: i\r\nContent-Type: image/png", &body);
    let length = body.len().to_string();
    let file = |wrong: usize| {
        let at = image.windows(length.len()).position(|bytes| bytes == length.as_bytes()).unwrap();
        let image = [&image[..at], wrong.to_string().as_bytes(), &image[at + length.len()..]].concat();
        // The last record has more bytes than are kept.
        let records =
            [page("a", "first"), image, page("b", "second"), page("c", "third"), page("d", &noise(RECORD_BYTES_MAX))];
        records.concat()
    };
    let (near, far) = (body.len() + 200, body.len() + RECORD_BYTES_MAX + 400);
    let lies = |wrong: usize| format!("its Content-Length is {wrong}, but the next record begins after {length} bytes");
    let last = format!("d {RECORD_BYTES_MAX}");
    for wrong in [body.len() + 6, near] {
        for lines in [read(&file(wrong)), read_file(&file(wrong)), read(&gzip(&file(wrong)))] {
            assert_eq!(told(&lines), ["a 5", &lies(wrong), "b 6", "c 5", &last]);
        }
    }
    assert_eq!(told(&read_file(&file(far))), ["a 5", &lies(far), "b 6", "c 5", &last]);
    // In a stream, all bytes that the record claims are lost.
    let lines = read(&file(far));
    assert_eq!((lines.len(), told(&lines)[0]), (2, "a 5"), "{lines:?}");
    let short = body.len() - 5;
    for lines in [read(&file(short)), read_file(&file(short))] {
        let goes_on = format!("the record continues after the {short} bytes that its Content-Length says");
        assert_eq!(told(&lines), ["a 5", &goes_on, "b 6", "c 5", &last]);
    }
}

#[test]
fn many_records_that_begin_across_the_ends_of_others_take_linear_time() {
    let lie = b"WARC/1.0\r\nContent-Length: 16000000\r\n\r\n".to_vec();
    let lies = [lie, b"WARC/1.0\r\nContent-Length: 5\r\n\r\n\r\n\r\n".repeat(400_000)].concat();
    let begun = std::time::Instant::now();
    assert!(read(&lies).len() > 200_000);
    // The test would take longer if each record copied the 14 MB after it.
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}
