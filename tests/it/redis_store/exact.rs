//! Collections in a cluster that store shingles, and compare them.

use serde_json::{Value, json};

use super::contents::Content;
use super::{settings, start_with};
use crate::support::client::{CHECK, Client, DOCUMENTS};
use crate::support::library::dir;
use crate::support::redis::{Kind, RedisCluster};

const DEFAULT: &str = "/v1/collections/default";

fn text(variant: u64) -> String {
    Content { group: 1, variant }.text()
}

#[test]
fn shingles_decide_and_no_more_of_them_are_read_than_the_limit_allows() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let more = "[default_collection]\nkeep = \"shingles\"\nverify = \"exact\"\n[limits]\nexact_reads_max = 2\n";
    let servers = ["a", "b"].map(|name| start_with(&settings(cluster.nodes(), more), dir.path(), name).ready());
    let [one, other] = servers.each_ref().map(|server| Client::new(server.url("")));
    for variant in 0..4 {
        let body = json!({"id": format!("v{variant}"), "text": text(variant)});
        let stored = one.post(&format!("{DOCUMENTS}?on_duplicate=store"), &body).ok();
        assert_eq!(stored["outcome"], "inserted");
    }
    let check = |client: &Client, variant| client.post(CHECK, &json!({"text": text(variant)})).ok();
    // Of 300 words, one is another one in each text: at least 292 of 304 shingles are equal.
    let found = check(&other, 9);
    assert_eq!((&found["complete"], &found["unread"]), (&json!(false), &json!(2)));
    let matches = found["matches"].as_array().expect("a list");
    assert_eq!(matches.len(), 2, "{found}");
    for found in matches {
        assert_eq!(found["method"], "exact", "{found}");
        assert!(found["similarity"].as_f64().is_some_and(|value| (0.93..1.0).contains(&value)), "{found}");
    }
    // A document with the same content needs no comparison.
    let same = check(&other, 2);
    assert_eq!((&same["verdict"], &same["duplicate_of"]), (&json!("exact_duplicate"), &json!("v2")));

    // The stored shingles survive a change of the metadata, which writes the whole record.
    let updated = one.post(DOCUMENTS, &json!({"id": "v0", "text": text(0), "metadata": {"n": 1}})).ok();
    assert_eq!(updated["outcome"], "updated");
    for id in ["v1", "v2", "v3"] {
        assert_eq!(one.delete(&format!("{DOCUMENTS}?id={id}")).ok()["deleted"], 1);
    }
    let found = check(&one, 9);
    let first = &found["matches"][0];
    assert_eq!((&found["complete"], &first["id"], &first["method"]), (&json!(true), &json!("v0"), &json!("exact")));

    one.json("PATCH", DEFAULT, &json!({"verify": "estimate"})).ok();
    let estimate = check(&one, 9)["matches"][0]["method"].clone();
    assert_eq!(estimate, "estimate");
    one.json("PATCH", DEFAULT, &json!({"verify": "borderline"})).ok();
    let refused: Value = json!({"keep": "text", "verify": "exact"});
    one.json("PUT", "/v1/collections/texts", &refused).problem(501, "not_in_this_store");
}
