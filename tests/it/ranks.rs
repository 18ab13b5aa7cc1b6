//! Ranks can be merged: the smaller rank of two documents in each slot is the rank of the union of their shingles.
//! This file also tests a collection with an `oph` sketch, from its creation to its verdicts.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::client::{Client, fields};
use crate::support::library::dir;
use crate::support::local::{Local, Setup};

const SKETCHES: [&str; 3] = ["fss256x8", "classic64x16", "oph256x8"];

fn collections(client: &Client) -> impl Iterator<Item = (&'static str, String)> {
    SKETCHES.into_iter().map(|sketch| {
        let path = format!("/v1/collections/{sketch}");
        let made = client.json("PUT", &path, &json!({"sketch": sketch}));
        assert_eq!(made.status, 201, "{}", made.text());
        (sketch, path)
    })
}

fn ranks(signed: &Value) -> Vec<u64> {
    let bytes = STANDARD.decode(signed["ranks"].as_str().expect("ranks")).unwrap();
    assert_eq!(bytes.len() % 8, 0);
    bytes.chunks(8).map(|rank| u64::from_le_bytes(rank.try_into().unwrap())).collect()
}

fn merged(a: &[u64], b: &[u64]) -> Vec<u64> {
    a.iter().zip(b).map(|(a, b)| *a.min(b)).collect()
}

fn text(words: std::ops::Range<u32>) -> String {
    words.map(|word| format!("w{word}")).collect::<Vec<_>>().join(" ")
}

/// If a client had the ranks of one word, it could compute the hash of the word under the secret. With such hashes, it
/// could craft pages that evade the index.
#[test]
fn a_collection_with_a_secret_gives_no_ranks() {
    let dir = dir();
    let server = Setup::new(&dir).secret(7).start();
    let client = Client::of(&server);
    assert_eq!(client.json("PUT", "/v1/collections/keyed", &json!({"key": "configured"})).status, 201);
    let sign = "/v1/collections/keyed/sign";
    client.post(sign, &json!({"text": "word"})).ok();
    let long = text(0..10_000);
    for refused in [
        client.post(&format!("{sign}?ranks=true"), &json!({"text": "word"})),
        client.post(&format!("{sign}?ranks=true"), &json!({"set": ["word"]})),
        client.text(&format!("{sign}?ranks=true"), long.as_bytes()),
    ] {
        assert_eq!(fields(&refused.problem(422, "invalid_value")), ["ranks"]);
    }
}

#[test]
fn merged_ranks_are_those_of_the_union() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    for (sketch, path) in collections(&client) {
        let sign = format!("{path}/sign?ranks=true");
        let set = |elements: std::ops::Range<u32>| json!({"set": elements.collect::<Vec<_>>()});
        let of_set = |elements| ranks(&client.post(&sign, &set(elements)).ok());
        let union = of_set(0..900);
        assert_eq!(union.len().to_string(), sketch.trim_start_matches(char::is_alphabetic).split('x').next().unwrap());
        assert_eq!(merged(&of_set(0..600), &of_set(300..900)), union, "{sketch}");
        assert_ne!(of_set(0..600), union);

        // The parts overlap by four words, so together they have each run of five words of the whole text.
        let of_text = |words| ranks(&client.post(&sign, &json!({ "text": text(words) })).ok());
        assert_eq!(merged(&of_text(0..60), &of_text(56..300)), of_text(0..300), "{sketch}");
        let streamed = |words| ranks(&client.text(&sign, text(words).as_bytes()).ok());
        assert_eq!(streamed(0..60), of_text(0..60), "{sketch}");
        assert_eq!(merged(&streamed(0..100_000), &streamed(99_996..150_000)), of_text(0..150_000), "{sketch}");

        let nothing = client.post(&sign, &json!({"text": "…"})).ok();
        assert_eq!((&nothing["empty"], nothing.get("signature")), (&json!(true), None));
        assert_eq!(merged(&ranks(&nothing), &union), union, "nothing merges into what it meets");
    }
}

#[test]
fn ranks_are_given_where_they_are_asked_for_and_can_be_had() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    for (sketch, path) in collections(&client) {
        let signed = client.post(&format!("{path}/sign"), &json!({"text": text(0..40)})).ok();
        assert!(signed.get("ranks").is_none());
        let ranked = client.post(&format!("{path}/sign?ranks=true"), &json!({"text": text(0..40)})).ok();
        assert_eq!((&ranked["signature"], &ranked["shingles"]), (&signed["signature"], &signed["shingles"]));
        let unreached = ranks(&ranked).iter().filter(|&&rank| rank == u64::MAX).count();
        if sketch.starts_with("oph") {
            assert!(unreached > 200, "36 shingles reach 36 slots at most");
            assert_eq!(ranked["empty_slots"], unreached);
            assert_eq!(signed["empty_slots"], unreached);
        } else {
            assert_eq!((unreached, ranked.get("empty_slots")), (0, None));
        }
        let given = json!({"signature": signed["signature"], "fingerprint": signed["fingerprint"]});
        let refused = client.post(&format!("{path}/sign?ranks=true"), &given).problem(422, "invalid_value");
        assert_eq!(fields(&refused), ["ranks"]);
        client.post(&format!("{path}/sign"), &given).ok();
        let refused = client.post(&format!("{path}/sign?ranks=1"), &json!({"text": "x"})).problem(422, "invalid_value");
        assert_eq!(fields(&refused), ["ranks"]);
    }
}

#[test]
fn a_collection_with_an_oph_sketch_finds_near_duplicates() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let path = "/v1/collections/oph";
    let spec = "hapax1;unicode=17;fold=nfkc_casefold;marks=keep;digits=keep;shingle=word5;sketch=oph256x8;key=none";
    assert_eq!(client.json("PUT", path, &json!({ "spec": spec })).status, 201);
    assert_eq!(client.get(path).ok()["spec"], spec);
    for number in 0..50 {
        let inserted = json!({"id": format!("d{number}"), "text": text(1000 * number..1000 * number + 400)});
        assert_eq!(client.post(&format!("{path}/documents"), &inserted).ok()["verdict"], "unique");
    }
    for number in 0..50 {
        let near = format!("{} and a new end", text(1000 * number..1000 * number + 400));
        let verdict = client.post(&format!("{path}/check"), &json!({ "text": near })).ok();
        assert_eq!(
            (&verdict["verdict"], &verdict["duplicate_of"]),
            (&json!("near_duplicate"), &json!(format!("d{number}")))
        );
        let same = client.text(&format!("{path}/check"), text(1000 * number..1000 * number + 400).as_bytes()).ok();
        assert_eq!(same["verdict"], "exact_duplicate");
        let other = text(1000 * number + 500..1000 * number + 900);
        assert_eq!(client.post(&format!("{path}/check"), &json!({ "text": other })).ok()["verdict"], "unique");
    }
    let signed = client.post(&format!("{path}/sign"), &json!({"text": text(0..30)})).ok();
    assert!((230..256).contains(&signed["empty_slots"].as_u64().unwrap()), "{signed}");
    let signed = client.post(&format!("{path}/sign"), &json!({"text": text(0..30_000)})).ok();
    assert_eq!(signed["empty_slots"], 0);
    let set: Vec<_> = (0..5).collect();
    assert!(client.post(&format!("{path}/sign"), &json!({ "set": set })).ok()["empty_slots"].as_u64().unwrap() > 250);
}
