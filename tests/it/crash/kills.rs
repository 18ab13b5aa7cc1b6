//! SIGKILL at random moments, also while the server starts, and several times in a row.

use std::path::Path;
use std::thread;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Load, seed, variable};
use crate::support::server::{Server, Starting};

#[test]
fn what_was_acknowledged_outlives_a_killed_process() {
    let (kills, seed) = (variable("HAPAX_KILLS").unwrap_or(4), seed());
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let parent = tempfile::tempdir().unwrap();
    let data_dir = parent.path().join("data");
    let mut load = Load::new(seed);
    let mut uncertain = 0;
    for life in 0..kills {
        let server = start_after_a_few_tries(&data_dir, &mut random);
        Load::prepare(server.address(), life == 0);
        uncertain += load.verify(&server);
        let (address, time) = (server.address().clone(), Duration::from_millis(random.random_range(50..1500)));
        load.run(&address, time, || server.kill());
    }
    let server = start_after_a_few_tries(&data_dir, &mut random);
    uncertain += load.verify(&server);
    assert!(server.terminate().success());
    let server = Server::start(&data_dir);
    assert_eq!(load.verify(&server), 0, "nothing was under way");
    let acknowledged = load.acknowledged();
    eprintln!("{kills} kills: {acknowledged} acknowledged, {uncertain} unanswered, none lost, none invented");
    assert!(acknowledged > 50 * kills, "only {acknowledged} acknowledged: nothing was tested; {}", server.log_tail());
}

/// Some lives end before they begin to serve.
fn start_after_a_few_tries(data_dir: &Path, random: &mut ChaCha8Rng) -> Server {
    while random.random_bool(0.4) {
        let starting = Starting::spawn(data_dir);
        thread::sleep(Duration::from_millis(random.random_range(0..200)));
        starting.kill();
    }
    Server::start(data_dir)
}
