//! Merges of a staging collection, with all options, while clients change both collections. Some merges are stopped
//! midway: by chance, or because a document cannot be stored.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax::collections::CollectionError;
use hapax::types::{Job, Merge, OnDuplicate, OnExisting, Seq};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::scopes::KEPT;
use super::world::{POISON, told};
use super::writers::{STORE, random_of};
use super::{Chaos, IDS, LOTS, PATIENCE, STAGED};
use crate::support::documents::id;

/// How a merge ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    /// The merge is stopped after its first documents.
    Stopped,
    /// The last document of the merge cannot be stored, so the merge retries until it is stopped.
    Stuck,
}

impl Chaos {
    /// Changes the staging collection.
    pub(super) async fn stage(&self, rng: &mut ChaCha8Rng) {
        let ids = if rng.random_bool(0.5) { IDS } else { STAGED };
        let name = id(format!("id{}", rng.random_range(0..ids)));
        if rng.random_bool(0.1) {
            self.staging.delete(name).await.unwrap().wait().await.unwrap();
            return;
        }
        // Often the staging collection gets the content that this id already has in one of the collections.
        let holder = [Some(&self.staging), Some(&self.collection), None, None][rng.random_range(0..4)];
        let held = match holder {
            Some(holder) => holder.document(&name).await.unwrap(),
            None => None,
        };
        let of = held.map_or_else(|| random_of(rng), |held| told(held.metadata.as_ref()));
        let lot = rng.random_range(0..LOTS);
        self.insert(&self.staging, name, of, (rng.random_range(0..3), lot), STORE).await.unwrap();
    }

    /// Merges again and again.
    pub(super) async fn merge(self: Arc<Self>) {
        // Merges that replace documents do most, so they come first and most often.
        let existing = [OnExisting::Replace, OnExisting::Conflict, OnExisting::Replace, OnExisting::Keep].into_iter();
        let duplicate = [OnDuplicate::Link, OnDuplicate::Skip, OnDuplicate::Store];
        let all = existing.flat_map(|existing| duplicate.map(|duplicate| (duplicate, existing)));
        let ends = [End::Whole, End::Whole, End::Stopped, End::Whole, End::Stuck].into_iter().cycle();
        for (options, end) in all.cycle().zip(ends) {
            if !self.goes_on() {
                return;
            }
            self.merge_once(options, end).await;
        }
    }

    async fn merge_once(&self, (on_duplicate, on_existing): (OnDuplicate, OnExisting), end: End) {
        let poison = id("refused by every merge");
        if end == End::Stuck {
            self.insert(&self.staging, poison.clone(), (POISON, 0), (0, KEPT), STORE).await.unwrap();
        }
        let number = loop {
            let begun = match self.collection.merge(&self.staging, on_duplicate, on_existing) {
                Ok(begun) => begun.wait().await,
                Err(error) => Err(error),
            };
            match begun {
                Ok(begun) => break begun.number,
                Err(CollectionError::WriteFailed { .. } | CollectionError::Overloaded { .. }) => {}
                Err(other) => panic!("seed {}: {other}", self.seed),
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        let ended = self.until_ended(number, end).await;
        self.agrees_with_its_reports(&ended).await;
        for (outcome, count) in &ended.outcomes {
            self.tally.add(format!("merged: {outcome}"), *count);
        }
        let refused = ended.outcomes.get("refused").copied().unwrap_or_default();
        self.tally.add("decided", ended.merged() - refused);
        self.tally.one("merges");
        self.tally.one(format!("merges with {} and {}", on_duplicate.as_str(), on_existing.as_str()));
        let midway = ended.merged() > 0 && ended.after < ended.source.through;
        self.tally.add("merges stopped midway", u64::from(ended.aborted.is_some() && midway));
        assert!(end != End::Stuck || ended.aborted.is_some(), "seed {}: stored what is refused: {ended:?}", self.seed);
        if end == End::Stuck {
            self.staging.delete(poison).await.unwrap().wait().await.unwrap();
        }
    }

    /// Waits for the end of a merge, and stops the merge if `end` says so.
    async fn until_ended(&self, number: Seq, end: End) -> Merge {
        let (begun, mut is_stopped) = (Instant::now(), false);
        loop {
            let jobs = self.collection.jobs().unwrap();
            let listed = jobs.iter().find(|listed| listed.job.number() == number).expect("it is listed");
            let Job::Merge(merge) = &listed.job else { panic!("seed {}: not a merge", self.seed) };
            if merge.ended.is_some() {
                return merge.clone();
            }
            let stops = match end {
                End::Whole => false,
                End::Stopped => merge.merged() > 0,
                End::Stuck => merge.merged() > 0 && listed.waits.is_some() || begun.elapsed() > Duration::from_secs(3),
            };
            if stops && !is_stopped {
                is_stopped = true;
                self.collection.stop_merge(number).await;
            }
            assert!(begun.elapsed() < PATIENCE, "seed {}: a merge does not end: {listed:?}", self.seed);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    async fn agrees_with_its_reports(&self, merge: &Merge) {
        let reports = self.collection.merge_reports(merge.number, Seq(0), 10_000).await.unwrap();
        let last = reports.last().map_or(Seq(0), |(seq, _)| *seq);
        let seed = self.seed;
        assert_eq!((reports.len() as u64, last), (merge.merged(), merge.after), "seed {seed}: {merge:?}");
        for (outcome, count) in &merge.outcomes {
            let told = format!(r#""outcome":"{outcome}""#);
            let reported = reports.iter().filter(|(_, report)| report.contains(&told)).count() as u64;
            assert_eq!(reported, *count, "seed {seed}: {outcome} in {merge:?}");
        }
        assert_eq!(merge.verdicts.values().sum::<u64>(), merge.merged() - merge.outcomes.get("refused").unwrap_or(&0));
    }
}
