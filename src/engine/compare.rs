//! Two documents side by side, given or stored.

use std::sync::Arc;

use hapax_core::{ShingleSet, verify};

use super::order::{ATTEMPTS, changing, wait_for_commit};
use super::{Collection, CollectionError, PrepareOptions, Purpose, Result};
use crate::cpu::WhenFull;
use crate::store;
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
    shingles: Option<Arc<ShingleSet>>,
}

impl Side {
    fn bytes(&self) -> usize {
        self.shingles.as_ref().map_or(0, |shingles| shingles.bytes())
    }
}

impl Collection {
    /// Compares two documents; both must have something to compare. `when_full` is for what is long: each text is worked
    /// on in slices, between which others have their turn. Whoever calls counts what that takes, see
    /// [`Self::shingle_bytes`].
    pub async fn compare(self: &Arc<Self>, a: Comparand, b: Comparand, when_full: WhenFull) -> Result<Comparison> {
        let (a, b) = (self.side(a, "a", when_full).await?, self.side(b, "b", WhenFull::Wait).await?);
        let bytes = a.bytes() + b.bytes();
        let collection = Arc::clone(self);
        self.preparer.compute(bytes, WhenFull::Wait, move || Ok(collection.side_by_side(&a, &b))).await
    }

    fn side_by_side(&self, a: &Side, b: &Side) -> Comparison {
        let matching = verify::matching_slots(&a.signature, &b.signature, self.preparer.shape());
        let exact = a.shingles.as_ref().zip(b.shingles.as_ref()).map(|(a, b)| {
            let verify::Exact { jaccard, containment_a_in_b, containment_b_in_a, intersection } = a.compare(b);
            let (shingles_a, shingles_b) = (a.len(), b.len());
            ExactComparison { jaccard, containment_a_in_b, containment_b_in_a, shingles_a, shingles_b, intersection }
        });
        Comparison { estimate: self.similarity(matching, false, None), exact }
    }

    async fn side(self: &Arc<Self>, comparand: Comparand, field: &'static str, when_full: WhenFull) -> Result<Side> {
        match comparand {
            Comparand::Id(id) => self.stored_side(id).await,
            Comparand::Content(content) => {
                let options = PrepareOptions { when_full, ranks: false, purpose: Purpose::Compare };
                let made = self.prepare_with(content, options).await?.into_parts().0.ok_or_else(|| {
                    CollectionError::Invalid {
                        field,
                        detail: "an empty document can't be compared: it has no shingle".into(),
                    }
                })?;
                Ok(Side { signature: made.signature, shingles: made.kept.map(|kept| kept.set) })
            }
        }
    }

    /// What is kept of a stored document.
    async fn stored_side(self: &Arc<Self>, id: DocId) -> Result<Side> {
        self.blocking(move |collection| {
            // Replaced since it was looked up, it has another content now; deleted, none.
            for attempt in 0..ATTEMPTS {
                let (_reading, view) = collection.read();
                let existing = collection.find(&id, store::id_fingerprint(&id), view)?;
                let Some(existing) = existing else { return Err(CollectionError::NoSuchDocument { id }) };
                let shingles = collection.stored_set(existing.record.seq)?;
                if shingles.is_some() || collection.preparer.keep() == Keep::Signature {
                    let signature = existing.record.signature.clone();
                    return Ok(Side { signature, shingles: shingles.map(Arc::new) });
                }
                wait_for_commit(attempt);
            }
            Err(changing())
        })
        .await
    }
}
