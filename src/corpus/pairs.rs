//! Signed documents -> for each of them, all earlier documents that are similar. No limit on a search applies: every pair
//! of documents that share a band is compared. Documents with equal contents are one document to the index, so such a
//! content is compared once for all of them. Once documents are added, any number of threads may search.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hapax_core::{Banding, ContentHash, ShingleSet, SignatureShape};

use super::entered::{compared_set, confirmed, empty_index, enter, number, too_many};
use super::signer::{CorpusSigner, SignedDocument};
use crate::index::{Bounds, Candidate, Index, Query, Search, View};
use crate::types::{Seq, Similarity};
use crate::verdicts::{Made, Result, Terms, similarity};

const NO_BOUNDS: Bounds = Bounds { bucket_read_max: usize::MAX, candidates_max: usize::MAX, listed_max: usize::MAX };

/// Finds pairs of similar documents.
pub struct PairFinder {
    signer: CorpusSigner,
    terms: Terms,
    index: Index,
    /// The number of each content that has a hash.
    numbers: HashMap<ContentHash, u32>,
    /// The first document of each content.
    firsts: Vec<u32>,
    /// The later documents of the contents that several documents have.
    repeats: HashMap<u32, Vec<u32>>,
    /// The shingles of each content, if shingles are compared.
    sets: Vec<Arc<ShingleSet>>,
    /// How many documents were added.
    documents: u32,
}

/// A document whose similar documents can be looked for.
pub struct Sought {
    made: Made,
    /// The number of its content, if a document of the index has this content.
    content: Option<u32>,
    /// Only the documents before this one are found.
    document: u32,
    /// Only the contents before this one are found, and the content of the document itself.
    contents: u32,
}

/// The documents that are similar to one document.
pub struct SimilarTo {
    /// In the order in which they were added.
    pub found: Vec<Similar>,
    /// How many contents were compared.
    pub compared: u64,
    /// How many of these turned out to be below the threshold.
    pub below: u64,
}

/// A document that is similar to another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Similar {
    /// 0 for the document that was added first, 1 for the next.
    pub document: u32,
    pub same_content: bool,
    pub similarity: Similarity,
}

impl PairFinder {
    pub fn new(signer: CorpusSigner) -> Self {
        let settings = signer.settings();
        Self {
            terms: Terms::new(settings.verify, settings.threshold, &settings.spec),
            index: empty_index(settings),
            numbers: HashMap::new(),
            firsts: Vec::new(),
            repeats: HashMap::new(),
            sets: Vec::new(),
            documents: 0,
            signer,
        }
    }

    /// Returns the signer of its documents.
    pub fn signer(&self) -> &CorpusSigner {
        &self.signer
    }

    /// The banding by which documents are proposed, and the shape of their signatures.
    pub fn banding(&self) -> (Banding, SignatureShape) {
        (self.index.banding(), self.signer.settings().spec.shape())
    }

    /// Adds a document, and returns it so that the earlier ones can be looked for. Returns `None` for a document without
    /// tokens, which is not added. Fails if there are too many documents.
    pub fn add(&mut self, document: SignedDocument) -> Result<Option<Sought>> {
        let Some(mut sought) = self.seek(document) else { return Ok(None) };
        let (document, made) = (self.documents, &sought.made);
        if let Some(content) = sought.content {
            self.repeats.entry(content).or_default().push(document);
        } else {
            enter(&self.index, self.firsts.len(), made)?;
            let content = self.firsts.len() as u32;
            self.numbers.extend(made.content.map(|hash| (hash, content)));
            self.firsts.push(document);
            self.sets
                .extend(made.kept.as_ref().filter(|_| self.terms.compares_shingles()).map(|kept| kept.set.clone()));
            sought.content = Some(content);
        }
        self.documents = self.documents.checked_add(1).ok_or_else(too_many)?;
        Ok(Some(sought))
    }

    /// Returns a document that is looked for among all documents so far, but not added. `None`: it has no tokens.
    pub fn seek(&self, document: SignedDocument) -> Option<Sought> {
        let made = document.into_prepared().into_parts().0?;
        let content = made.content.and_then(|hash| self.numbers.get(&hash).copied());
        Some(Sought { made, content, document: self.documents, contents: self.firsts.len() as u32 })
    }

    /// Makes room in the tables of the index. Call it from time to time while documents are added.
    pub fn resize(&self) {
        self.index.resize_tables();
    }

    /// Finds the documents that are similar to this one.
    pub fn similar_to(&self, sought: &Sought) -> SimilarTo {
        let Search { found, candidates, above, .. } = self.search(sought);
        let set = compared_set(&sought.made, self.terms);
        let (mut similar, mut reached) = (Vec::with_capacity(found.len()), 0);
        for Candidate { seq, matching, .. } in found {
            let content = number(seq);
            let same_content = sought.content == Some(content as u32);
            let set = set.filter(|_| !same_content);
            let Some(overlap) = confirmed(self.terms, set, matching, || &self.sets[content]) else { continue };
            reached += 1;
            let similarity = similarity(&self.signer.settings().spec, matching, same_content, overlap);
            let documents = self.documents_of(content as u32, sought.document);
            similar.extend(documents.map(|document| Similar { document, same_content, similarity }));
        }
        similar.sort_unstable_by_key(|similar| similar.document);
        // If signatures are compared, contents with equal signatures are compared as one.
        let reached = if self.terms.compares_shingles() { reached } else { u64::from(above) };
        let compared = u64::from(candidates);
        SimilarTo { found: similar, compared, below: compared.saturating_sub(reached) }
    }

    fn search(&self, sought: &Sought) -> Search {
        let query = Query {
            signature: &sought.made.signature,
            content: sought.made.content_prefix(),
            own: None,
            matching_min: self.terms.matching_min,
            members_max: usize::MAX,
            contents_max: self.terms.compares_shingles().then_some(usize::MAX),
            // The full hashes are compared here, so it does not matter if 64 bits of two different ones are equal.
            mistaken: &HashSet::new(),
            scope: None,
            explain: false,
        };
        // All contents up to this position are seen, however many were added since then.
        let view = View::Durable(Seq(u64::from(sought.contents)));
        self.index.search(view, &query, NO_BOUNDS).unwrap_or_else(|needs_disk| match needs_disk {})
    }

    /// Returns the documents with a content that were added before document `before`.
    fn documents_of(&self, content: u32, before: u32) -> impl Iterator<Item = u32> {
        let repeats = self.repeats.get(&content).map_or(&[][..], Vec::as_slice);
        let first = self.firsts[content as usize];
        [first].into_iter().chain(repeats.iter().copied()).take_while(move |&document| document < before)
    }
}
