//! Signature -> the documents similar to it, best first. `bucket_reads.rs` probes all bands, and `verifier.rs` counts
//! the equal slots of each candidate. This file ranks the candidates at or above the threshold. The [`View`] decides
//! which documents a search may see. Knows nothing of ids, of the store, or of how its findings are used.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use hapax_core::{Banding, SignatureShape};

use super::arena::{Arena, Occupant};
use super::band_tables::BandTables;
use super::bucket_reads::{GroupHit, Hit, Probe, Probed};
use super::equals::Twin;
use super::group::{Group, GroupMembers};
use super::place::Place;
use super::verifier::Verifier;
use super::view::View;
use crate::types::{Explanation, LookupTimes, Seq};

/// A query for similar documents.
pub struct Query<'a> {
    /// The packed slots.
    pub signature: &'a [u8],
    /// 64 bits of the content hash; 0 if there is none.
    pub content: u64,
    /// The place of the query's own document, if it is stored. A document never matches itself.
    pub own: Option<Place>,
    /// The minimum number of equal slots that a match has.
    pub matching_min: u32,
    /// The maximum number of documents to list for one signature. Documents with the same signature are compared as
    /// one, so the documents that are left out are equally similar.
    pub members_max: usize,
    /// The maximum number of different contents to list for one signature, if contents are compared by their shingles.
    /// `members_max` then applies to each content.
    pub contents_max: Option<usize>,
    /// Documents that have other content than the query although 64 bits of the hash are equal.
    pub mistaken: &'a HashSet<Seq>,
    /// Whether the document at a place can be found; see [`Index::scope`](super::Index::scope).
    pub scope: Option<&'a dyn Fn(Place) -> bool>,
    /// Whether to return the documents that the search examined. If so, the search compares all slots of every
    /// candidate.
    pub explain: bool,
}

/// The limits of one search.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The maximum number of documents to read from one bucket. If the query has a scope, also the maximum number to
    /// read from one group of equal signatures.
    pub bucket_read_max: usize,
    /// The maximum number of documents to compare.
    pub candidates_max: usize,
    /// After a search has listed this many members of groups, it lists only one member of each further group.
    pub listed_max: usize,
}

/// A document with at least the required number of equal slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub seq: Seq,
    /// Its place, which is valid as long as the document is there.
    pub place: Place,
    /// The number of equal slots out of k.
    pub matching: u32,
    /// 64 bits of its content hash; 0 if it has none.
    pub content: u64,
    /// Whether the content hashes agree in the 64 bits that are in memory.
    pub same_content: bool,
    pub linked: bool,
}

/// The result of a search.
#[derive(Debug)]
pub struct Search {
    /// Best first: equal contents, then more equal slots, then the lower `seq`. Each document appears once.
    pub found: Vec<Candidate>,
    /// The number of documents compared. Documents with the same signature count as one.
    pub candidates: u32,
    /// How many of these candidates have the required number of equal slots.
    pub above: u32,
    pub unread: Unread,
    pub cost: Cost,
    /// Present if [`Query::explain`] is set.
    pub examined: Option<Box<Examined>>,
}

/// The documents that a search examined.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The banding that it used.
    pub banding: Banding,
    /// The number of documents that have the query's key, for each band.
    pub bucket_documents: Vec<usize>,
    /// The number of documents that share a band with the query, before the limit on candidates. Documents with the
    /// same signature count as one.
    pub seen: u64,
    /// Candidates with fewer equal slots than a match needs, best first; at most [`Explanation::BELOW_MAX`].
    pub below: Vec<Candidate>,
}

impl Examined {
    fn at(found: &Probed, banding: Banding) -> Self {
        let seen = found.hits.len() + found.groups.len() + usize::from(found.twin.is_some());
        Self { banding, bucket_documents: found.sizes.clone(), seen: seen as u64, below: Vec::new() }
    }

    /// Adds a candidate below the minimum. Keeps more candidates than needed, so that it seldom has to sort.
    fn add(&mut self, below: Candidate) {
        self.below.push(below);
        if self.below.len() >= 8 * Explanation::BELOW_MAX {
            self.keep_best();
        }
    }

    fn keep_best(&mut self) {
        self.below.sort_unstable_by_key(|below| (Reverse(below.matching), below.seq));
        self.below.dedup_by_key(|below| below.seq);
        self.below.truncate(Explanation::BELOW_MAX);
    }
}

/// How many postings and documents a search did not look at because of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// Postings that were not read. A document may be counted once for each band.
    pub postings: u64,
    /// Candidates that were not compared.
    pub candidates: u64,
    /// Documents that have a compared signature, but whose contents are beyond `contents_max`.
    pub contents: u64,
}

/// The cost of a search, for the metrics.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub probe: Duration,
    pub verify: Duration,
    /// The number of documents in the fullest bucket among the query's keys.
    pub fullest_bucket: usize,
}

impl Cost {
    pub fn times(&self) -> LookupTimes {
        LookupTimes::new(self.probe, self.verify)
    }
}

impl<'a> Query<'a> {
    /// Makes a verifier that compares candidates with this query.
    fn verifier(&self, arena: &'a Arena, shape: SignatureShape, words: &'a mut Vec<u64>) -> Verifier<'a> {
        // With a minimum above 0, a verifier may stop before it has compared all slots.
        let counted_min = if self.explain { 0 } else { self.matching_min };
        Verifier::new(arena, self.signature, shape, counted_min, words)
    }

    fn is_own(&self, place: Place) -> bool {
        self.own == Some(place)
    }

    /// Returns whether a document that was read at a place is in the scope.
    fn has_in_scope(&self, arena: &Arena, place: Place, occupant: &Occupant) -> bool {
        self.scope.is_none_or(|scope| {
            // If the place has another document by now, the labels may belong to that document.
            scope(place) && arena.peek(place).is_some_and(|now| now.seq == occupant.seq)
        })
    }

    /// Returns whether a document has the query's content, judged by the 64 bits of the hash that are in memory.
    fn same_content(&self, occupant: &Occupant) -> bool {
        self.content != 0 && occupant.content == self.content && !self.mistaken.contains(&occupant.seq)
    }
}

/// [`Bounds::listed_max`] for an answer, which contains fewer documents than this.
pub const LISTED_MAX: usize = 1 << 16;
/// Unread members of a group are counted up to this number.
const UNREAD_COUNTED_MAX: usize = 10_000;

#[derive(Default)]
struct Buffers {
    probe: Probe,
    words: Vec<u64>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// Looks up a signature under a banding.
pub(super) fn search(arena: &Arena, tables: &BandTables, view: View, query: &Query<'_>, bounds: Bounds) -> Search {
    BUFFERS.with_borrow_mut(|buffers| {
        let Buffers { probe, words } = buffers;
        let started = Instant::now();
        let found = probe.all_bands(tables, arena, query.signature, bounds.bucket_read_max, query.scope);
        let examined = query.explain.then(|| Box::new(Examined::at(found, tables.bands().banding())));
        let dropped = keep_most_hit(&mut found.hits, &mut found.groups, bounds.candidates_max);
        let probed = Instant::now();

        let cost = Cost { probe: probed - started, verify: Duration::ZERO, fullest_bucket: found.fullest };
        let unread = Unread { postings: found.unread, candidates: dropped, contents: 0 };
        let mut search = Search { found: Vec::new(), candidates: 0, above: 0, unread, cost, examined };
        let shape = tables.bands().shape();
        let mut verifier = query.verifier(arena, shape, words);
        verifier.each(&found.hits, |place, occupant, matching| {
            let occupant = view.shown(arena, place, occupant);
            if !query.is_own(place) && view.finds(&occupant) && query.has_in_scope(arena, place, &occupant) {
                search.add(query, shape, place, &occupant, matching);
            }
        });
        let look = Look {
            arena,
            tables,
            shape,
            view,
            query,
            reads_max: if query.scope.is_some() { bounds.bucket_read_max } else { usize::MAX },
            listed_max: bounds.listed_max,
        };
        // The twin comes first, because the number of listed members is limited.
        if let Some(twin) = &found.twin {
            look.at_twin(twin, &mut verifier, &mut search);
        }
        for GroupHit { group, .. } in &found.groups {
            look.at_group(group, &mut verifier, &mut search);
        }
        // These are cleared so that the thread's buffers do not keep a group alive.
        found.groups.clear();
        found.twin = None;
        search.rank();

        search.cost.verify = probed.elapsed();
        search
    })
}

/// Adds documents that the caller has found by other means, if they are still at their places. Only decisions use this.
pub(super) fn consider(
    arena: &Arena,
    shape: SignatureShape,
    search: &mut Search,
    query: &Query<'_>,
    known: &[(Seq, Place)],
) {
    let mut words = Vec::new();
    let mut verifier = query.verifier(arena, shape, &mut words);
    // These documents were not found by their bands, so they do not count as examined.
    let examined = search.examined.take();
    for &(seq, place) in known {
        if let Some((occupant, matching)) = verifier.with(place).filter(|(occupant, _)| occupant.seq == seq) {
            let occupant = View::Decided.shown(arena, place, occupant);
            search.add(query, shape, place, &occupant, matching);
        }
    }
    search.examined = examined;
    search.rank();
}

/// Returns how many of these documents have the number of equal slots that the query requires.
pub(super) fn matching(
    arena: &Arena,
    shape: SignatureShape,
    query: &Query<'_>,
    places: impl Iterator<Item = Place>,
) -> usize {
    let mut words = Vec::new();
    let mut verifier = query.verifier(arena, shape, &mut words);
    let mut reaches = |place: Place| verifier.with(place).is_some_and(|(_, matching)| matching >= query.matching_min);
    places.filter(|&place| reaches(place)).count()
}

/// A lookup in groups of equal signatures.
struct Look<'a> {
    arena: &'a Arena,
    tables: &'a BandTables,
    shape: SignatureShape,
    view: View,
    query: &'a Query<'a>,
    /// The maximum number of members of a group to read. There is a limit only if the query has a scope.
    reads_max: usize,
    listed_max: usize,
}

impl Look<'_> {
    /// Returns the document at a place, if a search may find it by its bands.
    fn found(&self, place: Place) -> Option<(Place, Occupant)> {
        self.other(place).filter(|(_, occupant)| self.view.finds(occupant))
    }

    fn other(&self, place: Place) -> Option<(Place, Occupant)> {
        if self.query.is_own(place) {
            return None;
        }
        let occupant = self.view.shown(self.arena, place, self.arena.peek(place)?);
        self.query.has_in_scope(self.arena, place, &occupant).then_some((place, occupant))
    }

    /// Lists the members that are `wanted`, until there are enough. If the limit on reading is reached first, counts
    /// the rest as unread. Returns whether there are enough.
    fn list_those(
        &self,
        members: impl Iterator<Item = Place>,
        wanted: impl Fn(Place) -> Option<(Place, Occupant)>,
        matching: u32,
        search: &mut Search,
    ) -> bool {
        let (mut listed, mut members) = (0, members);
        // Thousands of groups that all match must not list thousands of members each.
        let most = if search.found.len() < self.listed_max { self.query.members_max } else { 1 };
        for _ in 0..self.reads_max {
            if listed == most {
                if most < self.query.members_max {
                    // Counting one further member is enough to report that members were left out.
                    search.unread.postings += members.take(1).count() as u64;
                }
                return true;
            }
            let Some(place) = members.next() else { return false };
            if let Some((place, occupant)) = wanted(place) {
                search.list(self.query, self.shape, place, &occupant, matching);
                listed += 1;
            }
        }
        let is_enough = listed == self.query.members_max;
        if !is_enough {
            search.unread.postings += members.take(UNREAD_COUNTED_MAX).count() as u64;
        }
        is_enough
    }

    /// Looks at a group whose signature may be similar to the query's. The signature is compared once for all members.
    fn at_group(&self, group: &Group, verifier: &mut Verifier<'_>, search: &mut Search) {
        let members = group.members();
        let mut found = members.found();
        // Any member can be compared, because all of them have the same signature.
        let Some((_, matching)) = found.next().and_then(|place| verifier.with(place)) else { return };
        if matching < self.query.matching_min {
            if let Some((place, occupant)) = members.found().take(self.reads_max).find_map(|place| self.found(place)) {
                search.add(self.query, self.shape, place, &occupant, matching);
            }
            return;
        }
        let before = search.found.len();
        self.list(&members, matching, search, before);
    }

    /// Looks at the documents with the query's own signature. Documents that also have the query's content come first,
    /// including links, and no limit hides them.
    fn at_twin(&self, twin: &Twin, verifier: &mut Verifier<'_>, search: &mut Search) {
        let Some(group) = &twin.group else {
            let place = twin.leader;
            let Some((occupant, matching)) = verifier.with(place).filter(|_| !self.query.is_own(place)) else { return };
            if !self.query.has_in_scope(self.arena, place, &occupant) {
                return;
            }
            let occupant = self.view.shown(self.arena, place, occupant);
            let same = matching == self.shape.k && self.query.same_content(&occupant) && self.view.sees(&occupant);
            if same || twin.alone_findable && self.view.finds(&occupant) {
                search.add(self.query, self.shape, place, &occupant, matching);
            }
            return;
        };
        let members = group.members();
        let of_content = members.of_content(self.arena, self.query.content);
        let same = |place| {
            self.other(place).filter(|(_, occupant)| self.view.sees(occupant) && self.query.same_content(occupant))
        };
        let before = search.found.len();
        let is_full = self.list_those(of_content, same, self.shape.k, search);
        if is_full || self.query.contents_max.is_some() {
            search.counts(search.found.len() > before, true);
        }
        if !is_full {
            self.list(&members, self.shape.k, search, before);
        }
    }

    /// Lists the members of a group, except those with the query's content. The group's signature must have the
    /// required number of equal slots. If contents are not compared, the group counts as one candidate if any of its
    /// members was listed at index `before` or later.
    fn list(&self, members: &GroupMembers, matching: u32, search: &mut Search, before: usize) {
        let others = |place| {
            self.found(place).filter(|(_, occupant)| matching < self.shape.k || !self.query.same_content(occupant))
        };
        let Some(contents_max) = self.query.contents_max else {
            self.list_those(members.found(), others, matching, search);
            return search.counts(search.found.len() > before, true);
        };
        let by_content = members.findable_by_content(self.arena);
        let since =
            |least| by_content.from((least, Seq(0)), |place| (self.arena.content(place), self.arena.seq(place)));
        let mut from = Some(0);
        for _ in 0..contents_max {
            let Some(least) = from else { return };
            let mut all = since(least).peekable();
            let Some(content) = all.peek().and_then(|&place| self.arena.peek(place)).map(|occupant| occupant.content)
            else {
                return;
            };
            from = content.checked_add(1);
            // The members with the query's content are listed already.
            if matching == self.shape.k && content == self.query.content && self.query.mistaken.is_empty() {
                continue;
            }
            let before = search.found.len();
            let of_content =
                all.take_while(|&place| self.arena.peek(place).is_some_and(|occupant| occupant.content == content));
            let findable = of_content.filter(|&place| self.tables.is_findable(place));
            self.list_those(findable, others, matching, search);
            search.counts(search.found.len() > before, true);
        }
        if let Some(least) = from {
            search.unread.contents += since(least).count() as u64;
        }
    }
}

impl Search {
    /// Counts one candidate, and lists it if it has enough equal slots.
    fn add(&mut self, query: &Query<'_>, shape: SignatureShape, place: Place, occupant: &Occupant, matching: u32) {
        let above = matching >= query.matching_min;
        self.counts(true, above);
        if above {
            self.list(query, shape, place, occupant, matching);
        } else if let Some(examined) = &mut self.examined {
            examined.add(candidate(query, shape, place, occupant, matching));
        }
    }

    /// Counts one candidate if `is_one` is true, otherwise none.
    fn counts(&mut self, is_one: bool, above: bool) {
        self.candidates += u32::from(is_one);
        self.above += u32::from(is_one && above);
    }

    fn list(&mut self, query: &Query<'_>, shape: SignatureShape, place: Place, occupant: &Occupant, matching: u32) {
        self.found.push(candidate(query, shape, place, occupant, matching));
    }

    /// Sorts the findings, best first.
    fn rank(&mut self) {
        self.found.sort_unstable_by_key(|found| (Reverse(found.same_content), Reverse(found.matching), found.seq));
        // A document that was found alone may also have been found in a group, if another document with its signature
        // was added in the meantime.
        self.found.dedup_by_key(|found| found.seq);
        if let Some(examined) = &mut self.examined {
            examined.keep_best();
        }
    }
}

fn candidate(query: &Query<'_>, shape: SignatureShape, place: Place, occupant: &Occupant, matching: u32) -> Candidate {
    let Occupant { seq, content, linked, .. } = *occupant;
    let same_content = matching == shape.k && query.same_content(occupant);
    Candidate { seq, place, matching, content, same_content, linked }
}

/// If there are more than `max` candidates, keeps the ones that share the most bands with the query, because they are
/// the most likely to be similar. Returns how many were dropped.
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
        let bands = |place| if place == 50 || place == 70 { 2 } else { 1 };
        let mut hits: Vec<Hit> = (0..100).map(|place| Hit { place: Place(place), bands: bands(place) }).collect();
        assert_eq!(keep_most_hit(&mut hits, &mut Vec::new(), 2), 98);
        hits.sort();
        assert_eq!(hits.iter().map(|hit| hit.place.0).collect::<Vec<_>>(), [50, 70]);
        assert_eq!(keep_most_hit(&mut hits, &mut Vec::new(), 2), 0);
    }
}
