//! An acknowledged write is on disk, and the disk has nothing else. Clients insert, replace, delete, expire, check,
//! merge, drop and back up, one by one and in bulk. During this, the server is killed without warning (`kills`), loses
//! power (`power_loss`) or has a disk that fails (`failing_disk`, `full_disk`). Afterwards every acknowledged write is
//! there as it was acknowledged. An unanswered write is there completely or not at all. Deleted documents stay deleted,
//! documents named in verdicts are there, and nothing else is there. A check with the content of a document finds the
//! document. `upgrades` tests the same with files of earlier formats, and `loads` with collections that are loaded.
//!
//! `HAPAX_KILLS` and `HAPAX_POWER_LOSSES` set the numbers of kills and of power losses. `HAPAX_FAULTS` sets which
//! operations fail. `HAPAX_SEED` repeats a run.

mod backups;
mod citer;
#[cfg(target_os = "linux")]
mod failing_disk;
mod fleeting;
mod folders;
#[cfg(target_os = "linux")]
pub mod full_disk;
mod golden;
mod http;
mod kills;
mod labelled;
#[cfg(target_os = "linux")]
mod loads;
mod merges;
mod names;
mod policy;
#[cfg(target_os = "linux")]
mod power_loss;
#[cfg(target_os = "linux")]
mod upgrades;
mod writer;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use self::backups::Backups;
use self::citer::Citer;
use self::fleeting::Fleeting;
use self::folders::Folders;
use self::golden::Golden;
use self::http::{Failure, agent, list, whole};
use self::labelled::Labelled;
use self::merges::Merges;
use self::writer::Writer;
use crate::support::server::{Address, Server};

/// All clients, with their notes.
#[derive(Clone)]
struct Load {
    writers: Vec<Writer>,
    citers: Vec<Citer>,
    folders: Vec<Folders>,
    fleeting: Vec<Fleeting>,
    labelled: Vec<Labelled>,
    golden: Vec<Golden>,
    merges: Vec<Merges>,
    /// Present if the server may make backups.
    backups: Option<Backups>,
}

impl Load {
    fn new(seed: u64) -> Self {
        Self::with_lines(seed, 40)
    }

    /// Makes the load, with bulk requests of at most this many lines.
    fn with_lines(seed: u64, max: usize) -> Self {
        Self {
            writers: (0..4).map(|number| Writer::new(number, seed, max)).collect(),
            citers: (0..3).map(|number| Citer::new(number, seed)).collect(),
            folders: vec![Folders::new(0, seed)],
            fleeting: vec![Fleeting::new(0, seed)],
            labelled: vec![Labelled::new(0, seed, max)],
            golden: vec![Golden::new(seed)],
            merges: vec![Merges::new(seed, 2 * max)],
            backups: None,
        }
    }

    /// Adds backups, which the server makes in `dir`.
    fn with_backups(self, dir: PathBuf) -> Self {
        Self { backups: Some(Backups::new(dir)), ..self }
    }

    /// Creates the permanent collections at the first start. After later starts they must be there.
    fn prepare(server: &Address, first_life: bool) {
        for (collection, settings) in collections() {
            if first_life {
                whole(agent().put(server.url(collection)).send_json(settings));
            }
            whole(agent().get(server.url(collection)).call());
        }
    }

    /// Runs all clients at once for this long. Then `end` stops the server. No request may fail before that.
    fn run(&mut self, server: &Address, time: Duration, end: impl FnOnce()) {
        let ending = AtomicBool::new(false);
        let until_gone = |mut work: Box<dyn FnMut() -> Result<(), Failure> + '_>| loop {
            match work() {
                Ok(()) => {}
                Err(Failure::Gone) if ending.load(Ordering::Relaxed) => return,
                Err(failure) => panic!("a request failed before anybody ended the server: {failure:?}"),
            }
        };
        thread::scope(|scope| {
            let until_gone = &until_gone;
            for writer in &mut self.writers {
                scope.spawn(move || until_gone(Box::new(|| writer.work(server))));
            }
            for citer in &mut self.citers {
                scope.spawn(move || until_gone(Box::new(|| citer.work(server))));
            }
            for folders in &mut self.folders {
                scope.spawn(move || until_gone(Box::new(|| folders.work(server))));
            }
            for fleeting in &mut self.fleeting {
                scope.spawn(move || until_gone(Box::new(|| fleeting.work(server))));
            }
            for labelled in &mut self.labelled {
                scope.spawn(move || until_gone(Box::new(|| labelled.work(server))));
            }
            for golden in &mut self.golden {
                scope.spawn(move || until_gone(Box::new(|| golden.work(server))));
            }
            for merges in &mut self.merges {
                scope.spawn(move || until_gone(Box::new(|| merges.work(server))));
            }
            if let Some(backups) = &mut self.backups {
                scope.spawn(move || until_gone(Box::new(|| backups.work(server))));
            }
            thread::sleep(time);
            ending.store(true, Ordering::Relaxed);
            end();
        });
    }

    /// Compares everything on the server with the notes of all clients, and records the outcome of unanswered requests.
    /// Returns the number of documents of the writers.
    fn verify(&mut self, server: &Server) -> usize {
        let address = server.address();
        let uncertain = thread::scope(|scope| {
            let writers: Vec<_> =
                self.writers.iter_mut().map(|writer| scope.spawn(|| writer.verify(address))).collect();
            writers.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        let held: BTreeSet<String> = self.writers.iter().flat_map(Writer::held).collect();
        let described = whole(agent().get(address.url("/v1/collections/default")).call());
        assert_eq!(described["documents"], held.len() as u64);
        // The number in the ready line covers all collections, and some documents have expired since.
        assert!(server.documents() >= held.len() as u64, "the ready line tells the number of documents");
        let documents = list(&address.url(writer::DOCUMENTS));
        let listed: BTreeSet<String> =
            documents.iter().map(|document| document["id"].as_str().expect("an id").to_owned()).collect();
        assert_eq!(listed.len(), documents.len(), "a document is listed twice");
        assert_eq!(listed, held, "the list has other documents than the ids tell");
        citer::verify(&mut self.citers.iter_mut().collect::<Vec<_>>(), address);
        self.folders.iter_mut().for_each(|folders| folders.verify(address));
        self.fleeting.iter_mut().for_each(|fleeting| fleeting.verify(address));
        self.labelled.iter_mut().for_each(|labelled| labelled.verify(address));
        self.golden.iter_mut().for_each(|golden| golden.verify(address));
        self.merges.iter_mut().for_each(|merges| merges.verify(address));
        self.backups.iter_mut().for_each(|backups| backups.verify(address));
        uncertain
    }

    /// Returns the number of answered writes.
    fn acknowledged(&self) -> u64 {
        let writers = self.writers.iter().map(Writer::acknowledged);
        let citers = self.citers.iter().map(Citer::acknowledged);
        let folders = self.folders.iter().map(Folders::acknowledged);
        let fleeting = self.fleeting.iter().map(Fleeting::acknowledged);
        let labelled = self.labelled.iter().map(Labelled::acknowledged);
        let golden = self.golden.iter().map(Golden::acknowledged);
        let merges = self.merges.iter().map(Merges::acknowledged);
        writers.chain(citers).chain(folders).chain(fleeting).chain(labelled).chain(golden).chain(merges).sum()
    }
}

/// Returns the permanent collections, and their settings.
fn collections() -> [(&'static str, Value); 5] {
    [
        (citer::COLLECTION, json!({ "keep": "shingles", "threshold": 0.6 })),
        (labelled::COLLECTION, json!({})),
        (merges::COLLECTION, json!({})),
        (fleeting::COLLECTION, json!({ "ttl": fleeting::TTL.as_secs() })),
        (backups::COLLECTION, json!({})),
    ]
}

/// Reads a number from the environment.
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// Returns the seed of this run, and prints it.
fn seed() -> u64 {
    let seed = variable("HAPAX_SEED").unwrap_or_else(|| rand::rng().random());
    eprintln!("HAPAX_SEED={seed}");
    seed
}

/// Returns sixty random words, the same for the same number.
fn random_text(number: u64) -> String {
    let mut random = ChaCha8Rng::seed_from_u64(number);
    let mut word = || (0..random.random_range(3..9)).map(|_| random.random_range('a'..='z')).collect::<String>();
    (0..60).map(|_| word()).collect::<Vec<_>>().join(" ")
}
