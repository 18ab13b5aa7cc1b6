//! Seven faults of real servers, watched by a real Prometheus. Each fault fires its alert, and the alert ends when the
//! fault is gone. All times of the rules are divided by [`FASTER`].

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use regex::{Captures, Regex};
use serde_json::json;

use super::{RULES, read};
use crate::damaged::{file, spoil};
use crate::support::client::{CHECK, Client, DOCUMENTS, words};
use crate::support::disk;
use crate::support::prometheus::Prometheus;
use crate::support::server::{Server, Starting};
use crate::support::signatures::{boilerplate, crowded, document, settings};

/// A minute of the rules is a second here.
const FASTER: u64 = 60;
const PATIENCE: Duration = Duration::from_secs(90);

/// Writes the rules with shorter times.
fn faster(dir: &Path) -> PathBuf {
    let times = Regex::new(r"(for: |\[|offset )(\d+)([mhd])").unwrap();
    let shorter = |found: &Captures<'_>| {
        let minutes = found[2].parse::<u64>().unwrap()
            * match &found[3] {
                "m" => 1,
                "h" => 60,
                _ => 24 * 60,
            };
        format!("{}{}s", &found[1], (minutes * 60 / FASTER).max(1))
    };
    let path = dir.join("rules.yaml");
    fs::write(&path, times.replace_all(&read(RULES), shorter).as_bytes()).unwrap();
    path
}

/// A server that has a fault, or will have one.
struct Faulty {
    server: Server,
    client: Client,
    alert: &'static str,
}

impl Faulty {
    fn start(alert: &'static str, data: &Path, environment: &[(&str, &str)]) -> Self {
        let server = Starting::spawn_with(data, &[], environment).ready();
        Self { client: Client::new(server.url("")), server, alert }
    }

    fn address(&self) -> String {
        self.server.url("").replace("http://", "")
    }

    /// Waits until the alert is in this state.
    fn wait(&self, prometheus: &Prometheus, fires: bool) {
        let (alert, instance, since) = (self.alert, self.address(), Instant::now());
        let firing = format!("ALERTS{{alertname=\"{alert}\",alertstate=\"firing\",instance=\"{instance}\"}}");
        // An alert also does not fire if its server is not scraped.
        let up = format!("up{{instance=\"{instance}\"}} == 1");
        while prometheus.has(&firing) != fires || !prometheus.has(&up) {
            assert!(since.elapsed() < PATIENCE, "{alert} {}", if fires { "does not fire" } else { "goes on" });
            std::thread::sleep(Duration::from_millis(200));
        }
        println!("{alert} {} after {:.0} s", if fires { "fires" } else { "is quiet" }, since.elapsed().as_secs_f64());
    }
}

#[test]
#[ignore = "takes a minute or two; `make alerts` runs it"]
fn faults_fire_their_alerts_which_go_quiet_again() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (full, backups) = (at("full"), at("backups"));

    let hot = Faulty::start("HapaxHotBuckets", &at("hot"), &[]);
    let filling = {
        let environment = disk::preloaded(&at("filling"), &at("notes"));
        let mut environment: Vec<_> = environment.iter().map(|(name, value)| (*name, &**value)).collect();
        environment.extend([("HAPAX_DISK_FULL", full.to_str().unwrap()), ("HAPAX__DATA__RESERVE_BYTES", "0")]);
        Faulty::start("HapaxRefusesWrites", &at("filling"), &environment)
    };
    let interrupted = interrupted_backup(&at("interrupted"), &backups);
    let damaged = damaged_collection(&at("damaged"));
    let busy = Faulty::start("HapaxShedsLoad", &at("busy"), &[("HAPAX__SERVER__REQUESTS_CONCURRENT_MAX", "1")]);
    let small = Faulty::start("HapaxIndexNearBudget", &at("small"), &[("HAPAX__LIMITS__MEMORY_MAX_BYTES", "1048576")]);
    let blind = blind_collection(&at("blind"));
    let all = [&hot, &filling, &interrupted, &damaged, &busy, &small, &blind];
    let addresses = all.map(Faulty::address);
    let Some(prometheus) = Prometheus::scraping(&addresses.each_ref().map(String::as_str), Some(&faster(dir.path())))
    else {
        return;
    };
    // Three servers have their faults from the start.
    interrupted.wait(&prometheus, true);
    blind.wait(&prometheus, true);
    damaged.wait(&prometheus, true);
    [&hot, &filling, &busy, &small].into_iter().for_each(|quiet| quiet.wait(&prometheus, false));

    crowd(&hot.client);
    fs::write(&full, "").unwrap();
    let refused = filling.client.post(DOCUMENTS, &json!({"id": "a", "text": words(1)}));
    assert!(refused.status >= 500, "the disk is full: {}", refused.status);
    grow(&small.client);
    filling.wait(&prometheus, true);
    small.wait(&prometheus, true);
    hot.wait(&prometheus, true);
    overload(&busy, || busy.wait(&prometheus, true));

    fs::remove_file(&full).unwrap();
    assert_eq!(small.client.delete("/v1/collections/pages?confirm=pages").status, 200);
    assert_eq!(hot.client.delete("/v1/collections/hot?confirm=hot").status, 200);
    assert_eq!(blind.client.delete("/v1/collections/crowded?confirm=crowded").status, 200);
    assert_eq!(damaged.client.delete("/v1/collections/pages?confirm=pages").status, 200);
    assert_eq!(interrupted.client.json("POST", "/v1/backups", &json!({})).status, 202);
    all.into_iter().for_each(|mended| mended.wait(&prometheus, false));
}

/// Makes a server whose only backup was interrupted by kill -9.
fn interrupted_backup(data: &Path, backups: &Path) -> Faulty {
    let slow = [("HAPAX__BACKUP__DIR", backups.to_str().unwrap()), ("HAPAX__BACKUP__BYTES_PER_SECOND_MAX", "65536")];
    let first = Faulty::start("HapaxBackupTooOld", data, &slow);
    for number in 0..100 {
        first.client.post(DOCUMENTS, &json!({"id": number.to_string(), "text": words(number)})).ok();
    }
    assert_eq!(first.client.json("POST", "/v1/backups", &json!({})).status, 202);
    let latest = first.client.get("/v1/backups").json();
    assert_eq!(latest["latest"]["state"], "running", "{latest}");
    first.server.kill();
    Faulty::start("HapaxBackupTooOld", data, &slow[..1])
}

/// Makes a server with a collection whose file is damaged.
fn damaged_collection(data: &Path) -> Faulty {
    let first = Faulty::start("HapaxCollectionDamaged", data, &[]);
    assert_eq!(first.client.json("PUT", "/v1/collections/pages", &json!({})).status, 201);
    first.client.post("/v1/collections/pages/documents", &json!({"id": "a", "text": words(1)})).ok();
    assert!(first.server.terminate().success());
    let path = file(data, "pages");
    let connection = rusqlite::Connection::open(&path).unwrap();
    let signature: Vec<u8> = connection.query_row("SELECT bytes FROM signature", [], |row| row.get(0)).unwrap();
    drop(connection);
    spoil(&path, &signature[..32]);
    Faulty::start("HapaxCollectionDamaged", data, &[])
}

/// Makes a server whose lookups read one document of each bucket, with a collection of crowded buckets.
fn blind_collection(data: &Path) -> Faulty {
    let alert = "HapaxCanaryRecallLow";
    let first = Faulty::start(alert, data, &[]);
    assert_eq!(first.client.json("PUT", "/v1/collections/crowded", &settings()).status, 201);
    let line = |number: u64| document(&number.to_string(), &crowded(number)).to_string() + "\n";
    let lines: String = (0..300).map(line).collect();
    let headers = [("content-type", "application/x-ndjson")];
    let answer = first.client.send("POST", "/v1/collections/crowded/bulk?op=insert", &headers, lines.as_bytes());
    assert_eq!(answer.lines().len(), 301, "with a summary");
    assert!(first.server.terminate().success());
    Faulty::start(alert, data, &[("HAPAX__LIMITS__BUCKET_READ_MAX", "1")])
}

/// Stores more than 10,000 documents that share a band key.
fn crowd(client: &Client) {
    assert_eq!(client.json("PUT", "/v1/collections/hot", &settings()).status, 201);
    let line = |number: u64| document(&number.to_string(), &boilerplate(number)).to_string() + "\n";
    let lines: String = (0..10_500).map(line).collect();
    let headers = [("content-type", "application/x-ndjson")];
    let answer = client.send("POST", "/v1/collections/hot/bulk?op=insert", &headers, lines.as_bytes());
    assert_eq!(answer.lines().len(), 10_501, "with a summary");
}

/// Stores documents until the index has no memory for more.
fn grow(client: &Client) {
    assert_eq!(client.json("PUT", "/v1/collections/pages", &json!({})).status, 201);
    let store = |number: u64| {
        let document = json!({"id": number.to_string(), "text": words(number)});
        client.post("/v1/collections/pages/documents", &document).status
    };
    let refused = (0..10_000).map(store).find(|&status| status != 200);
    assert_eq!(refused, Some(507));
}

/// Sends more requests at once than the server can answer, until `done` returns.
fn overload(busy: &Faulty, done: impl FnOnce()) {
    let text: String = (0..300).map(|number| words(number) + " ").collect();
    let (body, stop) = (json!({ "text": text }), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let client = Client::new(busy.server.url(""));
                while !stop.load(Ordering::Relaxed) {
                    client.post(CHECK, &body);
                }
            });
        }
        done();
        stop.store(true, Ordering::Relaxed);
    });
}
