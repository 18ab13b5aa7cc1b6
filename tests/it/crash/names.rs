//! A power failure cannot reverse the order in which names in a folder change. If a file must be gone before another
//! file is renamed or removed, the removal of the first file is synced first. Otherwise, the log of a dropped
//! collection could remain after its marker is gone, and block the name. And the log of a damaged collection could be
//! replayed into the repaired file.

use std::path::Path;

use serde_json::json;

use crate::damaged::{file, spoil};
use crate::support::client::{Client, words};
use crate::support::command;
use crate::support::disk::{self, Kind, Operation};
use crate::support::server::Starting;

/// Checks that the folder is synced after the last of some removals and before the operation `then`.
fn synced_between(operations: &[Operation], then: impl Fn(&Operation) -> bool) {
    let of_the_log = |operation: &Operation| {
        let name = operation.path.to_string_lossy();
        matches!(operation.kind, Kind::Remove) && ["-wal", "-shm", "-moved"].iter().any(|end| name.ends_with(end))
    };
    let then = operations.iter().position(then).expect("it happens");
    let removed = operations[..then].iter().rposition(of_the_log).expect("something of a log is removed");
    let folder = operations[then].path.parent().unwrap();
    let synced = operations[removed..then]
        .iter()
        .any(|operation| matches!(operation.kind, Kind::Sync) && operation.error.is_none() && operation.path == folder);
    assert!(synced, "{:#?}", &operations[removed..=then]);
}

fn named(path: &Path, end: &str) -> bool {
    path.to_string_lossy().ends_with(end)
}

#[test]
fn what_is_left_of_a_log_is_gone_for_certain_before_its_name_is_free() {
    let parent = tempfile::tempdir().unwrap();
    let (data_dir, notes) = (parent.path().join("data"), parent.path().join("notes"));
    let environment = disk::preloaded(&data_dir, &notes);
    let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let server = Starting::spawn_with(&data_dir, &[], &environment).ready();
    let client = Client::new(server.url(""));
    for name in ["news", "mended"] {
        assert_eq!(client.json("PUT", &format!("/v1/collections/{name}"), &json!({})).status, 201);
        let document = json!({"id": "id7", "text": words(7)});
        client.post(&format!("/v1/collections/{name}/documents"), &document).ok();
    }
    client.delete("/v1/collections/news?confirm=news").ok();
    assert!(server.terminate().success());
    synced_between(&disk::operations(&notes), |operation| {
        matches!(operation.kind, Kind::Remove) && named(&operation.path, "news.sqlite.dropped")
    });

    spoil(&file(&data_dir, "mended"), b"id7");
    let notes = parent.path().join("notes-of-the-repair");
    let mut repair =
        command::hapax(&["verify", "--data-dir", data_dir.to_str().unwrap(), "--collection", "mended", "--repair"]);
    let repaired = repair.envs(disk::preloaded(&data_dir, &notes)).output().unwrap();
    assert!(repaired.status.code() == Some(1), "{repaired:?}");
    synced_between(&disk::operations(&notes), |operation| match &operation.kind {
        Kind::Rename { to } => named(&operation.path, ".repaired") && named(to, "mended.sqlite"),
        _ => false,
    });
}

/// If the path of a backup had several new folders, an earlier version synced only the name of the last one.
#[test]
fn each_new_folder_on_the_way_to_a_backup_is_synced() {
    let parent = tempfile::tempdir().unwrap();
    let data_dir = parent.path().join("data");
    assert!(Starting::spawn_with(&data_dir, &[], &[]).ready().terminate().success());
    let (root, notes) = (parent.path().join("backups"), parent.path().join("notes"));
    std::fs::create_dir(&root).unwrap();
    let target = root.join("a/b/c");
    let mut backup = command::hapax(&["backup", "--data-dir", data_dir.to_str().unwrap(), target.to_str().unwrap()]);
    let made = backup.envs(disk::preloaded(&root, &notes)).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let operations = disk::operations(&notes);
    let folders: Vec<_> = operations.iter().filter(|made| matches!(made.kind, Kind::MakeDir)).collect();
    assert_eq!(folders.len(), 3, "{operations:#?}");
    for folder in folders {
        let of_its_parent = |operation: &&Operation| {
            matches!(operation.kind, Kind::Sync) && Some(&*operation.path) == folder.path.parent()
        };
        assert!(operations.iter().any(|operation| of_its_parent(&operation)), "{:?}: {operations:#?}", folder.path);
    }
}
