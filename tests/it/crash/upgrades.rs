//! A server that starts on files of an earlier format loses power at some disk operation, or that operation fails. The
//! next start finishes the upgrade, and the answers are as recorded.

use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{seed, variable};
use crate::support::disk::{self, Disk, Unsynced};
use crate::support::server::{Server, Starting};
use crate::upgrade::{answers, fixtures, holds, laid_out};

/// The possible remains of the unsynced operations.
const OUTCOMES: [Unsynced; 3] = [Unsynced::Kept, Unsynced::Lost, Unsynced::Torn];
/// EIO, an error of the device.
const ERROR: i32 = 5;

/// Returns the step between the operations that are tried. A test of all operations takes minutes.
fn step() -> usize {
    variable("HAPAX_FAULTS").unwrap_or(61) as usize
}

#[test]
fn an_upgrade_outlives_a_power_failure() {
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    let mut tried = 0;
    for fixture in fixtures() {
        let parent = tempfile::tempdir().unwrap();
        let data = laid_out(&fixture, parent.path());
        let mut disk = Disk::of(&data);
        let notes = parent.path().join("notes");
        start(&data, &notes, None).expect("nothing fails").kill();
        let first = random.random_range(0..step());
        for (at, operation) in disk::operations(&notes).into_iter().enumerate() {
            disk.apply(vec![operation]);
            if at % step() != first {
                continue;
            }
            let outcome = OUTCOMES[random.random_range(0..OUTCOMES.len())];
            let left = parent.path().join(format!("left-{at}"));
            disk.fail(outcome, &mut random, &left);
            eprintln!("{}: {outcome:?} after operation {at}", fixture.display());
            holds(&fixture, &Server::start(&left), &answers(&fixture));
            tried += 1;
        }
    }
    eprintln!("{tried} power failures during an upgrade");
    assert!(tried > 0, "nothing was tested");
}

#[test]
fn an_upgrade_outlives_a_failure_of_the_disk() {
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    let (mut tried, mut refused) = (0, 0);
    for fixture in fixtures() {
        let mut number = 1 + random.random_range(0..step());
        loop {
            let parent = tempfile::tempdir().unwrap();
            let data = laid_out(&fixture, parent.path());
            let notes = parent.path().join("notes");
            let started = start(&data, &notes, Some(number));
            refused += usize::from(started.is_none());
            drop(started);
            if !disk::operations(&notes).iter().any(|operation| operation.error.is_some()) {
                break;
            }
            eprintln!("{}: operation {number} failed", fixture.display());
            holds(&fixture, &Server::start(&data), &answers(&fixture));
            number += step();
            tried += 1;
        }
    }
    eprintln!("{tried} failures of the disk during an upgrade; {refused} times the server did not start");
    assert!(tried > 0, "nothing was tested");
}

/// Starts a server, and makes one of its operations fail. Returns `None` if the server does not start but reports the
/// reason.
fn start(data: &Path, notes: &Path, fails: Option<usize>) -> Option<Server> {
    let mut environment = disk::preloaded(data, notes).to_vec();
    environment.extend(fails.map(|number| ("HAPAX_DISK_FAIL", format!("{number}:{ERROR}"))));
    let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    match Starting::spawn_with(data, &[], &environment).ready_or_ended() {
        Ok(server) => Some(server),
        Err((status, log)) => {
            assert_eq!(status.code(), Some(2), "{fails:?}: {log}");
            let says = ["Input/output error", "disk I/O error"];
            assert!(says.iter().any(|says| log.contains(says)), "{fails:?}: it does not say why; {log}");
            None
        }
    }
}
