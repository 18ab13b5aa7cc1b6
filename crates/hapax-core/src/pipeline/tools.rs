//! A spec with its secret -> what the stages work with.

use crate::hash::{SecretKey, TokenHasher};
use crate::normalise::Rules;
use crate::simd::Simd;
use crate::sketch::Sketcher;
use crate::spec::{Shingling, SpecError, TextSpec};

/// What the stages of one spec work with.
pub(crate) struct Tools {
    shingling: Shingling,
    /// Bits of a packed slot.
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
                return Err(SpecError(format!("key: the spec names secret {key:016x}, but {given:016x} was given")));
            }
            (Some(key), None) => {
                return Err(SpecError(format!("key: the spec names secret {key:016x}, but none was given")));
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

    /// Tokens (scalar values, in char mode) in a shingle.
    #[inline(always)]
    pub(crate) fn window(&self) -> u8 {
        let (Shingling::Word(window) | Shingling::Char(window)) = self.shingling;
        window
    }

    #[inline(always)]
    pub(crate) fn bits(&self) -> u32 {
        self.bits
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

    #[inline(always)]
    pub(crate) fn simd(&self) -> Simd {
        self.simd
    }
}
