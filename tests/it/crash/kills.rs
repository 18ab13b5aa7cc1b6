//! SIGKILL at random moments, even while the server starts, and several times in a row.

use std::path::Path;
use std::thread;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::backups::Backups;
use super::labelled::Labelled;
use super::merges::Merges;
use super::{Load, seed, variable};
use crate::support::server::{Server, Starting};

#[test]
fn what_was_acknowledged_outlives_a_killed_process() {
    let (kills, seed) = (variable("HAPAX_KILLS").unwrap_or(4), seed());
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let parent = tempfile::tempdir().unwrap();
    let data_dir = parent.path().join("data");
    let backups = parent.path().join("backups");
    let mut load = Load::new(seed).with_backups(backups.clone());
    let environment = [("HAPAX__BACKUP__DIR", backups.to_str().expect("paths of tests are UTF-8"))];
    let start = |random: &mut ChaCha8Rng| start_after_a_few_tries(&data_dir, &environment, random);
    let mut uncertain = 0;
    // On a busy machine, all of these runs may be too short for a backup. In this case there are more runs, each
    // longer.
    for life in 0..5 * kills {
        if life >= kills && load.backups.as_ref().is_some_and(|backups| backups.done() > 0) {
            break;
        }
        let server = start(&mut random);
        Load::prepare(server.address(), life == 0);
        uncertain += load.verify(&server);
        let (address, time) = (server.address().clone(), Duration::from_millis(random.random_range(50..1500)));
        let time = time + Duration::from_secs(life.saturating_sub(kills - 1));
        load.run(&address, time, || server.kill());
    }
    let server = start(&mut random);
    uncertain += load.verify(&server);
    assert!(server.terminate().success());
    let server = Server::start(&data_dir);
    assert_eq!(load.verify(&server), 0, "nothing was under way");
    let acknowledged = load.acknowledged();
    let backups = load.backups.as_ref().map_or(0, Backups::done);
    eprintln!(
        "{kills} kills: {acknowledged} acknowledged, {uncertain} unanswered, none lost, none invented; {backups} backups"
    );
    let deletions: u64 = load.labelled.iter().map(Labelled::deletions).sum();
    let stopped: u64 = load.merges.iter().map(Merges::stopped).sum();
    eprintln!("{deletions} deletions by label, {stopped} merges stopped");
    assert!(deletions > 0, "no deletion by label deleted anything; {}", server.log_tail());
    assert!(backups > 0, "no backup was done; {}", server.log_tail());
    assert!(acknowledged > 50 * kills, "only {acknowledged} acknowledged: nothing was tested; {}", server.log_tail());
}

/// Starts the server. Some starts are killed before the server is ready.
fn start_after_a_few_tries(data_dir: &Path, environment: &[(&str, &str)], random: &mut ChaCha8Rng) -> Server {
    while random.random_bool(0.4) {
        let starting = Starting::spawn_with(data_dir, &[], environment);
        thread::sleep(Duration::from_millis(random.random_range(0..200)));
        starting.kill();
    }
    Starting::spawn_with(data_dir, &[], environment).ready()
}
