//! A raw body, compressed or not -> an answer. The answer is never a 5xx. It does not depend on how the same bytes are
//! cut and compressed. A raw text and the same text in JSON have the same answer.

use std::io::Write;

use hapax_fuzz::{Service, comparable, pieces};

const ROUTES: [&str; 12] = [
    "/v1/collections/default/check",
    "/v1/collections/default/check",
    "/v1/collections/default/check?invalid=replace",
    "/v1/collections/default/check?invalid=replace",
    "/v1/collections/default/sign",
    "/v1/collections/default/compare",
    "/v1/collections/default/batch",
    "/v1/collections/default/documents/get",
    "/v1/collections/default/documents/delete",
    "/v1/collections/default/documents?on_duplicate=skip",
    "/v1/tune",
    "/v1/backups",
];

thread_local! {
    static SERVICE: Service = Service::new();
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

pub fn run(data: &[u8]) {
    let Some((&[how, route, cut, flip], body)) = data.split_first_chunk::<4>() else { return };
    let target = ROUTES[usize::from(route) % ROUTES.len()];
    let raw = how & 1 == 1;
    let content_type = ("content-type", if raw { "text/plain" } else { "application/json" });
    SERVICE.with(|service| {
        let send = |encoding: &str, body: &[u8]| {
            let (status, answer) =
                service.post(target, &[content_type, ("content-encoding", encoding)], pieces(body, cut));
            assert!(status < 500 && status != 408, "{status} {}", String::from_utf8_lossy(&answer));
            (status, answer)
        };
        // The body is sent unchanged. It is rarely a valid compressed frame.
        let encoding = ["identity", "gzip", "zstd"][usize::from(how >> 1) % 3];
        let (status, answer) = send(encoding, body);
        // Only these routes write nothing, so that a second request gets the same answer.
        if !target.contains("/check") && !target.contains("/sign") {
            return;
        }
        if encoding != "identity" {
            let mut packed = if encoding == "gzip" { gzip(body) } else { zstd::encode_all(body, 1).unwrap() };
            let whole = send(encoding, &packed);
            let plain = send("identity", body);
            assert_eq!((whole.0, comparable(&whole.1)), (plain.0, comparable(&plain.1)));
            // One byte is wrong.
            let at = usize::from(flip) % packed.len();
            packed[at] ^= 1 << (how >> 5);
            send(encoding, &packed);
            return;
        }
        let Ok(text) = std::str::from_utf8(body) else {
            assert!(!raw || target.contains("replace") || status != 200, "ill-formed text was accepted");
            return;
        };
        if raw && status == 200 && !text.starts_with('\u{feff}') {
            let document = serde_json::json!({ "text": text }).to_string();
            let (status, again) =
                service.post(target, &[("content-type", "application/json")], vec![document.into_bytes()]);
            assert!(status == 200 || status == 413, "{status} {}", String::from_utf8_lossy(&again));
            if status == 200 {
                assert_eq!(comparable(&answer), comparable(&again));
            }
        }
    });
}
