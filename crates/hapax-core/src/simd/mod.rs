//! The hot loops, once for each kind of vector instructions. All unsafe code of this crate is in this folder, behind safe
//! functions; which instructions there are is found out once, at run time. The portable form of each loop is its
//! specification: the tests of this folder, `tests/simd.rs` and the fuzz targets hold every other form equal to it.

pub(crate) mod lanes;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::sync::OnceLock;

/// Vector instructions that this processor has. The signature of a text is the same with all of them.
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
enum Level {
    Portable,
    #[cfg(target_arch = "aarch64")]
    Neon,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Numbers in 512 bits; bytes as with AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Has the processor fetch what is here from memory, for a look soon after. Changes nothing but time.
#[inline(always)]
pub fn prefetch<T>(place: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every x86-64 has the instruction; it touches nothing and never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: as above; the registers and flags stay as they are.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) std::ptr::from_ref(place), options(nostack, readonly, preserves_flags));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = place;
}

impl Simd {
    /// No vector instructions but those that every processor of this architecture has.
    pub const PORTABLE: Self = Self(Level::Portable);

    /// The fastest there are here; asked of the processor once.
    pub fn best() -> Self {
        static BEST: OnceLock<Simd> = OnceLock::new();
        *BEST.get_or_init(|| Self::available().last().unwrap_or(Self::PORTABLE))
    }

    /// All there are here, the slowest first.
    pub fn available() -> impl Iterator<Item = Self> {
        #[allow(unused_mut)] // other architectures have but one
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

    /// Runs a scan over text, compiled for the instructions there are.
    #[inline]
    pub(crate) fn scan<S: Scan>(self, scan: S) -> S::Output {
        match self.0 {
            Level::Portable => scan.run(portable::Portable),
            // SAFETY: `available` makes this level only where the processor has the features.
            #[cfg(target_arch = "aarch64")]
            Level::Neon => unsafe { neon::scan(scan) },
            // SAFETY: `available` makes these levels only where the processor has the features of AVX2.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 | Level::Avx512 => unsafe { x86::scan(scan) },
        }
    }
}

/// A loop over text. Its `run`, and all of it that is to be fast, must be `#[inline(always)]`: what is not is compiled
/// without vector instructions.
pub(crate) trait Scan {
    type Output;

    fn run<V: Bytes>(self, vector: V) -> Self::Output;
}

/// 64 bytes of text, a bit for each.
pub(crate) type Block = [u8; 64];

/// What vector instructions do with blocks of text.
pub(crate) trait Bytes: Copy {
    /// Which bytes are ASCII letters or digits, and which are not ASCII.
    fn words(self, block: &Block) -> (u64, u64);

    /// Which bytes are ASCII white space by the White_Space property, and which are not ASCII.
    fn spaces(self, block: &Block) -> (u64, u64);

    /// Moves the bytes whose bits are set to the front of `packed`; what follows them there is of no account.
    fn pack(self, block: &Block, kept: u64, packed: &mut Block);
}

/// Makes the named instructions, and [`Bytes`] of the functions `words`, `spaces` and `pack` beside it.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! bytes_by_functions {
    ($name:ident) => {
        /// That there is one says that the processor has the features.
        #[derive(Clone, Copy)]
        pub(super) struct $name(());

        impl super::Bytes for $name {
            #[inline(always)]
            fn words(self, block: &Block) -> (u64, u64) {
                // SAFETY: one of these is made only where the processor has the features.
                unsafe { words(block) }
            }

            #[inline(always)]
            fn spaces(self, block: &Block) -> (u64, u64) {
                // SAFETY: as above.
                unsafe { spaces(block) }
            }

            #[inline(always)]
            fn pack(self, block: &Block, kept: u64, packed: &mut Block) {
                // SAFETY: as above.
                unsafe { pack(block, kept, packed) }
            }
        }
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use bytes_by_functions;

/// For each set of eight, the places of those that are in it, in order.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
static KEPT: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut kept = 0;
    while kept < 256 {
        let (mut place, mut count) = (0, 0);
        while place < 8 {
            if kept >> place & 1 == 1 {
                table[kept][count] = place;
                count += 1;
            }
            place += 1;
        }
        kept += 1;
    }
    table
};

/// The slots of a sketch that nothing has reached, one bit each: as many as the largest sketch has.
pub(crate) type SlotSet = [u64; SLOTS_MAX / 64];

/// Most slots of a sketch.
pub(crate) const SLOTS_MAX: usize = 1024;

/// Numbers that are looked at together.
pub(crate) const BATCH: usize = 512;

/// The slots, a multiple of 64, that hold `u64::MAX`.
#[inline]
pub(crate) fn untouched(simd: Simd, slots: &[u64]) -> SlotSet {
    match simd.0 {
        // SAFETY: `available` makes these levels only where the processor has the features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::Avx512 => unsafe { x86::untouched(slots) },
        _ => portable::untouched(slots),
    }
}

/// Mixes at most [`BATCH`] values, as `lanes::mix`, and collects those whose low bits name an open slot of the first
/// `slots`, a power of two from 64. Returns how many.
#[inline]
pub(crate) fn mix_and_select(
    simd: Simd,
    values: &[u64],
    constant: u64,
    open: &SlotSet,
    slots: usize,
    selected: &mut [u64; BATCH],
) -> usize {
    match simd.0 {
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::Avx512 if slots <= x86::SELECT_SLOTS_MAX => unsafe {
            x86::mix_and_select(values, constant, open, slots, selected)
        },
        _ => {
            let mut mixed = [0; BATCH];
            lanes::mix(simd, values, constant, &mut mixed);
            portable::select(&mixed[..values.len().min(BATCH)], open, slots, selected)
        }
    }
}

/// Hashes at most [`BATCH`] tokens, which stand in `text` from `starts` to `ends`, with xxh3_64; those longer than eight
/// bytes are left to the caller, who is told which they are. Returns how many. `words` is a buffer.
#[inline]
pub(crate) fn hash_short(
    simd: Simd,
    text: &[u8],
    (starts, ends): (&[u32], &[u32]),
    words: &mut [u64; BATCH],
    long: &mut [u16; BATCH],
    hashes: &mut [u64],
) -> usize {
    match simd.0 {
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::Avx512 => unsafe { x86::hash_short(text, (starts, ends), long, hashes) },
        _ => {
            let longs = portable::first_words(text, (starts, ends), words, long);
            lanes::xxh3_short(simd, &words[..], starts, ends, hashes);
            longs
        }
    }
}
