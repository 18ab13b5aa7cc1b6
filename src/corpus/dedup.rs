//! Signed documents in their order -> decisions. The search is that of a collection's index. A document that is kept is
//! entered into it, so later documents are compared with it.

use super::known::{Known, Matching, SearchLimits};
use super::signer::{CorpusSigner, SignedDocument};
use crate::types::Similarity;
use crate::verdicts::Result;

/// Decides which documents are kept: those that repeat no kept document before them.
pub struct Deduplicator {
    kept: Known,
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
    pub fn new(signer: CorpusSigner, matching: Matching, limits: SearchLimits) -> Self {
        Self { kept: Known::new(signer, matching, limits) }
    }

    /// Returns the signer of its documents.
    pub fn signer(&self) -> &CorpusSigner {
        self.kept.signer()
    }

    /// Decides on the next document. Fails if the index is full.
    pub fn decide(&mut self, document: SignedDocument) -> Result<Decided> {
        let (made, _) = document.into_prepared().into_parts();
        let Some(made) = made else { return Ok(Decided { decision: Decision::Empty, unread: 0 }) };
        let (found, unread) = self.kept.look_up(&made);
        let decision = match found.first() {
            Some(best) => Decision::Duplicate(Duplicate {
                of: best.number(),
                same_content: best.same_content(),
                similarity: self.kept.similarity(best),
            }),
            None => {
                self.kept.enter(made)?;
                Decision::Kept
            }
        };
        Ok(Decided { decision, unread })
    }
}
