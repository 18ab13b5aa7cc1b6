//! Backups of a server at work, and what comes back: the state at the backup's position, whole or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hapax::store::backup::{BackupError, Progress, restore};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::support::client::{Client, fields, words};
use crate::support::command;
use crate::support::library::{Dir, dir, seed};
use crate::support::server::{Server, Starting};

const DEFAULT: &str = "/v1/collections/default";
const BACKUPS: &str = "/v1/backups";
/// Fast enough for a test, slow enough to be in the middle of.
const SLOW: &str = "1000000";

/// Status, stdout, stderr.
fn run(arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command::run(arguments);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn utf8(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A server whose backups go to `backups` beside its data.
fn serve(dir: &Dir, rate: &str) -> Server {
    let backups = dir.path().join("backups");
    let environment = [("HAPAX__BACKUP__DIR", utf8(&backups)), ("HAPAX__BACKUP__BYTES_PER_SECOND_MAX", rate)];
    Starting::spawn_with(&dir.path().join("data"), &[], &environment).ready()
}

fn client(server: &Server) -> Client {
    Client::new(server.url(""))
}

/// The latest backup, once `wanted` says that it is there.
fn wait_for(client: &Client, wanted: impl Fn(&Value) -> bool) -> Value {
    let since = Instant::now();
    loop {
        let latest = client.get(BACKUPS).ok()["latest"].take();
        if wanted(&latest) {
            return latest;
        }
        assert!(since.elapsed() < Duration::from_secs(120), "{latest}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn ended(client: &Client) -> Value {
    wait_for(client, |latest| latest["state"] != "running")
}

/// All documents of a collection, by id.
fn documents(client: &Client, collection: &str) -> BTreeMap<String, Value> {
    let (mut all, mut cursor) = (BTreeMap::new(), String::new());
    loop {
        let page = client.get(&format!("/v1/collections/{collection}/documents?limit=1000{cursor}")).ok();
        for document in page["documents"].as_array().unwrap() {
            all.insert(document["id"].as_str().unwrap().to_owned(), document.clone());
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

/// What was acknowledged, in order: the n-th took place n of the order.
#[derive(Default)]
struct Log(Vec<(u64, Option<u64>)>);

impl Log {
    /// `id` gets the text of `version`, or goes.
    fn bulk(&mut self, client: &Client, query: &str, changes: &[(u64, Option<u64>)]) {
        let line = |(id, version): &(u64, Option<u64>)| match version {
            Some(version) => json!({"id": id.to_string(), "text": words(*version), "metadata": {"of": version}}),
            None => json!({"id": id.to_string()}),
        };
        let lines = changes.iter().map(|change| line(change).to_string() + "\n").collect::<String>();
        let answers = client.bulk(query, &lines);
        let summary = &answers.last().unwrap()["summary"];
        assert_eq!((&summary["errors"], &summary["documents"]), (&json!(0), &json!(changes.len())), "{answers:?}");
        self.0.extend_from_slice(changes);
    }

    /// Id -> the place of its last change, and the version it has.
    fn state_at(&self, position: u64) -> BTreeMap<u64, (u64, u64)> {
        let mut state = BTreeMap::new();
        for (n, &(id, version)) in (1..=position).zip(&self.0) {
            match version {
                Some(version) => state.insert(id, (n, version)),
                None => state.remove(&id),
            };
        }
        state
    }

    /// A round of insertions, replacements and deletions; `round` from 0.
    fn round(&mut self, client: &Client, round: u64) {
        let first = round * 100;
        self.bulk(client, "op=insert", &(first..first + 100).map(|id| (id, Some(id))).collect::<Vec<_>>());
        let replaced = (first..first + 10).map(|id| (id, Some(1_000_000 + id))).collect::<Vec<_>>();
        self.bulk(client, "op=insert&on_existing=replace", &replaced);
        self.bulk(client, "op=delete", &(first + 20..first + 30).map(|id| (id, None)).collect::<Vec<_>>());
    }
}

#[test]
fn a_backup_under_load_restores_the_state_at_its_position() {
    let dir = dir();
    let server = serve(&dir, SLOW);
    let exact = json!({"verify": "exact", "keep": "text", "shingle": "word3"});
    assert_eq!(client(&server).json("PUT", "/v1/collections/exact", &exact).status, 201);
    for id in 0..20 {
        client(&server).post("/v1/collections/exact/documents", &json!({"id": id.to_string(), "text": words(id)})).ok();
    }
    // Started again, so that this collection is not open.
    assert!(server.terminate().success());
    let server = serve(&dir, SLOW);
    let mut log = Log::default();
    (0..20).for_each(|round| log.round(&client(&server), round));
    let before = log.0.len() as u64;
    let made = AtomicBool::new(false);
    let (status, path, words_said) = thread::scope(|scope| {
        scope.spawn(|| {
            let mut rounds = 20..;
            while !made.load(Ordering::Relaxed) {
                log.round(&client(&server), rounds.next().unwrap());
            }
            log.round(&client(&server), rounds.next().unwrap());
        });
        let url = server.url("");
        let done = run(&["backup", "under-load", "--server", &url]);
        made.store(true, Ordering::Relaxed);
        done
    });
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

    // Verdicts, where each version is found under the id that had it then, and no other is found at all.
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
    assert_eq!(documents(&original, "exact"), documents(&again, "exact"));
    let verdict = again.post("/v1/collections/exact/check", &json!({"text": words(7)})).ok();
    assert_eq!((&verdict["duplicate_of"], &verdict["matches"][0]["method"]), (&json!("7"), &json!("exact")));
    // The order goes on where the backup left it.
    let late = again.post(&format!("{DEFAULT}/documents"), &json!({"id": "late", "text": words(77_777_777)})).ok();
    assert_eq!(late["outcome"], "inserted");
    assert_eq!(again.get(&format!("{DEFAULT}/documents?id=late")).ok()["seq"], position + 1);
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
    assert!(refused.0 == 2 && refused.2.contains("broken off"), "{refused:?}");
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
    // The first by name is the first to be copied.
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

/// The whole backups in a folder, by name.
fn whole_in(dir: &Path) -> BTreeSet<String> {
    let folders = fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
    let whole = folders.filter(|folder| folder.join("manifest.json").exists());
    whole.map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

/// A second night's `hapax backup nightly` was refused with 409, so nobody had a backup younger than the first.
#[test]
fn a_series_keeps_the_newest_and_removes_nothing_else() {
    let dir = dir();
    let backups = dir.path().join("backups");
    let server = serve(&dir, "0");
    let client = client(&server);
    let begin = |body: Value| client.post(BACKUPS, &body);
    for (body, field) in [
        (json!({"name": "nightly", "keep": 1001}), "keep"),
        (json!({"name": "nightly", "keep": -1}), "keep"),
        (json!({"keep": 3}), "name"),
        (json!({"name": "x".repeat(60), "keep": 3}), "name"),
    ] {
        assert_eq!(fields(&begin(body).problem(422, "invalid_value")), [field]);
    }
    // What looks like it and is not of the series: one made under such a name, another series, a stranger's folder.
    for name in ["nightly", "nightly-2001-01-01T000000Z"] {
        assert_eq!(begin(json!({"name": name})).status, 202);
        assert_eq!(ended(&client)["state"], "done");
    }
    assert_eq!(begin(json!({"name": "nightly-old", "keep": 1})).status, 202);
    let other = ended(&client)["name"].as_str().unwrap().to_owned();
    let strange = backups.join("nightly-2001-01-02T000000Z");
    fs::create_dir(&strange).unwrap();
    fs::write(strange.join("default.sqlite"), "mine").unwrap();

    let mut made = Vec::new();
    for _ in 0..5 {
        assert_eq!(begin(json!({"name": "nightly", "keep": 3})).status, 202);
        let done = ended(&client);
        let name = done["name"].as_str().unwrap().to_owned();
        assert!(name.starts_with("nightly-2") && !made.contains(&name), "{name}");
        let gone = (made.len() >= 3).then(|| json!([made[made.len() - 3]]));
        assert_eq!((&done["state"], done.get("removed")), (&json!("done"), gone.as_ref()), "{done}");
        made.push(name);
    }
    let kept = |made: &[String]| {
        let others = ["nightly".to_owned(), "nightly-2001-01-01T000000Z".to_owned(), other.clone()];
        made.iter().cloned().chain(others).collect::<BTreeSet<_>>()
    };
    assert_eq!(whole_in(&backups), kept(&made[2..]));
    assert_eq!(fs::read(strange.join("default.sqlite")).unwrap(), b"mine");
    // A stranger's file in one of them saves it.
    fs::write(backups.join(&made[2]).join("notes.txt"), "dear").unwrap();
    // What a kill leaves: a backup of the series that is not whole, and a removal in its middle.
    let half = backups.join("nightly-2001-01-03T000000Z");
    fs::create_dir(&half).unwrap();
    fs::write(half.join("manifest.json.partial"), r#"{"series":"nightly"}"#).unwrap();
    fs::write(half.join("default.sqlite"), "half").unwrap();
    fs::write(half.join("manifest.json.partial.new"), "{").unwrap();
    let removing = backups.join(&made[3]);
    fs::rename(removing.join("manifest.json"), removing.join("manifest.json.partial")).unwrap();
    let (status, path, words_said) = run(&["backup", "nightly", "--keep", "2", "--server", &server.url("")]);
    assert_eq!(status, 0, "{words_said}");
    assert!(!half.exists() && !removing.exists());
    let newest = path.trim_end().rsplit_once('/').unwrap().1.to_owned();
    assert_eq!(whole_in(&backups), kept(&[made[2].clone(), made[4].clone(), newest.clone()]));
    let restored = dir.path().join("restored");
    assert_eq!(run(&["restore", utf8(&backups.join(&newest)), "--data-dir", utf8(&restored)]).0, 0);

    // To a path, by a server on this machine and without one: the same rules there, and the server's own stay.
    let before = whole_in(&backups);
    let target = dir.path().join("elsewhere/nightly");
    let by_server = || run(&["backup", utf8(&target), "--keep", "2", "--server", &server.url("")]);
    let first: Vec<_> =
        (0..3).map(|_| by_server()).map(|(status, path, said)| (status == 0).then_some(path).expect(&said)).collect();
    let there = |paths: &[String]| {
        paths.iter().map(|path| path.trim_end().rsplit_once('/').unwrap().1.to_owned()).collect::<BTreeSet<_>>()
    };
    assert_eq!(whole_in(target.parent().unwrap()), there(&first[1..]));
    assert_eq!(whole_in(&backups), before);
    assert!(server.terminate().success());
    let data = dir.path().join("data");
    let (status, path, words_said) = run(&["backup", utf8(&target), "--keep", "2", "--data-dir", utf8(&data)]);
    assert_eq!(status, 0, "{words_said}");
    assert_eq!(whole_in(target.parent().unwrap()), there(&[first[2].clone(), path]));
}

/// Killed at any moment, a run leaves as many whole ones as there were, or one more, or fewer: never none.
#[test]
fn a_series_whose_run_is_killed_is_never_without_a_whole_backup() {
    let dir = dir();
    let (data, _, documents) = offline(&dir, 5);
    let target = dir.path().join("series/nightly");
    let backup = || command::hapax(&["backup", utf8(&target), "--keep", "1", "--data-dir", utf8(&data)]);
    assert!(backup().output().unwrap().status.success());
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    for _ in 0..30 {
        let mut child = backup().spawn().unwrap();
        thread::sleep(Duration::from_millis(random.random_range(0..120)));
        let _ = child.kill();
        child.wait().unwrap();
        let whole = whole_in(target.parent().unwrap());
        assert!(!whole.is_empty());
    }
    assert!(backup().output().unwrap().status.success());
    let whole = whole_in(target.parent().unwrap());
    assert_eq!(whole.len(), 1, "{whole:?}");
    let left: Vec<_> = fs::read_dir(target.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let inside =
        || left.iter().map(|dir| fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>());
    assert_eq!(left.len(), 1, "something is left of those that were killed: {:?}", inside().collect::<Vec<_>>());
    let backup = target.parent().unwrap().join(whole.first().unwrap());
    let restored = dir.path().join("restored");
    assert_eq!(run(&["restore", utf8(&backup), "--data-dir", utf8(&restored)]).0, 0);
    assert_eq!(Server::start(&restored).documents(), documents);
}

/// On the defaults, and with a path on the same file system and on another one.
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
    assert!(status == 2 && words_said.contains("a backup's name matches"), "{words_said}");
    let (status, _, words_said) = run(&["backup", "a/..", "--server", &url]);
    assert!(status == 2 && words_said.contains("names no folder"), "{words_said}");
}

/// A data directory of two collections, at rest, and a backup of it made without a server.
fn offline(dir: &Dir, rounds: u64) -> (PathBuf, PathBuf, u64) {
    let (data, backup) = (dir.path().join("data"), dir.path().join("backup"));
    let server = Server::start(&data);
    let mut log = Log::default();
    (0..rounds).for_each(|round| log.round(&client(&server), round));
    assert_eq!(client(&server).json("PUT", "/v1/collections/news", &json!({"threshold": 0.7})).status, 201);
    let refused = run(&["backup", utf8(&backup), "--data-dir", utf8(&data)]);
    assert!(refused.0 == 2 && refused.2.contains("in use"), "{refused:?}");
    // Killed, so that the log beside the file counts.
    server.kill();
    let (status, path, words_said) = run(&["backup", utf8(&backup), "--data-dir", utf8(&data)]);
    assert_eq!((status, path.trim_end()), (0, utf8(&backup)), "{words_said}");
    (data, backup, log.state_at(log.0.len() as u64).len() as u64)
}

fn copy_of(backup: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(backup).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn no_damage_of_a_backup_is_restored() {
    let dir = dir();
    let (_, backup, _) = offline(&dir, 2);
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    let target = dir.path().join("restored");
    let refuse = |what: &str| -> BackupError {
        let attempt = || restore(&backup, &target, &Arc::<Progress>::default()).map(drop).expect_err(what);
        let mut error = attempt();
        // A process that another test is just starting has our lock until it runs its program.
        while matches!(error, BackupError::Lock(_)) {
            thread::sleep(Duration::from_millis(5));
            error = attempt();
        }
        assert!(!target.join("collections").exists() && !target.join("collections.restoring").exists(), "{what}");
        error
    };
    let mut damages = 0;
    for file in ["manifest.json", "default.sqlite", "news.sqlite"] {
        let path = backup.join(file);
        let whole = fs::read(&path).unwrap();
        let every = file == "manifest.json";
        let places: Vec<usize> = match every {
            true => (0..whole.len()).collect(),
            // The header, then anywhere.
            false => (0..100).chain((0..200).map(|_| random.random_range(0..whole.len()))).collect(),
        };
        for place in places {
            let mut damaged = whole.clone();
            damaged[place] ^= 1 << random.random_range(0..8);
            fs::write(&path, &damaged).unwrap();
            let error = refuse(&format!("{file}, byte {place}"));
            let named = match &error {
                BackupError::Damaged { path: named, .. } => *named == path,
                BackupError::Foreign { .. } | BackupError::NewerFormat { .. } => every,
                _ => false,
            };
            assert!(named, "{file}, byte {place}: {error}");
            damages += 1;
        }
        for length in (0..whole.len()).step_by(if every { 16 } else { 512 }) {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(matches!(refuse(&format!("{file} of {length} bytes")), BackupError::Damaged { .. }));
            damages += 1;
        }
        fs::write(&path, [&whole[..], b"\0"].concat()).unwrap();
        refuse("a byte more");
        fs::write(&path, &whole).unwrap();
    }
    assert!(damages > 1500, "{damages}");
    println!("{damages} damages refused");
    assert_eq!(run(&["restore", utf8(&backup), "--data-dir", utf8(&target)]).0, 0);
}

#[test]
fn what_is_no_backup_is_refused_by_name() {
    let dir = dir();
    let (data, backup, documents) = offline(&dir, 1);
    let target = dir.path().join("restored");
    let mut copies = 0;
    let mut refused = |change: &dyn Fn(&Path), said: &[&str]| {
        copies += 1;
        let copy = dir.path().join(format!("copy-{copies}"));
        copy_of(&backup, &copy);
        change(&copy);
        let (status, _, words_said) = run(&["restore", utf8(&copy), "--data-dir", utf8(&target)]);
        assert!(status == 2 && said.iter().all(|said| words_said.contains(said)), "{said:?}: {words_said}");
        assert!(!target.exists(), "{said:?}");
    };
    let manifest = |change: &dyn Fn(&mut Value), copy: &Path| {
        let mut value = serde_json::from_slice(&fs::read(copy.join("manifest.json")).unwrap()).unwrap();
        change(&mut value);
        fs::write(copy.join("manifest.json"), value.to_string()).unwrap();
    };
    refused(&|copy| fs::remove_file(copy.join("news.sqlite")).unwrap(), &["news.sqlite", "missing"]);
    refused(&|copy| fs::write(copy.join("notes.txt"), "").unwrap(), &["notes.txt", "knows nothing"]);
    refused(&|copy| fs::write(copy.join("default.sqlite-wal"), "x").unwrap(), &["default.sqlite-wal"]);
    refused(&|copy| fs::remove_file(copy.join("manifest.json")).unwrap(), &["not a backup", "manifest.json"]);
    refused(&|copy| fs::write(copy.join("manifest.json"), "{}").unwrap(), &["not one of hapax"]);
    refused(&|copy| fs::write(copy.join("manifest.json"), "[").unwrap(), &["manifest.json", "not JSON"]);
    refused(&|copy| manifest(&|value| value["hapax_backup"] = json!(3), copy), &["format 3", "up to 2"]);
    refused(&|copy| manifest(&|value| value["made"] = json!("2020-01-01T00:00:00Z"), copy), &["its sum differs"]);
    refused(
        &|copy| fs::copy(copy.join("default.sqlite"), copy.join("news.sqlite")).map(drop).unwrap(),
        &["news.sqlite"],
    );
    refused(&|copy| fs::remove_dir_all(copy).unwrap(), &["no such folder"]);

    let (status, _, words_said) = run(&["restore", utf8(&backup), "--data-dir", utf8(&data)]);
    assert!(status == 2 && words_said.contains("not empty") && words_said.contains("collections"), "{words_said}");
    let (status, _, words_said) = run(&["backup", utf8(&backup), "--data-dir", utf8(&data)]);
    assert!(status == 2 && words_said.contains("already"), "{words_said}");
    let (status, _, words_said) = run(&["backup", utf8(&data), "--data-dir", utf8(&data)]);
    assert!(status == 2 && words_said.contains("not empty"), "{words_said}");
    let (status, _, words_said) = run(&["backup", "x", "--data-dir", utf8(&dir.path().join("none"))]);
    assert!(status == 2 && words_said.contains("no such directory"), "{words_said}");
    assert_eq!(run(&["restore", utf8(&backup), "--data-dir", utf8(&target)]).0, 0);
    let restored = Server::start(&target);
    assert_eq!(restored.documents(), documents);
    assert_eq!(client(&restored).get("/v1/collections/news").ok()["threshold"], 0.7);
}

#[test]
fn a_restore_that_is_killed_serves_nothing_or_all() {
    let dir = dir();
    let (_, backup, documents) = offline(&dir, 20);
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    let (mut nothing, mut half, mut whole) = (0, 0, 0);
    for attempt in 0..24 {
        let target = dir.path().join(format!("restored-{attempt}"));
        let mut child = command::hapax(&["restore", utf8(&backup), "--data-dir", utf8(&target)]).spawn().unwrap();
        // From the first thing that is seen of it on, some way into it.
        let wait = Duration::from_micros(random.random_range(0..40_000));
        let since = Instant::now();
        while !target.exists() && since.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_micros(200));
        }
        thread::sleep(wait);
        let _ = child.kill();
        child.wait().unwrap();
        if target.join("collections").exists() {
            whole += 1;
            assert!(!target.join("collections.restoring").exists());
        } else if target.join("collections.restoring").exists() {
            half += 1;
            refuses_to_serve(&target);
        } else {
            nothing += 1;
        }
        if !target.join("collections").exists() {
            let again = run(&["restore", utf8(&backup), "--data-dir", utf8(&target)]);
            assert_eq!(again.0, 0, "{again:?}");
        }
        if attempt % 4 == 0 {
            assert_eq!(Server::start(&target).documents(), documents);
        }
    }
    println!("killed before: {nothing}, in the middle: {half}, behind: {whole}");
    // Whatever the machine's speed made of these, once for certain.
    let target = dir.path().join("restored");
    fs::create_dir_all(target.join("collections.restoring")).unwrap();
    fs::copy(backup.join("default.sqlite"), target.join("collections.restoring/default.sqlite")).unwrap();
    refuses_to_serve(&target);
    assert_eq!(run(&["restore", utf8(&backup), "--data-dir", utf8(&target)]).0, 0);
    assert_eq!(Server::start(&target).documents(), documents);
}

fn refuses_to_serve(data_dir: &Path) {
    for arguments in [&["serve", "--listen", "127.0.0.1:0"][..], &["export"], &["backup", "x"]] {
        let arguments = [arguments, &["--data-dir", utf8(data_dir)]].concat();
        let (status, out, words_said) = run(&arguments);
        assert!(status == 2 && out.is_empty() && words_said.contains("hapax restore"), "{arguments:?}: {words_said}");
    }
    assert!(!data_dir.join("collections").exists());
}
