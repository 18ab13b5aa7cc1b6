//! WARC files: good and damaged files of other tools, and generated files in a real server.
//!
//! The files of other tools are not part of the project: they are read from `HAPAX_CORPORA` or `../shared/given`. If
//! neither exists, this test says so and does nothing.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use hapax::input::{InputError, Wanted, read};
use serde_json::{Value, json};

use crate::cli::{code, path, row, run_with_input, text, words};
use crate::quality::corpora;
use crate::support::client::Client;
use crate::support::command::{hapax, run};
use crate::support::server::Server;

/// The contents of a file.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    /// For each page, the name of the field with its content, and its id.
    pages: Vec<(String, String)>,
    skipped: u64,
    failures: Vec<String>,
}

fn found(file: &Path) -> Result<Found, InputError> {
    let wanted = Wanted::default();
    let mut found = Found { pages: Vec::new(), skipped: 0, failures: Vec::new() };
    let name = file.file_name().unwrap().to_str().unwrap();
    read(Box::new(File::open(file).unwrap()), name, 27, &wanted, &mut |chunk| {
        for line in &chunk.lines {
            let line: Value = serde_json::from_slice(line).unwrap();
            let kind = if line["html"].is_string() { "html" } else { "text" };
            assert!(!line[kind].as_str().unwrap().contains('\u{FFFD}'), "{name}: {line}");
            assert!(line[kind].as_str().unwrap().trim().len() > 100, "{name}: {line}");
            assert!(line["date"].as_str().unwrap().ends_with('Z'), "{name}: {line}");
            found.pages.push((kind.to_owned(), line["id"].as_str().unwrap().to_owned()));
        }
        found.skipped += chunk.skipped;
        found.failures.extend(chunk.failures.iter().map(|(origin, reason)| format!("{origin}: {reason}")));
        true
    })?;
    Ok(found)
}

#[test]
fn files_of_other_tools_are_read() {
    let Some(folder) = corpora().map(|folder| folder.join("warc")).filter(|folder| folder.is_dir()) else { return };
    let example = "http://example.com/";
    let escopete = "https://an.wikipedia.org/wiki/Escopete";
    for (name, pages, skipped) in [
        ("whirlwind.warc.gz", vec![("html", escopete)], 3),
        ("whirlwind.warc.wet.gz", vec![("text", escopete)], 1),
        ("whirlwind.warc.wat.gz", vec![], 2),
        ("warcio_example.warc", vec![("html", example)], 5),
        ("warcio_example.warc.gz", vec![("html", example)], 5),
        ("warcio_example-bad-non-chunked.warc.gz", vec![("html", example)], 5),
        ("warcio_example-bad.warc.gz.bad", vec![("html", "http://example.com?example=1")], 5),
        ("warcio_example-digest.warc", vec![], 4),
        ("warcio_example-iana.org-chunked.warc", vec![("html", "http://www.iana.org/")], 2),
        ("warcio_example-resource.warc.gz", vec![("html", example)], 2),
        ("warcio_example-space-in-target-uri.warc.gz", vec![], 2),
        ("warcio_example-wget-bad-target-uri.warc.gz", vec![("html", example)], 5),
        ("warcio_example-wrong-chunks.warc.gz", vec![("html", example)], 1),
        ("warcio_post-test.warc.gz", vec![], 6),
    ] {
        let pages = pages.into_iter().map(|(kind, id)| (kind.to_owned(), id.to_owned())).collect();
        assert_eq!(found(&folder.join(name)).unwrap(), Found { pages, skipped, failures: vec![] }, "{name}");
    }
    let truncated = found(&folder.join("warcio_example-trunc.warc")).unwrap();
    assert_eq!((truncated.pages.len(), truncated.skipped), (0, 3));
    let reason = "warcio_example-trunc.warc, record 3 at byte 1197: the record continues after the 973 bytes that its \
                  Content-Length says";
    assert_eq!(truncated.failures, [reason]);
    for name in ["warcio_example.arc", "warcio_example.arc.gz", "warcio_bad.arc", "warcio_example-space-in-url.arc"] {
        assert!(matches!(found(&folder.join(name)), Err(InputError::Arc)), "{name}");
    }
}

/// Returns a record of Common Crawl's texts.
fn record(n: usize) -> Vec<u8> {
    let text = words(n);
    let head = format!(
        "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: https://a.example/{n}\r\nWARC-Date: \
         2026-11-01T10:00:0{}Z\r\nContent-Type: text/plain\r\nWARC-Payload-Digest: sha1:{n}\r\nContent-Length: {}\r\n\r\n",
        n % 10,
        text.len()
    );
    [head.as_bytes(), text.as_bytes(), b"\r\n\r\n"].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn pages_of_a_damaged_archive_are_imported_and_the_rest_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let url = server.url("");
    let members: Vec<_> = (0..50).map(|n| gzip(&record(n))).collect();
    let mut archive = members.concat();
    let begin: usize = members[..20].iter().map(Vec::len).sum();
    archive[begin + 60..begin + 80].fill(0xA5);
    let file = dir.path().join("crawl.warc.gz");
    std::fs::write(&file, &archive).unwrap();

    let import = run(&["import", "--server", &url, path(&file)]);
    assert_eq!(code(&import), 1, "{import:?}");
    assert_eq!(["documents", "unique", "failed"].map(|name| row(&import, name)), [50, 49, 1]);
    let said = text(&import.stderr);
    let place = format!("{}, record 21 at byte {begin}: ", path(&file));
    assert!(said.contains(&place), "{said}");

    let client = Client::new(url.clone());
    let stored = client.get("/v1/collections/default/documents?id=https%3A%2F%2Fa.example%2F7").json();
    assert_eq!((&stored["date"], &stored["payload_digest"]), (&json!("2026-11-01T10:00:07Z"), &json!("sha1:7")));
    assert_eq!(stored["metadata"], Value::Null);

    // The same archive is imported again, undamaged, from stdin.
    let again = run_with_input(&["import", "--server", &url, "-"], &members.concat());
    assert_eq!(code(&again), 0, "{again:?}");
    assert_eq!(["documents", "unique", "unchanged"].map(|name| row(&again, name)), [50, 1, 49]);

    let check = run_with_input(&["check", "--server", &url, "-"], &record(7));
    let verdict: Value = serde_json::from_slice(&check.stdout).unwrap();
    assert_eq!((&verdict["record"], &verdict["offset"], &verdict["line"]), (&json!(1), &json!(0), &Value::Null));
    assert_eq!(verdict["verdict"], "unique", "a document is not its own duplicate");
}

/// The record is as long as the record of a video. Its file is sparse, so it takes almost no space on the disk.
#[test]
fn a_record_of_any_length_is_skipped_in_little_memory() {
    const RECORD_BYTES: u64 = 512 << 20;
    const MEMORY_BYTES_MAX: u64 = 100 << 20;
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let file = dir.path().join("long.warc");
    let mut archive = File::create(&file).unwrap();
    archive.write_all(&record(1)).unwrap();
    let fields = "WARC-Type: conversion\r\nWARC-Target-URI: long\r\nContent-Type: text/plain";
    archive.write_all(format!("WARC/1.0\r\n{fields}\r\nContent-Length: {RECORD_BYTES}\r\n\r\n").as_bytes()).unwrap();
    archive.set_len(archive.metadata().unwrap().len() + RECORD_BYTES).unwrap();
    archive.seek(SeekFrom::End(0)).unwrap();
    archive.write_all(&[b"\r\n\r\n", record(2).as_slice()].concat()).unwrap();

    let mut import = hapax(&["import", "--server", &server.url(""), path(&file)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (status, mut most) = (format!("/proc/{}/status", import.id()), 0);
    while import.try_wait().unwrap().is_none() {
        let peak = std::fs::read_to_string(&status).unwrap_or_default();
        let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        most = most.max(peak.map_or(0, |kilobytes: u64| kilobytes << 10));
        std::thread::sleep(Duration::from_millis(5));
    }
    let import = import.wait_with_output().unwrap();
    assert_eq!(["documents", "unique", "failed"].map(|name| row(&import, name)), [3, 2, 1]);
    assert!(text(&import.stderr).contains("record 2 at byte "), "{import:?}");
    assert!(text(&import.stderr).contains("the record has 536870912 bytes; the limit is 16777216"), "{import:?}");
    assert!(most > 0 && most < MEMORY_BYTES_MAX, "{most} bytes");
}
