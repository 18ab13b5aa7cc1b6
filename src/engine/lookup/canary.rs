//! Looks up near-duplicates of stored documents, as a check of a client would, and tells whether the originals were
//! found. `src/engine/upkeep/canary.rs` runs these lookups each minute, and computes the recall from the results. The
//! metrics of client requests do not count these lookups, and the documents that they find do not count as seen.

use hapax_core::{SplitMix64, verify};

use super::check::{candidates, finds};
use super::lookup::Lookup;
use crate::store::Record;
use crate::types::{Keep, Seq};
use crate::verdicts::{Made, NearSource, Original, Result};

/// The similarities that are tried, if they are above the threshold.
pub(crate) const SIMILARITIES: [f64; 7] = [0.55, 0.65, 0.75, 0.85, 0.9, 0.95, 0.99];

/// Whether the original of one near-duplicate was found.
pub(crate) struct Look {
    /// The index of the similarity in [`SIMILARITIES`].
    pub at: usize,
    pub source: NearSource,
    pub found: bool,
}

/// Reads a stored document. `None` if it is gone, deleted by label, or linked: lookups do not find links.
pub(crate) fn stored(lookup: &Lookup, seq: Seq) -> Result<Option<Record>> {
    let store = lookup.records().store();
    // If a document is deleted by label, the store hides it before checks stop seeing it.
    Ok(store.record(seq)?.filter(|record| !record.linked && !store.is_hidden(seq)))
}

/// Looks up near-duplicates of a document, one for each similarity.
pub(crate) fn look(lookup: &Lookup, record: &Record, random: &mut SplitMix64) -> Result<Vec<Look>> {
    let seq = record.seq;
    let (threshold, compares) = {
        let terms = lookup.policy().terms;
        (terms.threshold, terms.compares_shingles())
    };
    let payload = match lookup.preparer().keep() {
        Keep::Signature => None,
        // Shingles of 48 bits cannot be signed again, so they are read only if they are compared.
        Keep::Shingles if !compares => None,
        Keep::Shingles | Keep::Text => match lookup.records().store().payload(seq, Ok)? {
            None => return Ok(Vec::new()),
            payload => payload,
        },
    };
    let preparer = lookup.preparer();
    let (pipeline, shape) = (preparer.pipeline(), preparer.shape());
    let original = Original { signature: &record.signature, payload: payload.as_ref(), pipeline, shape };
    let mut looks = Vec::new();
    for (at, &similarity) in SIMILARITIES.iter().enumerate().filter(|(_, similarity)| **similarity > threshold) {
        let Some((made, source)) = original.near(similarity, random) else { continue };
        match finds(lookup, made, record)? {
            None => {}
            // A document that was deleted or replaced meanwhile need not be found.
            Some(false) if stored(lookup, seq)?.is_none() => break,
            Some(found) => looks.push(Look { at, source, found }),
        }
    }
    Ok(looks)
}

/// Returns the similarities of the other documents that the bands propose for a stored document. Documents with equal
/// signatures count as one. `None` if the index changed too often meanwhile.
pub(crate) fn proposed(lookup: &Lookup, record: &Record) -> Option<Vec<f64>> {
    let made = Made { signature: record.signature.clone(), content: None, kept: None, page: None };
    let shape = lookup.preparer().shape();
    let matching = candidates(lookup, &made)?;
    // The first one is the document itself.
    Some(matching.into_iter().skip(1).map(|matching| verify::similarity(matching, shape)).collect())
}
