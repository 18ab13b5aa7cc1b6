//! Compares two documents, each given in the request or stored.

use std::sync::Arc;

use hapax_core::{ShingleSet, verify};

use super::existing::Existing;
use super::lookup::Lookup;
use super::retry::{ATTEMPTS, changing, wait_for_commit};
use crate::cpu::WhenFull;
use crate::engine::long_work::beside;
use crate::types::{Content, DocId, Keep};
use crate::verdicts::{CollectionError, Comparand, Comparison, ExactComparison, PrepareOptions, Purpose, Result};

/// The memory that a shingle of a stored document takes during a comparison, in bytes: its stored form and its compared
/// form together.
const STORED_SHINGLE_BYTES: usize = 16;

struct Side {
    signature: Vec<u8>,
    shingles: Option<Arc<ShingleSet>>,
}

impl Side {
    fn bytes(&self) -> usize {
        self.shingles.as_ref().map_or(0, |shingles| shingles.bytes())
    }
}

/// Returns how much memory a comparison of two documents needs for those of them that are stored. Reads the disk.
pub(crate) async fn stored_bytes(lookup: &Arc<Lookup>, documents: [&Comparand; 2]) -> Result<usize> {
    let id_of = |document: &Comparand| match document {
        Comparand::Id(id) => Some(id.clone()),
        Comparand::Content(_) => None,
    };
    let ids: Vec<_> = documents.into_iter().filter_map(id_of).collect();
    if ids.is_empty() || lookup.preparer().keep() == Keep::Signature {
        return Ok(0);
    }
    beside(lookup, move |lookup| {
        let (_reading, view) = lookup.read();
        let mut shingles = 0;
        for id in &ids {
            if let Some(existing) = Existing::find(lookup, id, view)? {
                shingles += lookup.records().store().shingles(existing.record.seq)?.unwrap_or_default();
            }
        }
        Ok(usize::try_from(shingles).unwrap_or(usize::MAX).saturating_mul(STORED_SHINGLE_BYTES))
    })
    .await
}

/// Compares two documents. Fails if one of them has no shingle. A long text is processed in slices, and other work runs
/// between the slices. If `a` is a long content and the queue for processors is full, `when_full` says what happens.
/// All later work waits for a place in the queue, because the work on `a` would otherwise be lost. The caller accounts
/// for the memory that the comparison takes, see [`stored_bytes`] and
/// [`Preparer::shingle_bytes`](crate::verdicts::Preparer::shingle_bytes).
pub(crate) async fn compare(
    lookup: &Arc<Lookup>,
    a: Comparand,
    b: Comparand,
    when_full: WhenFull,
) -> Result<Comparison> {
    let (a, b) = (side(lookup, a, "a", when_full).await?, side(lookup, b, "b", WhenFull::Wait).await?);
    let bytes = a.bytes() + b.bytes();
    let its = Arc::clone(lookup);
    lookup.preparer().compute(bytes, WhenFull::Wait, move || Ok(side_by_side(&its, &a, &b))).await
}

fn side_by_side(lookup: &Lookup, a: &Side, b: &Side) -> Comparison {
    let matching = verify::matching_slots(&a.signature, &b.signature, lookup.preparer().shape());
    let exact = a.shingles.as_ref().zip(b.shingles.as_ref()).map(|(a, b)| {
        let verify::Exact { jaccard, containment_a_in_b, containment_b_in_a, intersection } = a.compare(b);
        let (shingles_a, shingles_b) = (a.len(), b.len());
        ExactComparison { jaccard, containment_a_in_b, containment_b_in_a, shingles_a, shingles_b, intersection }
    });
    Comparison { estimate: lookup.similarity(matching, false, None), exact }
}

async fn side(lookup: &Arc<Lookup>, side: Comparand, field: &'static str, when_full: WhenFull) -> Result<Side> {
    match side {
        Comparand::Id(id) => stored_side(lookup, id).await,
        Comparand::Content(content) => given_side(lookup, content, field, when_full).await,
    }
}

async fn given_side(lookup: &Arc<Lookup>, content: Content, field: &'static str, when_full: WhenFull) -> Result<Side> {
    let options = PrepareOptions { when_full, ranks: false, purpose: Purpose::Compare };
    let verify = lookup.policy().settings.verify;
    let prepared = lookup.preparer().prepare(content, options, verify).await?;
    let made = prepared.into_parts().0.ok_or_else(|| CollectionError::Invalid {
        field,
        detail: "the document is empty: it has no shingle to compare".into(),
    })?;
    Ok(Side { signature: made.signature, shingles: made.kept.map(|kept| kept.set) })
}

/// Loads the signature and the shingles of a stored document.
async fn stored_side(lookup: &Arc<Lookup>, id: DocId) -> Result<Side> {
    beside(lookup, move |lookup| {
        // If the document is replaced or deleted after its id was looked up, its shingles are gone. Each attempt looks
        // the id up again.
        for attempt in 0..ATTEMPTS {
            let (_reading, view) = lookup.read();
            let Some(existing) = Existing::find(lookup, &id, view)? else {
                return Err(CollectionError::NoSuchDocument { id });
            };
            let shingles = lookup.stored_set(existing.record.seq)?;
            if shingles.is_some() || lookup.preparer().keep() == Keep::Signature {
                let signature = existing.record.signature.clone();
                return Ok(Side { signature, shingles: shingles.map(Arc::new) });
            }
            wait_for_commit(attempt);
        }
        Err(changing())
    })
    .await
}
