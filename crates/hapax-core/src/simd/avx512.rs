//! The hot loops over batches that multiply 64-bit numbers, with AVX-512.

use std::arch::x86_64::*;
use std::mem::transmute;

use super::portable;
use super::slots::{BATCH, SLOTS_MAX, SlotSet};

/// The number of 64-bit numbers in a vector.
const LANES: usize = 8;

/// Does the work of `lanes::mix` and then of `portable::select`.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn mix_and_select(
    values: &[u64],
    constant: u64,
    open: &SlotSet,
    slots: usize,
    selected: &mut [u64; BATCH],
) -> usize {
    debug_assert!(slots.is_power_of_two() && (64..=SLOTS_MAX).contains(&slots));
    let values = &values[..values.len().min(BATCH)];
    // One bit for each of 1,024 slots. If there are fewer slots, their bits are repeated, so that the bits of a value
    // above the slot number do not matter.
    let words: SlotSet = std::array::from_fn(|i| open[i & (slots / 64 - 1)]);
    // SAFETY: each reads 64 of the 128 bytes of the array.
    let [low, high] = [0, LANES].map(|at| unsafe { _mm512_loadu_si512(words.as_ptr().add(at).cast()) });
    let constant = _mm512_set1_epi64(constant as i64);
    let mut count = 0;
    let mut add = |eight: &[u64; LANES], there: __mmask8| {
        // SAFETY: reads the 64 bytes of the array.
        let eight = unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) };
        let mixed = fmix64(_mm512_xor_si512(eight, constant));
        // Bits 6 to 9 choose one of 16 words. Bits 0 to 5 choose a bit of that word, because a rotation ignores the
        // other bits.
        let word = _mm512_permutex2var_epi64(low, _mm512_srli_epi64::<6>(mixed), high);
        let bit = _mm512_rorv_epi64(word, mixed);
        let found = _mm512_mask_test_epi64_mask(there, bit, _mm512_set1_epi64(1));
        let room: &mut [u64; LANES] = selected[count..].first_chunk_mut().expect("there are fewer than were looked at");
        // SAFETY: writes the 64 bytes of the array.
        unsafe { _mm512_storeu_si512(room.as_mut_ptr().cast(), pack_64(found, mixed)) };
        count += found.count_ones() as usize;
    };
    // Loads under a mask would need no padding, but a round takes four times as long with them (measured). Such loads
    // seem to wait for the address of the store before them.
    let (eights, rest) = values.as_chunks();
    eights.iter().for_each(|eight| add(eight, 0xff));
    if !rest.is_empty() {
        let mut padded = [0; LANES];
        padded[..rest.len()].copy_from_slice(rest);
        add(&padded, 0xff >> (LANES - rest.len()));
    }
    count
}

/// Does the work of `portable::first_words` and then of `lanes::xxh3_short`.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
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
    let last_place = _mm256_set1_epi32(last_place);
    let mut indexes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let mut longs = 0;
    let mut hash = |starts: &[u32; LANES], ends: &[u32; LANES], hashes: &mut [u64; LANES]| {
        // SAFETY: each reads the 32 bytes of its array.
        let (start, end) =
            unsafe { (_mm256_loadu_si256(starts.as_ptr().cast()), _mm256_loadu_si256(ends.as_ptr().cast())) };
        let beyond = _mm256_cmpgt_epi32_mask(start, last_place) | _mm256_movepi32_mask(start);
        let words = if beyond == 0 {
            // SAFETY: no place is negative, and the text has eight bytes from each place on.
            unsafe { gather(text, start) }
        } else {
            let words = starts.map(|start| portable::eight_bytes(text, start as usize));
            // SAFETY: reads the 64 bytes of the array.
            unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
        };
        let len = _mm256_sub_epi32(end, start);
        let more = _mm256_cmpgt_epi32_mask(len, _mm256_set1_epi32(WORD as i32));
        let room: &mut [u16; LANES] = long[longs..].first_chunk_mut().expect("at most i are long before the i-th");
        let listed = _mm256_cvtepi32_epi16(pack_32(more, indexes));
        // SAFETY: writes the 16 bytes of the array.
        unsafe { _mm_storeu_si128(room.as_mut_ptr().cast(), listed) };
        longs += more.count_ones() as usize;
        indexes = _mm256_add_epi32(indexes, _mm256_set1_epi32(LANES as i32));
        let hash = xxh3_short(words, _mm512_cvtepu32_epi64(len));
        // SAFETY: writes the 64 bytes of the array.
        unsafe { _mm512_storeu_si512(hashes.as_mut_ptr().cast(), hash) };
    };
    let count = starts.len().min(ends.len()).min(hashes.len()).min(BATCH);
    let (starts, last_starts) = starts[..count].as_chunks();
    let (ends, last_ends) = ends[..count].as_chunks();
    let (hashes, last_hashes) = hashes[..count].as_chunks_mut();
    for ((starts, ends), hashes) in starts.iter().zip(ends).zip(hashes) {
        hash(starts, ends, hashes);
    }
    if !last_hashes.is_empty() {
        let rest = last_hashes.len();
        let (mut starts, mut ends, mut hashes) = ([0; LANES], [0; LANES], [0; LANES]);
        starts[..rest].copy_from_slice(last_starts);
        ends[..rest].copy_from_slice(last_ends);
        hash(&starts, &ends, &mut hashes);
        last_hashes.copy_from_slice(&hashes[..rest]);
    }
    longs
}

/// Does the work of `lanes::xxh3_short`. XXH3 has one formula for up to 3 bytes and one for 4 to 8. Both multiply
/// twice, so both run in the same instructions, and each lane gets the factors and shifts of its formula. A shift by
/// more bits than a lane has gives 0. This happens only in lanes whose result is not used.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn xxh3_short(word: __m512i, len: __m512i) -> __m512i {
    let set = |value: u64| _mm512_set1_epi64(value as i64);
    let is_short = _mm512_cmplt_epu64_mask(len, set(4));

    let byte = set(0xff);
    let middle = _mm512_srlv_epi64(word, _mm512_slli_epi64::<3>(_mm512_srli_epi64::<1>(len)));
    let last = _mm512_srlv_epi64(word, _mm512_slli_epi64::<3>(_mm512_sub_epi64(len, set(1))));
    let low = _mm512_or_si512(_mm512_and_si512(last, byte), _mm512_slli_epi64::<8>(len));
    let first = _mm512_slli_epi64::<16>(_mm512_and_si512(word, byte));
    let middle = _mm512_slli_epi64::<24>(_mm512_and_si512(middle, byte));
    let short = _mm512_or_si512(low, _mm512_or_si512(first, middle));
    let short = _mm512_xor_si512(short, set(0x8727_5a9b));
    let short = _mm512_xor_si512(short, _mm512_srli_epi64::<33>(short));

    let last = _mm512_srlv_epi64(word, _mm512_slli_epi64::<3>(_mm512_sub_epi64(len, set(4))));
    let last = _mm512_and_si512(last, set(0xffff_ffff));
    let other = _mm512_or_si512(_mm512_slli_epi64::<32>(word), last);
    let other = _mm512_xor_si512(other, set(0xc73a_b174_c5ec_d5a2));
    let turned = _mm512_xor_si512(_mm512_rol_epi64::<49>(other), _mm512_rol_epi64::<24>(other));
    let other = _mm512_xor_si512(other, turned);

    let each = |other: u64, short: u64| _mm512_mask_blend_epi64(is_short, set(other), set(short));
    let h = _mm512_mask_blend_epi64(is_short, other, short);
    let h = _mm512_mullo_epi64(h, each(0x9fb2_1c65_1e98_df25, 0xc2b2_ae3d_27d4_eb4f));
    let turned = _mm512_srlv_epi64(h, each(35, 29));
    let turned = _mm512_mask_add_epi64(turned, !is_short, turned, len);
    let h = _mm512_mullo_epi64(_mm512_xor_si512(h, turned), each(0x9fb2_1c65_1e98_df25, 0x1656_67b1_9e37_79f9));
    _mm512_xor_si512(h, _mm512_srlv_epi64(h, each(28, 32)))
}

/// Reads eight bytes from each place.
///
/// # Safety
/// No place is negative, and the text has eight bytes from each place on.
#[inline]
#[target_feature(enable = "avx2,avx512f")]
unsafe fn gather(text: &[u8], places: __m256i) -> __m512i {
    if cfg!(miri) {
        // Miri supports only the older form of the instruction.
        let halves = [_mm256_castsi256_si128(places), _mm256_extracti128_si256::<1>(places)];
        // SAFETY: as the caller guarantees, the text has eight bytes from each place on.
        let [low, high] = halves.map(|places| unsafe { _mm256_i32gather_epi64::<1>(text.as_ptr().cast(), places) });
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
    } else {
        // SAFETY: as the caller guarantees, the text has eight bytes from each place on.
        unsafe { _mm512_i32gather_epi64::<1>(places, text.as_ptr().cast()) }
    }
}

/// Moves the lanes that `kept` selects to the front, in order. The other lanes become 0.
#[inline]
#[target_feature(enable = "avx512f")]
fn pack_64(kept: __mmask8, numbers: __m512i) -> __m512i {
    if cfg!(miri) {
        // Miri does not support the instruction.
        // SAFETY: both types have 64 bytes, and any bits are a value of either.
        unsafe { transmute::<[u64; LANES], __m512i>(packed_plainly(kept, transmute::<__m512i, [u64; LANES]>(numbers))) }
    } else {
        _mm512_maskz_compress_epi64(kept, numbers)
    }
}

/// Does the work of `pack_64` for 32-bit numbers.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512vl")]
fn pack_32(kept: __mmask8, numbers: __m256i) -> __m256i {
    if cfg!(miri) {
        // SAFETY: both types have 32 bytes, and any bits are a value of either.
        unsafe { transmute::<[u32; LANES], __m256i>(packed_plainly(kept, transmute::<__m256i, [u32; LANES]>(numbers))) }
    } else {
        _mm256_maskz_compress_epi32(kept, numbers)
    }
}

/// Does the work of `pack_64` and `pack_32` in plain Rust.
fn packed_plainly<T: Copy + Default>(kept: __mmask8, numbers: [T; LANES]) -> [T; LANES] {
    let mut kept_numbers =
        numbers.into_iter().enumerate().filter(|(i, _)| kept >> i & 1 == 1).map(|(_, number)| number);
    std::array::from_fn(|_| kept_numbers.next().unwrap_or_default())
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn fmix64(h: __m512i) -> __m512i {
    let h = _mm512_xor_si512(h, _mm512_srli_epi64::<33>(h));
    let h = _mm512_mullo_epi64(h, _mm512_set1_epi64(0xff51_afd7_ed55_8ccd_u64 as i64));
    let h = _mm512_xor_si512(h, _mm512_srli_epi64::<33>(h));
    let h = _mm512_mullo_epi64(h, _mm512_set1_epi64(0xc4ce_b9fe_1a85_ec53_u64 as i64));
    _mm512_xor_si512(h, _mm512_srli_epi64::<33>(h))
}
