//! The choice of banding: the command line, the tool over HTTP, a new collection and the server's default all agree. An
//! automatic banding follows the threshold; one that was set by hand does not.

use std::time::Duration;

use hapax::collections::{Changes, CollectionsConfig, Medium};
use hapax::config::{Sources, load};
use serde_json::{Value, json};

use crate::support::client::{Client, words};
use crate::support::command::run;
use crate::support::library::{self, Dir, dir};
use crate::support::local::Local;
use crate::support::server::Starting;

const SHAPES: [(u32, u32); 6] = [(64, 8), (128, 8), (256, 8), (256, 16), (512, 32), (1024, 8)];
const THRESHOLDS: [f64; 9] = [0.05, 0.3, 0.5, 0.65, 0.76, 0.8, 0.85, 0.95, 1.0];

fn tuned(arguments: &[String]) -> Value {
    let mut all = vec!["tune", "--json"];
    all.extend(arguments.iter().map(String::as_str));
    let output = run(&all);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Returns the default of a server with this sketch and threshold.
fn server_default(k: u32, bits: u32, threshold: f64) -> Value {
    let environment = [
        ("HAPAX__DEFAULT_COLLECTION__SKETCH", format!("fss{k}x{bits}")),
        ("HAPAX__DEFAULT_COLLECTION__THRESHOLD", threshold.to_string()),
    ];
    let environment = environment.map(|(name, value)| (name.into(), value.into())).to_vec();
    let loaded = load(&Sources { environment, ..Sources::default() }).expect("possible");
    let banding = loaded.config.collections.default_settings.banding;
    json!({"bands": banding.bands(), "rows": banding.rows()})
}

/// In an earlier version, `hapax tune`, `/v1/tune` and new collections chose different bandings for the same threshold
/// and signature: 21x10, 25x8 and 31x8 (bands x rows). Now all of them call one function, with the same targets.
#[test]
fn every_place_that_chooses_a_banding_chooses_the_same() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    for (k, bits) in SHAPES {
        for threshold in THRESHOLDS {
            let what = format!("{k}x{bits} at {threshold}");
            let flags = ["--k", &k.to_string(), "--bits", &bits.to_string(), "--threshold", &threshold.to_string()];
            let printed = tuned(&flags.map(str::to_owned));
            let answered = client.post("/v1/tune", &json!({"k": k, "bits": bits, "threshold": threshold})).ok();
            let asked = json!({"sketch": format!("fss{k}x{bits}"), "threshold": threshold});
            let made = client.json("PUT", "/v1/collections/c", &asked);
            assert_eq!(made.status, 201, "{what}: {}", made.text());
            let made = made.json();
            client.delete("/v1/collections/c?confirm=c").ok();

            let banding = &printed["banding"];
            assert_eq!(banding, &answered["banding"], "tune and /v1/tune, {what}");
            assert_eq!(banding, &made["banding"], "tune and PUT, {what}");
            assert_eq!(banding, &server_default(k, bits, threshold), "tune and the server's default, {what}");
            for number in ["s_hi", "documents", "s_bg", "index_bytes_per_document", "index_bytes"] {
                assert_eq!(printed[number].as_f64(), answered[number].as_f64(), "{number}, {what}");
            }
            let close = |a: &Value, b: &Value| (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-5;
            assert!(close(&printed["candidate_recall_at_s_hi"], &answered["recall_at_s_hi"]), "{what}");
            assert!(close(&printed["estimate_standard_error"], &answered["estimate_standard_error"]), "{what}");
            for (said, at) in [
                ("steepest", "steepest"),
                ("width", "width"),
                ("candidates_0_1_percent", "percent_0_1"),
                ("candidates_10_percent", "percent_10"),
                ("candidates_90_percent", "percent_90"),
                ("candidates_99_percent", "percent_99"),
            ] {
                assert!(close(&printed["curve"][said], &answered["candidates_at"][at]), "{said}, {what}");
            }
            if (k, bits, threshold) == (256, 8, 0.8) {
                assert_eq!(banding, &json!({"bands": 31, "rows": 8}));
            }
        }
    }
}

#[test]
fn the_same_targets_get_the_same_banding_on_the_command_line_and_over_http() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    for targets in [
        json!({"recall": 0.95}),
        json!({"recall": 0.999, "s_hi": 0.85, "s_lo": 0.5}),
        json!({"threshold": 0.7, "candidates_max": 50, "documents": 5e7, "s_bg": 0.05}),
        json!({"bands_wanted": 0, "k": 128}),
        json!({"bands_wanted": 64, "k": 1024, "threshold": 0.9}),
    ] {
        let answered = client.post("/v1/tune", &targets).ok();
        let flags = targets.as_object().expect("an object").iter();
        let flags: Vec<_> =
            flags.flat_map(|(name, value)| [format!("--{}", name.replace('_', "-")), value.to_string()]).collect();
        assert_eq!(tuned(&flags)["banding"], answered["banding"], "{targets}");
    }
}

#[test]
fn a_server_started_on_defaults_has_the_banding_that_tune_prints() {
    let dir = dir();
    for (sketch, threshold, flags) in
        [("fss256x8", "0.8", vec![]), ("oph128x16", "0.6", vec!["--k", "128", "--bits", "16"])]
    {
        let environment =
            [("HAPAX__DEFAULT_COLLECTION__SKETCH", sketch), ("HAPAX__DEFAULT_COLLECTION__THRESHOLD", threshold)];
        let server = Starting::spawn_with(&dir.path().join(sketch), &[], &environment).ready();
        let served = Client::new(server.url("")).get("/v1/collections/default").ok();
        let flags: Vec<_> = flags.into_iter().chain(["--threshold", threshold]).map(str::to_owned).collect();
        assert_eq!(served["banding"], tuned(&flags)["banding"], "{sketch} at {threshold}");
    }
}

const PATH: &str = "/v1/collections/c";

fn patch(client: &Client, changes: Value) -> Value {
    client.json("PATCH", PATH, &changes).ok()
}

fn banding_of(collection: &Value) -> (u64, u64, bool) {
    let number = |name: &str| collection["banding"][name].as_u64().expect("a number");
    (number("bands"), number("rows"), collection["banding_by_hand"].as_bool().expect("a flag"))
}

/// Returns the banding that a new collection gets at this threshold.
fn automatic(client: &Client, threshold: f64) -> (u64, u64, bool) {
    let tuned = client.post("/v1/tune", &json!({"threshold": threshold})).ok();
    (tuned["banding"]["bands"].as_u64().unwrap(), tuned["banding"]["rows"].as_u64().unwrap(), false)
}

/// Returns two similar texts. Bands for 0.8 make them candidates one time in ten.
fn pair() -> (String, String) {
    let text = (0..4).map(words).collect::<Vec<_>>().join(" ");
    let mut changed: Vec<_> = text.split(' ').collect();
    for at in (7..changed.len() - 7).step_by(14) {
        changed[at] = "changed";
    }
    let changed = changed.join(" ");
    (text, changed)
}

/// In an earlier version, a PATCH of the threshold left the bands unchanged: at 0.5, bands for 0.8 found 12 pairs in
/// 100.
#[test]
fn an_automatic_banding_follows_the_threshold_and_finds_what_it_promises() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let made = client.json("PUT", PATH, &json!({"threshold": 0.8}));
    assert_eq!(banding_of(&made.json()), automatic(&client, 0.8));
    for n in 10..200 {
        let text = format!("{} {}", words(n), words(n + 1000));
        client.post("/v1/collections/c/documents", &json!({"id": format!("{n}"), "text": text}));
    }
    for threshold in [0.5, 0.9, 0.6, 0.3, 0.8, 0.4] {
        let patched = patch(&client, json!({"threshold": threshold}));
        assert_eq!(banding_of(&patched), automatic(&client, threshold), "{patched}");
        assert_eq!(patched, client.get(PATH).ok());
        let found =
            client.post("/v1/collections/c/check", &json!({"text": format!("{} {}", words(50), words(1050))})).ok();
        assert_eq!(
            (&found["verdict"], &found["duplicate_of"]),
            (&json!("exact_duplicate"), &json!("50")),
            "{threshold}"
        );
    }
    let (text, changed) = pair();
    client.post("/v1/collections/c/documents", &json!({"id": "far", "text": text}));
    let found = client.post("/v1/collections/c/check", &json!({"text": changed})).ok();
    assert_eq!(found["duplicate_of"], "far", "{found}");
    assert!(found["similarity"].as_f64().unwrap() < 0.6, "{found}");

    let same = patch(&client, json!({"threshold": 0.4, "touch": true}));
    assert_eq!(banding_of(&same), automatic(&client, 0.4));
}

#[test]
fn a_banding_by_hand_stays_until_it_is_made_automatic() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    client.json("PUT", PATH, &json!({"threshold": 0.8, "banding": {"bands": 31, "rows": 8}}));
    let by_hand = patch(&client, json!({"threshold": 0.5}));
    assert_eq!(banding_of(&by_hand), (31, 8, true));
    let both = patch(&client, json!({"threshold": 0.6, "banding": {"bands": 16, "rows": 4}}));
    assert_eq!(banding_of(&both), (16, 4, true));
    let again = patch(&client, json!({"banding_by_hand": false}));
    assert_eq!(banding_of(&again), automatic(&client, 0.6));
    assert_eq!(banding_of(&patch(&client, json!({"threshold": 0.7}))), automatic(&client, 0.7));
    let both = patch(&client, json!({"banding_by_hand": false, "threshold": 0.3}));
    assert_eq!(banding_of(&both), automatic(&client, 0.3));
    let kept = patch(&client, json!({"banding_by_hand": true, "threshold": 0.8}));
    let (bands, rows, _) = automatic(&client, 0.3);
    assert_eq!(banding_of(&kept), (bands, rows, true));
    assert_eq!(banding_of(&patch(&client, json!({"threshold": 0.7}))), (bands, rows, true));
    let contradiction = json!({"banding": {"bands": 31, "rows": 8}, "banding_by_hand": false});
    client.json("PATCH", PATH, &contradiction).problem(422, "invalid_value");
    client.json("PUT", "/v1/collections/d", &contradiction).problem(422, "invalid_value");
    for wrong in
        [json!("hand"), json!(7), json!([31, 8]), json!({"bands": 31}), json!({"bands": 31, "rows": 8, "by": 1})]
    {
        let problem = client.json("PATCH", PATH, &json!({"banding": wrong})).problem(422, "invalid_value");
        assert!(problem["errors"][0]["field"].as_str().unwrap().starts_with("banding"), "{problem}");
    }
    assert_eq!(banding_of(&client.get(PATH).ok()), (bands, rows, true));
}

#[test]
fn who_chose_the_banding_outlives_a_restart_and_put_stays_idempotent() {
    let dir: Dir = dir();
    let hand = json!({"banding": {"bands": 31, "rows": 8}});
    for restart in [false, true] {
        let server = Local::plain(&dir);
        let client = Client::of(&server);
        let status = if restart { 200 } else { 201 };
        for (name, body, by_hand) in [
            ("hand", hand.clone(), true),
            ("auto", json!({"banding_by_hand": false}), false),
            ("none", json!({}), false),
        ] {
            let path = format!("/v1/collections/{name}");
            let made = client.json("PUT", &path, &body);
            assert_eq!(made.status, status, "{name}: {}", made.text());
            assert_eq!(banding_of(&made.json()), (31, 8, by_hand), "{name}");
            // Without a banding, the server chooses 31x8 for this threshold. So both bodies request the same banding.
            for other in [&hand, &json!({})] {
                assert_eq!(client.json("PUT", &path, other).status, 200, "{name} as {other}");
            }
            let conflict = client.json("PUT", &path, &json!({"banding": {"bands": 30, "rows": 8}}));
            conflict.problem(409, "collection_exists");
        }
        server.stopped();
    }
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let follows = |name: &str| {
        let patched = client.json("PATCH", &format!("/v1/collections/{name}"), &json!({"threshold": 0.5})).ok();
        banding_of(&patched)
    };
    assert_eq!(follows("hand"), (31, 8, true));
    assert_eq!(follows("auto"), automatic(&client, 0.5));
    assert_eq!(follows("none"), automatic(&client, 0.5));
}

/// In an earlier version, an answer could contain the settings of the next change, because the answer was made only
/// after that change.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_at_the_same_time_are_each_answered_with_their_own() {
    let dir = dir();
    let collections = library::open(CollectionsConfig { medium: Medium::Memory, ..library::config(&dir) });
    let collection = library::default(&collections).await;
    let changes = (1..=1000).map(|seconds| {
        let (collection, ttl) = (collection.clone(), Some(Duration::from_secs(seconds)));
        tokio::spawn(async move {
            let changes = Changes { ttl: Some(ttl), ..Changes::default() };
            (ttl, collection.update(changes).await.unwrap().settings.ttl)
        })
    });
    for change in changes.collect::<Vec<_>>() {
        let (asked, answered) = change.await.unwrap();
        assert_eq!(asked, answered);
    }
    library::close(collections).await;
}
