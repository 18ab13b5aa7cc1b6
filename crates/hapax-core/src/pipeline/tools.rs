//! A spec with its secret -> the tools of the stages.

use crate::hash::{ContentHash, SecretKey, TokenHasher};
use crate::normalise::Rules;
use crate::simd::Simd;
use crate::sketch::{SketchState, Sketcher};
use crate::spec::{Shingling, SpecError, TextSpec};

/// The tools with which the stages of one spec work.
pub(crate) struct Tools {
    shingling: Shingling,
    /// The bits of a packed slot.
    bits: u32,
    rules: Rules,
    hasher: TokenHasher,
    sketcher: Sketcher,
    simd: Simd,
}

impl Tools {
    pub(super) fn new(spec: &TextSpec, secret: Option<&SecretKey>, simd: Simd) -> Result<Self, SpecError> {
        spec.validate()?;
        let hasher = match (spec.key, secret) {
            (None, _) => TokenHasher::Plain,
            (Some(key), Some(secret)) if secret.fingerprint() == key => TokenHasher::Keyed(secret.clone()),
            (Some(key), Some(secret)) => {
                let given = secret.fingerprint();
                return Err(SpecError(format!(
                    "key: the spec needs the secret with fingerprint {key:016x}, but the one given has {given:016x}"
                )));
            }
            (Some(key), None) => {
                return Err(SpecError(format!(
                    "key: the spec needs the secret with fingerprint {key:016x}, but none was given"
                )));
            }
        };
        Ok(Self {
            shingling: spec.shingling,
            bits: spec.shape.bits,
            rules: Rules::new(spec.fold, spec.marks, spec.digits, simd),
            hasher,
            sketcher: Sketcher::with_simd(spec.sketch, spec.shape.k, simd),
            simd,
        })
    }

    #[inline(always)]
    pub(crate) fn shingling(&self) -> Shingling {
        self.shingling
    }

    /// Returns the number of tokens (scalar values, for `char` shingles) in a shingle.
    #[inline(always)]
    pub(crate) fn window(&self) -> u8 {
        let (Shingling::Word(window) | Shingling::Char(window)) = self.shingling;
        window
    }

    #[inline(always)]
    pub(crate) fn rules(&self) -> Rules {
        self.rules
    }

    #[inline(always)]
    pub(crate) fn hasher(&self) -> &TokenHasher {
        &self.hasher
    }

    #[inline(always)]
    pub(crate) fn sketcher(&self) -> &Sketcher {
        &self.sketcher
    }

    /// Replaces `signature` by the signature of a set whose sketch has ended: its packed slots, or its content hash if
    /// there is no sketch. Returns the number of slots that no shingle had reached.
    pub(super) fn pack_into(&self, sketch: &mut SketchState, content: ContentHash, signature: &mut Vec<u8>) -> u32 {
        let empty_slots = self.sketcher.pack_into(sketch, self.bits, signature);
        if signature.is_empty() {
            signature.extend_from_slice(&content.0.to_be_bytes());
        }
        empty_slots
    }

    #[inline(always)]
    pub(crate) fn simd(&self) -> Simd {
        self.simd
    }
}
