//! What the index found -> what a verdict rests on: matches, best first, and what was counted on the way.
//! Knows nothing of ids' texts, of the disk or of what becomes of the verdict.

use hapax_core::ContentHash;

use super::records::Heads;
use crate::index::{Candidate, Cost, Search};
use crate::types::{Overlap, Seq};

/// A document at or above the threshold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranked {
    /// What the index knows of it.
    pub found: Candidate,
    /// How many shingles they share, once they have been compared.
    pub overlap: Option<Overlap>,
}

/// What a lookup found.
#[derive(Debug)]
pub(crate) struct Judgement {
    ranked: Vec<Ranked>,
    candidates: u32,
    above: u32,
    unread: u64,
    cost: Cost,
}

impl Judgement {
    /// Of what the index found.
    pub(crate) fn of(search: Search) -> Self {
        let Search { found, candidates, above, unread, cost } = search;
        let ranked = found.into_iter().map(|found| Ranked { found, overlap: None }).collect();
        Self { ranked, candidates, above, unread, cost }
    }

    /// Best first: equal contents, then the more alike, then the earlier `seq`.
    pub(crate) fn ranked(&self) -> &[Ranked] {
        &self.ranked
    }

    /// The matches themselves, for whoever judges them further.
    pub(super) fn ranked_mut(&mut self) -> &mut Vec<Ranked> {
        &mut self.ranked
    }

    /// The part of it that an answer speaks of: the best match even if none is to be listed.
    pub(crate) fn cited(&self, limit: usize) -> &[Ranked] {
        &self.ranked[..self.ranked.len().min(limit.max(1))]
    }

    /// The best match, if it is a link.
    pub(crate) fn best_link(&self) -> Option<&Candidate> {
        self.ranked.first().map(|best| &best.found).filter(|best| best.linked)
    }

    /// Distinct documents compared; those of one signature count as one.
    pub(crate) fn candidates(&self) -> u32 {
        self.candidates
    }

    /// How many of them reach the threshold by their signatures.
    pub(crate) fn above(&self) -> u32 {
        self.above
    }

    /// Postings that a limit kept from being read, and candidates that one kept from being compared.
    pub(crate) fn unread(&self) -> u64 {
        self.unread
    }

    /// So many more may have been hidden.
    pub(crate) fn hides(&mut self, count: u64) {
        self.unread += count;
    }

    pub(crate) fn cost(&self) -> &Cost {
        &self.cost
    }

    /// Which of the documents that a verdict cites have another content than they seem to: 64 bits of the hash are in
    /// memory, all of it comes with the head. They are to be looked up again as what they are.
    pub(crate) fn mistakes(&self, limit: usize, heads: &Heads, content: Option<ContentHash>) -> Vec<Seq> {
        let same = self.cited(limit).iter().map(|ranked| &ranked.found).filter(|found| found.same_content);
        same.filter(|found| heads.get(found.seq).is_some_and(|head| content != Some(head.content)))
            .map(|found| found.seq)
            .collect()
    }
}
