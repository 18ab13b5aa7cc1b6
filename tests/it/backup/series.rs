//! A series of backups keeps its newest backups. The older backups of the series are removed, and nothing else is.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::steps::{BACKUPS, client, ended, offline, run, serve, utf8};
use crate::support::client::{Client, fields};
use crate::support::command;
use crate::support::library::{Dir, dir, seed};
use crate::support::server::Server;

/// Returns the whole backups in a folder, by name.
fn whole_in(dir: &Path) -> BTreeSet<String> {
    let folders = fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
    let whole = folders.filter(|folder| folder.join("manifest.json").exists());
    whole.map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

/// In an earlier version, `hapax backup nightly` was refused with 409 on the second night, so no backup was younger
/// than the first.
#[test]
fn a_series_keeps_the_newest_and_removes_nothing_else() {
    let dir = dir();
    let backups = dir.path().join("backups");
    let server = serve(&dir, "0");
    let client = client(&server);
    let begin = |body: Value| client.post(BACKUPS, &body);
    bad_series_are_refused(&client);
    // Folders that look like backups of the series but are not: a backup that was made under such a name, one of
    // another series, and a folder that hapax did not make.
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
    // If a folder contains a file that is not part of the backup, the backup is not removed.
    fs::write(backups.join(&made[2]).join("notes.txt"), "dear").unwrap();
    // The leftovers of a kill: an incomplete backup of the series, and an unfinished removal.
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
    a_series_of_a_path_goes_by_the_same_rules(&dir, server);
}

fn bad_series_are_refused(client: &Client) {
    let begin = |body: Value| client.post(BACKUPS, &body);
    for (body, field) in [
        (json!({"name": "nightly", "keep": 1001}), "keep"),
        (json!({"name": "nightly", "keep": -1}), "keep"),
        (json!({"keep": 3}), "name"),
        (json!({"name": "x".repeat(60), "keep": 3}), "name"),
    ] {
        assert_eq!(fields(&begin(body).problem(422, "invalid_value")), [field]);
    }
}

/// Tests a series at a path, with a server on this machine and without one. The series in the server's own folder stay.
fn a_series_of_a_path_goes_by_the_same_rules(dir: &Dir, server: Server) {
    let backups = dir.path().join("backups");
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

/// In an earlier version, `hapax backup --data-dir --keep 1` replaced the last backup of a collection whose file had
/// vanished.
#[test]
fn a_vanished_collection_is_never_left_out_of_a_series() {
    let dir = dir();
    let (data, _, _) = offline(&dir, 1);
    let target = dir.path().join("series/nightly");
    let back_up = || run(&["backup", utf8(&target), "--keep", "1", "--data-dir", utf8(&data)]);
    assert_eq!(back_up().0, 0);
    let before = whole_in(target.parent().unwrap());
    let [file, kept] = ["collections/news.sqlite", "news.sqlite"].map(|name| data.join(name));
    fs::rename(&file, &kept).unwrap();
    let (status, path, said) = back_up();
    assert!(status == 2 && path.is_empty() && said.contains("the file of collection `news` is missing"), "{said}");
    assert_eq!(whole_in(target.parent().unwrap()), before);
    // A drop that a crash interrupted does not count as a lost collection.
    fs::rename(&kept, data.join("collections/news.sqlite.dropped")).unwrap();
    assert_eq!(back_up().0, 0);
}

/// After a run is killed at any moment, there may be more or fewer whole backups than before, but there is at least
/// one.
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
