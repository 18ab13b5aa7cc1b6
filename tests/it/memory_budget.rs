//! The memory budget. When it is reached, requests that would store a document are refused, all other requests work,
//! and deletes make room again.

use std::time::{Duration, Instant};

use hapax::collections::{Changes, Collection, CollectionError, InsertOptions};
use hapax::telemetry::memory::Bound;
use hapax::telemetry::names;
use hapax::types::{CollectionName, OnDuplicate, OnExisting};
use serde_json::{Value, json};

use crate::support::client::{Answer, CHECK, Client, DOCUMENTS, words};
use crate::support::documents::{self, options};
use crate::support::library;
use crate::support::local::Setup;
use crate::support::server::{Server, Starting};

const MAX: u64 = 2 << 20;
/// A factor for the budget: tables grow by whole pages, which matters in an index as small as this.
const PAGES: f64 = 1.1;
const PATIENCE: Duration = Duration::from_secs(60);
fn start(data: &std::path::Path, max: u64) -> (Server, Client) {
    let bounds = [("HAPAX__LIMITS__MEMORY_MAX_BYTES", &*max.to_string())];
    let server = Starting::spawn_with(data, &["--log-format", "json"], &bounds).ready();
    let client = Client::new(server.url(""));
    (server, client)
}

/// Returns the sum over all series of a name.
fn metric(client: &Client, name: &str) -> f64 {
    let text = client.get("/metrics").text();
    let values = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(name).filter(|rest| rest.starts_with([' ', '{']))?;
        Some(rest.rsplit_once(' ')?.1.parse::<f64>().expect("a number"))
    });
    values.sum()
}

/// Returns the bytes of the index, without the ids that are kept for answers. These ids have a limit of their own.
fn index_bytes(client: &Client) -> f64 {
    let ids = metric(client, r#"hapax_index_bytes{collection="default",part="id_cache"}"#);
    metric(client, names::INDEX_BYTES) - ids
}

fn store(client: &Client, number: u64, query: &str) -> Answer {
    client.post(&format!("{DOCUMENTS}{query}"), &json!({"id": number.to_string(), "text": words(number)}))
}

/// Stores documents, numbered from `from`, until one is refused. Returns the number of the refused document.
fn fill(client: &Client, from: u64) -> u64 {
    for first in (from..from + 20_000).step_by(100) {
        let documents: Vec<Value> =
            (first..first + 100).map(|number| json!({"id": number.to_string(), "text": words(number)})).collect();
        let answer =
            client.post("/v1/collections/default/batch", &json!({"op": "insert", "documents": documents})).ok();
        for (number, result) in (first..).zip(answer["results"].as_array().unwrap()) {
            if result["outcome"] != "inserted" {
                assert_eq!(result["error"]["code"], "memory_budget_reached", "{result}");
                return number;
            }
        }
    }
    panic!("the budget is never reached");
}

fn delete(client: &Client, ids: &[String]) {
    for ids in ids.chunks(1000) {
        let deleted = client.post(&format!("{DOCUMENTS}/delete"), &json!({ "ids": ids })).ok();
        assert_eq!(deleted["deleted"], ids.len());
    }
}

/// Deletes the oldest documents.
fn delete_oldest(client: &Client, count: u64) {
    for first in (0..count).step_by(1000) {
        let page = client.get(&format!("{DOCUMENTS}?limit={}", (count - first).min(1000))).ok();
        let documents = page["documents"].as_array().unwrap();
        let ids: Vec<String> = documents.iter().map(|document| document["id"].as_str().unwrap().to_owned()).collect();
        delete(client, &ids);
    }
}

fn logged(data: &std::path::Path, what: &str) -> usize {
    let log = std::fs::read_to_string(data.with_extension("log")).expect("a log");
    log.lines().filter(|line| line.contains(what)).count()
}

#[test]
fn connections_follow_from_the_memory_and_the_log_warns_if_more_are_set() {
    let bound = ("HAPAX__MEMORY__MAX_BYTES", "134217728");
    let set = ("HAPAX__SERVER__CONNECTIONS_MAX", "4096");
    for (settings, connections, warnings) in [(&[bound][..], 213, 0), (&[bound, set], 4096, 1)] {
        let dir = library::dir();
        let data = dir.path().join("data");
        let server = Starting::spawn_with(&data, &[], settings).ready();
        let metrics = Client::new(server.url("")).get("/metrics").text();
        assert!(metrics.contains(&format!("hapax_http_connections_max {connections}\n")), "{metrics}");
        assert_eq!(logged(&data, "server.connections_max is too large for memory.max_bytes"), warnings);
    }
}

#[test]
fn a_full_index_refuses_what_would_store_and_nothing_else() {
    // The line about lines that were left out also contains these words, but not as its message.
    const WARNING: &str = "\"message\":\"the index uses more than 80 % of limits.memory_max_bytes";
    let dir = library::dir();
    let data = dir.path().join("data");
    let (server, client) = start(&data, MAX);
    assert_eq!(metric(&client, names::MEMORY_BUDGET), MAX as f64);
    let full = fill(&client, 0);
    assert!(full > 2000, "{full} documents are few for a budget of {MAX} bytes");

    // The budget is used up, but not exceeded.
    let (used, held) = (metric(&client, names::MEMORY_USED), index_bytes(&client));
    assert!((0.9 * MAX as f64..=PAGES * MAX as f64).contains(&used), "{used} of {MAX}");
    assert!((0.7 * MAX as f64..=PAGES * MAX as f64).contains(&held), "{held} of {MAX}");
    assert!(metric(&client, names::MEMORY_USED_RATIO) > 0.9);
    let refused = metric(&client, names::MEMORY_REFUSED);
    assert!(refused >= 1.0);
    assert_eq!(logged(&data, WARNING), 1, "{}", server.log_tail());

    what_stores_nothing_goes_on(&client);
    what_stores_does_not(&client, full);
    assert_eq!(metric(&client, names::MEMORY_REFUSED) - refused, 5.0);

    // Deletes of one document and of many make room.
    delete(&client, &["10".to_owned()]);
    assert_eq!(store(&client, full + 10, "").ok()["outcome"], "inserted");
    assert_eq!(store(&client, full + 11, "").status, 507);
    let half: Vec<String> = (100..100 + full / 2).map(|number| number.to_string()).collect();
    delete(&client, &half);
    let again = fill(&client, full + 1000) - (full + 1000);
    assert!((full * 2 / 5..=full * 3 / 5).contains(&again), "{again} documents went into the room of {}", full / 2);
    assert!(index_bytes(&client) <= PAGES * MAX as f64);
    assert_eq!(logged(&data, "uses less than 75 % of limits.memory_max_bytes again"), 1, "{}", server.log_tail());
    // The second warning is left out of the log if it comes within 10 s of the first.
    let warned = logged(&data, WARNING);
    assert!((1..=2).contains(&warned), "{}", server.log_tail());

    // A server with more documents than its budget allows still starts.
    let documents = client.get("/v1/collections/default").ok()["documents"].as_u64().unwrap();
    assert!(server.terminate().success());
    let (server, client) = start(&data, MAX / 2);
    assert_eq!(server.documents(), documents);
    assert_eq!(logged(&data, WARNING), warned + 1, "{}", server.log_tail());
    assert!(metric(&client, names::MEMORY_USED_RATIO) > 1.5);
    assert_eq!(store(&client, 1_000_000, "").status, 507);
    let check = client.post("/v1/collections/default/check", &json!({ "text": words(3) })).ok();
    assert_eq!(check["verdict"], "exact_duplicate");
    // Somewhat more than half of the documents must be deleted before there is room.
    delete_oldest(&client, documents / 4);
    assert_eq!(store(&client, 1_000_000, "").status, 507);
    delete_oldest(&client, documents / 2);
    assert_eq!(store(&client, 1_000_000, "").ok()["outcome"], "inserted");
    assert!(server.terminate().success());
}

fn what_stores_nothing_goes_on(client: &Client) {
    let check = client.post("/v1/collections/default/check", &json!({ "text": words(3) })).ok();
    assert_eq!(check["verdict"], "exact_duplicate");
    let twin = json!({"id": "twin", "text": words(3)});
    assert_eq!(client.post(DOCUMENTS, &twin).ok()["outcome"], "skipped");
    assert_eq!(store(client, 3, "").ok()["outcome"], "unchanged");
    assert_eq!(client.get(&format!("{DOCUMENTS}?id=3")).status, 200);
    assert_eq!(client.get("/readyz").status, 200);
    assert_eq!(client.delete(&format!("{DOCUMENTS}?id=nobody")).ok()["deleted"], 0);
}

/// Tries every request that could store a document.
fn what_stores_does_not(client: &Client, full: u64) {
    let twin = json!({"id": "twin", "text": words(3)});
    let problem = client.post(&format!("{DOCUMENTS}?on_duplicate=store"), &twin).problem(507, "memory_budget_reached");
    assert_eq!(problem["type"], "urn:hapax:problem:memory-budget-reached");
    for words in ["limits.memory_max_bytes", "delete", "ttl", &MAX.to_string()] {
        assert!(problem["detail"].as_str().unwrap().contains(words), "{problem}");
    }
    assert_eq!(client.post(&format!("{DOCUMENTS}?on_duplicate=link"), &twin).status, 507);
    let other = json!({"id": "3", "text": words(full + 1)});
    assert_eq!(client.post(&format!("{DOCUMENTS}?on_existing=replace"), &other).status, 507);
    let lines =
        format!("{}\n{}\n", json!({"id": "new", "text": words(full + 2)}), json!({"id": "5", "text": words(5)}));
    let lines = client.bulk("op=insert", &lines);
    assert_eq!(
        (&lines[0]["error"]["code"], &lines[0]["error"]["status"]),
        (&json!("memory_budget_reached"), &json!(507))
    );
    assert_eq!(lines[1]["outcome"], "unchanged");
    let batch = json!({"op": "insert", "documents": [{"id": "new", "text": words(full + 2)}]});
    let batch = client.post("/v1/collections/default/batch", &batch).ok();
    assert_eq!(batch["results"][0]["error"]["code"], "memory_budget_reached");
}

async fn insert(collection: &Collection, number: u64) -> Result<(), CollectionError> {
    let options = InsertOptions { limit: 1, ..options(OnDuplicate::Skip, OnExisting::Conflict) };
    documents::insert(collection, number.to_string(), words(number), options).await.map(drop)
}

async fn fill_up(collection: &Collection, from: u64) -> u64 {
    for number in from..from + 20_000 {
        match insert(collection, number).await {
            Ok(()) => {}
            Err(CollectionError::MemoryBudget { .. }) => return number - from,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the budget is never reached");
}

#[tokio::test(flavor = "multi_thread")]
async fn collections_share_the_budget_and_drops_and_expiries_give_back() {
    let dir = library::dir();
    let mut config = library::config(&dir);
    config.memory.index_bytes_max = Some(MAX);
    let collections = library::open(config);
    let default = library::default(&collections).await;
    let name = CollectionName::new("other").unwrap();
    let (other, _) = collections.create(name.clone(), library::settings()).await.unwrap();
    for number in 0..500 {
        insert(&other, number).await.unwrap();
    }
    let beside = fill_up(&default, 0).await;
    assert!(matches!(insert(&other, 1000).await, Err(CollectionError::MemoryBudget { .. })));
    drop(other);
    collections.remove(&name).await.unwrap();
    // The memory of a collection is freed when its last user drops it.
    let since = Instant::now();
    while insert(&default, beside).await.is_err() {
        assert!(since.elapsed() < PATIENCE, "a drop gives nothing back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let instead = fill_up(&default, 20_000).await;
    assert!(instead >= 400, "{instead} in place of 500");
    let ttl = Changes { ttl: Some(Some(Duration::from_secs(1))), ..Changes::default() };
    default.update(ttl).await.unwrap();
    while default.describe().documents > 0 {
        assert!(since.elapsed() < PATIENCE, "nothing expires");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    insert(&default, 40_000).await.unwrap();
    library::close(collections).await;
}

/// The process has reached `memory.max_bytes`, although the index has room.
#[test]
fn a_process_at_its_bound_refuses_what_makes_it_grow_and_nothing_else() {
    let dir = library::dir();
    let mut setup = Setup::new(&dir);
    let process = Bound::new(Some(1 << 30));
    setup.collections.memory.process = std::sync::Arc::clone(&process);
    let server = setup.start();
    let client = Client::new(format!("http://{}", server.address));
    for number in 0..4 {
        assert_eq!(store(&client, number, "").ok()["outcome"], "inserted");
    }
    let large = json!({ "text": words(3).repeat(400_000 / words(3).len()) });
    assert_eq!(client.post(CHECK, &large).status, 200);

    process.note(1 << 30);
    let problem = store(&client, 10, "").problem(507, "memory_budget_reached");
    for words in ["memory.max_bytes", "1073741824", "delete"] {
        assert!(problem["detail"].as_str().unwrap().contains(words), "{problem}");
    }
    what_stores_nothing_goes_on(&client);
    let problem = client.post(CHECK, &large).problem(503, "overloaded");
    assert!(problem["detail"].as_str().unwrap().contains("memory.max_bytes"), "{problem}");
    let lines = format!("{}\n{}\n", json!({"id": "10", "text": words(10)}), json!({"id": "1", "text": words(1)}));
    let lines = client.bulk("op=insert", &lines);
    assert_eq!((&lines[0]["error"]["status"], &lines[1]["outcome"]), (&json!(507), &json!("unchanged")));
    let banding = json!({"banding": {"bands": 8, "rows": 16}});
    let patch = |banding: &Value| client.json("PATCH", "/v1/collections/default", banding);
    patch(&banding).problem(507, "memory_budget_reached");
    // One document takes the place of the deleted one, and no other document fits.
    delete(&client, &["0".to_owned()]);
    assert_eq!(store(&client, 11, "").ok()["outcome"], "inserted");
    assert_eq!(store(&client, 12, "").status, 507);
    // If there is no memory for a line, the line waits.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.bulk("op=check", &format!("{large}\n")));
        std::thread::sleep(Duration::from_millis(300));
        assert!(!waiting.is_finished(), "the line does not wait");
        process.note(1 << 29);
        assert_eq!(waiting.join().unwrap()[0]["kind"], "verdict");
    });
    assert_eq!(store(&client, 12, "").ok()["outcome"], "inserted");
    assert_eq!(client.post(CHECK, &large).status, 200);
    patch(&banding).ok();
}
