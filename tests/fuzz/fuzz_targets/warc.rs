//! A file of web pages -> its documents. Each document is JSON with an id and one content, and the file is read to its
//! end. If all records of a file are intact and another record is appended, the documents of the file stay the same,
//! and one document follows.

use std::io::Cursor;

use hapax::input::{Chunk, Place, Wanted, read};

/// The documents of a file, and the number of records that failed.
fn documents(file: &[u8]) -> Option<(Vec<Vec<u8>>, usize)> {
    let wanted = Wanted::default();
    let (mut documents, mut failed, mut read_bytes, mut last) = (Vec::new(), 0, 0, 0);
    let result = read(Box::new(Cursor::new(file.to_vec())), "x.warc", 20, &wanted, &mut |chunk: Chunk| {
        for (line, origin) in chunk.lines.iter().zip(&chunk.origins) {
            let Place::Record { number, offset } = origin.place else { continue };
            assert!(number > last && offset <= file.len() as u64, "{origin}, after record {last}");
            last = number;
            let document: serde_json::Value = serde_json::from_slice(line).expect("a document is JSON");
            assert!(document["id"].is_string() && (document["text"].is_string() ^ document["html"].is_string()));
        }
        for (_, reason) in &chunk.failures {
            assert!(reason.to_string().len() < 1000, "{reason}");
        }
        failed += chunk.failures.len();
        read_bytes += chunk.input_bytes;
        documents.extend(chunk.lines);
        true
    });
    result.ok()?;
    assert_eq!(read_bytes, file.len() as u64);
    Some((documents, failed))
}

pub fn run(data: &[u8]) {
    let whole = documents(data);
    // An intact record that is appended to a file without compression is found.
    let record = b"\r\n\r\nWARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: last\r\nContent-Type: text/plain\r\n\
                   Content-Length: 4\r\n\r\nlast\r\n\r\n";
    let compressed =
        data.starts_with(&[0x1F, 0x8B]) || data.starts_with(&[0x28, 0xB5]) || data.starts_with(&[0x5D, 0x2A]);
    let Some((before, failed)) = whole.filter(|_| !compressed && data.starts_with(b"WARC/")) else { return };
    let (after, _) = documents(&[data, record].concat()).expect("the beginning is that of a WARC file");
    if failed == 0 {
        assert_eq!(after[..before.len()], before, "the documents before it stay as they are");
        assert_eq!(after.len(), before.len() + 1, "the record is found");
    }
}
