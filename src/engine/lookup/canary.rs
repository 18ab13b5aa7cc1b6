//! Looks near-duplicates of stored documents up, as a check of a client would, and tells whether the originals were
//! found. Counts in no metric of lookups, and no document counts as seen.

use hapax_core::SplitMix64;

use super::check::finds;
use super::sources::Lookup;
use crate::store::Looked;
use crate::types::{Keep, Payload, Seq};
use crate::verdicts::{NearSource, Original, Result};

/// The similarities that are tried, if they are above the threshold.
pub(crate) const SIMILARITIES: [f64; 7] = [0.55, 0.65, 0.75, 0.85, 0.9, 0.95, 0.99];

/// Whether the original of one near-duplicate was found.
pub(crate) struct Look {
    /// The place of the similarity in [`SIMILARITIES`].
    pub at: usize,
    pub source: NearSource,
    pub found: bool,
}

/// Looks a document's near-duplicates up, one of each similarity. Returns nothing if the document is gone or linked.
pub(crate) fn look(lookup: &Lookup, seq: Seq, random: &mut SplitMix64) -> Result<Vec<Look>> {
    let store = lookup.records().store();
    let Some(record) = store.record(seq)?.filter(|record| !record.linked) else { return Ok(Vec::new()) };
    let (threshold, compares) = {
        let settings = &lookup.policy().settings;
        (settings.threshold, settings.verify.compares_shingles())
    };
    let payload = match lookup.preparer().keep() {
        Keep::Signature => None,
        // Shingles of 48 bits cannot be signed again, so they are read only if they are compared.
        Keep::Shingles if !compares => None,
        Keep::Shingles | Keep::Text => match payload(lookup, seq)? {
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
        if let Some(found) = finds(lookup, made, seq)? {
            looks.push(Look { at, source, found });
        }
    }
    Ok(looks)
}

fn payload(lookup: &Lookup, seq: Seq) -> Result<Option<Payload>> {
    let looked = lookup.records().store().payloads(&[seq], |_| Ok(()), |_, payload| Ok(payload))?;
    Ok(looked.into_iter().find_map(|(_, looked)| match looked {
        Looked::At(payload) => Some(payload),
        Looked::Gone => None,
    }))
}
