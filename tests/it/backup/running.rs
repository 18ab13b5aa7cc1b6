//! Backups of a running server: under load, killed, cancelled, and into different folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use super::steps::{BACKUPS, DEFAULT, Log, SLOW, client, documents, ended, run, serve, utf8, wait_for};
use crate::support::client::{Client, fields, words};
use crate::support::library::dir;
use crate::support::server::{Server, Starting};

#[test]
fn a_backup_under_load_restores_the_state_at_its_position() {
    let dir = dir();
    let server = serve(&dir, SLOW);
    let exact = json!({"verify": "exact", "keep": "text", "shingle": "word3"});
    assert_eq!(client(&server).json("PUT", "/v1/collections/exact", &exact).status, 201);
    for id in 0..20 {
        client(&server).post("/v1/collections/exact/documents", &json!({"id": id.to_string(), "text": words(id)})).ok();
    }
    // The server is restarted, so that this collection is not open.
    assert!(server.terminate().success());
    let server = serve(&dir, SLOW);
    let mut log = Log::default();
    (0..20).for_each(|round| log.round(&client(&server), round));
    let before = log.0.len() as u64;
    let (status, path, words_said) = backed_up_under_load(&server, &mut log);
    assert_eq!(status, 0, "{words_said}");
    assert!(words_said.contains("2 collections"), "{words_said}");
    let path = PathBuf::from(path.trim_end());
    assert_eq!(path, dir.path().join("backups/under-load"));

    let latest = ended(&client(&server));
    assert_eq!((&latest["state"], &latest["progress"]), (&json!("done"), &json!(1.0)));
    let entry = &latest["collections"][0];
    let position = entry["last_seq"].as_u64().unwrap();
    assert!((before..log.0.len() as u64).contains(&position), "{before}, {position}, {}", log.0.len());
    let manifest: Value = serde_json::from_slice(&fs::read(path.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["collections"][0]["last_seq"], position);
    assert_eq!(manifest["collections"][1]["keep"], "text");
    metrics_tell(&client(&server), &latest);

    let restored_dir = dir.path().join("restored");
    let (status, _, words_said) = run(&["restore", utf8(&path), "--data-dir", utf8(&restored_dir)]);
    assert_eq!(status, 0, "{words_said}");
    let restored = Server::start(&restored_dir);
    let (original, again) = (client(&server), client(&restored));
    let state = log.state_at(position);
    let (held, holds) = (documents(&original, "default"), documents(&again, "default"));
    let seqs: BTreeMap<u64, u64> =
        holds.iter().map(|(id, document)| (id.parse().unwrap(), document["seq"].as_u64().unwrap())).collect();
    assert_eq!(seqs, state.iter().map(|(&id, &(n, _))| (id, n)).collect());
    let same = holds.iter().filter(|(id, document)| held.get(*id) == Some(document)).count();
    let unchanged = log.state_at(log.0.len() as u64).iter().filter(|(id, at)| state.get(id) == Some(at)).count();
    assert_eq!(same, unchanged, "what was not changed since is byte for byte the same");
    assert_eq!(entry["documents"], holds.len());

    versions_are_found_under_the_ids_they_had(&again, &log, &state);
    assert_eq!(documents(&original, "exact"), documents(&again, "exact"));
    let verdict = again.post("/v1/collections/exact/check", &json!({"text": words(7)})).ok();
    assert_eq!((&verdict["duplicate_of"], &verdict["matches"][0]["method"]), (&json!("7"), &json!("exact")));
    // The order continues from the backup's position.
    let late = again.post(&format!("{DEFAULT}/documents"), &json!({"id": "late", "text": words(77_777_777)})).ok();
    assert_eq!(late["outcome"], "inserted");
    assert_eq!(again.get(&format!("{DEFAULT}/documents?id=late")).ok()["seq"], position + 1);
}

/// Runs `hapax backup` while `log` continues. Returns its status, stdout and stderr.
fn backed_up_under_load(server: &Server, log: &mut Log) -> (i32, String, String) {
    let made = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut rounds = 20..;
            while !made.load(Ordering::Relaxed) {
                log.round(&client(server), rounds.next().unwrap());
            }
            log.round(&client(server), rounds.next().unwrap());
        });
        let url = server.url("");
        let done = run(&["backup", "under-load", "--server", &url]);
        made.store(true, Ordering::Relaxed);
        done
    })
}

/// Checks that each version is found under the id that had it when the backup was made, and that no other version is
/// found.
fn versions_are_found_under_the_ids_they_had(again: &Client, log: &Log, state: &BTreeMap<u64, (u64, u64)>) {
    let check = |version: u64| again.post(&format!("{DEFAULT}/check"), &json!({"text": words(version)})).ok();
    let versions: BTreeMap<u64, u64> = state.iter().map(|(&id, &(_, version))| (version, id)).collect();
    for &(_, version) in log.0.iter().step_by(7) {
        let Some(version) = version else { continue };
        let verdict = check(version);
        match versions.get(&version) {
            Some(id) => assert_eq!(
                (&verdict["verdict"], &verdict["duplicate_of"]),
                (&json!("exact_duplicate"), &json!(id.to_string()))
            ),
            None => assert_eq!(verdict["verdict"], "unique", "{verdict}"),
        }
    }
}

fn metrics_tell(client: &Client, latest: &Value) {
    let scrape = client.get("/metrics").text();
    let value = |series: &str| -> f64 {
        let line = scrape.lines().find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')));
        line.unwrap_or_else(|| panic!("no {series}")).rsplit_once(' ').unwrap().1.parse().unwrap()
    };
    assert_eq!(value("hapax_backups_total{result=\"done\"}"), 1.0);
    assert_eq!(value("hapax_backups_total{result=\"failed\"}"), 0.0);
    assert_eq!(value("hapax_backup_progress_ratio"), 1.0);
    let bytes: u64 =
        latest["collections"].as_array().unwrap().iter().map(|entry| entry["bytes"].as_u64().unwrap()).sum();
    assert_eq!(value("hapax_backup_copied_bytes_total"), bytes as f64);
    assert!(value("hapax_backup_last_success_timestamp_seconds") > 1.7e9);
    assert!(value("hapax_log_bytes{collection=\"default\"}") > 0.0);
}

#[test]
fn a_backup_that_is_killed_or_called_off_is_none() {
    let dir = dir();
    let server = serve(&dir, "100000");
    let mut log = Log::default();
    (0..10).for_each(|round| log.round(&client(&server), round));
    let folder = dir.path().join("backups/nightly");
    let begin = |server: &Server| client(server).post(BACKUPS, &json!({"name": "nightly"}));
    let copying = |server: &Server| {
        assert_eq!(begin(server).status, 202);
        let in_the_middle = |latest: &Value| latest["progress"].as_f64().is_some_and(|share| share > 0.0);
        assert_eq!(wait_for(&client(server), in_the_middle)["state"], "running");
    };
    copying(&server);
    begin(&server).problem(409, "backup_running");
    client(&server).post(BACKUPS, &json!({"name": "other"})).problem(409, "backup_running");
    assert_eq!(client(&server).delete(BACKUPS).ok()["cancelled"], 1);
    assert_eq!(ended(&client(&server))["state"], "cancelled");
    assert_eq!(client(&server).delete(BACKUPS).ok()["cancelled"], 0);
    assert!(!folder.exists(), "what was called off is removed");

    copying(&server);
    server.kill();
    assert!(folder.join("default.sqlite").exists() && !folder.join("manifest.json").exists());
    let refused = run(&["restore", utf8(&folder), "--data-dir", utf8(&dir.path().join("restored"))]);
    assert!(refused.0 == 2 && refused.2.contains("interrupted"), "{refused:?}");
    assert!(!dir.path().join("restored").exists());

    // A stop does not wait for a backup.
    let server = serve(&dir, "100000");
    copying(&server);
    assert!(server.terminate().success());
    assert!(!folder.exists());

    let server = serve(&dir, "0");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("manifest.json.partial"), "").unwrap();
    fs::write(folder.join("default.sqlite"), "half").unwrap();
    assert_eq!(begin(&server).status, 202, "what was broken off is replaced");
    assert_eq!(ended(&client(&server))["state"], "done");
    begin(&server).problem(409, "backup_exists");
    let restored = run(&["restore", utf8(&folder), "--data-dir", utf8(&dir.path().join("restored"))]);
    assert_eq!(restored.0, 0, "{restored:?}");
    let restored = Server::start(&dir.path().join("restored"));
    assert_eq!(restored.documents(), log.state_at(log.0.len() as u64).len() as u64);
}

#[test]
fn a_collection_that_is_dropped_while_it_is_copied_is_left_out() {
    let dir = dir();
    let server = serve(&dir, "100000");
    let client = client(&server);
    // The collection that is first by name is copied first.
    assert_eq!(client.json("PUT", "/v1/collections/a", &json!({})).status, 201);
    let documents: Vec<_> = (0..1000).map(|id| json!({"id": id.to_string(), "text": words(id)})).collect();
    client.post("/v1/collections/a/batch", &json!({"op": "insert", "documents": documents})).ok();
    assert_eq!(client.post(BACKUPS, &json!({"name": "nightly"})).status, 202);
    wait_for(&client, |latest| latest["progress"].as_f64().is_some_and(|share| share > 0.0));
    client.json("PUT", "/v1/collections/b", &json!({}));
    client.delete("/v1/collections/a?confirm=a").ok();
    let latest = ended(&client);
    assert_eq!(latest["state"], "done", "{latest}");
    let names: Vec<_> = latest["collections"].as_array().unwrap().iter().map(|entry| &entry["name"]).collect();
    assert_eq!(names, ["default"]);
    assert!(!dir.path().join("backups/nightly/a.sqlite").exists());
}

#[test]
fn a_server_writes_where_it_is_told_and_to_whom_it_knows() {
    let dir = dir();
    let server = serve(&dir, "0");
    for name in ["", ".", "..", "../x", "a/b", "/tmp/x", ".hidden", "a b", "ä", &"x".repeat(65)] {
        let problem = client(&server).post(BACKUPS, &json!({"name": name})).problem(422, "invalid_value");
        assert_eq!(fields(&problem), ["name"], "{name}");
    }
    let problem = client(&server).post(BACKUPS, &json!({"dir": "/tmp/x"})).problem(422, "invalid_value");
    assert_eq!(fields(&problem), ["dir"]);
    fs::create_dir_all(dir.path().join("backups/mine")).unwrap();
    fs::write(dir.path().join("backups/mine/letters.txt"), "dear").unwrap();
    let problem = client(&server).post(BACKUPS, &json!({"name": "mine"})).problem(409, "backup_exists");
    assert!(problem["detail"].as_str().unwrap().contains("letters.txt"), "{problem}");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(dir.path(), dir.path().join("backups/elsewhere")).unwrap();
        client(&server).post(BACKUPS, &json!({"name": "elsewhere"})).problem(409, "backup_exists");
    }
    let named_by_time = client(&server).post(BACKUPS, &json!({}));
    assert_eq!(named_by_time.status, 202);
    let done = ended(&client(&server));
    assert_eq!((&done["state"], &done["name"]), (&json!("done"), &named_by_time.json()["name"]));
    drop(server);

    let key = dir.path().join("key");
    fs::write(&key, "a-key-of-some-length-1\n").unwrap();
    let environment = [("HAPAX__AUTH__API_KEY_FILE", utf8(&key)), ("HAPAX__BACKUP__DIR", "")];
    let off = Starting::spawn_with(&dir.path().join("data"), &[], &environment).ready();
    let url = off.url("");
    let (status, _, words_said) = run(&["backup", "x", "--server", &url]);
    assert!(status == 2 && words_said.contains("401") && words_said.contains("--api-key-file"), "{words_said}");
    let (status, _, words_said) = run(&["backup", "x", "--server", &url, "--api-key-file", utf8(&key)]);
    assert!(status == 2 && words_said.contains("403") && words_said.contains("backup.dir"), "{words_said}");
}

/// Tests the defaults, a path on the same file system, and one on another file system.
#[test]
fn the_verb_takes_a_path_on_the_servers_machine() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let mut log = Log::default();
    log.round(&client(&server), 1);
    let url = server.url("");
    let (status, path, words_said) = run(&["backup", "plain", "--server", &url]);
    assert_eq!((status, path.trim()), (0, utf8(&dir.path().join("hapax-backups/plain"))), "{words_said}");

    let memory = tempfile::tempdir_in("/dev/shm");
    let other = memory.as_ref().map_or_else(|_| dir.path().join("other"), |memory| memory.path().join("other"));
    for target in [dir.path().join("a/b/moved"), other] {
        let (status, path, words_said) = run(&["backup", utf8(&target), "--server", &url]);
        assert_eq!((status, path.trim()), (0, utf8(&target)), "{words_said}");
        assert_eq!(fs::read_dir(dir.path().join("hapax-backups")).unwrap().count(), 1, "nothing stays behind");
        let (status, _, words_said) = run(&["backup", utf8(&target), "--server", &url]);
        assert!(status == 2 && words_said.contains("is not empty"), "{words_said}");
        let restored = dir.path().join("restored");
        let (status, _, words_said) = run(&["restore", utf8(&target), "--data-dir", utf8(&restored)]);
        assert_eq!(status, 0, "{words_said}");
        fs::remove_dir_all(restored).unwrap();
    }
    let (status, _, words_said) = run(&["backup", "..", "--server", &url]);
    assert!(status == 2 && words_said.contains("name: must match"), "{words_said}");
    let (status, _, words_said) = run(&["backup", "a/..", "--server", &url]);
    assert!(status == 2 && words_said.contains("must end in a name"), "{words_said}");
}

/// In an earlier version, such a backup was reported as complete, but lacked documents that were stored all the time.
#[test]
fn a_collection_that_is_merged_and_dropped_during_a_backup_fails_it() {
    let dir = dir();
    let server = serve(&dir, "100000");
    let client = client(&server);
    // The collection that is first by name is copied first.
    for (name, ids) in [("a", 0..1000), ("z", 2000..2001)] {
        assert_eq!(client.json("PUT", &format!("/v1/collections/{name}"), &json!({})).status, 201);
        let documents: Vec<_> = ids.map(|id| json!({"id": id.to_string(), "text": words(id)})).collect();
        let batch = json!({"op": "insert", "documents": documents});
        client.post(&format!("/v1/collections/{name}/batch"), &batch).ok();
    }
    assert_eq!(client.post(BACKUPS, &json!({"name": "nightly"})).status, 202);
    wait_for(&client, |latest| latest["progress"].as_f64().is_some_and(|share| share > 0.0));
    assert_eq!(client.post("/v1/collections/a/merge", &json!({"from": "z"})).status, 202);
    while client.get("/v1/collections/a/documents?id=2000").status != 200 {
        thread::sleep(std::time::Duration::from_millis(5));
    }
    client.delete("/v1/collections/z?confirm=z").ok();
    let latest = ended(&client);
    assert_eq!(latest["state"], "failed", "{latest}");
    let detail = latest["detail"].as_str().unwrap();
    assert!(detail.contains("`z`") && detail.contains("`a`"), "{detail}");
    assert!(!dir.path().join("backups/nightly").exists());
    assert_eq!(client.post(BACKUPS, &json!({"name": "nightly"})).status, 202);
    assert_eq!(ended(&client)["state"], "done");
}

/// In an earlier version, each failed move left one more backup in the server's directory, or took the name of the next
/// backup.
#[test]
fn a_backup_that_cannot_be_moved_is_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let url = server.url("");
    fs::write(dir.path().join("file"), "in the way").unwrap();
    let target = dir.path().join("file/nightly");
    for _ in 0..2 {
        let (status, _, words_said) = run(&["backup", utf8(&target), "--keep", "2", "--server", &url]);
        assert!(status == 2 && words_said.contains("no backup was made"), "{words_said}");
        assert_eq!(fs::read_dir(dir.path().join("hapax-backups")).unwrap().count(), 0);
    }
    // This path is in the server's own folder of backups, so the backup is not moved.
    let target = dir.path().join("hapax-backups/here");
    let (status, _, words_said) = run(&["backup", utf8(&target), "--server", &url]);
    assert!(status == 0 && target.join("manifest.json").exists(), "{words_said}");
    // Leftovers of an interrupted move are replaced.
    let target = dir.path().join("moved");
    fs::create_dir(&target).unwrap();
    fs::write(target.join("manifest.json.partial"), "{").unwrap();
    fs::write(target.join("default.sqlite"), "half").unwrap();
    let (status, _, words_said) = run(&["backup", utf8(&target), "--server", &url]);
    assert_eq!(status, 0, "{words_said}");
    let (status, _, words_said) = run(&["restore", utf8(&target), "--data-dir", utf8(&dir.path().join("restored"))]);
    assert_eq!(status, 0, "{words_said}");
}
