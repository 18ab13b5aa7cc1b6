//! Signed documents in their order -> decisions. The search is that of a collection's index. A document that is kept is
//! entered into it, so later documents are compared with it.

use std::collections::HashSet;
use std::sync::Arc;

use hapax_core::{ContentHash, ShingleSet};

use super::entered::{compared_set, confirmed, empty_index, enter, number};
use super::signer::{CorpusSigner, SignedDocument};
use crate::index::{Bounds, Candidate, Index, LISTED_MAX, Query, Search, View};
use crate::types::{Overlap, Seq, Similarity};
use crate::verdicts::{Limits, Made, Result, Terms, similarity};

/// Decides which documents are kept.
pub struct Deduplicator {
    signer: CorpusSigner,
    terms: Terms,
    bounds: Bounds,
    index: Index,
    /// The content hash of each kept document.
    contents: Vec<Option<ContentHash>>,
    /// The shingles of each kept document, if shingles are compared.
    sets: Vec<Arc<ShingleSet>>,
}

/// The decision on a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    pub decision: Decision,
    /// The number of documents that were not compared because of a limit. If it is not 0, a duplicate may be kept.
    pub unread: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    Kept,
    /// The document has no token, so it is not kept.
    Empty,
    Duplicate(Duplicate),
}

/// The kept document that another document repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct Duplicate {
    /// The kept document: 0 for the first one that was kept, 1 for the next.
    pub of: usize,
    pub same_content: bool,
    pub similarity: Similarity,
}

impl Deduplicator {
    /// Of the limits, those of a search are used.
    pub fn new(signer: CorpusSigner, limits: &Limits) -> Self {
        let settings = signer.settings();
        let terms = Terms::new(settings.verify, settings.threshold, &settings.spec);
        let Limits { bucket_read_max, candidates_max, .. } = *limits;
        let bounds = Bounds { bucket_read_max, candidates_max, listed_max: LISTED_MAX };
        Self { terms, bounds, index: empty_index(settings), contents: Vec::new(), sets: Vec::new(), signer }
    }

    /// Returns the signer of its documents.
    pub fn signer(&self) -> &CorpusSigner {
        &self.signer
    }

    /// Decides on the next document. Fails if the index is full.
    pub fn decide(&mut self, document: SignedDocument) -> Result<Decided> {
        let (made, _) = document.into_prepared().into_parts();
        let Some(made) = made else { return Ok(Decided { decision: Decision::Empty, unread: 0 }) };
        let (found, unread) = self.look_up(&made);
        let rank = |&(Candidate { seq, matching, same_content, .. }, overlap): &(Candidate, Option<Overlap>)| {
            (self.terms.rank(same_content, matching, overlap), seq)
        };
        let decision = match found.into_iter().min_by_key(rank) {
            Some(best) => Decision::Duplicate(self.duplicate(best)),
            None => {
                self.keep(made)?;
                Decision::Kept
            }
        };
        Ok(Decided { decision, unread })
    }

    /// Finds the kept documents that are duplicates of this one, with the shared shingles if these were compared. Of equal
    /// contents, only one need be returned.
    fn look_up(&self, made: &Made) -> (Vec<(Candidate, Option<Overlap>)>, u64) {
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
    fn verified(&self, made: &Made, found: Vec<Candidate>) -> Vec<(Candidate, Option<Overlap>)> {
        let set = compared_set(made, self.terms);
        let verify = |candidate: Candidate| {
            let set = set.filter(|_| !candidate.same_content);
            let overlap = confirmed(self.terms, set, candidate.matching, || &self.sets[number(candidate.seq)])?;
            Some((candidate, overlap))
        };
        found.into_iter().filter_map(verify).collect()
    }

    fn duplicate(&self, (candidate, overlap): (Candidate, Option<Overlap>)) -> Duplicate {
        let Candidate { seq, matching, same_content, .. } = candidate;
        let spec = &self.signer.settings().spec;
        Duplicate { of: number(seq), same_content, similarity: similarity(spec, matching, same_content, overlap) }
    }

    fn keep(&mut self, made: Made) -> Result<()> {
        enter(&self.index, self.contents.len(), &made)?;
        self.contents.push(made.content);
        self.sets.extend(made.kept.filter(|_| self.terms.compares_shingles()).map(|kept| kept.set));
        Ok(())
    }
}
