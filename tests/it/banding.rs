//! Which banding: the command line, the tool over HTTP, a new collection and the server's own all answer alike.

use hapax::config::{Sources, load};
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::run;
use crate::support::library::dir;
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

/// The default of a server with this sketch and threshold.
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

/// `hapax tune` once said 21x10, `/v1/tune` 25x8, and new collections got 31x8, all for the same defaults: each place
/// had targets of its own. Now there is one function with one set of defaults.
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
            for number in ["s_hi", "documents", "s_bg"] {
                assert_eq!(printed[number].as_f64(), answered[number].as_f64(), "{number}, {what}");
            }
            let close = |a: &Value, b: &Value| (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-5;
            assert!(close(&printed["candidate_recall_at_s_hi"], &answered["recall_at_s_hi"]), "{what}");
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
