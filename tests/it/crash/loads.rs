//! `hapax load --data-dir` loses power at some disk operation, or that operation fails. Afterwards the new collection
//! is there completely or not at all. If the load reported success, the collection is there.

use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{seed, variable};
use crate::loading::table::Table;
use crate::support::client::{Client, words};
use crate::support::command::hapax;
use crate::support::disk::{self, Disk, Unsynced};
use crate::support::server::Server;

const ROWS: u64 = 400;
/// The possible remains of the unsynced operations.
const OUTCOMES: [Unsynced; 3] = [Unsynced::Kept, Unsynced::Lost, Unsynced::Torn];
/// EIO, an error of the device, and ENOSPC, which ends when there is room again.
const ERRORS: [i32; 2] = [5, 28];

/// Returns the step between the operations that are tried.
fn step() -> usize {
    variable("HAPAX_FAULTS").unwrap_or(23) as usize
}

/// Loads a file into a data directory, and returns whether that succeeded. If an operation fails, the error says why.
fn load(file: &Path, data: &Path, notes: &Path, fails: Option<String>) -> bool {
    let arguments = ["load", utf8(file), "--collection", "loaded", "--data-dir", utf8(data)];
    let mut command = hapax(&arguments);
    command.envs(disk::preloaded(data, notes));
    command.envs(fails.map(|fails| ("HAPAX_DISK_FAIL", fails)));
    let output = command.output().unwrap();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let says = ["Input/output error", "No space left", "disk I/O error", "no space left", "is damaged"];
        assert!(says.iter().any(|says| said.contains(says)), "it does not say why: {said}");
    }
    output.status.success()
}

/// Starts a server. The collection must be there completely or not at all. If `must_be` is set, it must be there.
fn holds(data: &Path, must_be: bool) {
    let server = Server::start(data);
    let client = Client::new(server.url(""));
    match client.get("/v1/collections/loaded").status {
        404 => assert!(!must_be, "a load that ended well is gone"),
        _ => {
            assert_eq!(client.get("/v1/collections/loaded").ok()["documents"], ROWS);
            let check = serde_json::json!({ "text": words(ROWS - 1) });
            let verdict = client.post("/v1/collections/loaded/check", &check).ok();
            assert_eq!(verdict["verdict"], "exact_duplicate", "{verdict}");
        }
    }
    for entry in std::fs::read_dir(data.join("collections")).unwrap() {
        let left = entry.unwrap().file_name().into_string().unwrap();
        assert!(!left.contains(".loading"), "{left}");
    }
}

#[test]
fn a_load_outlives_a_power_failure() {
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    let parent = tempfile::tempdir().unwrap();
    let (file, data, notes) = files(parent.path());
    // A directory with `default`, as a server leaves it.
    Server::start(&data).terminate();
    let mut disk = Disk::of(&data);
    assert!(load(&file, &data, &notes, None));
    let operations = disk::operations(&notes);
    let (count, first) = (operations.len(), random.random_range(0..step()));
    for (at, operation) in operations.into_iter().enumerate() {
        disk.apply(vec![operation]);
        let last = at + 1 == count;
        if at % step() == first || last || at + 8 > count {
            let outcome = OUTCOMES[random.random_range(0..OUTCOMES.len())];
            let left = parent.path().join(format!("left-{at}"));
            disk.fail(outcome, &mut random, &left);
            eprintln!("{outcome:?} after operation {at} of {count}");
            holds(&left, last);
        }
    }
}

#[test]
fn a_load_outlives_a_failure_of_the_disk() {
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    let (mut tried, mut number) = (0, 1 + random.random_range(0..step()));
    loop {
        let parent = tempfile::tempdir().unwrap();
        let (file, data, notes) = files(parent.path());
        let error = ERRORS[random.random_range(0..ERRORS.len())];
        let done = load(&file, &data, &notes, Some(format!("{number}:{error}")));
        if !disk::operations(&notes).iter().any(|operation| operation.error.is_some()) {
            assert!(done, "nothing failed");
            break;
        }
        eprintln!("operation {number} failed with {error}; loaded: {done}");
        holds(&data, done);
        number += step();
        tried += 1;
    }
    eprintln!("{tried} failures of the disk during a load");
    assert!(tried > 0, "nothing was tested");
}

/// Returns a file of signatures, a data directory, and a file for the notes.
fn files(parent: &Path) -> (std::path::PathBuf, std::path::PathBuf, std::path::PathBuf) {
    let file = parent.join("file.parquet");
    Table::of((0..ROWS).map(|n| (format!("page/{n}"), words(n)))).write(&file);
    (file, parent.join("data"), parent.join("notes"))
}

fn utf8(path: &Path) -> &str {
    path.to_str().unwrap()
}
