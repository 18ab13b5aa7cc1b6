//! Survivors of the estimate -> matches, by comparing the shingles themselves. The index probes and estimates as usual,
//! but with a bound so far below the threshold that the spread of the estimate hides no match. The documents that
//! survive are compared here shingle by shingle: all of them, or only those whose estimate leaves a doubt. Results are
//! kept by `seq`. A decision that releases its lock to read the disk therefore reuses these results when it starts
//! again. Knows nothing of ids or of how the verdict is used.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use hapax_core::ShingleSet;

use super::judgement::{Judgement, Ranked};
use super::payloads::set_of;
use super::records::Records;
use crate::engine::meters::Bound;
use crate::store::Looked;
use crate::types::{Overlap, Seq};
use crate::verdicts::{Made, Preparer, Result, ShingleQuery, Terms};

/// The number of shingles, of both sides together, that may be compared on an async thread or each time the decision
/// lock is held. This takes about ten microseconds.
pub(crate) const IN_PASSING: u64 = 16 * 1024;

/// The documents that one lookup has compared so far.
#[derive(Default)]
pub(crate) struct Survivors {
    compared: HashMap<Seq, Compared>,
    /// The terms by which the documents in `compared` were judged. Absent before the first comparison.
    terms: Option<Terms>,
    read_bytes: u64,
    /// Documents that seemed to have the query's content until their whole content hash was read.
    mistaken: HashSet<Seq>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compared {
    Shares(Overlap),
    /// The numbers of shingles alone show that the document cannot reach the threshold.
    Below,
    /// The document was not read because of a limit.
    Unread,
    /// The document was deleted or replaced in the meantime.
    Gone,
}

/// The limits on reading documents from disk for the comparisons of one lookup.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadBounds {
    pub documents_max: usize,
    /// The maximum number of bytes of shingles or texts to read. One document is always read, whatever its length.
    pub bytes_max: u64,
}

impl Survivors {
    /// Returns the query that [`Self::settle`] was last called with.
    pub(crate) fn query_again<'a>(&self, made: &'a Made) -> Option<ShingleQuery<'a>> {
        made.kept.as_ref().zip(self.terms).map(|(kept, terms)| ShingleQuery::new(&kept.set, terms))
    }

    /// Returns the documents that seemed to have the query's content but have other content.
    pub(crate) fn mistaken(&self) -> &HashSet<Seq> {
        &self.mistaken
    }

    pub(crate) fn mistook(&mut self, seqs: Vec<Seq>) {
        self.mistaken.extend(seqs);
    }

    /// Keeps those survivors of a judgement that reach the threshold, best first. Compares up to `in_passing` shingles
    /// of documents that are in memory. If more documents must be compared, returns them for [`Self::compare`] and
    /// leaves the judgement unchanged. Reads no disk.
    pub(crate) fn settle(
        &mut self,
        query: &ShingleQuery<'_>,
        judgement: &mut Judgement,
        records: &Records,
        bounds: ReadBounds,
        in_passing: u64,
    ) -> Vec<Seq> {
        let terms = *query.terms();
        if self.terms != Some(terms) {
            let mistaken = std::mem::take(&mut self.mistaken);
            *self = Self { terms: Some(terms), mistaken, ..Self::default() };
        }
        let (asked, deciders) = deciders(judgement.ranked(), &terms);
        let read = &asked[..asked.len().min(bounds.documents_max)];
        let left = self.compare_in_memory(query, read, records, in_passing);
        if !left.is_empty() {
            return left;
        }
        let of_read = |seq: &&Seq| self.compared.get(seq) == Some(&Compared::Unread);
        let unread = asked.len() - read.len() + read.iter().filter(of_read).count();
        judgement.hides(Bound::ExactReads, unread as u64);
        let read: HashSet<Seq> = read.iter().copied().collect();
        let mut deciders = deciders.into_iter();
        let (len, mut dropped) = (query.len(), Vec::new());
        judgement.ranked_mut().retain_mut(|ranked| {
            let overlap = match deciders.next().expect("something decides on every ranked document") {
                Decider::Signature => return true,
                // Equal texts have equal shingles. Nothing needs to be read, so no limit on reading can hide the
                // document.
                Decider::Content => Overlap { both: len, query: len, found: len },
                Decider::Shingles(seq) => match self.compared.get(&seq).filter(|_| read.contains(&seq)) {
                    Some(&Compared::Shares(overlap)) => overlap,
                    _ => return false,
                },
            };
            ranked.overlap = Some(overlap);
            let reaches = terms.reached_by(overlap);
            if !reaches {
                dropped.push(*ranked);
            }
            reaches
        });
        rank(judgement.ranked_mut(), &terms);
        rank(&mut dropped, &terms);
        judgement.fall_short(dropped);
        Vec::new()
    }

    /// Compares the documents whose shingles are in memory, and returns the others.
    fn compare_in_memory(
        &mut self,
        query: &ShingleQuery<'_>,
        seqs: &[Seq],
        records: &Records,
        in_passing: u64,
    ) -> Vec<Seq> {
        let new: Vec<Seq> = seqs.iter().copied().filter(|seq| !self.compared.contains_key(seq)).collect();
        if new.is_empty() {
            return new;
        }
        let (mut shingles, mut left) = (0, Vec::new());
        for (&seq, set) in new.iter().zip(records.sets(&new)) {
            match set.filter(|set| shingles + query.len() + set.len() <= in_passing) {
                Some(set) => {
                    shingles += query.len() + set.len();
                    self.compared.insert(seq, compare(query, &set));
                }
                None => left.push(seq),
            }
        }
        left
    }

    /// Compares the query with these documents, in memory or on disk. Takes long, so it must not run under a lock or on
    /// an async thread.
    pub(crate) fn compare(
        &mut self,
        query: &ShingleQuery<'_>,
        seqs: &[Seq],
        records: &Records,
        preparer: &Preparer,
        bounds: ReadBounds,
    ) -> Result<()> {
        let mut stored = Vec::new();
        for (&seq, set) in seqs.iter().zip(records.sets(seqs)) {
            match set {
                Some(set) => drop(self.compared.insert(seq, compare(query, &set))),
                None => stored.push(seq),
            }
        }
        let bytes = Cell::new(self.read_bytes);
        let looked = records.store().payloads(
            &stored,
            |shingles| match query.fits(shingles) {
                false => Err(Compared::Below),
                true if bytes.get() < bounds.bytes_max => Ok(()),
                true => Err(Compared::Unread),
            },
            |_, payload| {
                bytes.set(bytes.get() + payload.bytes.len() as u64);
                Ok(compare(query, &set_of(preparer.pipeline(), &payload)?))
            },
        )?;
        self.read_bytes = bytes.get();
        self.compared.extend(looked.into_iter().map(|(seq, looked)| match looked {
            Looked::Gone => (seq, Compared::Gone),
            Looked::At(compared) => (seq, compared),
        }));
        Ok(())
    }

    /// Returns whether any of these documents is gone, and forgets those that are gone.
    pub(crate) fn take_gone(&mut self, seqs: &[Seq]) -> bool {
        let before = self.compared.len();
        self.compared.retain(|seq, compared| *compared != Compared::Gone || !seqs.contains(seq));
        self.compared.len() < before
    }

    /// Returns how many documents were compared and how many bytes were read; `None` if shingles do not decide.
    pub(crate) fn cost(&self) -> Option<(usize, u64)> {
        let shares = self.compared.values().filter(|compared| matches!(compared, Compared::Shares(_)));
        self.terms.map(|_| (shares.count(), self.read_bytes))
    }
}

fn compare(query: &ShingleQuery<'_>, set: &ShingleSet) -> Compared {
    query.compare(set).map_or(Compared::Below, Compared::Shares)
}

/// Sorts documents, best first. If shingles have been compared, their result is used instead of the estimate.
fn rank(ranked: &mut [Ranked], terms: &Terms) {
    ranked.sort_unstable_by_key(|Ranked { found, overlap }| {
        (terms.rank(found.same_content, found.matching, *overlap), found.seq)
    });
}

/// The part of a ranked document that decides whether it is a match.
enum Decider {
    /// The document has the query's content.
    Content,
    /// The estimate leaves no doubt.
    Signature,
    /// The shingles decide: those of the document with this `seq`, which has the same content as the ranked document.
    Shingles(Seq),
}

/// Returns the documents to compare, best first, and the decider of each ranked document. Documents of the same content
/// are compared once.
fn deciders(ranked: &[Ranked], terms: &Terms) -> (Vec<Seq>, Vec<Decider>) {
    let (mut asked, mut by_content) = (Vec::new(), HashMap::new());
    let deciders = ranked.iter().map(|Ranked { found, .. }| {
        if found.same_content {
            return Decider::Content;
        }
        if found.matching >= terms.certain_min {
            return Decider::Signature;
        }
        let first = match found.content {
            0 => found.seq,
            content => *by_content.entry((content, found.matching)).or_insert(found.seq),
        };
        if first == found.seq {
            asked.push(first);
        }
        Decider::Shingles(first)
    });
    let deciders = deciders.collect();
    (asked, deciders)
}
