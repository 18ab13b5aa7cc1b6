//! The hot loops over text with NEON, which every 64-bit ARM processor has. Loops over numbers are left to the
//! compiler: NEON cannot multiply 64-bit lanes.

use std::arch::aarch64::*;

use super::blocks::{Block, KEPT, Scan, bytes_by_functions};

bytes_by_functions!(Neon);

#[target_feature(enable = "neon")]
pub(super) fn scan<S: Scan>(scan: S) -> S::Output {
    scan.run(Neon(()))
}

#[inline]
#[target_feature(enable = "neon")]
fn quarters(block: &Block) -> [uint8x16_t; 4] {
    // SAFETY: each load reads 16 of the 64 bytes, and needs no alignment.
    std::array::from_fn(|i| unsafe { vld1q_u8(block.as_ptr().add(16 * i)) })
}

/// Takes four vectors whose bytes are all ones or all zeros, and returns one bit for each byte. In each group of eight
/// bytes, a different bit of each byte is kept. Then bytes are added pairwise, until each byte has eight bits.
#[inline]
#[target_feature(enable = "neon")]
fn mask(found: [uint8x16_t; 4]) -> u64 {
    const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
    // SAFETY: reads the 16 bytes of the array.
    let bits = unsafe { vld1q_u8(BITS.as_ptr()) };
    let [a, b, c, d] = found.map(|found| vandq_u8(found, bits));
    let (ab, cd) = (vpaddq_u8(a, b), vpaddq_u8(c, d));
    let abcd = vpaddq_u8(ab, cd);
    vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(abcd, abcd)))
}

/// Returns a mask of the bytes `first` to `first + count - 1`.
#[inline]
#[target_feature(enable = "neon")]
fn in_range(bytes: uint8x16_t, first: u8, count: u8) -> uint8x16_t {
    vcltq_u8(vsubq_u8(bytes, vdupq_n_u8(first)), vdupq_n_u8(count))
}

#[inline]
#[target_feature(enable = "neon")]
fn beyond(quarters: [uint8x16_t; 4]) -> u64 {
    mask(quarters.map(|bytes| vcgeq_u8(bytes, vdupq_n_u8(0x80))))
}

#[inline]
#[target_feature(enable = "neon")]
fn words(block: &Block) -> (u64, u64) {
    let quarters = quarters(block);
    let found = quarters.map(|bytes| {
        let lower = vorrq_u8(bytes, vdupq_n_u8(0x20));
        vorrq_u8(in_range(lower, b'a', 26), in_range(bytes, b'0', 10))
    });
    (mask(found), beyond(quarters))
}

#[inline]
#[target_feature(enable = "neon")]
fn spaces(block: &Block) -> (u64, u64) {
    let quarters = quarters(block);
    let found = quarters.map(|bytes| vorrq_u8(vceqq_u8(bytes, vdupq_n_u8(b' ')), in_range(bytes, 0x09, 5)));
    (mask(found), beyond(quarters))
}

#[inline]
#[target_feature(enable = "neon")]
fn bytes_in_range(block: &Block, first: u8, count: u8) -> u64 {
    mask(quarters(block).map(|bytes| in_range(bytes, first, count)))
}

#[inline]
#[target_feature(enable = "neon")]
fn pack(block: &Block, kept: u64, packed: &mut Block) {
    let mut at = 0;
    for i in 0..8 {
        let kept = (kept >> (8 * i)) as u8;
        // SAFETY: the eight bytes from 8·i on are in the block, and the row has eight bytes. At most 8·i bytes were
        // kept before, so the eight bytes from `at` on are in `packed`.
        unsafe {
            let bytes = vld1_u8(block.as_ptr().add(8 * i));
            let places = vld1_u8(KEPT[usize::from(kept)].as_ptr());
            vst1_u8(packed.as_mut_ptr().add(at), vtbl1_u8(bytes, places));
        }
        at += kept.count_ones() as usize;
    }
}
