//! The shape of signatures -> the error of their estimates, and the memory that the index takes for each document.

use super::probability::slot_agreement;
use super::spread::SketchedPair;
use crate::band::Banding;
use crate::spec::SignatureShape;

/// Returns the standard error of the estimated similarity of two documents: the standard deviation of the share of
/// equal slots, `sqrt(s·(1 - s)/k)` for independent slots, converted to a similarity.
pub fn standard_error(jaccard: f64, shape: SignatureShape, signed: SketchedPair) -> f64 {
    let s = slot_agreement(jaccard.clamp(0.0, 1.0), shape.bits);
    let of_slots = (s * (1.0 - s) / f64::from(shape.k)).sqrt();
    signed.spread(shape.k) * of_slots / (1.0 - (-f64::from(shape.bits)).exp2())
}

/// Returns the bytes of the memory budget that the index takes for one document whose signature no other document has.
/// These are its signature, 32 bytes of other facts, and 9.1 bytes for each entry in a table that has just grown. There
/// is an entry for each band, one for equal signatures and one for the id.
pub fn index_bytes(banding: Banding, shape: SignatureShape) -> u64 {
    const FACTS: u64 = 32;
    const ENTRY_TENTHS: u64 = 91;
    shape.bytes() as u64 + FACTS + (u64::from(banding.bands()) + 2) * ENTRY_TENTHS / 10
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::SketchKind;
    use crate::tuning::defaults::default_banding;
    use crate::tuning::{Simulation, simulate};

    fn shape(k: u32, bits: u32) -> SignatureShape {
        SignatureShape { k, bits }
    }

    const CLASSIC: SketchedPair = SketchedPair { sketch: SketchKind::Classic, shingles: 1000 };

    #[test]
    fn the_error_of_independent_slots_is_that_of_a_proportion() {
        let error = |jaccard, k, bits| standard_error(jaccard, shape(k, bits), CLASSIC);
        assert!((error(0.5, 256, 64) - 0.5 / 16.0).abs() < 1e-12);
        assert!((error(0.8, 100, 64) - 0.04).abs() < 1e-12);
        assert!(error(0.0, 256, 64) < 1e-10 && error(1.0, 256, 8) == 0.0);
        assert!(error(0.0, 256, 8) > 0.003, "slots of documents with nothing in common agree by chance");
        assert!(error(0.8, 256, 8) > error(0.8, 256, 16), "narrow slots tell less");
        assert!((error(0.8, 256, 8) / error(0.8, 1024, 8) - 2.0).abs() < 1e-12, "four times the slots, half the error");
    }

    #[test]
    fn the_error_is_that_of_real_sketches() {
        for (sketch, set_size) in [(SketchKind::Classic, 200), (SketchKind::Fss, 60), (SketchKind::Fss, 555)] {
            let shape = shape(256, 8);
            let banding = default_banding(shape, 0.8);
            let simulation = Simulation { sketch, shape, banding, threshold: 0.8, set_size, pairs: 1500, seed: 3 };
            let measured = simulate(&simulation, &[0.8])[0];
            let by_chance = 1.0 / 256.0;
            let measured_error = measured.agreement_variance.sqrt() / (1.0 - by_chance);
            // The union of both sets has 2n/(1 + J) shingles.
            let signed = SketchedPair { sketch, shingles: (2.0 * set_size as f64 / 1.8) as u64 };
            let error = standard_error(measured.jaccard, shape, signed);
            assert!((measured_error / error - 1.0).abs() < 0.1, "{sketch:?} {set_size}: {error}, is {measured_error}");
        }
    }

    /// The figures of `docs/memory.md`.
    #[test]
    fn the_memory_of_a_document_is_the_documented_one() {
        for (k, bits, documented) in [
            (64, 8, 223),
            (128, 8, 369),
            (256, 8, 588),
            (512, 8, 935),
            (1024, 8, 1656),
            (256, 16, 844),
            (256, 32, 1356),
        ] {
            let shape = shape(k, bits);
            let bytes = index_bytes(default_banding(shape, 0.8), shape);
            assert!(bytes.abs_diff(documented) <= 1, "{k}x{bits}: {bytes}, documented {documented}");
        }
    }
}
