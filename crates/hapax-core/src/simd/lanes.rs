//! Loops over 64-bit numbers, compiled once for each level. Compilers turn these loops into vector instructions.

use super::level::{Level, Simd};
use crate::mix::fmix64;

/// The number of slots of a sketch whose minima stay in registers while the shingles are read.
pub(crate) const SLOTS: usize = 16;

/// Compiles a function of plain loops once for each kind of vector instructions.
macro_rules! for_each_level {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $type:ty),*) $body:block)*) => {$(
        $(#[$meta])*
        pub(crate) fn $name(simd: Simd, $($arg: $type),*) {
            #[inline(always)]
            fn loops($($arg: $type),*) $body
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            fn avx2($($arg: $type),*) {
                loops($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
            fn avx512($($arg: $type),*) {
                loops($($arg),*)
            }
            match simd.level() {
                Level::Portable => loops($($arg),*),
                #[cfg(target_arch = "aarch64")]
                Level::Neon => loops($($arg),*),
                // SAFETY: `Simd::available` makes this level only if the processor has these features.
                #[cfg(target_arch = "x86_64")]
                Level::Avx2 => unsafe { avx2($($arg),*) },
                // SAFETY: `Simd::available` makes this level only if the processor has these features.
                #[cfg(target_arch = "x86_64")]
                Level::Avx512 => unsafe { avx512($($arg),*) },
            }
        }
    )*};
}

for_each_level! {
    /// Computes `fmix64(value ^ constant)` of each value.
    fn mix(values: &[u64], constant: u64, mixed: &mut [u64]) {
        for (mixed, value) in mixed.iter_mut().zip(values) {
            *mixed = fmix64(value ^ constant);
        }
    }

    /// Computes `fmix64(added + sum of value[i] * base^(window-1-i))` of each window that `mixed` has room for.
    fn mix_windows(values: &[u64], window: usize, base: u64, added: u64, mixed: &mut [u64]) {
        // The default is windows of five words. For these, the multiplications do not wait for each other, which is
        // twice as fast as a chain of multiplications.
        if window == 5 {
            let powers: [u64; 4] = std::array::from_fn(|i| base.wrapping_pow(4 - i as u32));
            for (mixed, values) in mixed.iter_mut().zip(values.array_windows::<5>()) {
                let products: [u64; 4] = std::array::from_fn(|i| values[i].wrapping_mul(powers[i]));
                let halves = products[0].wrapping_add(products[1]).wrapping_add(products[2].wrapping_add(products[3]));
                *mixed = fmix64(halves.wrapping_add(values[4].wrapping_add(added)));
            }
        } else {
            roll(values, window, base, mixed);
            mixed.iter_mut().for_each(|sum| *sum = fmix64(sum.wrapping_add(added)));
        }
    }

    /// Lowers each slot to the minimum of `high | (x * factor + term) >> 8` over all x. The number of slots is a
    /// multiple of 16.
    fn lower_to_least(xs: &[u64], factors: &[u64], terms: &[u64], high: u64, slots: &mut [u64]) {
        let (factors, terms) = (factors.as_chunks::<SLOTS>().0, terms.as_chunks::<SLOTS>().0);
        for ((slots, factors), terms) in slots.as_chunks_mut::<SLOTS>().0.iter_mut().zip(factors).zip(terms) {
            // Older processors have only a signed comparison. Its result is the same here, because ranks have 56 bits.
            let mut least = [i64::MAX; SLOTS];
            for x in xs {
                for i in 0..SLOTS {
                    least[i] = least[i].min((x.wrapping_mul(factors[i]).wrapping_add(terms[i]) >> 8) as i64);
                }
            }
            for (slot, least) in slots.iter_mut().zip(least) {
                *slot = (*slot).min(high | least as u64);
            }
        }
    }

    /// Computes xxh3_64 of tokens of one to eight bytes. `words` contains the bytes of each token, little-endian, and
    /// `starts` and `ends` contain its position in the text. Bytes after the token's end do not matter, and the hash of
    /// a longer token has no meaning.
    fn xxh3_short(words: &[u64], starts: &[u32], ends: &[u32], hashes: &mut [u64]) {
        for (((&word, &start), &end), hash) in words.iter().zip(starts).zip(ends).zip(hashes) {
            let len = u64::from(end.wrapping_sub(start));
            let short = xxh3_1_to_3(word, len);
            let long = xxh3_4_to_8(word, len);
            *hash = if len < 4 { short } else { long };
        }
    }

    /// Mixes each value and writes the low bytes of the result, little-endian. `packed` has the same number of bytes
    /// for each value.
    fn pack(values: &[u64], packed: &mut [u8]) {
        match packed.len() / values.len().max(1) {
            1 => packed.iter_mut().zip(values).for_each(|(packed, value)| *packed = fmix64(*value) as u8),
            2 => {
                for (packed, value) in packed.as_chunks_mut::<2>().0.iter_mut().zip(values) {
                    *packed = (fmix64(*value) as u16).to_le_bytes();
                }
            }
            _ => {
                for (packed, value) in packed.as_chunks_mut::<4>().0.iter_mut().zip(values) {
                    *packed = (fmix64(*value) as u32).to_le_bytes();
                }
            }
        }
    }
}

/// Computes the sum of `value[i] * base^(n-1-i)` of n values.
#[inline(always)]
pub(crate) fn horner(values: &[u64], base: u64) -> u64 {
    values.iter().fold(0, |sum: u64, value| sum.wrapping_mul(base).wrapping_add(*value))
}

/// Computes the sum of each window that `sums` has room for. Each window has all values of the one before, except its
/// first, and one more. Each half of the windows is a chain of multiplications, and the two do not wait for each other.
#[inline(always)]
fn roll(values: &[u64], window: usize, base: u64, sums: &mut [u64]) {
    let of = |at: usize| horner(&values[at..at + window], base);
    let Some(last) = sums.len().checked_sub(1) else { return };
    (sums[0], sums[last]) = (of(0), of(last));
    let half = sums.len() / 2;
    let (front, back) = sums.split_at_mut(half);
    if front.is_empty() {
        return;
    }
    let (mut a, mut b) = (of(0), of(half));
    back[0] = b;
    let gone = base.wrapping_pow(window as u32);
    let next = |sum: u64, values: &[u64]| {
        sum.wrapping_mul(base).wrapping_add(values[window].wrapping_sub(values[0].wrapping_mul(gone)))
    };
    let windows = values.windows(window + 1).zip(values[half..].windows(window + 1));
    for ((front, back), (of_front, of_back)) in front[1..].iter_mut().zip(&mut back[1..]).zip(windows) {
        (a, b) = (next(a, of_front), next(b, of_back));
        (*front, *back) = (a, b);
    }
}

/// XXH3_len_1to3_64b (xxHash specification, 3.5.2), seed 0.
#[inline(always)]
fn xxh3_1_to_3(word: u64, len: u64) -> u64 {
    let byte = |i: u64| word >> (i << 3 & 63) & 0xff;
    let mut h = (byte(0) << 16 | byte(len >> 1) << 24 | byte(len.wrapping_sub(1)) | len << 8) ^ 0x8727_5a9b;
    h = (h ^ h >> 33).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    h = (h ^ h >> 29).wrapping_mul(0x1656_67b1_9e37_79f9);
    h ^ h >> 32
}

/// XXH3_len_4to8_64b (xxHash specification, 3.5.2), seed 0.
#[inline(always)]
fn xxh3_4_to_8(word: u64, len: u64) -> u64 {
    const PRIME: u64 = 0x9fb2_1c65_1e98_df25;
    let last = word >> (len.wrapping_sub(4) << 3 & 63) & 0xffff_ffff;
    let mut h = (word << 32 | last) ^ 0xc73a_b174_c5ec_d5a2;
    h ^= h.rotate_left(49) ^ h.rotate_left(24);
    h = h.wrapping_mul(PRIME);
    h = (h ^ (h >> 35).wrapping_add(len)).wrapping_mul(PRIME);
    h ^ h >> 28
}
