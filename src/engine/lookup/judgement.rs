//! Turns the index's findings into the facts that a verdict rests on: the matches, best first, and counts.
//! `src/index/search.rs` compares each candidate with the threshold and puts the matches in order. If shingles decide
//! about matches, `survivors.rs` does both instead. `verdicts/verdict.rs` makes the verdict. Knows nothing of the text
//! of ids, of the disk, or of how the verdict is used.

use hapax_core::ContentHash;

use super::records::Mentions;
use crate::engine::meters::Bound;
use crate::index::{Candidate, Cost, Examined, Search};
use crate::types::{Explanation, Hidden, Overlap, Seq};

/// A document at or above the threshold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranked {
    /// The facts that the index has about the document.
    pub found: Candidate,
    /// The number of shared shingles, once they have been compared.
    pub overlap: Option<Overlap>,
}

/// The result of a lookup.
#[derive(Debug)]
pub(crate) struct Judgement {
    ranked: Vec<Ranked>,
    candidates: u32,
    above: u32,
    /// For each bound, the number of postings or documents that were not looked at because of that bound.
    unread: [u64; Bound::ALL.len()],
    cost: Cost,
    /// The documents that the search examined, if the query asked for them.
    examined: Option<Box<Examined>>,
    /// The most similar of the candidates below the threshold, if the query asked for them. Some were excluded by their
    /// signatures, others by their shingles.
    below: Vec<Ranked>,
}

impl Judgement {
    /// Makes a judgement of the index's findings.
    pub(crate) fn of(search: Search) -> Self {
        let Search { found, candidates, above, unread, cost, mut examined } = search;
        let estimated = |found| Ranked { found, overlap: None };
        let ranked = found.into_iter().map(estimated).collect();
        let below = examined.as_mut().map(|examined| std::mem::take(&mut examined.below));
        let below = below.unwrap_or_default().into_iter().map(estimated).collect();
        let unread_by = [0; Bound::ALL.len()];
        let mut judgement = Self { ranked, candidates, above, unread: unread_by, cost, examined, below };
        judgement.hides(Bound::Bucket, unread.postings);
        judgement.hides(Bound::Candidates, unread.candidates);
        // The bound on exact reads limits the number of different contents.
        judgement.hides(Bound::ExactReads, unread.contents);
        judgement
    }

    /// Returns the matches, best first: equal contents, then the more similar, then the lower `seq`.
    pub(crate) fn ranked(&self) -> &[Ranked] {
        &self.ranked
    }

    /// Returns the matches, so that a closer comparison can change them.
    pub(super) fn ranked_mut(&mut self) -> &mut Vec<Ranked> {
        &mut self.ranked
    }

    /// Returns the matches that an answer cites. The best match is included even if `limit` is 0.
    pub(crate) fn cited(&self, limit: usize) -> &[Ranked] {
        &self.ranked[..self.ranked.len().min(limit.max(1))]
    }

    /// Returns the best match, if it is a link.
    pub(crate) fn best_link(&self) -> Option<&Candidate> {
        self.ranked.first().map(|best| &best.found).filter(|best| best.linked)
    }

    /// Returns the number of documents compared. Documents with the same signature count as one.
    pub(crate) fn candidates(&self) -> u32 {
        self.candidates
    }

    /// Returns how many of the candidates reach the threshold by their signatures.
    pub(crate) fn above(&self) -> u32 {
        self.above
    }

    /// Returns how many postings were not read and how many candidates were not compared because of a limit.
    pub(crate) fn unread(&self) -> u64 {
        self.unread.iter().sum()
    }

    /// Notes that a bound may have hidden `count` more documents.
    pub(crate) fn hides(&mut self, bound: Bound, count: u64) {
        self.unread[bound as usize] += count;
    }

    /// Returns the bounds that may have hidden documents.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = Bound> {
        Bound::ALL.into_iter().filter(|&bound| self.unread[bound as usize] > 0)
    }

    /// Notes documents that shingles showed to be below the threshold, the best first.
    pub(super) fn fall_short(&mut self, dropped: Vec<Ranked>) {
        if self.examined.is_some() {
            self.below.extend(dropped.into_iter().take(Explanation::BELOW_MAX));
        }
    }

    /// Returns the most similar of the candidates below the threshold, if the query asked for them.
    pub(crate) fn below(&self) -> &[Ranked] {
        &self.below
    }

    /// Returns the details of the search, if the query asked for them.
    pub(crate) fn examined(&self) -> Option<&Examined> {
        self.examined.as_deref()
    }

    /// Returns the documents that an answer names: those that it cites, and those below the threshold.
    pub(crate) fn named(&self, limit: usize) -> impl Iterator<Item = Seq> {
        self.cited(limit).iter().chain(&self.below).map(|ranked| ranked.found.seq)
    }

    pub(crate) fn hidden(&self) -> Hidden {
        let [by_bucket, by_candidates, by_exact_reads, by_doubt] =
            [Bound::Bucket, Bound::Candidates, Bound::ExactReads, Bound::Doubt]
                .map(|bound| self.unread[bound as usize]);
        Hidden { by_bucket, by_candidates, by_exact_reads, by_doubt }
    }

    pub(crate) fn cost(&self) -> &Cost {
        &self.cost
    }

    /// Returns the cited documents that turn out to have other content than the query. The index has 64 bits of the
    /// content hash, and the mention has the whole hash. The lookup must be repeated with these documents marked as
    /// mistaken.
    pub(crate) fn mistakes(&self, limit: usize, mentions: &Mentions, content: Option<ContentHash>) -> Vec<Seq> {
        let same = self.cited(limit).iter().map(|ranked| &ranked.found).filter(|found| found.same_content);
        same.filter(|found| mentions.get(found.seq).is_some_and(|mention| content != Some(mention.identity.content)))
            .map(|found| found.seq)
            .collect()
    }
}
