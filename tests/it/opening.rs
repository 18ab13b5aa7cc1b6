//! A start opens every collection. In an earlier version, the server said that it was ready when only `default` was
//! open. The first request for another collection then waited for seconds, and a collection without requests was never
//! swept or measured.

use std::time::{Duration, Instant};

use hapax::collections::{CollectionError, CollectionsConfig, InsertOptions, Settings};
use hapax::types::{CollectionName, OnDuplicate, OnExisting};
use hapax_core::{SecretKey, Spec};
use serde_json::json;

use crate::support::client::{Client, words};
use crate::support::command::hapax;
use crate::support::documents::{insert, options};
use crate::support::library;
use crate::support::server::Server;

fn name(text: &str) -> CollectionName {
    CollectionName::new(text).unwrap()
}

#[test]
fn a_ready_server_has_opened_measured_and_swept_what_nobody_asked_for() {
    let dir = library::dir();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    for (name, settings) in [("fleeting", json!({"ttl": 1})), ("news", json!({})), ("empty", json!({}))] {
        assert_eq!(client.json("PUT", &format!("/v1/collections/{name}"), &settings).status, 201);
    }
    for (name, count) in [("default", 1), ("news", 3), ("fleeting", 2)] {
        for n in 0..count {
            let document = json!({"id": format!("{name}{n}"), "text": words(n)});
            client.post(&format!("/v1/collections/{name}/documents"), &document).ok();
        }
    }
    assert!(server.terminate().success());

    let server = Server::start(&data);
    assert!(server.documents() >= 4, "the ready line counts all collections, and said {}", server.documents());
    let client = Client::new(server.url(""));
    assert_eq!(client.get("/readyz").ok()["status"], "ready");
    let metrics = client.get("/metrics").text();
    for name in ["default", "news", "fleeting", "empty"] {
        assert!(metrics.contains(&format!("hapax_collection_open{{collection=\"{name}\"}} 1\n")), "{name}: {metrics}");
    }
    assert!(metrics.contains("hapax_documents{collection=\"news\"} 3\n"), "{metrics}");
    assert!(metrics.contains("hapax_boot_progress_ratio 1\n"), "{metrics}");
    // The documents of this collection expire, although no request ever named it.
    let gone = || client.get("/metrics").text().contains("hapax_documents{collection=\"fleeting\"} 0\n");
    let since = Instant::now();
    while !gone() {
        assert!(since.elapsed() < Duration::from_secs(60), "what is due is not swept");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(server.terminate().success());
}

/// Makes a folder with `default` and `news`, each with a document.
fn filled(dir: &library::Dir, runtime: &tokio::runtime::Runtime) {
    runtime.block_on(async {
        let collections = library::open(library::config(dir));
        collections.create(name("news"), Settings { threshold: 0.9, ..library::settings() }).await.unwrap();
        library::close(collections).await;
    });
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap()
}

/// Locks a file as another process would, so that it cannot be opened for writing.
fn hold(dir: &library::Dir, name: &str) -> rusqlite::Connection {
    let file = dir.path().join(format!("data/collections/{name}.sqlite"));
    let other = rusqlite::Connection::open(file).unwrap();
    other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    other
}

#[test]
fn a_collection_that_is_being_opened_says_so_and_holds_up_no_other() {
    let dir = library::dir();
    let runtime = runtime();
    filled(&dir, &runtime);
    let held = hold(&dir, "news");
    runtime.block_on(async {
        let collections = library::open(library::config(&dir));
        let rest = tokio::spawn(collections.open_rest());
        for _ in 0..10 {
            let news = collections.get(&name("news")).await;
            assert!(news.is_err_and(|error| matches!(error, CollectionError::Opening { .. })));
        }
        library::default(&collections).await;
        assert!(
            collections
                .remove(&name("news"))
                .await
                .is_err_and(|error| matches!(error, CollectionError::Opening { .. }))
        );
        collections.create(name("other"), library::settings()).await.unwrap();
        drop(held);
        rest.await.unwrap();
        let (descriptions, damaged) = collections.list().await.unwrap();
        assert_eq!((descriptions.len(), damaged.len()), (3, 0), "{damaged:?}");
        assert_eq!(collections.get(&name("news")).await.unwrap().settings().threshold, 0.9);
        library::close(collections).await;
    });
}

#[test]
fn one_that_cannot_be_opened_is_named_and_does_not_hold_up_the_start() {
    let dir = library::dir();
    let keyed = || CollectionsConfig { secret: Some(SecretKey::new([7; 16])), ..library::config(&dir) };
    runtime().block_on(async {
        let collections = library::open(keyed());
        let spec = Spec::parse(
            &library::settings()
                .spec
                .to_string()
                .replace("key=none", &format!("key={:016x}", SecretKey::new([7; 16]).fingerprint())),
        );
        let settings = Settings { spec: spec.unwrap(), ..library::settings() };
        collections.create(name("secret"), settings).await.unwrap();
        collections.create(name("zebra"), library::settings()).await.unwrap();
        library::close(collections).await;

        let without = library::open(library::config(&dir));
        without.open_rest().await;
        let unopened: Vec<_> = without.unopened().into_iter().map(|(name, _)| name).collect();
        assert_eq!((unopened, without.damaged().len()), (vec![name("secret")], 0));
        assert!(
            without
                .get(&name("secret"))
                .await
                .is_err_and(|error| matches!(error, CollectionError::SpecMismatch { .. }))
        );
        without.get(&name("zebra")).await.unwrap();
        without.remove(&name("secret")).await.unwrap();
        assert!(without.unopened().is_empty());
        library::close(without).await;
    });
}

fn remove_files(dir: &library::Dir, name: &str) {
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(dir.path().join(format!("data/collections/{name}.sqlite{suffix}")));
    }
}

/// In an earlier version, `default` was created again, empty and without a log line, if its file had been deleted. A
/// missing collection was not noticed at all.
#[test]
fn a_file_that_vanished_under_a_stopped_server_is_missed_by_name() {
    let dir = library::dir();
    let data = dir.path().join("data");
    let log = || std::fs::read_to_string(data.with_extension("log")).unwrap();
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    for name in ["news", "other", "dropped"] {
        assert_eq!(client.json("PUT", &format!("/v1/collections/{name}"), &json!({})).status, 201);
    }
    client.delete("/v1/collections/dropped?confirm=dropped").ok();
    assert!(server.terminate().success());
    let server = Server::start(&data);
    assert!(server.terminate().success());
    assert!(!log().contains("gone"), "{}", log());

    remove_files(&dir, "default");
    remove_files(&dir, "news");
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    let of = |name: &str, words: &str| log().lines().filter(|line| line.contains(name) && line.contains(words)).count();
    assert_eq!((of("default", "an EMPTY one replaces it"), of("news", "it was not dropped")), (1, 1), "{}", log());
    assert_eq!(client.get("/readyz").ok()["missing"], 1);
    // The gauge makes an alert fire. The backup fails, so it does not replace the last backup that has the collection.
    let gauge = || {
        let metrics = client.get("/metrics").text();
        metrics.lines().any(|line| line == r#"hapax_collection_damaged{collection="news"} 1"#)
    };
    assert!(gauge());
    let backup = hapax(&["backup", "nightly", "--server", &server.url("")]).output().unwrap();
    let told = String::from_utf8_lossy(&backup.stderr).into_owned();
    assert!(!backup.status.success() && told.contains("the file of collection `news` is missing"), "{told}");
    client.get("/v1/collections/news").problem(404, "collection_not_found");
    client.delete("/v1/collections/news?confirm=news").ok();
    client.delete("/v1/collections/news?confirm=news").problem(404, "collection_not_found");
    assert_eq!(client.get("/readyz").ok().get("missing"), None);
    assert!(!gauge());
    assert!(server.terminate().success());
    let server = Server::start(&data);
    assert_eq!((of("default", "an EMPTY one"), of("news", "it was not dropped")), (1, 1), "once is enough: {}", log());
    server.kill();

    // The directory of an earlier version has no list of collections. A write-ahead log without a database file is
    // reported.
    std::fs::remove_file(data.join("collections.list")).unwrap();
    remove_files(&dir, "default");
    std::fs::write(data.join("collections/lost.sqlite-wal"), "x").unwrap();
    let server = Server::start(&data);
    assert_eq!(
        (of("default", "an EMPTY one"), of("lost.sqlite-wal", "a write-ahead log whose database file is missing")),
        (2, 1),
        "{}",
        log()
    );
    assert!(server.terminate().success());
}

/// In an earlier version, listing read the files of a closed collection while they were being opened. A half-opened
/// file looks damaged, so an intact collection was listed as damaged.
#[test]
fn a_list_while_collections_are_opened_calls_none_damaged() {
    let runtime = runtime();
    let killed = library::dir();
    let made: Vec<_> = (0..6).map(|n| name(&format!("c{n}"))).collect();
    let files = runtime.block_on(async {
        let collections = library::open(library::config(&killed));
        for name in &made {
            let (collection, _) = collections.create(name.clone(), library::settings()).await.unwrap();
            for n in 0..20 {
                let options = InsertOptions { limit: 1, ..options(OnDuplicate::Store, OnExisting::Conflict) };
                insert(&collection, format!("id{n}"), words(n), options).await.unwrap();
            }
        }
        // The files are as a kill leaves them: with write-ahead logs and the index of each log.
        let dir = killed.path().join("data/collections");
        let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<_> =
            files.map(|path| (path.file_name().unwrap().to_owned(), std::fs::read(path).unwrap())).collect();
        library::close(collections).await;
        files
    });
    for _ in 0..10 {
        let dir = library::dir();
        std::fs::create_dir_all(dir.path().join("data/collections")).unwrap();
        for (file, bytes) in &files {
            std::fs::write(dir.path().join("data/collections").join(file), bytes).unwrap();
        }
        runtime.block_on(async {
            let collections = library::open(library::config(&dir));
            let rest = tokio::spawn(collections.open_rest());
            while !rest.is_finished() {
                let (described, damaged) = collections.list().await.unwrap();
                assert_eq!((described.len(), damaged.len()), (made.len() + 1, 0), "{damaged:?}");
            }
            let (described, _) = collections.list().await.unwrap();
            assert!(described.iter().filter(|collection| made.contains(&collection.name)).all(|c| c.documents == 20));
            library::close(collections).await;
        });
    }
}
