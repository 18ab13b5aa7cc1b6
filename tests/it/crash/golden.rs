//! Replaces and deletes the golden set of a collection. A set is there completely or not at all.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::http::{Failure, agent, answer, whole};
use super::labelled::COLLECTION;
use crate::support::server::Address;

#[derive(Clone)]
pub struct Golden {
    random: ChaCha8Rng,
    sets: u32,
    /// The sets that may be stored, by number; 0 means no set. There are several while a request is unanswered.
    possible: Vec<u32>,
    acknowledged: u64,
}

impl Golden {
    pub fn new(seed: u64) -> Self {
        Self { random: ChaCha8Rng::seed_from_u64(seed ^ 0x601D), sets: 0, possible: vec![0], acknowledged: 0 }
    }

    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    pub fn work(&mut self, server: &Address) -> Result<(), Failure> {
        let url = url(server);
        let (set, report) = if self.random.random_bool(0.8) {
            self.sets += 1;
            self.possible.push(self.sets);
            (self.sets, answer(agent().put(url).send_json(json!({ "pairs": pairs(self.sets) })))?)
        } else {
            self.possible.push(0);
            (0, answer(agent().delete(url).call())?)
        };
        assert_eq!(failed(&report), names(set), "{report}");
        self.possible = vec![set];
        self.acknowledged += 1;
        std::thread::sleep(std::time::Duration::from_millis(self.random.random_range(0..20)));
        Ok(())
    }

    pub fn verify(&mut self, server: &Address) {
        let report = whole(agent().get(url(server)).call());
        let there = failed(&report);
        let set = self.possible.iter().copied().find(|set| names(*set) == there);
        let set = set.unwrap_or_else(|| panic!("{:?} were possible: {report}", self.possible));
        assert_eq!(report["pairs"], there.len(), "{report}");
        self.possible = vec![set];
    }
}

fn url(server: &Address) -> String {
    server.url(&format!("{COLLECTION}/golden"))
}

fn names(set: u32) -> Vec<String> {
    let pairs = if set == 0 { 0 } else { 1 + set % 7 };
    (0..pairs).map(|pair| format!("set-{set}-{pair}")).collect()
}

/// Returns the pairs of a set. All are labelled wrongly, so that a report names each of them.
fn pairs(set: u32) -> Vec<Value> {
    let text = |side: u64, pair: usize| super::random_text(side << 48 | u64::from(set) << 8 | pair as u64);
    let pair = |(at, name)| json!({ "name": name, "a": text(0x60A, at), "b": text(0x60B, at), "duplicate": true });
    names(set).into_iter().enumerate().map(pair).collect()
}

fn failed(report: &Value) -> Vec<String> {
    let failed = report["failed"].as_array().expect("failed pairs");
    failed.iter().map(|pair| pair["name"].as_str().expect("a name").to_owned()).collect()
}
