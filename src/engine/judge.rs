//! Signature -> the documents like it, best first.
//! Probes all bands, verifies every candidate, ranks by equal slots. Who may see which document is the [`View`]'s to
//! say. Knows nothing of ids, of the store, or of what becomes of the verdict.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use hapax_core::{ContentHash, SignatureShape};

use super::Limits;
use super::doubt::DOUBTFUL;
use super::meters::Meters;
use super::order::cited;
use super::records::Heads;
use crate::index::{Arena, BandIndex, Comparison, Group, GroupHit, Hit, Members, Probe, Seen, Twin};
use crate::types::{Overlap, Seq, Slot};

/// From where in the commit order a lookup sees.
#[derive(Clone, Copy, Debug)]
pub(crate) enum View {
    /// What is on disk up to here: checks.
    Durable(Seq),
    /// All that has been decided: whoever holds the decision lock.
    Decided,
}

impl View {
    /// Whether a document is there in this view.
    pub(crate) fn sees(self, seen: &Seen) -> bool {
        match self {
            Self::Durable(_) if seen.removed == DOUBTFUL => false,
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
pub(crate) struct Query<'a> {
    /// Packed slots.
    pub(crate) signature: &'a [u8],
    /// 64 bits of the content hash; 0 where there is none.
    pub(crate) content: u64,
    /// The asking document's own slot: a document is never its own match.
    pub(crate) own: Option<Slot>,
    /// Equal slots from which a candidate counts.
    pub(crate) matching_min: u32,
    /// Most documents of one signature that are listed: they were compared as one, and the rest are no less alike.
    pub(crate) members_max: usize,
    /// In place of that, most different contents of one signature, where each is to be compared by its shingles.
    pub(crate) contents_max: Option<usize>,
    /// Documents whose content turned out to be another, though 64 bits of its hash are equal.
    pub(crate) mistaken: &'a HashSet<Seq>,
}

impl<'a> Query<'a> {
    /// Compares candidates with it.
    pub(crate) fn comparison(
        &self,
        arena: &'a Arena,
        shape: SignatureShape,
        words: &'a mut Vec<u64>,
    ) -> Comparison<'a> {
        Comparison::new(arena, self.signature, shape, self.matching_min, words)
    }
}

/// How many documents of one signature a lookup lists. Once one was taken for what it is not, many may be.
pub(crate) fn members_max(limit: usize, mistaken: &HashSet<Seq>) -> usize {
    const MISTAKEN: usize = 1024;
    limit.max(if mistaken.is_empty() { 1 } else { MISTAKEN })
}

/// A document at or above the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ranked {
    /// Which.
    pub(crate) seq: Seq,
    /// Where it stands, as long as it is there.
    pub(crate) slot: Slot,
    /// Equal slots out of k.
    pub(crate) matching: u32,
    /// 64 bits of its content hash; 0 if it has none.
    pub(crate) content: u64,
    /// Whether the content hashes agree, as far as memory knows them.
    pub(crate) same_content: bool,
    /// Whether it is a link.
    pub(crate) linked: bool,
    /// How many shingles they share, once they have been compared.
    pub(crate) overlap: Option<Overlap>,
}

/// What a lookup found.
#[derive(Debug)]
pub(crate) struct Judgement {
    /// Best first: equal contents, then more equal slots, then earlier `seq`.
    pub(crate) ranked: Vec<Ranked>,
    /// Distinct documents compared; those of one signature are one.
    pub(crate) candidates: u32,
    /// How many of them reach the threshold by their signatures.
    above: u32,
    /// Postings that a bound kept from being read, and candidates that one kept from being compared.
    pub(crate) unread: u64,
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
pub(crate) fn judge(
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
        let dropped = keep_most_hit(&mut probe.hits, &mut probe.groups, limits.candidates_max);
        let probed = Instant::now();

        let cost = Cost { probe: probed - started, verify: Duration::ZERO, fullest_bucket: probe.fullest };
        let mut judgement =
            Judgement { ranked: Vec::new(), candidates: 0, above: 0, unread: probe.unread + dropped, cost };
        let mut comparison = query.comparison(arena, shape, words);
        comparison.each(&probe.hits, |slot, seen, matching| {
            if query.own != Some(slot) && view.finds(&seen) {
                judgement.consider(query, shape, slot, &seen, matching);
            }
        });
        let look = Look { arena, bands, shape, view, query };
        for GroupHit { group, .. } in &probe.groups {
            look.at_group(group, &mut comparison, &mut judgement);
        }
        if let Some(twin) = &probe.twin {
            look.at_twin(twin, &mut comparison, &mut judgement);
        }
        // No lookup keeps a group from being forgotten.
        probe.groups.clear();
        probe.twin = None;
        judgement.rank();

        judgement.cost.verify = probed.elapsed();
        judgement
    })
}

/// A lookup in documents of equal signatures.
struct Look<'a> {
    arena: &'a Arena,
    bands: &'a BandIndex,
    shape: SignatureShape,
    view: View,
    query: &'a Query<'a>,
}

impl Look<'_> {
    /// What is in a slot, if it is to be found by its bands.
    fn found(&self, slot: Slot) -> Option<(Slot, Seen)> {
        self.other(slot).filter(|(_, seen)| self.view.finds(seen))
    }

    fn other(&self, slot: Slot) -> Option<(Slot, Seen)> {
        if self.query.own == Some(slot) { None } else { self.arena.peek(slot).map(|seen| (slot, seen)) }
    }

    fn same_content(&self, seen: &Seen) -> bool {
        self.query.content != 0 && seen.content == self.query.content && !self.query.mistaken.contains(&seen.seq)
    }

    /// A group whose signature may be like the query's: one comparison for all.
    fn at_group(&self, group: &Group, comparison: &mut Comparison<'_>, judgement: &mut Judgement) {
        let members = group.members();
        let mut found = members.found();
        // Any of them: a slot that is listed has the signature.
        let Some((_, matching)) = found.next().and_then(|slot| comparison.with(slot)) else { return };
        if matching < self.query.matching_min {
            judgement.candidates += u32::from(members.found().any(|slot| self.found(slot).is_some()));
            return;
        }
        self.list(&members, matching, judgement);
    }

    /// Documents with the query's own signature. Those of its content are first, links too, and no bound hides them.
    fn at_twin(&self, twin: &Twin, comparison: &mut Comparison<'_>, judgement: &mut Judgement) {
        let Some(group) = &twin.group else {
            let slot = twin.place();
            let Some((seen, matching)) = comparison.with(slot).filter(|_| self.query.own != Some(slot)) else { return };
            let same = matching == self.shape.k && self.same_content(&seen) && self.view.sees(&seen);
            if same || twin.alone_findable && self.view.finds(&seen) {
                judgement.consider(self.query, self.shape, slot, &seen, matching);
            }
            return;
        };
        let members = group.members();
        let of_content = members.of_content(self.arena, self.query.content).filter_map(|slot| self.other(slot));
        let same = of_content.filter(|(_, seen)| self.view.sees(seen) && self.same_content(seen));
        let before = judgement.ranked.len();
        same.take(self.query.members_max)
            .for_each(|(slot, seen)| judgement.list(self.query, self.shape, slot, &seen, self.shape.k));
        let listed = judgement.ranked.len() - before;
        judgement.counts(listed > 0, true);
        if listed < self.query.members_max {
            self.list(&members, self.shape.k, judgement);
        }
    }

    /// Lists the members of a group that is at or above the threshold, but those of the query's content.
    fn list(&self, members: &Members, matching: u32, judgement: &mut Judgement) {
        let others = |slot| self.found(slot).filter(|(_, seen)| matching < self.shape.k || !self.same_content(seen));
        let add = |(slot, seen): (Slot, Seen), judgement: &mut Judgement| {
            judgement.list(self.query, self.shape, slot, &seen, matching);
        };
        let before = judgement.ranked.len();
        let Some(contents_max) = self.query.contents_max else {
            members.found().filter_map(others).take(self.query.members_max).for_each(|found| add(found, judgement));
            return judgement.counts(judgement.ranked.len() > before, true);
        };
        let mut from = Some(0);
        for _ in 0..contents_max {
            let Some(least) = from else { return };
            let mut all = members.from_content(self.arena, least).peekable();
            let Some(content) = all.peek().and_then(|&slot| self.arena.peek(slot)).map(|seen| seen.content) else {
                return;
            };
            from = content.checked_add(1);
            // Those of the query's content are listed already.
            if matching == self.shape.k && content == self.query.content && self.query.mistaken.is_empty() {
                continue;
            }
            let before = judgement.ranked.len();
            all.take_while(|&slot| self.arena.peek(slot).is_some_and(|seen| seen.content == content))
                .filter(|&slot| self.bands.is_findable(slot))
                .filter_map(others)
                .take(self.query.members_max)
                .for_each(|found| add(found, judgement));
            judgement.counts(judgement.ranked.len() > before, true);
        }
        if let Some(least) = from {
            judgement.unread += members.from_content(self.arena, least).count() as u64;
        }
    }
}

impl Judgement {
    /// Takes one candidate into account, with so many equal slots.
    pub(crate) fn consider(
        &mut self,
        query: &Query<'_>,
        shape: SignatureShape,
        slot: Slot,
        seen: &Seen,
        matching: u32,
    ) {
        let above = matching >= query.matching_min;
        self.counts(true, above);
        if above {
            self.list(query, shape, slot, seen, matching);
        }
    }

    /// Counts a candidate, or does not.
    fn counts(&mut self, is_one: bool, above: bool) {
        self.candidates += u32::from(is_one);
        self.above += u32::from(is_one && above);
    }

    fn list(&mut self, query: &Query<'_>, shape: SignatureShape, slot: Slot, seen: &Seen, matching: u32) {
        let Seen { seq, content, linked, .. } = *seen;
        let same_content =
            matching == shape.k && query.content != 0 && content == query.content && !query.mistaken.contains(&seq);
        self.ranked.push(Ranked { seq, slot, matching, content, same_content, linked, overlap: None });
    }

    /// Puts the best first.
    pub(crate) fn rank(&mut self) {
        self.ranked.sort_unstable_by_key(|found| (Reverse(found.same_content), Reverse(found.matching), found.seq));
        // One that was met alone may have been met in its group too, if another joined it meanwhile.
        self.ranked.dedup_by_key(|found| found.seq);
    }

    /// The best match, if it is a link.
    pub(crate) fn best_link(&self) -> Option<&Ranked> {
        self.ranked.first().filter(|best| best.linked)
    }

    /// Which of the documents that a verdict cites have another content than they seem to: 64 bits of the hash are in
    /// memory, all of it comes with the head. They are to be looked up again as what they are.
    pub(crate) fn mistakes(
        &self,
        limit: usize,
        heads: &Heads,
        content: Option<ContentHash>,
    ) -> impl Iterator<Item = Seq> {
        let same = cited(self, limit).iter().filter(|found| found.same_content);
        same.filter(move |found| heads.get(found.seq).is_some_and(|head| content != Some(head.content)))
            .map(|found| found.seq)
    }

    /// Counts it. A decision that has to look again counts the last look only.
    pub(crate) fn meter(&self, meters: &Meters) {
        meters.probe_seconds.record(self.cost.probe);
        meters.verify_seconds.record(self.cost.verify);
        meters.candidates.record(self.candidates);
        meters.fullest_bucket.record(self.cost.fullest_bucket as f64);
        meters.candidates_above.increment(u64::from(self.above));
        meters.candidates_below.increment(u64::from(self.candidates - self.above));
    }
}

/// If there are more than `max`, those that share the most bands with the query stay: they are the likeliest to be like
/// it. Returns how many were dropped.
fn keep_most_hit(hits: &mut Vec<Hit>, groups: &mut Vec<GroupHit>, max: usize) -> u64 {
    let dropped = (hits.len() + groups.len()).saturating_sub(max);
    if dropped > 0 {
        let of_groups = groups.iter().map(|group| (Reverse(group.bands), group.leader));
        let mut all: Vec<_> = hits.iter().map(|hit| (Reverse(hit.bands), hit.place)).chain(of_groups).collect();
        let (_, &mut first_dropped, _) = all.select_nth_unstable(max);
        hits.retain(|hit| (Reverse(hit.bands), hit.place) < first_dropped);
        groups.retain(|group| (Reverse(group.bands), group.leader) < first_dropped);
    }
    dropped as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_candidate_bound_keeps_those_that_share_the_most_bands() {
        let bands = |slot| if slot == 50 || slot == 70 { 2 } else { 1 };
        let mut hits: Vec<Hit> = (0..100).map(|slot| Hit { place: Slot(slot), bands: bands(slot) }).collect();
        assert_eq!(keep_most_hit(&mut hits, &mut Vec::new(), 2), 98);
        hits.sort();
        assert_eq!(hits.iter().map(|hit| hit.place.0).collect::<Vec<_>>(), [50, 70]);
        assert_eq!(keep_most_hit(&mut hits, &mut Vec::new(), 2), 0);
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
