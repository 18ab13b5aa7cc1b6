//! A stored document -> near-duplicates of it at a known similarity, for tests of lookups. If its text is stored, some
//! of the text's shingles are replaced, and the result is signed. If not, slots of the signature are replaced. Each
//! slot stays with the same probability as in a text of this similarity.

use std::cell::RefCell;
use std::sync::Arc;

use hapax_core::{Pipeline, ShingleSet, SignScratch, SignatureShape, SplitMix64};

use super::kept::{Kept, hashes_of, set_of};
use super::prepared::Made;
use crate::types::{Payload, PayloadKind};

thread_local! {
    static SCRATCH: RefCell<SignScratch> = RefCell::default();
}

/// The part of a document from which near-duplicates are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NearSource {
    Text,
    Slots,
}

/// A stored document from which near-duplicates can be made.
pub(crate) struct Original<'a> {
    pub signature: &'a [u8],
    /// The stored shingles or text, if there are any.
    pub payload: Option<&'a Payload>,
    pub pipeline: Option<&'a Pipeline>,
    pub shape: SignatureShape,
}

impl Original<'_> {
    /// Makes a near-duplicate. Its similarity to the original is at least `jaccard`, and as close to `jaccard` as the
    /// number of shingles allows. `None` if the text is too short for a different text of this similarity, if the
    /// stored data is damaged, or if the slots are not whole bytes.
    pub(crate) fn near(&self, jaccard: f64, random: &mut SplitMix64) -> Option<(Made, NearSource)> {
        let whole = |signature, set: Option<ShingleSet>| Made {
            signature,
            content: None,
            kept: set.map(|set| Kept { set: Arc::new(set), payload: None }),
            page: None,
        };
        match (self.payload, self.pipeline) {
            (Some(payload), Some(pipeline)) if payload.kind == PayloadKind::Text => {
                let mut hashes = hashes_of(pipeline, payload)?;
                replace_some(&mut hashes, jaccard, random)?;
                let signed = SCRATCH.with_borrow_mut(|scratch| pipeline.sign_set(scratch, &mut hashes))?;
                Some((whole(signed.signature, Some(ShingleSet::new(hashes))), NearSource::Text))
            }
            (payload, pipeline) => {
                let set = payload.map(|payload| set_of(pipeline, payload)).map_or(Some(None), |set| set.map(Some))?;
                let set = match set {
                    Some(set) => Some(set.with_replaced(replaced(set.len(), jaccard)?, || random.next_u64())),
                    None => None,
                };
                Some((whole(self.with_other_slots(jaccard, random)?, set), NearSource::Slots))
            }
        }
    }

    fn with_other_slots(&self, jaccard: f64, random: &mut SplitMix64) -> Option<Vec<u8>> {
        if !self.shape.bits.is_multiple_of(8) {
            return None;
        }
        let mut signature = self.signature.to_vec();
        for slot in signature.chunks_exact_mut(self.shape.bits as usize / 8) {
            if share(random) >= jaccard {
                let other = random.next_u64().to_le_bytes();
                slot.copy_from_slice(&other[..slot.len()]);
            }
        }
        Some(signature)
    }
}

/// Returns how many of `shingles` must be replaced for this similarity: `J = (n - d)/(n + d)`. `None` if none can be
/// replaced, because the text is too short.
fn replaced(shingles: u64, jaccard: f64) -> Option<u64> {
    let count = (shingles as f64 * (1.0 - jaccard) / (1.0 + jaccard)) as u64;
    (count > 0).then_some(count)
}

fn replace_some(hashes: &mut [u64], jaccard: f64, random: &mut SplitMix64) -> Option<()> {
    let count = replaced(hashes.len() as u64, jaccard)? as usize;
    // The hashes are sorted, so the first ones are a random choice of shingles.
    hashes.iter_mut().take(count).for_each(|hash| *hash = random.next_u64());
    Some(())
}

/// Returns a number from 0 to below 1.
fn share(random: &mut SplitMix64) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use hapax_core::{Collect, Spec, verify};

    use super::*;
    use crate::types::Keep;

    fn words(count: u64) -> String {
        (0..count).map(|at| format!("w{at} ")).collect()
    }

    #[test]
    fn near_duplicates_of_texts_have_their_similarity_and_the_signature_of_their_shingles() {
        let Spec::Text(spec) = Spec::default() else { unreachable!("the default is for texts") };
        let (pipeline, mut scratch) = (Pipeline::new(&spec, None).unwrap(), SignScratch::default());
        let mut signer = pipeline.signer(&mut scratch);
        signer.collect(Collect { shingles: true, canonical: true });
        signer.push(&words(504));
        let signed = signer.finish().unwrap();
        let kept = Kept::of_text(pipeline.collected(&mut scratch), Keep::Text);
        let payload = kept.payload.as_deref();
        let original = Original { signature: &signed.signature, payload, pipeline: Some(&pipeline), shape: spec.shape };
        let mut random = SplitMix64::new(7);
        assert!(original.near(0.999, &mut random).is_none(), "not one of 500 can be replaced");
        for jaccard in [0.6, 0.8, 0.9, 0.95] {
            let (near, source) = original.near(jaccard, &mut random).unwrap();
            assert_eq!(source, NearSource::Text);
            let exact = kept.set.compare(&near.kept.unwrap().set).jaccard;
            assert!((jaccard..jaccard + 0.005).contains(&exact), "{exact} for {jaccard}");
            let estimate =
                verify::similarity(verify::matching_slots(&signed.signature, &near.signature, spec.shape), spec.shape);
            assert!((estimate - jaccard).abs() < 0.1, "{estimate} for {jaccard}");
        }
    }

    #[test]
    fn other_slots_are_as_many_as_the_similarity_says() {
        let shape = SignatureShape { k: 256, bits: 16 };
        let mut random = SplitMix64::new(3);
        let signature: Vec<u8> = (0..512).map(|_| random.next_u64() as u8).collect();
        let original = Original { signature: &signature, payload: None, pipeline: None, shape };
        for jaccard in [0.6, 0.8, 0.95] {
            let similarities = (0..200).map(|_| {
                let (near, source) = original.near(jaccard, &mut random).unwrap();
                assert_eq!((source, near.kept.is_none()), (NearSource::Slots, true));
                verify::similarity(verify::matching_slots(&signature, &near.signature, shape), shape)
            });
            let mean = similarities.sum::<f64>() / 200.0;
            assert!((mean - jaccard).abs() < 0.01, "{mean} for {jaccard}");
        }
        let odd = SignatureShape { k: 64, bits: 4 };
        assert!(Original { shape: odd, ..original }.near(0.9, &mut random).is_none());
    }
}
