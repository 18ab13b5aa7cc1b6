//! Each hot loop in plain Rust. This form is the specification of the forms with vector instructions, and runs if the
//! processor has no such instructions.

use super::blocks::{Block, Bytes};
use super::slots::{BATCH, EMPTY, SlotSet};

/// No vector instructions.
#[derive(Clone, Copy)]
pub(super) struct Portable;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x80 * ONES;

impl Bytes for Portable {
    #[inline(always)]
    fn words(self, block: &Block) -> (u64, u64) {
        masks(block, |eight| {
            let lower = eight | (0x20 * ONES);
            let letters = at_least(lower, b'a') & !at_least(lower, b'z' + 1);
            let digits = at_least(eight, b'0') & !at_least(eight, b'9' + 1);
            letters | digits
        })
    }

    #[inline(always)]
    fn spaces(self, block: &Block) -> (u64, u64) {
        masks(block, |eight| {
            let controls = at_least(eight, 0x09) & !at_least(eight, 0x0e);
            let space = at_least(eight, b' ') & !at_least(eight, b' ' + 1);
            controls | space
        })
    }

    #[inline(always)]
    fn in_range(self, block: &Block, first: u8, count: u8) -> u64 {
        let (firsts, more) = (ONES * u64::from(first), ONES * u64::from(0x80 - count));
        let mut found = 0;
        for (i, eight) in block.as_chunks::<8>().0.iter().enumerate() {
            let eight = u64::from_le_bytes(*eight);
            // The difference is taken in each byte: no subtraction borrows from the next byte.
            let moved = ((eight | HIGH) - (firsts & !HIGH)) ^ ((eight ^ !firsts) & HIGH);
            let outside = moved | ((moved & !HIGH) + more);
            found |= gather(!outside & HIGH) << (8 * i);
        }
        found
    }

    #[inline(always)]
    fn pack(self, block: &Block, kept: u64, packed: &mut Block) {
        let mut at = 0;
        for (i, byte) in block.iter().enumerate() {
            packed[at % 64] = *byte;
            at += (kept >> i & 1) as usize;
        }
    }
}

/// Sets the highest bit of each byte below 0x80 that is at least `least`: no addition carries over into the next byte.
#[inline(always)]
fn at_least(bytes: u64, least: u8) -> u64 {
    bytes + ONES * u64::from(0x80 - least)
}

/// Returns two masks with a bit for each byte. The first says whether `found`, which is called with ASCII bytes, sets
/// the byte's highest bit. The second says whether the byte is not ASCII.
#[inline(always)]
fn masks(block: &Block, found: impl Fn(u64) -> u64) -> (u64, u64) {
    let (mut of_found, mut of_beyond) = (0, 0);
    for (i, eight) in block.as_chunks::<8>().0.iter().enumerate() {
        let eight = u64::from_le_bytes(*eight);
        let beyond = eight & HIGH;
        of_found |= gather(found(eight ^ beyond) & HIGH & !beyond) << (8 * i);
        of_beyond |= gather(beyond) << (8 * i);
    }
    (of_found, of_beyond)
}

/// Moves the highest bits of eight bytes side by side: the highest bit of byte i becomes bit i.
#[inline(always)]
fn gather(high: u64) -> u64 {
    (high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

pub(super) fn untouched(slots: &[u64]) -> SlotSet {
    let mut found = SlotSet::default();
    for (word, slots) in found.iter_mut().zip(slots.chunks(64)) {
        *word = slots.iter().rev().fold(0, |word, &slot| word << 1 | u64::from(slot == EMPTY));
    }
    found
}

pub(super) fn select(values: &[u64], open: &SlotSet, slots: usize, selected: &mut [u64; BATCH]) -> usize {
    let mut count = 0;
    for &value in values.iter().take(BATCH) {
        let slot = value as usize & (slots - 1);
        selected[count % BATCH] = value;
        count += (open[slot / 64 % open.len()] >> (slot % 64) & 1) as usize;
    }
    count
}

/// Reads the first eight bytes of each token, and lists the tokens that are longer. Returns the number of longer
/// tokens.
pub(super) fn first_words(
    text: &[u8],
    (starts, ends): (&[u32], &[u32]),
    words: &mut [u64; BATCH],
    long: &mut [u16; BATCH],
) -> usize {
    let mut longs = 0;
    for ((i, (&start, &end)), word) in starts.iter().zip(ends).enumerate().zip(words) {
        *word = eight_bytes(text, start as usize);
        long[longs % BATCH] = i as u16;
        longs += usize::from(end.wrapping_sub(start) > 8);
    }
    longs
}

/// Reads eight bytes, little-endian; bytes after the end are 0.
#[inline(always)]
pub(super) fn eight_bytes(text: &[u8], at: usize) -> u64 {
    match text[at..].first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => text[at..].iter().rev().fold(0, |eight, &byte| eight << 8 | u64::from(byte)),
    }
}
