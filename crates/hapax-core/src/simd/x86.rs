//! The hot loops over text and over batches with AVX2. The AVX-512 level has its own forms of the loops that multiply,
//! in `avx512`, and uses the other loops from here.

use std::arch::x86_64::*;

use super::blocks::{Block, KEPT, Scan, bytes_by_functions};
use super::portable;
use super::slots::{BATCH, SlotSet};

bytes_by_functions!(Avx2);

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn scan<S: Scan>(scan: S) -> S::Output {
    scan.run(Avx2(()))
}

#[inline]
#[target_feature(enable = "avx2")]
fn halves(block: &Block) -> [__m256i; 2] {
    // SAFETY: each load reads 32 of the 64 bytes, and needs no alignment.
    unsafe { [_mm256_loadu_si256(block.as_ptr().cast()), _mm256_loadu_si256(block.as_ptr().add(32).cast())] }
}

#[inline]
#[target_feature(enable = "avx2")]
fn mask([low, high]: [__m256i; 2]) -> u64 {
    u64::from(_mm256_movemask_epi8(low) as u32) | u64::from(_mm256_movemask_epi8(high) as u32) << 32
}

/// Returns a mask of the bytes `first` to `first + count - 1`, by moving these bytes to the lowest signed values.
#[inline]
#[target_feature(enable = "avx2")]
fn in_range(bytes: __m256i, first: u8, count: u8) -> __m256i {
    let moved = _mm256_sub_epi8(bytes, _mm256_set1_epi8((first ^ 0x80) as i8));
    _mm256_cmpgt_epi8(_mm256_set1_epi8((count ^ 0x80) as i8), moved)
}

#[inline]
#[target_feature(enable = "avx2")]
fn words(block: &Block) -> (u64, u64) {
    let halves = halves(block);
    let found = halves.map(|bytes| {
        let lower = _mm256_or_si256(bytes, _mm256_set1_epi8(0x20));
        _mm256_or_si256(in_range(lower, b'a', 26), in_range(bytes, b'0', 10))
    });
    (mask(found), mask(halves))
}

#[inline]
#[target_feature(enable = "avx2")]
fn spaces(block: &Block) -> (u64, u64) {
    let halves = halves(block);
    let found = halves
        .map(|bytes| _mm256_or_si256(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(b' ' as i8)), in_range(bytes, 0x09, 5)));
    (mask(found), mask(halves))
}

#[inline]
#[target_feature(enable = "avx2")]
fn bytes_in_range(block: &Block, first: u8, count: u8) -> u64 {
    mask(halves(block).map(|bytes| in_range(bytes, first, count)))
}

#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn pack(block: &Block, kept: u64, packed: &mut Block) {
    let mut at = 0;
    for i in 0..8 {
        let kept = (kept >> (8 * i)) as u8;
        // SAFETY: the eight bytes from 8·i on are in the block, and the row has eight bytes. At most 8·i bytes were
        // kept before, so the eight bytes from `at` on are in `packed`.
        unsafe {
            let bytes = _mm_loadl_epi64(block.as_ptr().add(8 * i).cast());
            let places = _mm_loadl_epi64(KEPT[usize::from(kept)].as_ptr().cast());
            _mm_storel_epi64(packed.as_mut_ptr().add(at).cast(), _mm_shuffle_epi8(bytes, places));
        }
        at += kept.count_ones() as usize;
    }
}

/// Does the work of `portable::untouched`.
#[target_feature(enable = "avx2")]
pub(super) fn untouched(slots: &[u64]) -> SlotSet {
    let mut found = SlotSet::default();
    let none = _mm256_set1_epi64x(-1);
    for (word, slots) in found.iter_mut().zip(slots.chunks(64)) {
        for (i, four) in slots.as_chunks::<4>().0.iter().enumerate() {
            // SAFETY: reads the 32 bytes of the array.
            let four = unsafe { _mm256_loadu_si256(four.as_ptr().cast()) };
            let equal = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(four, none)));
            *word |= (equal as u64) << (4 * i);
        }
    }
    found
}

/// The largest number of slots for which a vector has one bit each.
pub(super) const SELECT_SLOTS_MAX: usize = 256;

/// For each subset of four 64-bit lanes, given by bits 0, 1, 4 and 5 of the index: the 32-bit lanes of the subset, in
/// order.
static KEPT_LANES: [[u32; 8]; 0x33 + 1] = {
    let mut table = [[0; 8]; 0x33 + 1];
    let mut kept = 0;
    while kept <= 0x33 {
        let (mut lane, mut count) = (0, 0);
        while lane < 4 {
            let bit = if lane < 2 { lane } else { lane + 2 };
            if kept >> bit & 1 == 1 {
                table[kept][count] = 2 * lane;
                table[kept][count + 1] = 2 * lane + 1;
                count += 2;
            }
            lane += 1;
        }
        kept += 1;
    }
    table
};

/// Does the work of `lanes::mix` and then of `portable::select`, for at most [`SELECT_SLOTS_MAX`] slots.
#[target_feature(enable = "avx2,popcnt")]
pub(super) fn mix_and_select(
    values: &[u64],
    constant: u64,
    open: &SlotSet,
    slots: usize,
    selected: &mut [u64; BATCH],
) -> usize {
    debug_assert!(slots.is_power_of_two() && (64..=SELECT_SLOTS_MAX).contains(&slots));
    let values = &values[..values.len().min(BATCH)];
    // One bit for each slot. Fewer than 256 are repeated, so that a value's bits above its slot number do not matter.
    let words: [u64; 4] = std::array::from_fn(|i| open[i & (slots / 64 - 1)]);
    // In late rounds hardly any value is selected, and the processor predicts that. It cannot predict earlier rounds.
    let few = words.iter().map(|word| word.count_ones()).sum::<u32>() <= 256 / 32;
    // SAFETY: reads the 32 bytes of the array.
    let open = unsafe { _mm256_loadu_si256(words.as_ptr().cast()) };
    let constant = _mm256_set1_epi64x(constant as i64);
    let mut padded = [0; 8];
    let mut count = 0;
    for i in (0..values.len()).step_by(8) {
        let rest = &values[i..];
        // In `there`, bits 0, 1, 4 and 5 are for the first four values: `low_bytes` interleaves the two groups.
        let (eight, there) = match rest.first_chunk() {
            Some(eight) => (eight, 0xff),
            None => {
                padded[..rest.len()].copy_from_slice(rest);
                let bits = [0, 1, 4, 5, 2, 3, 6];
                (&padded, bits[..rest.len()].iter().fold(0, |there, bit| there | 1 << bit))
            }
        };
        // SAFETY: each reads 32 of the 64 bytes of the array.
        let [a, b] = [0, 4].map(|at| unsafe { _mm256_loadu_si256(eight.as_ptr().add(at).cast()) });
        let a = half_fmix64(_mm256_xor_si256(a, constant));
        let b = half_fmix64(_mm256_xor_si256(b, constant));
        let low = low_bytes(a, b);
        // Bits 5 to 7 choose one of eight words, and bits 0 to 4 choose a bit of that word.
        let word = _mm256_permutevar8x32_epi32(open, _mm256_srli_epi32(low, 5));
        let bit = _mm256_sllv_epi32(word, _mm256_andnot_si256(low, _mm256_set1_epi32(31)));
        let found = _mm256_movemask_ps(_mm256_castsi256_ps(bit)) as usize & there;
        if few && found == 0 {
            continue;
        }
        for (four, found) in [(a, found & 0x33), (b, found >> 2 & 0x33)] {
            let room: &mut [u64; 4] = selected[count..].first_chunk_mut().expect("there are fewer than were looked at");
            // SAFETY: the row has 32 bytes, and so has the array.
            unsafe {
                let lanes = _mm256_loadu_si256(KEPT_LANES[found].as_ptr().cast());
                _mm256_storeu_si256(room.as_mut_ptr().cast(), _mm256_permutevar8x32_epi32(four, lanes));
            }
            count += found.count_ones() as usize;
        }
    }
    for four in selected.as_chunks_mut::<4>().0.iter_mut().take(count.div_ceil(4)) {
        // SAFETY: reads and writes the 32 bytes of the array.
        unsafe {
            let rest = other_half_fmix64(_mm256_loadu_si256(four.as_ptr().cast()));
            _mm256_storeu_si256(four.as_mut_ptr().cast(), rest);
        }
    }
    count
}

/// Returns the lowest bytes of the eight values that `other_half_fmix64` would make, in the lowest bytes of 32-bit
/// lanes. The other bytes have no meaning. Each half of 128 bits has two bytes from `a` and then two from `b`. A byte
/// needs only bits 0 to 7 and 33 to 40 of a product, so the multiplications are narrow.
#[inline]
#[target_feature(enable = "avx2")]
fn low_bytes(a: __m256i, b: __m256i) -> __m256i {
    let factor = _mm256_set1_epi64x(FMIX_SECOND as i64);
    let evens =
        |a, b| _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)));
    let odds =
        |a, b| _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)));
    let (product_a, product_b) = (_mm256_mul_epu32(a, factor), _mm256_mul_epu32(b, factor));
    let crossed = _mm256_mullo_epi16(evens(a, b), _mm256_set1_epi32((FMIX_SECOND >> 32 & 0xffff) as i32));
    let other = _mm256_mullo_epi16(odds(a, b), _mm256_set1_epi32((FMIX_SECOND & 0xffff) as i32));
    let high = _mm256_add_epi32(odds(product_a, product_b), _mm256_add_epi32(crossed, other));
    _mm256_xor_si256(evens(product_a, product_b), _mm256_srli_epi32::<1>(high))
}

/// Does the work of `portable::first_words` and then of `lanes::xxh3_short`.
#[target_feature(enable = "avx2,popcnt")]
pub(super) fn hash_short(
    text: &[u8],
    (starts, ends): (&[u32], &[u32]),
    long: &mut [u16; BATCH],
    hashes: &mut [u64],
) -> usize {
    const WORD: usize = size_of::<u64>();
    // Words are read eight bytes at a time, and gather takes signed 32-bit places. A token too near the end of the
    // text, or too far from its beginning, is read byte by byte.
    let last_place = text.len().checked_sub(WORD).map_or(-1, |last| i32::try_from(last).unwrap_or(i32::MAX));
    let mut longs = 0;
    let mut hash = |i: usize, starts: &[u32; 4], ends: &[u32; 4]| {
        // SAFETY: each reads the 16 bytes of its array.
        let (start, end) = unsafe { (_mm_loadu_si128(starts.as_ptr().cast()), _mm_loadu_si128(ends.as_ptr().cast())) };
        let beyond = _mm_or_si128(_mm_cmpgt_epi32(start, _mm_set1_epi32(last_place)), start);
        let words = if _mm_movemask_ps(_mm_castsi128_ps(beyond)) == 0 {
            // SAFETY: no place is negative, and the text has eight bytes from each place on.
            unsafe { _mm256_i32gather_epi64::<1>(text.as_ptr().cast(), start) }
        } else {
            let words = starts.map(|start| portable::eight_bytes(text, start as usize));
            // SAFETY: reads the 32 bytes of the array.
            unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
        };
        let len = _mm_sub_epi32(end, start);
        let more = _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpgt_epi32(len, _mm_set1_epi32(WORD as i32)))) as usize;
        let room: &mut [u16; 4] = long[longs..].first_chunk_mut().expect("at most i are long before the i-th");
        let [first, second, third, fourth, ..] = KEPT[more];
        *room = [first, second, third, fourth].map(|place| i as u16 + u16::from(place));
        longs += more.count_ones() as usize;
        let len = _mm256_cvtepu32_epi64(len);
        let hash = xxh3_short(words, len);
        let mut four = [0u64; 4];
        // SAFETY: writes the 32 bytes of the array.
        unsafe { _mm256_storeu_si256(four.as_mut_ptr().cast(), hash) };
        four
    };
    let count = starts.len().min(ends.len()).min(hashes.len()).min(BATCH);
    let mut padded = [[0; 4]; 2];
    for i in (0..count).step_by(4) {
        let (starts, ends) = match (starts[i..count].first_chunk(), ends[i..count].first_chunk()) {
            (Some(starts), Some(ends)) => (starts, ends),
            _ => {
                padded[0][..count - i].copy_from_slice(&starts[i..count]);
                padded[1][..count - i].copy_from_slice(&ends[i..count]);
                (&padded[0], &padded[1])
            }
        };
        let four = hash(i, starts, ends);
        match hashes[i..count].first_chunk_mut() {
            Some(room) => *room = four,
            None => hashes[i..count].copy_from_slice(&four[..count - i]),
        }
    }
    longs
}

/// Does the work of `lanes::xxh3_short`. XXH3 has one formula for up to 3 bytes and one for 4 to 8. Both multiply
/// twice, so both run in the same instructions, and each lane gets the factors and shifts of its formula. A shift by
/// more bits than a lane has gives 0. This happens only in lanes whose result is not used.
#[inline]
#[target_feature(enable = "avx2")]
fn xxh3_short(word: __m256i, len: __m256i) -> __m256i {
    let set = |value: u64| _mm256_set1_epi64x(value as i64);
    let is_short = _mm256_cmpgt_epi64(set(4), len);

    let byte = set(0xff);
    let middle = _mm256_srlv_epi64(word, _mm256_slli_epi64(_mm256_srli_epi64(len, 1), 3));
    let last = _mm256_srlv_epi64(word, _mm256_slli_epi64(_mm256_sub_epi64(len, set(1)), 3));
    let low = _mm256_or_si256(_mm256_and_si256(last, byte), _mm256_slli_epi64(len, 8));
    let first = _mm256_slli_epi64(_mm256_and_si256(word, byte), 16);
    let middle = _mm256_slli_epi64(_mm256_and_si256(middle, byte), 24);
    let short = _mm256_or_si256(low, _mm256_or_si256(first, middle));
    let short = _mm256_xor_si256(short, set(0x8727_5a9b));
    let short = _mm256_xor_si256(short, _mm256_srli_epi64(short, 33));

    let last = _mm256_srlv_epi64(word, _mm256_slli_epi64(_mm256_sub_epi64(len, set(4)), 3));
    let last = _mm256_and_si256(last, set(0xffff_ffff));
    let other = _mm256_or_si256(_mm256_slli_epi64(word, 32), last);
    let other = _mm256_xor_si256(other, set(0xc73a_b174_c5ec_d5a2));
    let turned_49 = _mm256_or_si256(_mm256_slli_epi64(other, 49), _mm256_srli_epi64(other, 15));
    let turned_24 = _mm256_or_si256(_mm256_slli_epi64(other, 24), _mm256_srli_epi64(other, 40));
    let other = _mm256_xor_si256(other, _mm256_xor_si256(turned_49, turned_24));

    // Chooses one of two constants in each lane; no arithmetic is done on them as floating-point numbers.
    let each = |other: u64, short: u64| {
        let both = _mm256_castsi256_pd(_mm256_setr_epi64x(other as i64, short as i64, other as i64, short as i64));
        _mm256_castpd_si256(_mm256_permutevar_pd(both, is_short))
    };
    let times_each = |h, other: u64, short: u64| {
        times_lanes(h, each(other, short), each(other.rotate_left(32), short.rotate_left(32)))
    };
    let h = _mm256_blendv_epi8(other, short, is_short);
    let h = times_each(h, 0x9fb2_1c65_1e98_df25, 0xc2b2_ae3d_27d4_eb4f);
    let turned = _mm256_add_epi64(_mm256_srlv_epi64(h, each(35, 29)), _mm256_andnot_si256(is_short, len));
    let h = times_each(_mm256_xor_si256(h, turned), 0x9fb2_1c65_1e98_df25, 0x1656_67b1_9e37_79f9);
    _mm256_xor_si256(h, _mm256_srlv_epi64(h, each(28, 32)))
}

/// The second factor of `fmix64`.
const FMIX_SECOND: u64 = 0xc4ce_b9fe_1a85_ec53;

/// Computes `fmix64` up to its second multiplication.
#[inline]
#[target_feature(enable = "avx2")]
fn half_fmix64(h: __m256i) -> __m256i {
    let h = _mm256_xor_si256(h, _mm256_srli_epi64(h, 33));
    let h = times(h, 0xff51_afd7_ed55_8ccd);
    _mm256_xor_si256(h, _mm256_srli_epi64(h, 33))
}

/// Computes `fmix64` from its second multiplication on.
#[inline]
#[target_feature(enable = "avx2")]
fn other_half_fmix64(h: __m256i) -> __m256i {
    let h = times(h, FMIX_SECOND);
    _mm256_xor_si256(h, _mm256_srli_epi64(h, 33))
}

/// The low 64 bits of the product of each lane with a factor.
#[inline]
#[target_feature(enable = "avx2")]
fn times(value: __m256i, factor: u64) -> __m256i {
    times_lanes(value, _mm256_set1_epi64x(factor as i64), _mm256_set1_epi64x(factor.rotate_left(32) as i64))
}

/// The low 64 bits of the product of each lane with its factor. The factor is also given with its halves exchanged, so
/// that one multiplication gives both cross products of the halves.
#[inline]
#[target_feature(enable = "avx2")]
fn times_lanes(value: __m256i, factor: __m256i, exchanged: __m256i) -> __m256i {
    let crossed = _mm256_mullo_epi32(value, exchanged);
    let crossed = _mm256_add_epi32(crossed, _mm256_slli_epi64(crossed, 32));
    let crossed = _mm256_and_si256(crossed, _mm256_set1_epi64x(0xffff_ffff_0000_0000u64 as i64));
    _mm256_add_epi64(_mm256_mul_epu32(value, factor), crossed)
}
