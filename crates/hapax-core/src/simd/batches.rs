//! The loops over whole batches of shingles, tokens and slots, each with the instructions that the processor has.

#[cfg(target_arch = "x86_64")]
use super::avx512;
#[cfg(target_arch = "x86_64")]
use super::level::Level;
use super::level::Simd;
use super::slots::{BATCH, SlotSet};
#[cfg(target_arch = "x86_64")]
use super::x86;
use super::{lanes, portable};

/// Returns the set of slots that are [`EMPTY`]. The number of slots must be a multiple of 64.
#[inline]
pub(crate) fn untouched(simd: Simd, slots: &[u64]) -> SlotSet {
    match simd.level() {
        // SAFETY: `Simd::available` makes these levels only if the processor has the features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::Avx512 => unsafe { x86::untouched(slots) },
        _ => portable::untouched(slots),
    }
}

/// Mixes at most [`BATCH`] values, as `lanes::mix` does. Collects the mixed values whose low bits name an open slot.
/// `slots` is the number of slots, a power of two of at least 64. Returns the number of values collected.
#[inline]
pub(crate) fn mix_and_select(
    simd: Simd,
    values: &[u64],
    constant: u64,
    open: &SlotSet,
    slots: usize,
    selected: &mut [u64; BATCH],
) -> usize {
    match simd.level() {
        // SAFETY: `Simd::available` makes these levels only if the processor has the features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 if slots <= x86::SELECT_SLOTS_MAX => unsafe {
            x86::mix_and_select(values, constant, open, slots, selected)
        },
        // SAFETY: as for the other level.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512::mix_and_select(values, constant, open, slots, selected) },
        _ => {
            let mut mixed = [0; BATCH];
            lanes::mix(simd, values, constant, &mut mixed);
            portable::select(&mixed[..values.len().min(BATCH)], open, slots, selected)
        }
    }
}

/// Hashes at most [`BATCH`] tokens, `text[starts[i]..ends[i]]`, with xxh3_64. Tokens longer than eight bytes are left
/// to the caller: their indexes are written to a list. Returns the length of that list. `words` is a buffer.
#[inline]
pub(crate) fn hash_short(
    simd: Simd,
    text: &[u8],
    (starts, ends): (&[u32], &[u32]),
    words: &mut [u64; BATCH],
    long: &mut [u16; BATCH],
    hashes: &mut [u64],
) -> usize {
    match simd.level() {
        // SAFETY: `Simd::available` makes these levels only if the processor has the features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { x86::hash_short(text, (starts, ends), long, hashes) },
        // SAFETY: as for the other level.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512::hash_short(text, (starts, ends), long, hashes) },
        _ => {
            let longs = portable::first_words(text, (starts, ends), words, long);
            lanes::xxh3_short(simd, &words[..], starts, ends, hashes);
            longs
        }
    }
}
