//! Signature -> the documents like it, best first.
//! Probes all bands, verifies every candidate, ranks by equal slots. Who may see which document is the [`View`]'s to
//! say. Knows nothing of ids, of the store, or of what becomes of the verdict.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::time::{Duration, Instant};

use hapax_core::SignatureShape;

use super::Limits;
use super::meters::Meters;
use crate::index::{Arena, BandIndex, Comparison, Hit, Probe, Seen};
use crate::types::{Overlap, Seq, Slot};

/// From where in the commit order a lookup sees.
#[derive(Clone, Copy, Debug)]
pub(super) enum View {
    /// What is on disk up to here: checks.
    Durable(Seq),
    /// All that has been decided: whoever holds the decision lock.
    Decided,
}

impl View {
    /// Whether a document is there in this view.
    pub(super) fn sees(self, seen: &Seen) -> bool {
        match self {
            Self::Durable(durable) => seen.seq <= durable && (seen.removed == Seq(0) || seen.removed > durable),
            Self::Decided => seen.removed == Seq(0),
        }
    }

    /// Whether a document that has postings may be found in this view. A link has them only while it is being promoted,
    /// and that is not durable.
    fn finds(self, seen: &Seen) -> bool {
        self.sees(seen) && !(seen.linked && matches!(self, Self::Durable(_)))
    }
}

/// What is looked up.
pub(super) struct Query<'a> {
    /// Packed slots.
    pub(super) signature: &'a [u8],
    /// 64 bits of the content hash; 0 where there is none.
    pub(super) content: u64,
    /// The asking document's own slot: a document is never its own match.
    pub(super) own: Option<Slot>,
    /// Equal slots from which a candidate counts.
    pub(super) matching_min: u32,
}

impl<'a> Query<'a> {
    /// Compares candidates with it.
    pub(super) fn comparison(
        &self,
        arena: &'a Arena,
        shape: SignatureShape,
        words: &'a mut Vec<u64>,
    ) -> Comparison<'a> {
        Comparison::new(arena, self.signature, shape, self.matching_min, words)
    }
}

/// A document at or above the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ranked {
    /// Which.
    pub(super) seq: Seq,
    /// Where it stands, as long as it is there.
    pub(super) slot: Slot,
    /// Equal slots out of k.
    pub(super) matching: u32,
    /// Whether the content hashes agree, as far as memory knows them.
    pub(super) same_content: bool,
    /// How many shingles they share, once they have been compared.
    pub(super) overlap: Option<Overlap>,
}

/// What a lookup found.
#[derive(Debug)]
pub(super) struct Judgement {
    /// Best first: equal contents, then more equal slots, then earlier `seq`.
    pub(super) ranked: Vec<Ranked>,
    /// Distinct documents compared.
    pub(super) candidates: u32,
    /// Postings that a bound kept from being read, and candidates that one kept from being compared.
    pub(super) unread: u64,
    cost: Cost,
}

/// What a lookup cost, for the metrics.
#[derive(Debug)]
struct Cost {
    probe: Duration,
    verify: Duration,
    fullest_bucket: usize,
}

#[derive(Default)]
struct Scratch {
    probe: Probe,
    words: Vec<u64>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Looks up a signature in an index.
pub(super) fn judge(
    arena: &Arena,
    bands: &BandIndex,
    shape: SignatureShape,
    limits: &Limits,
    view: View,
    query: &Query<'_>,
) -> Judgement {
    SCRATCH.with_borrow_mut(|scratch| {
        let Scratch { probe, words } = scratch;
        let started = Instant::now();
        bands.probe(arena, query.signature, limits.bucket_read_max, probe);
        let dropped = keep_most_hit(&mut probe.hits, limits.candidates_max);
        let probed = Instant::now();

        let cost = Cost { probe: probed - started, verify: Duration::ZERO, fullest_bucket: probe.fullest };
        let mut judgement = Judgement { ranked: Vec::new(), candidates: 0, unread: probe.unread + dropped, cost };
        query.comparison(arena, shape, words).each(&probe.hits, |slot, seen, matching| {
            if query.own != Some(slot) && view.finds(&seen) {
                judgement.consider(query, shape, slot, &seen, matching);
            }
        });
        judgement.rank();

        judgement.cost.verify = probed.elapsed();
        judgement
    })
}

impl Judgement {
    /// Takes one candidate into account, with so many equal slots.
    pub(super) fn consider(
        &mut self,
        query: &Query<'_>,
        shape: SignatureShape,
        slot: Slot,
        seen: &Seen,
        matching: u32,
    ) {
        self.candidates += 1;
        if matching >= query.matching_min {
            let same_content = matching == shape.k && query.content != 0 && seen.content == query.content;
            self.ranked.push(Ranked { seq: seen.seq, slot, matching, same_content, overlap: None });
        }
    }

    /// Puts the best first.
    pub(super) fn rank(&mut self) {
        self.ranked.sort_unstable_by_key(|found| (Reverse(found.same_content), Reverse(found.matching), found.seq));
    }

    /// Counts it. A decision that has to look again counts the last look only.
    pub(super) fn meter(&self, meters: &Meters) {
        meters.probe_seconds.record(self.cost.probe);
        meters.verify_seconds.record(self.cost.verify);
        meters.candidates.record(self.candidates);
        meters.fullest_bucket.record(self.cost.fullest_bucket as f64);
        let above = self.ranked.len() as u64;
        meters.candidates_above.increment(above);
        meters.candidates_below.increment(u64::from(self.candidates) - above);
    }
}

/// Where there are more than `max`, those that share the most bands with the query stay: they are the likeliest to be
/// like it. Returns how many were dropped.
fn keep_most_hit(hits: &mut Vec<Hit>, max: usize) -> u64 {
    let dropped = hits.len().saturating_sub(max);
    if dropped > 0 {
        hits.select_nth_unstable_by_key(max, |hit| (Reverse(hit.bands), hit.slot));
        hits.truncate(max);
    }
    dropped as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_candidate_bound_keeps_those_that_share_the_most_bands() {
        let bands = |slot| if slot == 50 || slot == 70 { 2 } else { 1 };
        let mut hits: Vec<Hit> = (0..100).map(|slot| Hit { slot: Slot(slot), bands: bands(slot) }).collect();
        assert_eq!(keep_most_hit(&mut hits, 2), 98);
        hits.sort();
        assert_eq!(hits.iter().map(|hit| hit.slot.0).collect::<Vec<_>>(), [50, 70]);
        assert_eq!(keep_most_hit(&mut hits, 2), 0);
    }

    #[test]
    fn a_pending_delete_hides_from_deciders_and_not_yet_from_checks() {
        let seen = Seen { seq: Seq(3), removed: Seq(7), content: 0, linked: false };
        assert!(!View::Decided.sees(&seen));
        assert!(View::Durable(Seq(6)).sees(&seen));
        assert!(!View::Durable(Seq(7)).sees(&seen));
        assert!(!View::Durable(Seq(2)).sees(&seen));
    }
}
