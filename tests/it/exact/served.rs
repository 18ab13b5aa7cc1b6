//! Exact verification over HTTP.

use serde_json::json;

use super::steps::variant;
use crate::support::client::{Client, fields, words};
use crate::support::library::{self, Dir};
use crate::support::local::{Local, Setup};

fn exact_server(dir: &Dir) -> (Local, Client) {
    let server = Setup::new(dir).limits(|limits| limits.body_bytes_max = 200_000).start();
    let client = Client::of(&server);
    let made = client.json("PUT", "/v1/collections/exact", &json!({ "verify": "exact", "keep": "text" }));
    assert_eq!(made.status, 201, "{}", made.text());
    (server, client)
}

#[test]
fn over_http_a_match_tells_its_method_and_containments() {
    let dir = library::dir();
    let (_server, client) = exact_server(&dir);
    let text = variant(400, 1);
    client.post("/v1/collections/exact/documents", &json!({ "id": "a", "text": text })).ok();
    let half = text.split(' ').take(350).collect::<Vec<_>>().join(" ");
    let found = client.post("/v1/collections/exact/check", &json!({ "text": half })).ok()["matches"][0].clone();
    assert_eq!(found["method"], "exact");
    assert_eq!([&found["similarity"], &found["low"], &found["high"]], [&json!(0.873737); 3]);
    assert_eq!((&found["containment_in_match"], &found["containment_of_match"]), (&json!(1.0), &json!(0.873737)));

    // Two stored documents are compared by their stored shingles. If none are stored, they are compared only by their
    // signatures.
    for (collection, exact) in [("exact", true), ("default", false)] {
        let path = |verb: &str| format!("/v1/collections/{collection}/{verb}");
        for (id, text) in [("x", words(1)), ("y", words(1).replace("w1x9 ", "other "))] {
            let store = path("documents?on_duplicate=store");
            client.post(&store, &json!({ "id": id, "text": text })).ok();
        }
        let compared = client.post(&path("compare"), &json!({ "a": { "id": "x" }, "b": { "id": "y" } })).ok();
        assert_eq!(compared["exact"].is_object(), exact, "{compared}");
        if exact {
            assert_eq!(
                (&compared["exact"]["intersection"], &compared["exact"]["shingles_b"]),
                (&json!(31), &json!(36))
            );
        }
    }
}

#[test]
fn a_signature_cannot_be_compared_exactly_nor_kept_with_shingles() {
    let dir = library::dir();
    let (_server, client) = exact_server(&dir);
    let kept = client.json("PUT", "/v1/collections/kept", &json!({ "keep": "shingles" }));
    assert_eq!(kept.status, 201);
    let signed = client.post("/v1/collections/exact/sign", &json!({ "text": words(1) })).ok();
    let signature = json!({ "id": "s", "signature": signed["signature"], "fingerprint": signed["fingerprint"] });
    for (path, refused) in
        [("exact/check", true), ("exact/documents", true), ("kept/documents", true), ("kept/check", false)]
    {
        let answer = client.post(&format!("/v1/collections/{path}"), &signature);
        if refused {
            assert_eq!(fields(&answer.problem(422, "invalid_value")), ["signature"], "{path}");
        } else {
            answer.ok();
        }
    }
    let plain = client.json("PATCH", "/v1/collections/default", &json!({ "verify": "exact" }));
    assert_eq!(fields(&plain.problem(422, "invalid_value")), ["verify"]);
    assert_eq!(client.json("PATCH", "/v1/collections/kept", &json!({ "verify": "exact" })).status, 200);
}

/// A raw text is streamed if its signature is enough. If its shingles are compared, it has the size limit of a body.
#[test]
fn a_raw_text_is_taken_whole_to_be_compared_exactly() {
    let dir = library::dir();
    let (_server, client) = exact_server(&dir);
    let text = variant(20_000, 1);
    client.post("/v1/collections/exact/documents", &json!({ "id": "a", "text": text })).ok();
    let found = client.text("/v1/collections/exact/check", variant(20_000, 2).as_bytes()).ok();
    assert_eq!(found["matches"][0]["method"], "exact", "{found}");
    let too_long = variant(40_000, 1);
    assert!(too_long.len() > 200_000);
    client.text("/v1/collections/exact/check", too_long.as_bytes()).problem(413, "too_large");
    client.text("/v1/collections/exact/sign", too_long.as_bytes()).ok();
    client.text("/v1/collections/default/check", too_long.as_bytes()).ok();
}
