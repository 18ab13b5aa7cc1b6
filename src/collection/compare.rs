//! Two documents side by side, given or stored.

use std::sync::Arc;

use hapax_core::{ShingleSet, verify};

use super::order::{ATTEMPTS, changing, wait_for_commit};
use super::{Collection, CollectionError, PrepareOptions, Purpose, Result};
use crate::cpu::WhenFull;
use crate::index::IdIndex;
use crate::types::{Content, DocId, Keep, Similarity};

/// One side of a comparison.
#[derive(Clone, Debug)]
pub enum Comparand {
    /// Given with the request.
    Content(Content),
    /// Stored.
    Id(DocId),
}

/// How alike two documents are.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// From their signatures.
    pub estimate: Similarity,
    /// From their shingles, where those of both are at hand: given, or kept.
    pub exact: Option<ExactComparison>,
}

/// Two sets of shingles side by side.
#[derive(Clone, Copy, Debug)]
pub struct ExactComparison {
    /// Shared shingles in all shingles.
    pub jaccard: f64,
    /// Share of a's shingles that are in b.
    pub containment_a_in_b: f64,
    /// Share of b's shingles that are in a.
    pub containment_b_in_a: f64,
    /// Distinct shingles of a.
    pub shingles_a: u64,
    /// Distinct shingles of b.
    pub shingles_b: u64,
    /// Distinct shingles of both.
    pub intersection: u64,
}

struct Side {
    signature: Vec<u8>,
    shingles: Option<ShingleSet>,
}

impl Collection {
    /// Compares two documents; both must have something to compare. `when_full` is for what is long. All of it is one
    /// job: shingles of one document that waited for the other's turn would be memory that nobody counts.
    pub async fn compare(self: &Arc<Self>, a: Comparand, b: Comparand, when_full: WhenFull) -> Result<Comparison> {
        let (a, b) = (self.find_stored(a).await?, self.find_stored(b).await?);
        let bytes = a.bytes() + b.bytes();
        let compare = move |collection: &Self| {
            let (a, b) = (collection.side(a, "a")?, collection.side(b, "b")?);
            Ok(collection.side_by_side(&a, &b))
        };
        self.compute(bytes, when_full, compare).await
    }

    fn side_by_side(&self, a: &Side, b: &Side) -> Comparison {
        let matching = verify::matching_slots(&a.signature, &b.signature, self.shape);
        let exact = a.shingles.as_ref().zip(b.shingles.as_ref()).map(|(a, b)| {
            let verify::Exact { jaccard, containment_a_in_b, containment_b_in_a, intersection } = a.compare(b);
            let (shingles_a, shingles_b) = (a.len(), b.len());
            ExactComparison { jaccard, containment_a_in_b, containment_b_in_a, shingles_a, shingles_b, intersection }
        });
        Comparison { estimate: self.similarity(matching, false, None), exact }
    }

    /// What is kept of a stored document; a content stays as it is.
    async fn find_stored(self: &Arc<Self>, comparand: Comparand) -> Result<Half> {
        match comparand {
            Comparand::Content(content) => Ok(Half::Content(content)),
            Comparand::Id(id) => {
                self.blocking(move |collection| {
                    collection.certain(&id)?;
                    // Replaced since it was looked up, it has another content now; deleted, none.
                    for attempt in 0..ATTEMPTS {
                        let (_reading, view) = collection.read();
                        let existing = collection.find(&id, IdIndex::fingerprint(&id), view)?;
                        let Some(existing) = existing else { return Err(CollectionError::NoSuchDocument { id }) };
                        let shingles = collection.stored_set(existing.record.seq)?;
                        if shingles.is_some() || collection.keep == Keep::Signature {
                            let signature = existing.record.signature.clone();
                            return Ok(Half::Stored(Side { signature, shingles }));
                        }
                        wait_for_commit(attempt);
                    }
                    Err(changing())
                })
                .await
            }
        }
    }

    fn side(&self, half: Half, field: &'static str) -> Result<Side> {
        match half {
            Half::Stored(side) => Ok(side),
            Half::Content(content) => {
                let shingles = self.shingle_set(&content)?;
                let options = PrepareOptions { purpose: Purpose::Sign, ..PrepareOptions::default() };
                let made = self.prepare_now(content, options)?.made.ok_or_else(|| CollectionError::Invalid {
                    field,
                    detail: "an empty document can't be compared: it has no shingle".into(),
                })?;
                Ok(Side { signature: made.signature, shingles })
            }
        }
    }
}

/// A document of which nothing more is on disk.
enum Half {
    Content(Content),
    Stored(Side),
}

impl Half {
    fn bytes(&self) -> usize {
        match self {
            Self::Content(content) => content.bytes(),
            Self::Stored(side) => side.shingles.as_ref().map_or(0, ShingleSet::bytes),
        }
    }
}
