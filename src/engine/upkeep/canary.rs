//! The canary: each minute near-duplicates of some stored documents, at known similarities, take the way of a check.
//! The share that finds its original is the recall of the collection as it is now, with its buckets and its limits.

use std::time::{Duration, Instant};

use hapax_core::{Banding, SplitMix64, tuning};

use super::rounds::{Rounds, Stop};
use super::targets::{States, Target};
use crate::cpu::let_others_run;
use crate::engine::lookup::canary::{Look, SIMILARITIES, look};
use crate::engine::meters::CanaryRecall;
use crate::types::Verify;

/// The time between two looks for collections that are due.
const IDLE: Duration = Duration::from_secs(1);
/// The time between two rounds of a collection.
const EVERY: Duration = Duration::from_secs(60);
/// The documents of one round.
const DOCUMENTS: u32 = 20;
/// The weight of the earlier rounds in each new one: the last ten count most.
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

/// The settings under which looks count together.
#[derive(Clone, Copy, PartialEq)]
struct Under {
    banding: Banding,
    threshold: f64,
    verify: Verify,
}

/// The looks at one collection.
struct Canary {
    due: Instant,
    number: u32,
    under: Option<Under>,
    /// By similarity: looks, and how many of them found the original.
    counts: [(f64, f64); SIMILARITIES.len()],
}

impl Canary {
    fn new() -> Self {
        Self { due: Instant::now(), number: 0, under: None, counts: Default::default() }
    }

    fn round(&mut self, target: &Target, stop: &Stop) {
        let lookup = &target.lookup;
        if self.due > Instant::now() || lookup.counts().documents() == 0 {
            return;
        }
        let (under, least) = {
            let policy = lookup.policy();
            let settings = &policy.settings;
            let under = Under { banding: settings.banding, threshold: settings.threshold, verify: settings.verify };
            (under, policy.terms.matching_min)
        };
        if self.under.replace(under) != Some(under) {
            self.counts = Default::default();
        }
        self.counts.iter_mut().for_each(|(looks, found)| (*looks, *found) = (*looks * MEMORY, *found * MEMORY));
        let mut random = SplitMix64::new(u64::from(self.number));
        let index = lookup.index();
        let sample: Vec<_> = index.sample(DOCUMENTS, self.number).filter_map(|place| index.peek(place)).collect();
        for occupant in sample.iter().filter(|occupant| !occupant.linked) {
            if stop.within(Duration::ZERO) {
                return;
            }
            match look(lookup, occupant.seq, &mut random) {
                Ok(looks) => self.count(target, &looks),
                Err(_) if lookup.records().store().is_closed() => return,
                Err(error) => {
                    tracing::error!(collection = %target.name, %error, "the canary could not look a document up")
                }
            }
            let_others_run();
        }
        self.tell(target, under, least);
        self.number = self.number.wrapping_add(1);
        self.due = Instant::now() + EVERY;
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
    }
}
