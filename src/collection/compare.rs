//! Two documents side by side, given or stored.

use std::sync::Arc;

use hapax_core::verify;

use super::{Collection, CollectionError, Result};
use crate::index::IdIndex;
use crate::types::{Content, DocId, Similarity};

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
    /// From their shingles, where both contents are at hand.
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
    shingles: Option<Vec<u64>>,
}

impl Collection {
    /// Compares two documents; both must have something to compare.
    pub async fn compare(self: &Arc<Self>, a: Comparand, b: Comparand) -> Result<Comparison> {
        self.blocking(move |collection| {
            let (a, b) = (collection.side(a, "a")?, collection.side(b, "b")?);
            let matching = verify::matching_slots(&a.signature, &b.signature, collection.shape);
            let exact = a.shingles.as_ref().zip(b.shingles.as_ref()).map(|(a, b)| {
                let verify::Exact { jaccard, containment_a_in_b, containment_b_in_a, intersection } =
                    verify::exact(a, b);
                let (shingles_a, shingles_b) = (a.len() as u64, b.len() as u64);
                ExactComparison {
                    jaccard,
                    containment_a_in_b,
                    containment_b_in_a,
                    shingles_a,
                    shingles_b,
                    intersection,
                }
            });
            Ok(Comparison { estimate: collection.similarity(matching, false), exact })
        })
        .await
    }

    fn side(&self, comparand: Comparand, field: &'static str) -> Result<Side> {
        match comparand {
            Comparand::Content(content) => {
                let shingles = self.shingle_set(&content)?;
                let made = self.prepare_now(content)?.made.ok_or_else(|| CollectionError::Invalid {
                    field,
                    detail: "an empty document can't be compared: it has no shingle".into(),
                })?;
                Ok(Side { signature: made.signature, shingles })
            }
            Comparand::Id(id) => {
                let (_reading, view) = self.read();
                let existing = self.find(&id, IdIndex::fingerprint(&id), view)?;
                let existing = existing.ok_or(CollectionError::NoSuchDocument { id })?;
                Ok(Side { signature: existing.record.signature.clone(), shingles: None })
            }
        }
    }
}
