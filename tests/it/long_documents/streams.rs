//! A raw text of any length is streamed, and gets the same answers as in JSON.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use serde_json::json;

use super::sending::{KIB, MIB, SIGN, begin, prose, scraped, send_chunk, stream, zstd};
use crate::support::client::{CHECK, Client, DOCUMENTS, fields, gzip};
use crate::support::library::dir;
use crate::support::local::{Local, Setup};
use crate::support::server::Starting;

#[test]
fn a_streamed_text_says_what_the_same_text_says_in_json() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    for bytes in [1, 100, 16 * KIB - 1, 16 * KIB, 16 * KIB + 40, 256 * KIB, 256 * KIB + 1, 3 * MIB] {
        let mut text = prose(bytes as u64, bytes);
        while text.len() > bytes {
            text.pop();
        }
        let id = format!("d{bytes}");
        client.post(DOCUMENTS, &json!({"id": id, "text": text})).ok();
        let signed = client.post(SIGN, &json!({"text": text})).ok();
        assert_eq!(client.text(SIGN, text.as_bytes()).ok(), signed, "{bytes} bytes of announced length");
        // The sizes are odd, so that chunks end inside characters.
        for chunk in [if bytes < KIB { 1 } else { 4093 }, 65_537, 1_000_003] {
            let (status, _, streamed) = stream(server.address, SIGN, "identity", text.as_bytes().chunks(chunk));
            assert_eq!((status, &streamed), (200, &signed), "{bytes} bytes in chunks of {chunk}");
        }
        for (encoding, body) in [("gzip", gzip(text.as_bytes())), ("zstd", zstd(text.as_bytes()))] {
            let (status, _, streamed) = stream(server.address, SIGN, encoding, body.chunks(1013));
            assert_eq!((status, &streamed), (200, &signed), "{bytes} bytes as {encoding}");
        }
        let (status, _, verdict) = stream(server.address, CHECK, "identity", text.as_bytes().chunks(30_011));
        assert_eq!((status, &verdict["verdict"]), (200, &json!("exact_duplicate")), "{verdict}");
        assert_eq!((&verdict["duplicate_of"], &verdict["shingles"]), (&json!(id), &signed["shingles"]));
        let own = format!("{CHECK}?id={id}&threshold=0.9&with=metadata");
        let (status, _, verdict) = stream(server.address, &own, "identity", text.as_bytes().chunks(30_011));
        assert_eq!((status, &verdict["stored"]), (200, &json!(true)), "{verdict}");
        assert_eq!((&verdict["id"], &verdict["threshold"]), (&json!(id), &json!(0.9)));
    }
    let nothing = stream(server.address, SIGN, "identity", std::iter::empty());
    assert_eq!((nothing.0, &nothing.2["empty"]), (200, &json!(true)));
    let blank = " … \u{200b}".repeat(100_000);
    let (_, _, verdict) = stream(server.address, CHECK, "identity", blank.as_bytes().chunks(7_001));
    assert_eq!(verdict["verdict"], "empty");
}

#[test]
fn a_stream_may_be_longer_than_a_body_and_not_longer_than_its_own_limit() {
    let dir = dir();
    let server = Setup::new(&dir)
        .limits(|limits| {
            limits.body_bytes_max = 100 * KIB;
            limits.text_body_bytes_max = MIB as u64;
        })
        .start();
    let client = Client::of(&server);
    let exact = vec![b'a'; MIB];
    let long = vec![b'a'; MIB + 1];
    for target in [SIGN, CHECK] {
        client.text(target, &exact).ok();
        client.text(target, &long).problem(413, "too_large");
        for (encoding, exact, long) in [
            ("identity", exact.clone(), long.clone()),
            ("gzip", gzip(&exact), gzip(&long)),
            ("zstd", zstd(&exact), zstd(&long)),
        ] {
            assert_eq!(stream(server.address, target, encoding, exact.chunks(50_000)).0, 200, "{encoding}");
            let (status, _, problem) = stream(server.address, target, encoding, long.chunks(50_000));
            assert_eq!((status, &problem["code"]), (413, &json!("too_large")), "{encoding}");
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains("1048576 bytes after decompression"), "{detail}");
        }
    }
    let stored = format!("{DOCUMENTS}?id=x");
    client.text(&stored, &vec![b'a'; 100 * KIB + 1]).problem(413, "too_large");
    client.post(SIGN, &json!({"text": "a".repeat(100 * KIB)})).problem(413, "too_large");
}

#[test]
fn ill_formed_bytes_are_refused_or_mended_as_in_a_body_that_is_whole() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let good = prose(1, 2 * MIB).into_bytes();
    let at = |offset: usize, bad: &[u8]| [&good[..offset], bad, &good[offset..]].concat();
    let boundary = (256 * KIB..).find(|&at| good[at] < 0x80).unwrap();
    let cut = |mut bytes: Vec<u8>| {
        bytes.extend_from_slice(&"日".as_bytes()[..2]);
        bytes
    };
    for body in [
        at(0, b"\xFF"),
        at(boundary, b"\xFF"),
        at(boundary, b"\xED\xA0\x80"),
        at(2 * MIB - 100 + (0..).find(|&more| good[2 * MIB - 100 + more] == b' ').unwrap(), b"\xF0\x9F\xA6"),
        cut(good.clone()),
        [b"\xEF\xBB\xBF", at(boundary, b"\xC0").as_slice()].concat(),
        [b"\xEF\xBB\xBF", good.as_slice()].concat(),
        [b"\xEF\xBB\xBF\xEF\xBB\xBF", good.as_slice()].concat(),
    ] {
        let mended = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&body);
        let whole = client.text(&format!("{DOCUMENTS}?id=x&on_existing=keep&on_duplicate=skip"), &body);
        let (status, _, streamed) = stream(server.address, SIGN, "identity", body.chunks(10_007));
        if std::str::from_utf8(&body).is_ok() {
            assert_eq!(status, 200, "{streamed}");
            whole.ok();
        } else {
            let expected = std::str::from_utf8(mended).unwrap_err().valid_up_to();
            let problem = whole.problem(422, "invalid_value");
            assert_eq!((status, &streamed["errors"]), (422, &problem["errors"]));
            assert_eq!(fields(&streamed), ["text"]);
            let detail = streamed["detail"].as_str().unwrap();
            assert!(detail.contains(&format!("at byte {expected};")), "{detail}");
        }
        let text = String::from_utf8_lossy(mended).into_owned();
        let signed = client.post(SIGN, &json!({ "text": text })).ok();
        let lossy = format!("{SIGN}?invalid=replace");
        let (status, _, streamed) = stream(server.address, &lossy, "identity", body.chunks(10_007));
        assert_eq!((status, streamed), (200, signed));
    }
}

#[test]
fn broken_streams_are_answered() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let mut cut = gzip(prose(1, 2 * MIB).as_bytes());
    cut.truncate(cut.len() - 9);
    let (status, _, problem) = stream(server.address, SIGN, "gzip", cut.chunks(10_000));
    assert_eq!((status, &problem["code"]), (400, &json!("malformed_body")));
    let (status, _, problem) = stream(server.address, SIGN, "br", cut.chunks(10_000));
    assert_eq!((status, &problem["code"]), (415, &json!("unsupported_media_type")));
    client.json("PUT", "/v1/collections/theirs", &json!({"spec": "external:ours:256x8"}));
    let theirs = "/v1/collections/theirs/check";
    let (status, _, problem) = stream(server.address, theirs, "identity", prose(1, MIB).as_bytes().chunks(10_000));
    assert_eq!((status, fields(&problem)), (422, vec!["text"]));
    let (status, _, problem) =
        stream(server.address, &format!("{CHECK}?threshold=2"), "identity", [vec![b'a'; MIB].as_slice()].into_iter());
    assert_eq!((status, fields(&problem)), (422, vec!["threshold"]));
}

#[test]
fn a_stream_takes_its_time_while_it_flows_and_is_given_up_when_it_trickles() {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.request_timeout = Duration::from_secs(1)).start();
    let text = prose(1, MIB);
    let since = Instant::now();
    let mut flowing = begin(server.address, SIGN, "identity");
    for chunk in text.as_bytes().chunks(64 * KIB) {
        send_chunk(&mut flowing, chunk);
        std::thread::sleep(Duration::from_millis(150));
    }
    flowing.send("0\r\n\r\n");
    assert_eq!(flowing.status(), 200);
    assert!(since.elapsed() > Duration::from_millis(2200), "longer than any other request may take");

    let mut mute = begin(server.address, SIGN, "identity");
    send_chunk(&mut mute, text.as_bytes());
    assert_eq!(mute.status(), 408, "a megabyte does not buy a pause");

    let mut trickling = begin(server.address, SIGN, "identity");
    let since = Instant::now();
    trickling.0.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut seen = Vec::new();
    while !seen.starts_with(b"HTTP/1.1 408") {
        assert!(since.elapsed() < Duration::from_secs(20), "a byte now and then holds the place");
        // This write fails if the server has already closed the connection. The server's answer can still be read.
        let _ = trickling.0.write_all(b"1\r\na\r\n");
        let mut piece = [0; 1000];
        if let Ok(read) = trickling.0.read(&mut piece) {
            seen.extend_from_slice(&piece[..read]);
        }
    }
}

#[test]
fn streams_hold_room_for_a_slice_and_clients_that_leave_give_it_back() {
    let dir = dir();
    let bounds = [
        ("HAPAX__SERVER__BODIES_BYTES_MAX", "1048576"),
        ("HAPAX__SERVER__BODY_BYTES_MAX", "524288"),
        ("HAPAX__SERVER__BULK_LINE_BYTES_MAX", "524288"),
        ("HAPAX__SERVER__REQUEST_TIMEOUT_MS", "600000"),
    ];
    let server = Starting::spawn_with(&dir.path().join("data"), &[], &bounds).ready();
    let client = Client::new(server.url(""));
    let held = |bytes: usize| scraped(&client, &format!("hapax_http_buffered_bytes {bytes}\n"));
    let text = prose(1, MIB);
    let slow: Vec<_> = (0..4)
        .map(|number| {
            let mut raw = begin(server.socket(), SIGN, "identity");
            send_chunk(&mut raw, text.as_bytes());
            held((number + 1) * 256 * KIB);
            raw
        })
        .collect();
    let refused = client.text(SIGN, text.as_bytes());
    refused.problem(503, "overloaded");
    assert_eq!(refused.headers["retry-after"], "1");
    drop(slow);
    held(0);
    client.text(SIGN, text.as_bytes()).ok();
}

/// In an earlier version, this test failed one time in three. The probe that waited for a refusal sometimes took the
/// second place itself, and the second slow stream was refused. Now the test reads the gauge of the places, which takes
/// no place.
#[test]
fn streams_leave_places_to_others() {
    let dir = dir();
    let bounds = [("HAPAX__SERVER__TEXT_STREAMS_MAX", "2"), ("HAPAX__SERVER__REQUEST_TIMEOUT_MS", "600000")];
    let server = Starting::spawn_with(&dir.path().join("data"), &[], &bounds).ready();
    let client = Client::new(server.url(""));
    let taken = |places: usize| scraped(&client, &format!("hapax_http_text_streams {places}\n"));
    let text = prose(1, MIB);
    let slow: Vec<_> = (0..2)
        .map(|number| {
            let mut raw = begin(server.socket(), SIGN, "identity");
            send_chunk(&mut raw, text.as_bytes());
            taken(number + 1);
            raw
        })
        .collect();
    client.text(SIGN, text.as_bytes()).problem(503, "overloaded");
    client.text(SIGN, b"a short text needs no place").ok();
    client.post(SIGN, &json!({ "text": text })).ok();
    drop(slow);
    taken(0);
    client.text(SIGN, text.as_bytes()).ok();
}

#[test]
fn the_window_of_a_decoder_counts() {
    let dir = dir();
    // There is room for two windows of 8 MiB and little more.
    let bounds = [
        ("HAPAX__SERVER__BODIES_BYTES_MAX", "20971520"),
        ("HAPAX__SERVER__BODY_BYTES_MAX", "1048576"),
        ("HAPAX__SERVER__BULK_LINE_BYTES_MAX", "1048576"),
        ("HAPAX__SERVER__REQUEST_TIMEOUT_MS", "600000"),
    ];
    let server = Starting::spawn_with(&dir.path().join("data"), &[], &bounds).ready();
    let client = Client::new(server.url(""));
    let held = |bytes: usize| scraped(&client, &format!("hapax_http_buffered_bytes {bytes}\n"));
    let packed = zstd(prose(1, MIB).as_bytes());
    let slow: Vec<_> = (0..2)
        .map(|number| {
            let mut raw = begin(server.socket(), SIGN, "zstd");
            send_chunk(&mut raw, &packed);
            held((number + 1) * (8 * MIB + 256 * KIB));
            raw
        })
        .collect();
    let third = || client.send("POST", SIGN, &[("content-type", "text/plain"), ("content-encoding", "zstd")], &packed);
    third().problem(503, "overloaded");
    drop(slow);
    held(0);
    assert_eq!(third().status, 200);
}
