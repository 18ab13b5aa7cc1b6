//! The vector instructions of this processor, detected once, at run time.

use std::sync::OnceLock;

use super::blocks::Scan;
#[cfg(target_arch = "aarch64")]
use super::neon;
use super::portable;
#[cfg(target_arch = "x86_64")]
use super::x86;

/// The vector instructions that are used. The signature of a text is the same with all of them.
///
/// ```
/// use hapax_core::{Pipeline, SignScratch, Simd, TextSpec};
///
/// let text = "Vector instructions change the speed of signing and nothing else.";
/// let sign = |simd| {
///     let pipeline = Pipeline::with_simd(&TextSpec::default(), None, simd).expect("a valid spec");
///     pipeline.sign(&mut SignScratch::default(), text)
/// };
/// assert!(Simd::available().all(|simd| sign(simd) == sign(Simd::PORTABLE)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Simd(Level);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Portable,
    #[cfg(target_arch = "aarch64")]
    Neon,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Numbers are processed in vectors of 512 bits, and bytes in the same way as with AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Simd {
    /// Only the instructions that every processor of this architecture has.
    pub const PORTABLE: Self = Self(Level::Portable);

    /// Returns the fastest instructions of this processor, which are detected only once.
    pub fn best() -> Self {
        static BEST: OnceLock<Simd> = OnceLock::new();
        *BEST.get_or_init(|| Self::available().last().unwrap_or(Self::PORTABLE))
    }

    /// Returns all levels that this processor has, the slowest first.
    pub fn available() -> impl Iterator<Item = Self> {
        #[allow(unused_mut)] // other architectures have only one level
        let mut levels = vec![Level::Portable];
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            levels.push(Level::Neon);
        }
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("avx2") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt") {
                levels.push(Level::Avx2);
                if has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") {
                    levels.push(Level::Avx512);
                }
            }
        }
        levels.into_iter().map(Self)
    }

    /// `portable`, `neon`, `avx2` or `avx512`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Level::Portable => "portable",
            #[cfg(target_arch = "aarch64")]
            Level::Neon => "neon",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
        }
    }

    #[inline(always)]
    pub(super) fn level(self) -> Level {
        self.0
    }

    /// Runs a scan over text, compiled for these instructions.
    #[inline]
    pub(crate) fn scan<S: Scan>(self, scan: S) -> S::Output {
        match self.0 {
            Level::Portable => scan.run(portable::Portable),
            // SAFETY: `available` makes this level only if the processor has the features.
            #[cfg(target_arch = "aarch64")]
            Level::Neon => unsafe { neon::scan(scan) },
            // SAFETY: `available` makes these levels only if the processor has the features of AVX2.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 | Level::Avx512 => unsafe { x86::scan(scan) },
        }
    }
}
