//! Shingle hashes <-> a compact set. The set is stored with a document, so that the document can be compared exactly.
//!
//! A set keeps the upper 48 of each hash's 64 bits. Two documents of n shingles each then share a shingle by accident
//! with probability n²/2^48. At 1,000 shingles this is 4 in a billion, and such a shingle would change the Jaccard
//! similarity by 0.0005. At a million shingles the probability is 0.4 %, and the change would be 0.0000005. For this
//! reason, a comparison of two sets is called exact. (An attacker who knows how the hashes are made can craft
//! collisions of 48 bits, and also of 64. Keyed specs protect against that.)
//!
//! As bytes, a set is the list of its hashes in ascending order. Each hash is written as the gap to the one before, in
//! a Rice code. A shingle takes about `(49.6 - log2 n) / 8` bytes: 5.4 at 100 shingles, 5.2 at 300, 5.0 at 1,000. The
//! format is on disk, so it is frozen.

use crate::verify;

/// The number of bits that are kept of a hash.
const BITS: u32 = 48;

/// The distinct shingles of one document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShingleSet {
    /// Ascending, distinct, below 2^48.
    hashes: Vec<u64>,
}

impl ShingleSet {
    /// Makes a set from 64-bit shingle hashes, in any order and with or without repeats.
    pub fn new(mut hashes: Vec<u64>) -> Self {
        hashes.iter_mut().for_each(|hash| *hash >>= u64::BITS - BITS);
        // The input often consists of a few sorted parts, and a stable sort makes use of them.
        hashes.sort();
        hashes.dedup();
        hashes.shrink_to_fit();
        Self { hashes }
    }

    /// The number of distinct shingles.
    pub fn len(&self) -> u64 {
        self.hashes.len() as u64
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The bytes of memory that the set takes.
    pub fn bytes(&self) -> usize {
        self.hashes.len() * size_of::<u64>()
    }

    /// Returns the set with `count` of its shingles replaced by others.
    pub fn with_replaced(&self, count: u64, mut other: impl FnMut() -> u64) -> Self {
        let left = self.hashes.iter().skip(count as usize).map(|hash| hash << (u64::BITS - BITS));
        Self::new((0..count.min(self.len())).map(|_| other()).chain(left).collect())
    }

    /// Compares two sets of the same spec.
    pub fn compare(&self, other: &Self) -> verify::Exact {
        verify::exact(&self.hashes, &other.hashes)
    }

    /// Returns the compact form: one byte with the number of low bits that are written plainly, then a bit stream,
    /// lowest bit first. For each hash, the stream has the upper part of the gap in unary (that many ones, then a
    /// zero), and then the low bits.
    pub fn to_bytes(&self) -> Vec<u8> {
        let low = low_bits(self.len());
        let mut bits = BitWriter { bytes: vec![low as u8], ..BitWriter::default() };
        let mut least = 0;
        for &hash in &self.hashes {
            let gap = hash - least;
            for _ in 0..gap >> low {
                bits.push(1, 1);
            }
            bits.push(0, 1);
            bits.push(gap & ((1 << low) - 1), low);
            least = hash + 1;
        }
        bits.finish()
    }

    /// Reads the set of `len` hashes from its compact form; `None` if the bytes are not the compact form of a set of
    /// that size.
    pub fn from_bytes(bytes: &[u8], len: u64) -> Option<Self> {
        let (&low, bytes) = bytes.split_first()?;
        let low = u32::from(low);
        // Each hash takes at least its low bits and a zero. Therefore a wrong `len` cannot reserve more memory than the
        // bits allow.
        if low > BITS || len.checked_mul(u64::from(low) + 1)? > bytes.len() as u64 * 8 {
            return None;
        }
        let mut hashes = Vec::with_capacity(len as usize);
        let mut bits = BitReader { bytes, at: 0 };
        let mut least = 0u64;
        for _ in 0..len {
            let gap = bits.ones()?.checked_mul(1 << low)? | bits.take(low)?;
            let hash = least.checked_add(gap).filter(|hash| hash >> BITS == 0)?;
            hashes.push(hash);
            least = hash + 1;
        }
        bits.is_at_end().then_some(Self { hashes })
    }
}

/// Returns the number of low bits for gaps that average `2^48 / len`. With this number the code is shortest: at most
/// `low + 3` bits a hash.
fn low_bits(len: u64) -> u32 {
    ((1u64 << BITS) / len.max(1)).ilog2()
}

#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    pending: u64,
    /// The number of pending bits, fewer than 8 between two calls.
    count: u32,
}

impl BitWriter {
    /// Appends `count` bits, at most 48.
    fn push(&mut self, bits: u64, count: u32) {
        self.pending |= bits << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push(self.pending as u8);
            self.pending >>= 8;
            self.count -= 8;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.count > 0 {
            self.bytes.push(self.pending as u8);
        }
        self.bytes
    }
}

struct BitReader<'a> {
    bytes: &'a [u8],
    /// The number of bits read.
    at: usize,
}

impl BitReader<'_> {
    /// Returns the next 57 bits or more, with zeros after the end.
    fn window(&self) -> u64 {
        let rest = self.bytes.get(self.at / 8..).unwrap_or_default();
        let word = match rest.first_chunk() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        };
        word >> (self.at % 8)
    }

    fn take(&mut self, count: u32) -> Option<u64> {
        let bits = self.window() & ((1 << count) - 1);
        self.at += count as usize;
        (self.at <= self.bytes.len() * 8).then_some(bits)
    }

    /// Counts the ones up to a zero, and skips the zero.
    fn ones(&mut self) -> Option<u64> {
        let mut total = 0;
        loop {
            let ones = self.window().trailing_ones().min(56);
            total += u64::from(ones);
            self.at += ones as usize;
            if self.at >= self.bytes.len() * 8 {
                return None;
            }
            if ones < 56 {
                self.at += 1;
                return Some(total);
            }
        }
    }

    /// Whether only the zeros that fill the last byte are left.
    fn is_at_end(&self) -> bool {
        self.at.div_ceil(8) == self.bytes.len() && self.window() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::SplitMix64;

    fn random(generator: &mut SplitMix64, len: usize) -> ShingleSet {
        ShingleSet::new((0..len).map(|_| generator.next_u64()).collect())
    }

    #[test]
    fn sets_come_back_from_their_bytes() {
        let mut generator = SplitMix64::new(11);
        let edges = [0, 1 << 16, u64::MAX, u64::MAX - (1 << 16), 1 << 63];
        let mut sets = vec![ShingleSet::default(), ShingleSet::new(edges.to_vec())];
        sets.extend(edges.map(|edge| ShingleSet::new(vec![edge])));
        sets.push(ShingleSet::new((0..5000).map(|hash| hash << 16).collect()));
        sets.extend((0..600).map(|len| random(&mut generator, len)));
        sets.push(random(&mut generator, 100_000));
        for set in sets {
            let bytes = set.to_bytes();
            assert_eq!(ShingleSet::from_bytes(&bytes, set.len()).as_ref(), Some(&set));
            assert!(bytes.len() as u64 * 8 <= 16 + set.len() * u64::from(low_bits(set.len()) + 3), "{}", set.len());
            assert_eq!(ShingleSet::from_bytes(&bytes, set.len() + 1), None);
            if let Some(less) = set.len().checked_sub(1) {
                assert_eq!(ShingleSet::from_bytes(&bytes, less), None);
                assert_eq!(ShingleSet::from_bytes(&bytes[..bytes.len() - 1], set.len()), None);
            }
        }
        assert_eq!(ShingleSet::from_bytes(&[], 0), None);
        assert_eq!(ShingleSet::from_bytes(&[48, 255, 255, 255], u64::MAX), None);
    }

    #[test]
    fn any_bytes_are_a_set_or_none() {
        let mut generator = SplitMix64::new(12);
        for round in 0..20_000 {
            let len = generator.next_u64() % 40;
            let mut bytes: Vec<u8> = (0..len).map(|_| generator.next_u64() as u8).collect();
            if let Some(low) = bytes.first_mut() {
                *low %= 50;
            }
            let count = generator.next_u64() % 12;
            if let Some(set) = ShingleSet::from_bytes(&bytes, count) {
                assert_eq!(set.len(), count, "round {round}");
                assert!(set.hashes.is_sorted_by(|a, b| a < b), "round {round}");
            }
        }
    }

    #[test]
    fn the_bytes_are_frozen_and_as_many_as_documented() {
        let few = ShingleSet::new(vec![0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210, 1 << 40]);
        assert_eq!(few.to_bytes(), [46, 0, 0, 0, 2, 0, 0, 170, 137, 103, 68, 35, 193, 161, 178, 195, 212, 229, 246]);
        let mut generator = SplitMix64::new(13);
        for (len, documented) in [(100, 5.4), (300, 5.2), (1000, 5.0), (100_000, 4.1)] {
            let bytes: usize = (0..20).map(|_| random(&mut generator, len).to_bytes().len()).sum();
            let each = bytes as f64 / 20.0 / len as f64;
            assert!((each - documented).abs() < 0.08, "{len}: {each}");
        }
    }

    #[test]
    fn comparison_is_that_of_the_hashes() {
        let mut generator = SplitMix64::new(14);
        let mut hashes: Vec<u64> = (0..1000).map(|_| generator.next_u64()).collect();
        let (a, b) = (ShingleSet::new(hashes[..700].to_vec()), ShingleSet::new(hashes[400..].to_vec()));
        hashes.sort_unstable();
        let found = a.compare(&b);
        assert_eq!((found.intersection, found.jaccard, found.containment_b_in_a), (300, 0.3, 0.5));
    }
}
