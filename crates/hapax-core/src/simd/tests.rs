//! Compares every form of every loop with the portable form, which is its specification. `tests/simd.rs` tests all
//! forms with whole texts.

use super::*;
use crate::mix::{SplitMix64, fmix64};

/// The number of tries. Under Miri, each try takes a thousand times as long.
const fn tries(natively: usize, under_miri: usize) -> usize {
    if cfg!(miri) { under_miri } else { natively }
}

/// Every operation on a block.
struct Everything<'a>(&'a Block, u64);

impl Scan for Everything<'_> {
    type Output = ((u64, u64), (u64, u64), [u64; 4], Vec<u8>);

    #[inline(always)]
    fn run<V: Bytes>(self, vector: V) -> Self::Output {
        let Self(block, kept) = self;
        let mut packed = [0xee; 64];
        vector.pack(block, kept, &mut packed);
        let ranges = [(b'A', 26), (0xe5, 5), (0xff, 1), (0x40, 128)];
        let ranges = ranges.map(|(first, count)| vector.in_range(block, first, count));
        (vector.words(block), vector.spaces(block), ranges, packed[..kept.count_ones() as usize].to_vec())
    }
}

fn random_block(generator: &mut SplitMix64) -> Block {
    let kind = generator.next_u64() % 4;
    std::array::from_fn(|_| {
        let byte = generator.next_u64() as u8;
        match kind {
            0 => byte,
            1 => byte & 0x7f,
            2 => b" \t\n\x0b\x0c\r\x08\x0e\x1c\x85\xa0a"[usize::from(byte) % 12],
            _ => b"/09:@AZ[`az{\x7f\x80\xc3\xff"[usize::from(byte) % 16],
        }
    })
}

#[test]
fn blocks_of_text_are_seen_alike_by_all() {
    let mut generator = SplitMix64::new(21);
    for round in 0..tries(20_000, 12) {
        let block = random_block(&mut generator);
        let kept = [generator.next_u64(), u64::MAX, 0][round % 3];
        let expected = Simd::PORTABLE.scan(Everything(&block, kept));
        for simd in Simd::available() {
            assert_eq!(simd.scan(Everything(&block, kept)), expected, "{simd:?} {block:x?} {kept:x}");
        }
    }
}

#[test]
fn the_portable_form_says_what_the_standard_library_says() {
    for byte in (0..=255u8).step_by(tries(1, 23)) {
        let mut block = [b'-'; 64];
        for place in [0, 7, 8, 31, 32, 63] {
            block[place] = byte;
            let bit = |is: bool| u64::from(is) << place;
            let ((words, beyond), (spaces, beyond_too), ranges, _) = Simd::PORTABLE.scan(Everything(&block, 0));
            assert_eq!(words & 1 << place, bit(byte.is_ascii_alphanumeric()), "{byte:x}");
            assert_eq!(spaces & 1 << place, bit(byte == 0x0b || byte.is_ascii_whitespace()), "{byte:x}");
            let expected =
                [byte.is_ascii_uppercase(), (0xe5..=0xe9).contains(&byte), byte == 0xff, (0x40..0xc0).contains(&byte)];
            assert_eq!(ranges.map(|range| range & 1 << place), expected.map(bit), "{byte:x}");
            assert_eq!((beyond & 1 << place, beyond_too), (bit(!byte.is_ascii()), beyond), "{byte:x}");
            block[place] = b'-';
        }
    }
    let block: Block = std::array::from_fn(|i| i as u8);
    assert_eq!(Simd::PORTABLE.scan(Everything(&block, 0x8000_0000_0000_0105)).3, [0, 2, 8, 63]);
}

#[test]
fn untouched_slots_are_found_alike_by_all() {
    let mut generator = SplitMix64::new(22);
    for slots in [64, 256, 1024, 128, 512].into_iter().take(tries(5, 2)) {
        let ranks: Vec<u64> =
            (0..slots).map(|_| [u64::MAX, generator.next_u64()][generator.next_u64() as usize % 2]).collect();
        for simd in Simd::available() {
            let found = untouched(simd, &ranks);
            for (slot, rank) in ranks.iter().enumerate() {
                assert_eq!(found[slot / 64] >> (slot % 64) & 1 == 1, *rank == u64::MAX, "{simd:?} {slot}");
            }
            assert!(found[slots / 64..].iter().all(|&word| word == 0));
        }
    }
}

#[test]
fn values_are_mixed_and_selected_alike_by_all() {
    let mut generator = SplitMix64::new(23);
    for slots in [256, 64, 1024, 128, 512].into_iter().take(tries(5, 2)) {
        for len in [0, 1, 3, 4, 6, 2, 63, 100, BATCH - 1, BATCH].into_iter().take(tries(10, 5)) {
            let values: Vec<u64> = (0..len).map(|_| generator.next_u64()).collect();
            let constant = generator.next_u64();
            let sparse = generator.next_u64() & generator.next_u64() & generator.next_u64();
            for open in [[0; 16], [u64::MAX; 16], std::array::from_fn(|i| sparse.rotate_left(i as u32))] {
                let is_open = |v: &u64| open[*v as usize % slots / 64] >> (*v % 64) & 1 == 1;
                let expected: Vec<u64> = values.iter().map(|x| fmix64(x ^ constant)).filter(is_open).collect();
                for simd in Simd::available() {
                    let mut selected = [0; BATCH];
                    let count = mix_and_select(simd, &values, constant, &open, slots, &mut selected);
                    assert!(selected[..count] == expected, "{simd:?}: {len} values, {slots} slots");
                }
            }
        }
    }
}

#[test]
fn lanes_are_computed_alike_by_all() {
    let mut generator = SplitMix64::new(24);
    let mut random = |len: usize| (0..len).map(|_| generator.next_u64()).collect::<Vec<u64>>();
    for len in [1, 3, 8, 31, 4, 200].into_iter().take(tries(6, 3)) {
        let (values, factors, terms, slots) = (random(len), random(64), random(64), random(64));
        let starts: Vec<u32> = (0..len as u32).collect();
        let ends: Vec<u32> = starts.iter().map(|start| start + 1 + start % 8).collect();
        let run = |simd| {
            let (mut mixed, mut hashes) = (vec![0; len], vec![0; len]);
            lanes::mix(simd, &values, 7, &mut mixed);
            lanes::xxh3_short(simd, &values, &starts, &ends, &mut hashes);
            let windows = [1, 2, 5, 32].map(|window| {
                let mut out = vec![0; (len + 1).saturating_sub(window)];
                lanes::mix_windows(simd, &values, window, 11, 13, &mut out);
                out
            });
            let mut lowered = slots.clone();
            lanes::lower_to_least(simd, &values, &factors, &terms, 3 << 56, &mut lowered);
            let packed = [1, 2, 4].map(|bytes| {
                let mut packed = vec![0; len * bytes];
                lanes::pack(simd, &values, &mut packed);
                packed
            });
            (mixed, hashes, windows, lowered, packed)
        };
        let expected = run(Simd::PORTABLE);
        assert!(expected.0.iter().zip(&values).all(|(mixed, value)| *mixed == fmix64(value ^ 7)));
        assert!(Simd::available().all(|simd| run(simd) == expected), "{len} values");
    }
}

#[test]
fn short_tokens_are_hashed_alike_by_all_up_to_the_last_byte() {
    let mut generator = SplitMix64::new(25);
    for bytes in [0, 1, 7, 8, 9, 40, 700].into_iter().take(tries(7, 6)) {
        let text: Vec<u8> = (0..bytes).map(|_| generator.next_u64() as u8).collect();
        let (mut starts, mut ends, mut at) = (Vec::new(), Vec::new(), 0);
        while at < bytes && starts.len() < BATCH {
            let end = bytes.min(at + 1 + generator.next_u64() as usize % 11);
            starts.push(at as u32);
            ends.push(end as u32);
            at = end + generator.next_u64() as usize % 2;
        }
        let long_ones: Vec<u16> =
            (0..starts.len() as u16).filter(|&i| ends[i as usize] - starts[i as usize] > 8).collect();
        for simd in Simd::available() {
            let (mut words, mut long, mut hashes) = ([0; BATCH], [0; BATCH], vec![0; starts.len()]);
            let longs = hash_short(simd, &text, (&starts, &ends), &mut words, &mut long, &mut hashes);
            assert_eq!(long[..longs], long_ones, "{simd:?} {bytes}");
            for (i, hash) in hashes.iter().enumerate().filter(|(i, _)| !long_ones.contains(&(*i as u16))) {
                let token = &text[starts[i] as usize..ends[i] as usize];
                assert_eq!(*hash, xxhash_rust::xxh3::xxh3_64(token), "{simd:?} {token:x?}");
            }
        }
    }
}
