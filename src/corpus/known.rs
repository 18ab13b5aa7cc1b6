//! Documents that are entered one after another, and the search for those that are similar to another document. Knows
//! nothing of which documents are kept.

use std::collections::HashSet;
use std::sync::Arc;

use hapax_core::{ContentHash, ShingleSet};

use super::entered::{compared_set, confirmed, empty_index, enter, number};
use super::signer::CorpusSigner;
use crate::index::{Bounds, Candidate, Index, LISTED_MAX, Query, Search, View};
use crate::types::{Overlap, Seq, Similarity};
use crate::verdicts::{Limits, Made, Result, Terms, similarity};

/// The decision whether two documents that share a band are duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// They are, if they reach the threshold in the way that the settings say.
    Verified,
    /// They always are.
    Unverified,
}

/// The limits on one search.
#[derive(Clone, Copy, Debug)]
pub struct SearchLimits {
    /// The largest number of documents that are read from one bucket.
    pub bucket_read_max: usize,
    /// The largest number of documents that are compared.
    pub candidates_max: usize,
}

impl From<&Limits> for SearchLimits {
    fn from(&Limits { bucket_read_max, candidates_max, .. }: &Limits) -> Self {
        Self { bucket_read_max, candidates_max }
    }
}

/// The documents that were entered.
pub(super) struct Known {
    signer: CorpusSigner,
    terms: Terms,
    bounds: Bounds,
    index: Index,
    /// The content hash of each document.
    contents: Vec<Option<ContentHash>>,
    /// The shingles of each document, if shingles are compared.
    sets: Vec<Arc<ShingleSet>>,
}

/// A document that was entered and has enough equal slots.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) number: usize,
    pub(super) matching: u32,
    pub(super) same_content: bool,
}

/// A document that was entered and is a duplicate of another one.
pub(super) struct Match {
    pub(super) found: Found,
    pub(super) overlap: Option<Overlap>,
}

impl Match {
    /// The number of the document: 0 for the first one that was entered.
    pub(super) fn number(&self) -> usize {
        self.found.number
    }

    pub(super) fn same_content(&self) -> bool {
        self.found.same_content
    }
}

/// Returns the numbers by which documents are duplicates.
pub(super) fn terms(signer: &CorpusSigner, matching: Matching) -> Terms {
    let settings = signer.settings();
    match matching {
        Matching::Verified => Terms::new(settings.verify, settings.threshold, &settings.spec),
        Matching::Unverified => Terms::unverified(&settings.spec),
    }
}

/// Sorts duplicates, best first.
pub(super) fn ranked(terms: Terms, mut matches: Vec<Match>) -> Vec<Match> {
    matches.sort_by_cached_key(|Match { found, overlap }| {
        (terms.rank(found.same_content, found.matching, *overlap), found.number)
    });
    matches
}

impl Known {
    pub(super) fn new(signer: CorpusSigner, matching: Matching, limits: SearchLimits) -> Self {
        let (settings, terms) = (signer.settings(), terms(&signer, matching));
        let SearchLimits { bucket_read_max, candidates_max } = limits;
        let bounds = Bounds { bucket_read_max, candidates_max, listed_max: LISTED_MAX };
        Self { terms, bounds, index: empty_index(settings), contents: Vec::new(), sets: Vec::new(), signer }
    }

    pub(super) fn signer(&self) -> &CorpusSigner {
        &self.signer
    }

    /// Finds the documents that are duplicates of this one, best first. Of equal contents, only one need be returned. Also
    /// returns the number of documents that were not compared because of a limit.
    pub(super) fn look_up(&self, made: &Made) -> (Vec<Match>, u64) {
        let mut mistaken = HashSet::new();
        loop {
            let Search { found, unread, .. } = self.search(made, &mistaken);
            let is_mistaken =
                |found: &&Candidate| found.same_content && self.contents[number(found.seq)] != made.content;
            let wrong: Vec<_> = found.iter().filter(is_mistaken).map(|found| found.seq).collect();
            if wrong.is_empty() {
                let unread = unread.postings + unread.candidates + unread.contents;
                return (self.verified(made, found), unread);
            }
            mistaken.extend(wrong);
        }
    }

    fn search(&self, made: &Made, mistaken: &HashSet<Seq>) -> Search {
        let query = Query {
            signature: &made.signature,
            content: made.content_prefix(),
            own: None,
            matching_min: self.terms.matching_min,
            members_max: if mistaken.is_empty() { 1 } else { usize::MAX },
            contents_max: self.terms.compares_shingles().then_some(usize::MAX),
            mistaken,
            scope: None,
            explain: false,
        };
        self.index.search(View::Decided, &query, self.bounds).unwrap_or_else(|needs_disk| match needs_disk {})
    }

    /// Keeps the candidates that are duplicates. If the signatures leave a doubt, the shingles are compared.
    fn verified(&self, made: &Made, found: Vec<Candidate>) -> Vec<Match> {
        let set = compared_set(made, self.terms);
        let verify = |Candidate { seq, matching, same_content, .. }: Candidate| {
            let found = Found { number: number(seq), matching, same_content };
            let set = set.filter(|_| !same_content);
            let overlap = confirmed(self.terms, set, matching, || &self.sets[found.number])?;
            Some(Match { found, overlap })
        };
        ranked(self.terms, found.into_iter().filter_map(verify).collect())
    }

    pub(super) fn similarity(&self, found: &Match) -> Similarity {
        let Match { found: Found { matching, same_content, .. }, overlap } = *found;
        similarity(&self.signer.settings().spec, matching, same_content, overlap)
    }

    /// Enters a document, and returns its number. Fails if the index is full.
    pub(super) fn enter(&mut self, made: Made) -> Result<usize> {
        let number = self.contents.len();
        enter(&self.index, number, &made)?;
        self.contents.push(made.content);
        self.sets.extend(made.kept.filter(|_| self.terms.compares_shingles()).map(|kept| kept.set));
        Ok(number)
    }
}
