//! Token hashes -> shingle hashes. The hash of a shingle of n tokens with hashes h is
//! `fmix64(n * LENGTH + sum of h[i] * BASE^(n-1-i))`. Each token is hashed once, and each window of w token hashes is
//! combined by position. A text of fewer than w tokens is one shingle of all its tokens. Memory is bounded: w - 1
//! hashes are carried from one block to the next.

use crate::mix::{SplitMix64, fmix64, named_seed};
use crate::simd::{Simd, lanes};

/// The base of the positional sum. It is 3 modulo 8. Among the odd numbers, such numbers have the longest period
/// (2^62), and a multiplication by `BASE - 1` or `BASE + 1` loses the fewest low bits. This keeps shingles with swapped
/// or repeated neighbours distinct.
const BASE: u64 = SplitMix64::new(named_seed(b"shingle/")).next_u64() & !7 | 3;
/// Added once for each token, so that shingles of different lengths differ.
const LENGTH: u64 = SplitMix64::new(named_seed(b"shin/len")).next_u64();

/// Combines token hashes, given in blocks, into the hashes of all windows of w tokens.
pub(crate) struct Shingler {
    window: usize,
    windows: u64,
}

impl Shingler {
    pub(crate) fn new(window: u8) -> Self {
        Self { window: usize::from(window), windows: 0 }
    }

    /// Appends the hash of every complete window of `hashes` to `out`, and leaves the last w - 1 hashes in `hashes`.
    pub(crate) fn push(&mut self, simd: Simd, hashes: &mut Vec<u64>, out: &mut Vec<u64>) {
        let Some(complete) = (hashes.len() + 1).checked_sub(self.window).filter(|&n| n > 0) else { return };
        let length = LENGTH.wrapping_mul(self.window as u64);
        let from = out.len();
        out.resize(from + complete, 0);
        lanes::mix_windows(simd, hashes, self.window, BASE, length, &mut out[from..]);
        self.windows += complete as u64;
        hashes.drain(..complete);
    }

    /// Returns whether there was a complete window.
    pub(crate) fn has_window(&self) -> bool {
        self.windows > 0
    }

    /// Ends the text. If there was no complete window, the hashes that `push` left are one shingle. Returns the number
    /// of shingles, including repeats.
    pub(crate) fn finish(&self, hashes: &[u64], out: &mut Vec<u64>) -> u64 {
        if self.windows > 0 || hashes.is_empty() {
            return self.windows;
        }
        out.push(window_hash(hashes));
        1
    }
}

/// Replaces the content of `out` by the hash of each window of `window` token hashes, in order. There is none if there are
/// fewer hashes. The shingles of a text have these hashes too, for their number of tokens.
///
/// # Panics
/// If `window` is 0.
pub fn window_hashes(token_hashes: &[u64], window: usize, out: &mut Vec<u64>) {
    assert!(window > 0, "a window has a token");
    out.clear();
    let Some(complete) = (token_hashes.len() + 1).checked_sub(window).filter(|&n| n > 0) else { return };
    out.resize(complete, 0);
    lanes::mix_windows(Simd::best(), token_hashes, window, BASE, LENGTH.wrapping_mul(window as u64), out);
}

/// Returns the hash of the window of all these token hashes, as [`window_hashes`] computes it.
pub fn window_hash(token_hashes: &[u64]) -> u64 {
    let sum = lanes::horner(token_hashes, BASE);
    fmix64(sum.wrapping_add(LENGTH.wrapping_mul(token_hashes.len() as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the hash of a shingle as it is defined, term by term.
    fn definition(hashes: &[u64]) -> u64 {
        let n = hashes.len();
        let sum = hashes
            .iter()
            .enumerate()
            .fold(0u64, |sum, (i, h)| sum.wrapping_add(h.wrapping_mul(BASE.wrapping_pow((n - 1 - i) as u32))));
        fmix64(sum.wrapping_add(LENGTH.wrapping_mul(n as u64)))
    }

    fn shingles(window: u8, blocks: &[&[u64]]) -> (Vec<u64>, u64) {
        let (mut shingler, mut hashes, mut out) = (Shingler::new(window), Vec::new(), Vec::new());
        for block in blocks {
            hashes.extend_from_slice(block);
            shingler.push(Simd::best(), &mut hashes, &mut out);
        }
        let count = shingler.finish(&hashes, &mut out);
        (out, count)
    }

    #[test]
    fn rolling_in_blocks_equals_the_definition() {
        let mut generator = SplitMix64::new(1);
        let hashes: Vec<u64> = (0..300).map(|_| generator.next_u64()).collect();
        for window in 1..=32u8 {
            let expected: Vec<u64> = hashes.windows(usize::from(window)).map(definition).collect();
            assert_eq!(shingles(window, &[&hashes]), (expected.clone(), expected.len() as u64));
            for block in [1, 3, 31, 64] {
                let blocks: Vec<&[u64]> = hashes.chunks(block).collect();
                assert_eq!(shingles(window, &blocks).0, expected, "window {window}, blocks of {block}");
            }
        }
    }

    #[test]
    fn windows_of_any_length_are_hashed_like_shingles() {
        let mut generator = SplitMix64::new(2);
        let hashes: Vec<u64> = (0..90).map(|_| generator.next_u64()).collect();
        let mut out = vec![1];
        for window in 1..=100 {
            window_hashes(&hashes, window, &mut out);
            assert_eq!(out, hashes.windows(window).map(definition).collect::<Vec<_>>(), "{window}");
            assert!(hashes.windows(window).zip(&out).all(|(hashes, hash)| window_hash(hashes) == *hash));
        }
        window_hashes(&[], 1, &mut out);
        assert!(out.is_empty());
    }

    #[test]
    fn fewer_tokens_than_the_window_make_one_shingle_of_all() {
        let hashes = [11, 22, 33];
        assert_eq!(shingles(5, &[&hashes]), (vec![definition(&hashes)], 1));
        assert_eq!(shingles(5, &[&hashes[..1]]), (vec![definition(&hashes[..1])], 1));
        assert_eq!(shingles(5, &[]), (vec![], 0));
        // A single token must not have the hash of a window that begins with a token hash of 0.
        assert_ne!(definition(&[7]), definition(&[0, 7]));
    }

    #[test]
    fn order_and_repetition_matter() {
        assert_ne!(definition(&[1, 2]), definition(&[2, 1]));
        assert_ne!(definition(&[5, 5]), definition(&[5, 5, 5]));
        assert_eq!(BASE % 8, 3);
    }
}
