//! Plain or keyed hashes of tokens, elements and whole contents. Knows nothing of text or sketches. These hashes are on
//! disk, and a change of one would make every stored signature useless. For this reason `tests/vectors.json` pins them,
//! and the tests below compare the hash functions with their published vectors.

use std::fmt;
use std::hash::Hasher;
use std::str::FromStr;

use siphasher::sip::{SipHasher13, SipHasher24};
use siphasher::sip128::{Hasher128, SipHasher13 as SipHasher13x128};
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed, xxh3_128};

use crate::hex::of_hex;
use crate::mix::{SplitMix64, fmix64, named_seed};
use crate::simd::{self, BATCH, Simd};
use crate::spec::SpecError;

/// XORed with a scalar value before mixing, so that U+0000 does not hash to zero.
const SCALAR: u64 = SplitMix64::new(named_seed(b"hapax/ch")).next_u64();
/// Separates the hashes of strings in a set from the hashes of tokens.
const ELEMENT_TEXT: u64 = named_seed(b"\xffset/str");
/// Separates the hashes of integers in a set from the hashes of its strings.
const ELEMENT_INTEGER: u64 = named_seed(b"\xffset/int");
/// Separates the content hash of a set from the content hash of a text.
const CONTENT_SET: u64 = named_seed(b"\xffset/all");
/// The text that is hashed under a secret to get the secret's fingerprint.
const KEY_NAME: &[u8] = b"\xffhapax key fingerprint 1";

/// A 128-bit secret for keyed hashing. Pages that evade or flood a collection can be crafted only with the secret.
/// `Debug` prints only its fingerprint.
#[derive(Clone)]
pub struct SecretKey([u8; 16]);

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SecretKey({:016x})", self.fingerprint())
    }
}

impl SecretKey {
    /// Makes a secret from its bytes.
    pub fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Reads exactly 32 hex digits. The error never contains the input.
    pub fn from_hex(hex: &str) -> Result<Self, SpecError> {
        let refused = || SpecError("a secret must be exactly 32 hex digits (128 bits)".into());
        if hex.len() != 32 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(refused());
        }
        u128::from_str_radix(hex, 16).map(|v| Self(v.to_be_bytes())).map_err(|_| refused())
    }

    /// Returns a number that names the secret without revealing it: SipHash-2-4 of a fixed text under the secret. Data
    /// is hashed with another function, SipHash-1-3, so the fingerprint is not, by construction, the hash of any data.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(KEY_NAME);
        hasher.finish()
    }
}

/// Turns tokens, scalar values and elements into 64 bits: plain (fast) or under a secret.
#[derive(Clone, Debug)]
pub(crate) enum TokenHasher {
    Plain,
    Keyed(SecretKey),
}

impl TokenHasher {
    /// Returns xxh3_64 of the token's bytes, or SipHash-1-3 of these bytes.
    #[inline(always)]
    pub(crate) fn token(&self, bytes: &[u8]) -> u64 {
        match self {
            Self::Plain => xxh3_64(bytes),
            Self::Keyed(secret) => sip13(secret, bytes),
        }
    }

    /// Appends the hash of each token, as [`Self::token`] computes it. Token i is `text[starts[i]..ends[i]]`.
    pub(crate) fn tokens(
        &self,
        simd: Simd,
        text: &[u8],
        (starts, ends): (&[u32], &[u32]),
        batch: &mut TokenBatch,
        hashes: &mut Vec<u64>,
    ) {
        let token = |start: u32, end: u32| &text[start as usize..end as usize];
        if let Self::Keyed(secret) = self {
            hashes.extend(starts.iter().zip(ends).map(|(&start, &end)| sip13(secret, token(start, end))));
            return;
        }
        // Most words have at most eight bytes. xxh3 branches on a word's length, and the processor cannot predict these
        // branches. Therefore all words are hashed as short words, in vectors, and then the few long words are hashed
        // again.
        let TokenBatch { words, long } = batch;
        for (starts, ends) in starts.chunks(BATCH).zip(ends.chunks(BATCH)) {
            let from = hashes.len();
            hashes.resize(from + starts.len(), 0);
            let hashes = &mut hashes[from..];
            let longs = simd::hash_short(simd, text, (starts, ends), words, long, hashes);
            for i in long[..longs].iter().map(|&i| usize::from(i)) {
                let token = token(starts[i], ends[i]);
                hashes[i] = match (token.first_chunk(), token.last_chunk()) {
                    (Some(first), Some(last)) if token.len() <= 16 => xxh3_9_to_16(first, last, token.len()),
                    _ => xxh3_64(token),
                };
            }
        }
    }

    /// Returns the hash of a scalar value as a token: fmix64, or SipHash-1-3 of its four little-endian bytes.
    #[inline(always)]
    pub(crate) fn scalar(&self, c: u32) -> u64 {
        match self {
            Self::Plain => fmix64(u64::from(c) ^ SCALAR),
            Self::Keyed(secret) => sip13(secret, &c.to_le_bytes()),
        }
    }

    /// Returns the hash of a string in a set. The tag's first byte occurs in no UTF-8 text, so no token collides with
    /// the string.
    pub(crate) fn element_text(&self, element: &str) -> u64 {
        self.tagged(ELEMENT_TEXT, element.as_bytes())
    }

    /// Returns the hash of an integer in a set.
    pub(crate) fn element_integer(&self, element: i128) -> u64 {
        self.tagged(ELEMENT_INTEGER, &element.to_le_bytes())
    }

    fn tagged(&self, tag: u64, bytes: &[u8]) -> u64 {
        match self {
            Self::Plain => xxh3_64_with_seed(bytes, tag),
            Self::Keyed(SecretKey(key)) => {
                let mut hasher = SipHasher13::new_with_key(key);
                hasher.write(&tag.to_be_bytes());
                hasher.write(bytes);
                hasher.finish()
            }
        }
    }
}

/// XXH3_len_9to16_64b (xxHash specification, 3.5.2), seed 0.
#[inline(always)]
fn xxh3_9_to_16(first: &[u8; 8], last: &[u8; 8], len: usize) -> u64 {
    let low = u64::from_le_bytes(*first) ^ 0x6782_737b_ea42_39b9;
    let high = u64::from_le_bytes(*last) ^ 0xaf56_bc3b_0996_523a;
    let product = u128::from(low) * u128::from(high);
    let h = (len as u64)
        .wrapping_add(low.swap_bytes())
        .wrapping_add(high)
        .wrapping_add(product as u64 ^ (product >> 64) as u64);
    let h = (h ^ h >> 37).wrapping_mul(0x1656_6791_9e37_79f9);
    h ^ h >> 32
}

/// A reusable buffer for tokens that are hashed together.
pub(crate) struct TokenBatch {
    /// The first eight bytes of each token.
    words: Box<[u64; BATCH]>,
    /// The indexes of the tokens with more than eight bytes.
    long: Box<[u16; BATCH]>,
}

impl Default for TokenBatch {
    fn default() -> Self {
        Self { words: Box::new([0; BATCH]), long: Box::new([0; BATCH]) }
    }
}

fn sip13(SecretKey(key): &SecretKey, bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new_with_key(key);
    hasher.write(bytes);
    hasher.finish()
}

/// The hash of the canonical text (or of a set). Exact duplicates have equal hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash(pub u128);

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for ContentHash {
    type Err = SpecError;

    fn from_str(s: &str) -> Result<Self, SpecError> {
        of_hex(s)
            .map(Self)
            .ok_or_else(|| SpecError(format!("a content hash must be 32 lower-case hex digits, not {s:?}")))
    }
}

/// A content hash that is being computed. The result does not depend on where the bytes are cut into pieces.
#[derive(Clone)]
pub(crate) struct ContentHasher {
    kind: ContentHasherKind,
    /// Whether anything was hashed since `begin`.
    begun: bool,
}

#[derive(Clone)]
enum ContentHasherKind {
    Plain(Box<Xxh3>),
    Keyed(SipHasher13x128),
}

impl ContentHasher {
    pub(crate) fn new(tokens: &TokenHasher) -> Self {
        let kind = match tokens {
            TokenHasher::Plain => ContentHasherKind::Plain(Box::new(Xxh3::new())),
            TokenHasher::Keyed(SecretKey(key)) => ContentHasherKind::Keyed(SipHasher13x128::new_with_key(key)),
        };
        Self { kind, begun: false }
    }

    /// Begins another content and reuses the buffers.
    pub(crate) fn begin(&mut self, tokens: &TokenHasher) {
        match (&mut self.kind, tokens) {
            (ContentHasherKind::Plain(hasher), TokenHasher::Plain) if self.begun => hasher.reset(),
            (ContentHasherKind::Plain(_), TokenHasher::Plain) => {}
            _ => *self = Self::new(tokens),
        }
        self.begun = false;
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.begun = true;
        match &mut self.kind {
            ContentHasherKind::Plain(hasher) => hasher.update(bytes),
            ContentHasherKind::Keyed(hasher) => hasher.write(bytes),
        }
    }

    /// Returns the hash of the whole content. `rest` is the last part of the content, and most often the whole content.
    pub(crate) fn finish(&mut self, rest: &[u8]) -> ContentHash {
        if let (ContentHasherKind::Plain(_), false) = (&self.kind, self.begun) {
            return ContentHash(xxh3_128(rest));
        }
        self.update(rest);
        ContentHash(match &self.kind {
            ContentHasherKind::Plain(hasher) => hasher.digest128(),
            ContentHasherKind::Keyed(hasher) => hasher.finish128().as_u128(),
        })
    }
}

/// Returns the content hash of a set: a tag that no text begins with, then the sorted distinct elements.
pub(crate) fn content_of_set(tokens: &TokenHasher, sorted_distinct: &[u64]) -> ContentHash {
    let mut hasher = ContentHasher::new(tokens);
    hasher.update(&CONTENT_SET.to_be_bytes());
    for element in sorted_distinct {
        hasher.update(&element.to_le_bytes());
    }
    hasher.finish(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_from_exactly_32_hex_digits() {
        let hex = "000102030405060708090a0b0c0d0e0f";
        let read = SecretKey::from_hex(hex).expect("32 hex digits");
        assert_eq!(read.fingerprint(), SecretKey::new(std::array::from_fn(|i| i as u8)).fingerprint());
        for wrong in ["", "00", "+00102030405060708090a0b0c0d0e0f", &"0".repeat(33), &"g".repeat(32)] {
            let error = SecretKey::from_hex(wrong).expect_err("not 32 hex digits").to_string();
            assert!(wrong.is_empty() || !error.contains(wrong) || wrong == "00", "{error}");
        }
    }

    #[test]
    fn debug_of_a_secret_prints_only_its_fingerprint() {
        let secret = SecretKey::new([0xab; 16]);
        let shown = format!("{secret:?}");
        assert_eq!(shown, format!("SecretKey({:016x})", secret.fingerprint()));
        assert!(!shown.contains("abab"));
    }

    #[test]
    fn tokens_hashed_together_are_hashed_as_each_alone() {
        let text: Vec<u8> = (0..2_000u32).map(|i| (i * 37 % 251) as u8).collect();
        let mut generator = SplitMix64::new(12);
        let (mut starts, mut ends, mut at) = (Vec::new(), Vec::new(), 0u32);
        while at < 1_960 {
            let len = if generator.next_u64().is_multiple_of(8) { 40 } else { 1 + generator.next_u64() as u32 % 12 };
            starts.push(at);
            ends.push(at + len);
            at += len + generator.next_u64() as u32 % 2;
        }
        let text = &text[..*ends.last().expect("there are some") as usize];
        for hasher in [TokenHasher::Plain, TokenHasher::Keyed(SecretKey::new([7; 16]))] {
            let alone: Vec<u64> =
                starts.iter().zip(&ends).map(|(&s, &e)| hasher.token(&text[s as usize..e as usize])).collect();
            for simd in Simd::available() {
                let mut together = vec![1];
                hasher.tokens(simd, text, (&starts, &ends), &mut TokenBatch::default(), &mut together);
                assert_eq!(together[1..], alone, "{simd:?}");
            }
        }
    }

    #[test]
    fn strings_integers_and_tokens_do_not_collide() {
        for hasher in [TokenHasher::Plain, TokenHasher::Keyed(SecretKey::new([7; 16]))] {
            let text = "0123456789abcdef";
            let integer = i128::from_le_bytes(*b"0123456789abcdef");
            let hashes = [hasher.token(text.as_bytes()), hasher.element_text(text), hasher.element_integer(integer)];
            assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2] && hashes[0] != hashes[2]);
            assert_ne!(hasher.element_integer(-1), hasher.element_integer(i128::from(u64::MAX)));
        }
    }

    /// The vectors are SipHash-1-3 and 2-4 of 00 01 .. with key 00..0f (reference implementation), and xxh3 of the
    /// empty input (xxHash specification).
    #[test]
    fn primitives_agree_with_their_published_vectors() {
        assert_eq!(xxh3_64(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(xxh3_128(b""), 0x99aa_06d3_0147_98d8_6001_c324_468d_497f);
        let key: [u8; 16] = std::array::from_fn(|i| i as u8);
        let bytes: [u8; 15] = std::array::from_fn(|i| i as u8);
        let mut two_four = SipHasher24::new_with_key(&key);
        two_four.write(&bytes);
        assert_eq!(two_four.finish(), 0xa129_ca61_49be_45e5);
        let one_three = sip13(&SecretKey::new(key), b"");
        assert_eq!(one_three.to_le_bytes(), [0xdc, 0xc4, 0x0f, 0x05, 0x58, 0x01, 0xac, 0xab]);
    }

    #[test]
    fn a_content_hash_does_not_depend_on_how_the_bytes_are_cut() {
        let bytes: Vec<u8> = (0..2_000u32).map(|i| (i * 31) as u8).collect();
        for tokens in [TokenHasher::Plain, TokenHasher::Keyed(SecretKey::new([1; 16]))] {
            let mut hasher = ContentHasher::new(&tokens);
            let whole = hasher.finish(&bytes);
            for size in [7, 300, 1_999] {
                hasher.begin(&tokens);
                let (pieces, rest) = bytes.split_at(bytes.len() - 13);
                pieces.chunks(size).for_each(|piece| hasher.update(piece));
                assert_eq!(hasher.finish(rest), whole);
            }
        }
    }
}
