//! The canary measures recall. Each minute, it makes near-duplicates of some stored documents, at known similarities,
//! and looks them up in the same way as a check (`src/engine/lookup/canary.rs`). The share of lookups that find the
//! original is the recall of the collection with its present buckets and limits. The same documents show how much the
//! candidates differ from those that the S-curve predicts (`drift.rs`).

use std::time::{Duration, Instant};

use hapax_core::{Banding, SplitMix64, tuning};

use super::drift::{CLASSES, LengthClass, class_of, predicted};
use super::rounds::{Rounds, Stop};
use super::targets::{States, Target};
use crate::cpu::let_others_run;
use crate::engine::lookup::canary::{Look, SIMILARITIES, look, proposed, stored};
use crate::engine::meters::CanaryRecall;
use crate::store::Record;
use crate::types::Verify;
use crate::verdicts::{CollectionError, Result};

/// The time between two searches for collections that are due.
const IDLE: Duration = Duration::from_secs(1);
/// The time between two rounds of a collection.
const EVERY: Duration = Duration::from_secs(60);
/// The number of documents in one round.
const DOCUMENTS: u32 = 20;
/// In each round, the counts of the earlier rounds are multiplied by this number. So the last ten rounds count most.
const MEMORY: f64 = 0.9;

/// Starts the canary of one data directory.
pub(super) fn start(open: impl Fn() -> Option<Vec<Target>> + Send + 'static) -> Rounds {
    let mut canaries = States::default();
    Rounds::start("hapax-canary", open, move |collections, stop| {
        canaries.keep(&collections, |_| Canary::new());
        for target in &collections {
            let canary = canaries.of(target);
            target.lookup.records().store().in_passing(|| canary.round(target, stop));
        }
        IDLE
    })
}

/// The settings under which lookups are counted together. If they change, counting begins again.
#[derive(Clone, Copy, PartialEq)]
struct Under {
    banding: Banding,
    threshold: f64,
    verify: Verify,
}

/// The lookups in one collection.
struct Canary {
    due: Instant,
    number: u32,
    under: Option<Under>,
    /// By similarity: the number of lookups, and how many of them found the original.
    counts: [(f64, f64); SIMILARITIES.len()],
    classes: [LengthClass; CLASSES.len()],
}

impl Canary {
    fn new() -> Self {
        Self { due: Instant::now(), number: 0, under: None, counts: Default::default(), classes: Default::default() }
    }

    fn round(&mut self, target: &Target, stop: &Stop) {
        let lookup = &target.lookup;
        if lookup.items().is_some() {
            // Nothing is found by similarity there.
            return;
        }
        if lookup.counts().documents() == 0 {
            return self.forget(target);
        }
        if self.due > Instant::now() {
            return;
        }
        let (under, least) = {
            let policy = lookup.policy();
            let settings = &policy.settings;
            let under = Under { banding: settings.banding, threshold: settings.threshold, verify: settings.verify };
            (under, policy.terms.matching_min)
        };
        if self.under.replace(under) != Some(under) {
            (self.counts, self.classes) = Default::default();
        }
        self.classes.iter_mut().for_each(|class| class.fade(MEMORY));
        self.counts.iter_mut().for_each(|(looks, found)| (*looks, *found) = (*looks * MEMORY, *found * MEMORY));
        // The next turn is set even if the round fails, because the next round uses other documents.
        self.due = Instant::now() + EVERY;
        self.number = self.number.wrapping_add(1);
        let mut random = SplitMix64::new(u64::from(self.number));
        let sample = self.sample(target).unwrap_or_else(|error| {
            failed(target, &error);
            Vec::new()
        });
        for record in &sample {
            if stop.within(Duration::ZERO) {
                return;
            }
            let looked = look(lookup, record, &mut random).map(|looks| self.count(target, &looks));
            if let Err(error) = looked {
                failed(target, &error);
                break;
            }
            self.drift(target, under.banding, record, &sample);
            let_others_run();
        }
        self.tell(target, under, least);
    }

    /// Clears the metrics of a collection that has become empty. A round begins soon after it has documents again.
    fn forget(&mut self, target: &Target) {
        if let Some(under) = self.under.take() {
            *self = Self { number: self.number, ..Self::new() };
            self.tell(target, under, 0);
        }
    }

    /// Reads the documents of a round.
    fn sample(&self, target: &Target) -> Result<Vec<Record>> {
        let (lookup, index) = (&target.lookup, target.lookup.index());
        let places = index.sample(DOCUMENTS, self.number).filter_map(|place| index.peek(place));
        places.filter_map(|occupant| stored(lookup, occupant.seq).transpose()).collect()
    }

    /// Compares the candidates of a document with those that the curve predicts.
    fn drift(&mut self, target: &Target, banding: Banding, record: &Record, sample: &[Record]) {
        let lookup = &target.lookup;
        let (documents, shape) = (lookup.counts().documents(), lookup.preparer().shape());
        let Some(predicted) = predicted(record, sample, documents, (banding, shape)) else { return };
        if let Some(observed) = proposed(lookup, record) {
            self.classes[class_of(record)].add(&predicted, &observed);
        }
    }

    fn count(&mut self, target: &Target, looks: &[Look]) {
        for look in looks {
            let (all, found) = &mut self.counts[look.at];
            *all += 1.0;
            *found += f64::from(u8::from(look.found));
            target.lookup.meters().canary_looked(&target.name, SIMILARITIES[look.at], look.source, look.found);
        }
    }

    fn tell(&self, target: &Target, under: Under, least: u32) {
        let shape = target.lookup.preparer().shape();
        for (&similarity, &(looks, found)) in SIMILARITIES.iter().zip(&self.counts) {
            let expected = tuning::matching_probability(similarity, under.banding, shape, least);
            let recall = (looks > 0.0).then(|| CanaryRecall::of(found, looks, expected));
            target.lookup.meters().canary(&target.name, similarity, recall);
        }
        for ((_, shingles), class) in CLASSES.iter().zip(&self.classes) {
            target.lookup.meters().drift(&target.name, shingles, class.mean());
        }
    }
}

/// Logs that a round failed, unless the collection was closed meanwhile. The next round tries again with other
/// documents.
fn failed(target: &Target, error: &CollectionError) {
    if !target.lookup.records().store().is_closed() {
        tracing::error!(collection = %target.name, %error, "the canary could not look a document up");
    }
}
