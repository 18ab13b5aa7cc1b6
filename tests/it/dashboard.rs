//! The dashboard in `config/grafana`: a real Prometheus that scrapes busy servers has data for every expression. One
//! server stores on disk, and the other in a Redis Cluster.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::client::{CHECK, Client, DOCUMENTS, words};
use crate::support::metrics::unknown_metrics;
use crate::support::prometheus::Prometheus;
use crate::support::redis::{Kind, RedisCluster};
use crate::support::server::Starting;

const PATIENCE: Duration = Duration::from_secs(90);

/// Returns the expressions of all panels, each with the panel's title. Variables of the dashboard are replaced by
/// patterns that match everything.
fn expressions() -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/grafana/hapax.json");
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("the file")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().expect("an id")).collect();
    assert_eq!(ids.len(), panels.len(), "each panel has an id of its own");
    let of_panel = |panel: &Value| -> Vec<(String, String)> {
        let title = panel["title"].as_str().expect("a title").to_owned();
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        let expression = |target: Value| target["expr"].as_str().expect("an expression").to_owned();
        targets.into_iter().map(|target| (title.clone(), expression(target))).collect()
    };
    panels.iter().flat_map(of_panel).collect()
}

#[test]
fn panels_name_metrics_that_exist() {
    let expressions = expressions();
    assert!(expressions.len() > 40);
    for (panel, expression) in expressions {
        assert_eq!(unknown_metrics(&expression), Vec::<String>::new(), "{panel}");
    }
}

/// Does all the work that a panel shows.
fn load(client: &Client, round: u64) {
    for number in 10 * round..10 * round + 10 {
        client.post(DOCUMENTS, &json!({"id": number.to_string(), "text": words(number)})).ok();
        client.post(CHECK, &json!({"text": words(number)})).ok();
        client.post(CHECK, &json!({"text": words(1_000_000 + number)})).ok();
    }
    assert_eq!(client.post(CHECK, &json!({"no": "text"})).status, 422);
    // This text is longer than those signed on the thread that serves the connection.
    let long: String = (0..2000).map(|number| words(number) + " ").collect();
    client.post(CHECK, &json!({"text": long})).ok();
}

#[test]
fn every_panel_has_data() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let audit = tempfile::tempdir().expect("temporary directory");
    let log = audit.path().to_str().expect("UTF-8");
    let server = Starting::spawn_with(dir.path(), &[], &[("HAPAX__AUDIT__DIR", log)]).ready();
    let cluster = RedisCluster::up_with(Kind::Redis, &["--maxmemory", "1gb"]);
    let on_redis = cluster.as_ref().map(|cluster| cluster.serve(&audit.path().join("unused")));
    let servers: Vec<_> = [Some(&server), on_redis.as_ref()].into_iter().flatten().collect();
    let addresses: Vec<_> = servers.iter().map(|server| server.url("").replace("http://", "")).collect();
    let targets: Vec<_> = addresses.iter().map(String::as_str).collect();
    let Some(prometheus) = Prometheus::scraping(&targets, None) else { return };
    let clients: Vec<_> = servers.iter().map(|server| Client::new(server.url(""))).collect();
    let pair = json!({"a": words(1), "b": words(1), "duplicate": true});
    clients[0].json("PUT", "/v1/collections/default/golden", &json!({"pairs": [pair]})).ok();
    let everything = |expression: &str| {
        let rate = expression.replace("$__rate_interval", "30s");
        rate.replace("$instance", ".*").replace("$collection", ".*")
    };
    let mut left: Vec<_> =
        expressions().into_iter().map(|(panel, expression)| (panel, everything(&expression))).collect();
    left.retain(|(_, expression)| cluster.is_some() || !expression.contains("hapax_redis_"));
    let since = Instant::now();
    for round in 0.. {
        clients.iter().for_each(|client| load(client, round));
        left.retain(|(_, expression)| !prometheus.has(expression));
        if left.is_empty() {
            return;
        }
        assert!(since.elapsed() < PATIENCE, "no data for {left:#?}");
        std::thread::sleep(Duration::from_millis(500));
    }
}
