//! `hapax verify` finds damage, repairs it only on request, and loses no intact data. The scrub of a running server
//! finds the same damage while the server works.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::damaged::{file, spoil};
use crate::support::client::{Client, documents, words};
use crate::support::command;
use crate::support::disk;
use crate::support::library;
use crate::support::server::{Server, Starting};

fn verify(data: &Path, arguments: &[&str]) -> Output {
    let data = data.to_str().expect("paths of tests are UTF-8");
    command::run(&[&["verify", "--data-dir", data], arguments].concat())
}

fn reports(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Stores thirty documents in each of two collections, one with texts, clusters and links.
fn fill(client: &Client) {
    let settings = json!({"keep": "text"});
    assert_eq!(client.json("PUT", "/v1/collections/news", &settings).status, 201);
    for name in ["default", "news"] {
        for n in 0..10 {
            for (id, last, on_duplicate) in [("a", "one", "store"), ("b", "two", "link"), ("c", "three", "store")] {
                let document = json!({
                    "id": format!("{id}{n}!"), "text": format!("{} {last}", words(n)), "metadata": {"only": format!("{id}{n}!")},
                });
                client.post(&format!("{}?on_duplicate={on_duplicate}", documents(name)), &document).ok();
            }
        }
    }
}

fn filled(data: &Path) {
    let server = Server::start(data);
    fill(&Client::new(server.url("")));
    assert!(server.terminate().success());
}

#[test]
fn a_sound_directory_is_told_to_be_sound_and_stays_as_it_is() {
    let dir = library::dir();
    let data = dir.path().join("data");
    filled(&data);
    let before = fs::read(file(&data, "news")).unwrap();
    let output = verify(&data, &["--repair"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(told, "default: sound, 30 documents\nnews: sound, 30 documents\n");
    assert_eq!(fs::read(file(&data, "news")).unwrap(), before);
    assert_eq!(verify(&data, &["--collection", "other"]).status.code(), Some(2));
    assert_eq!(verify(&dir.path().join("nowhere"), &[]).status.code(), Some(2));
    let server = Server::start(&data);
    assert_eq!(verify(&data, &[]).status.code(), Some(2), "a server is using it");
    assert!(server.terminate().success());
}

#[test]
fn what_is_damaged_is_named_and_set_aside_on_request_only() {
    let dir = library::dir();
    let data = dir.path().join("data");
    filled(&data);
    // Record 10 is the first of three similar documents. The next of them is a link.
    spoil(&file(&data, "news"), b"\"only\":\"a3!");
    let damaged = fs::read(file(&data, "news")).unwrap();

    let output = verify(&data, &["--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let [default, news] = reports(&output).try_into().unwrap();
    assert_eq!((&default["sound"], &default["documents"]), (&json!(true), &json!(30)));
    assert_eq!((&news["sound"], &news["documents"], &news["damaged"]), (&json!(false), &json!(29), &json!(1)));
    let first = json!({"place": "document", "record": 10, "detail": "its checksum differs"});
    assert_eq!(news["findings"][0], first, "{news}");
    assert_eq!(fs::read(file(&data, "news")).unwrap(), damaged, "it was not asked to be changed");

    let output = verify(&data, &["--repair", "--json", "--collection", "news"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let repaired = &reports(&output)[0]["repaired"];
    assert_eq!((&repaired["documents"], &repaired["set_aside"], &repaired["lost"]), (&json!(29), &json!(1), &json!(0)));
    assert_eq!(fs::read(repaired["kept_as"].as_str().unwrap()).unwrap(), damaged);
    let aside = fs::read_to_string(repaired["set_aside_in"].as_str().unwrap()).unwrap();
    let rows: Vec<Value> = aside.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let tables: Vec<_> = rows.iter().map(|row| (row["record"].as_u64(), row["table"].as_str())).collect();
    assert_eq!(tables, [(Some(10), Some("document")), (Some(10), Some("signature")), (Some(10), Some("payload"))]);
    assert_eq!(rows[0]["columns"]["id"], "a3!");
    assert!(rows[1]["columns"]["bytes"]["hex"].as_str().unwrap().len() == 512);

    assert_eq!(verify(&data, &[]).status.code(), Some(0));
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    let list = client.get("/v1/collections").ok();
    assert_eq!(list["collections"].as_array().unwrap().len(), 2, "what was kept is no collection");
    let page = client.get(&format!("{}?limit=100", documents("news"))).ok();
    assert_eq!(page["documents"].as_array().unwrap().len(), 29);
    // The former link is now its cluster's representative, and is found.
    let check = client.post("/v1/collections/news/check", &json!({"text": format!("{} two", words(3))})).ok();
    assert_eq!(check["duplicate_of"], "b3!", "{check}");
    client.post(&documents("news"), &json!({"id": "a3!", "text": words(99)})).ok();
    assert!(server.terminate().success());
    assert_eq!(verify(&data, &[]).status.code(), Some(0));
}

#[test]
fn the_scrub_finds_damage_under_a_running_server() {
    let dir = library::dir();
    let data = dir.path().join("data");
    filled(&data);
    let environment = [("HAPAX__SCRUB__INTERVAL_S", "1")];
    let server = Starting::spawn_with(&data, &[], &environment).ready();
    let client = Client::new(server.url(""));
    // This request opens the collection.
    client.get("/v1/collections/news").ok();
    let value = |metric: &str, collection: &str| {
        let metrics = client.get("/metrics").text();
        let series = format!("{metric}{{collection=\"{collection}\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&series)?.parse::<f64>().ok()).unwrap_or(-1.0)
    };
    let wait = |what: &str, is_so: &dyn Fn() -> bool| {
        let since = Instant::now();
        while !is_so() {
            assert!(since.elapsed() < Duration::from_secs(60), "{what}; {}", server.log_tail());
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    for collection in ["default", "news"] {
        wait("a pass ends", &|| value("hapax_scrub_last_complete_timestamp_seconds", collection) > 1e9);
        assert!(value("hapax_scrub_records_total", collection) >= 30.0);
        assert_eq!(value("hapax_scrub_errors_total", collection), 0.0);
    }
    spoil(&file(&data, "news"), b"\"only\":\"c4!");
    wait("the damage is found", &|| value("hapax_scrub_errors_total", "news") > 0.0);
    assert_eq!(value("hapax_scrub_errors_total", "default"), 0.0);
    let log = fs::read_to_string(data.with_extension("log")).unwrap();
    let line = log.lines().find(|line| line.contains("a record is damaged")).expect("it is logged");
    assert!(line.contains("news") && line.contains("15") && line.contains("document"), "{line}");
    assert!(server.terminate().success());
}

/// In an earlier version, the exit status was 0 even if a file was missing, or if there were two copies of a file.
#[test]
fn a_file_that_is_missing_or_copied_is_found() {
    let dir = library::dir();
    let data = dir.path().join("data");
    filled(&data);
    let [news, copy, log] =
        ["news.sqlite", "copy.sqlite", "lost.sqlite-wal"].map(|name| data.join("collections").join(name));
    fs::copy(&news, &copy).unwrap();
    fs::remove_file(&news).unwrap();
    fs::write(&log, "a log").unwrap();
    let list = fs::read(data.join("collections.list")).unwrap();

    let output = verify(&data, &["--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let found: Vec<_> = reports(&output)
        .into_iter()
        .map(|report| {
            let name = report["collection"].as_str().unwrap().to_owned();
            (name, report["sound"].as_bool().unwrap(), report["findings"][0]["detail"].to_string())
        })
        .collect();
    for (name, said) in [("news", "missing"), ("lost", "lost.sqlite-wal"), ("copy", "`news`")] {
        let (_, sound, detail) = found.iter().find(|(found, ..)| found == name).expect(name);
        assert!(!sound && detail.contains(said), "{name}: {detail}");
    }
    assert_eq!(found.len(), 4, "{found:?}");
    let one = verify(&data, &["--collection", "news"]);
    assert!(one.status.code() == Some(1) && String::from_utf8_lossy(&one.stdout).contains("missing"), "{one:?}");
    assert_eq!(fs::read(data.join("collections.list")).unwrap(), list, "nothing was changed");

    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    client.get("/v1/collections/copy").problem(500, "collection_damaged");
    assert_eq!(client.get("/v1/collections").ok()["collections"].as_array().unwrap().len(), 1);
    assert!(server.terminate().success());
    assert_eq!(verify(&data, &["--collection", "copy", "--repair"]).status.code(), Some(1));
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    assert_eq!(client.get("/v1/collections/copy").ok()["documents"], 30);
    assert!(server.terminate().success());
}

#[test]
fn an_export_finishes_an_interrupted_repair() {
    let dir = library::dir();
    let data = dir.path().join("data");
    filled(&data);
    let path = file(&data, "news");
    fs::copy(&path, data.join("collections/news.sqlite.repaired")).unwrap();
    fs::write(data.join("collections/news.sqlite.damaged-1.jsonl"), "").unwrap();
    spoil(&path, b"\"only\":\"a3!");
    let output = command::run(&["export", "--data-dir", data.to_str().unwrap(), "--collection", "news"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout.iter().filter(|&&byte| byte == b'\n').count(), 30);
    assert!(data.join("collections/news.sqlite.damaged-1").exists());
}

/// If the disk fails or is full at any moment, a repair either succeeds or changes nothing. In an earlier version, a
/// repair installed a file that was only half written, and reported success.
#[test]
fn a_repair_on_a_disk_that_fails_installs_no_broken_file() {
    let dir = library::dir();
    let data = dir.path().join("data");
    filled(&data);
    spoil(&file(&data, "news"), b"\"only\":\"a3!");
    let damaged = fs::read(file(&data, "news")).unwrap();
    let (mut refused, mut repaired) = (0, 0);
    for number in 1.. {
        let copy = dir.path().join("copy");
        let _ = fs::remove_dir_all(&copy);
        fs::create_dir_all(copy.join("collections")).unwrap();
        for name in ["default.sqlite", "news.sqlite"] {
            fs::copy(data.join("collections").join(name), copy.join("collections").join(name)).unwrap();
        }
        let notes = dir.path().join("notes");
        let _ = fs::remove_file(&notes);
        let mut repair =
            command::hapax(&["verify", "--data-dir", copy.to_str().unwrap(), "--collection", "news", "--repair"]);
        repair.envs(disk::preloaded(&copy, &notes)).env("HAPAX_DISK_FAIL", format!("{number}:28"));
        let output = repair.output().unwrap();
        let failed = disk::operations(&notes).into_iter().any(|operation| operation.error.is_some());
        match output.status.code() {
            Some(1) => repaired += 1,
            Some(2) => {
                refused += 1;
                let path = file(&copy, "news");
                let installs = path.with_extension("sqlite.repaired").exists();
                // The last operation syncs the name of the new file, which is in place by then.
                let is_installed = path.with_extension("sqlite.damaged-1").exists() && !installs;
                let is_damaged = fs::read(&path).unwrap() == damaged;
                assert!(installs || is_installed || is_damaged, "operation {number}: {output:?}");
            }
            _ => panic!("operation {number}: {output:?}"),
        }
        // The interrupted repair is finished here.
        let checked = verify(&copy, &["--json", "--collection", "news"]);
        let documents = &reports(&checked)[0]["documents"];
        assert_eq!(documents, &json!(29), "operation {number}: {checked:?}");
        if !failed {
            break;
        }
    }
    assert!(refused > 5 && repaired > 0, "{refused} {repaired}");
}
