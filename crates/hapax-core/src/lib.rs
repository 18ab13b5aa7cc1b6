//! Text to MinHash signature, bands, verification, tuning.
#![allow(missing_docs)]
use std::fmt;
/// 128 bits naming a spec; shown as 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fingerprint(pub u128);
impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
impl std::str::FromStr for Fingerprint {
    type Err = SpecError;
    fn from_str(_s: &str) -> Result<Self, SpecError> {
        unimplemented!()
    }
}
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(pub String);
/// 128-bit secret for keyed hashing. Debug prints only its fingerprint.
#[derive(Clone)]
pub struct SecretKey([u8; 16]);
impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({:016x})", self.fingerprint())
    }
}
impl SecretKey {
    pub fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
    pub fn from_hex(_hex: &str) -> Result<Self, SpecError> {
        unimplemented!()
    }
    pub fn fingerprint(&self) -> u64 {
        let _ = self.0;
        unimplemented!()
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    NfkcCasefold,
    Nfkc,
    None,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    Keep,
    Strip,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    Keep,
    Zero,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shingling {
    Word(u8),
    Char(u8),
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SketchKind {
    Fss,
    Classic,
}
/// Shape of a signature: k slots of `bits` bits (8, 16, 32; external also 64), packed little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignatureShape {
    pub k: u32,
    pub bits: u32,
}
impl SignatureShape {
    pub fn bytes(self) -> usize {
        (self.k * self.bits / 8) as usize
    }
}
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSpec {
    pub fold: Fold,
    pub marks: Marks,
    pub digits: Digits,
    pub shingling: Shingling,
    pub sketch: SketchKind,
    pub shape: SignatureShape,
    pub key: Option<u64>,
}
/// A frozen pipeline spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    Text(TextSpec),
    External { name: String, shape: SignatureShape },
}
impl Spec {
    pub fn parse(_canonical: &str) -> Result<Self, SpecError> {
        unimplemented!()
    }
    pub fn shape(&self) -> SignatureShape {
        unimplemented!()
    }
    pub fn fingerprint(&self) -> Fingerprint {
        unimplemented!()
    }
}
/// The canonical text.
impl fmt::Display for Spec {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        unimplemented!()
    }
}
impl Default for Spec {
    fn default() -> Self {
        unimplemented!()
    }
}

/// b bands of r rows; b*r <= k of the shape it was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Banding {
    bands: u32,
    rows: u32,
}
impl Banding {
    pub fn new(_bands: u32, _rows: u32, _shape: SignatureShape) -> Result<Self, BandingError> {
        unimplemented!()
    }
    pub fn bands(self) -> u32 {
        self.bands
    }
    pub fn rows(self) -> u32 {
        self.rows
    }
    /// The key of one band of a packed signature.
    pub fn key(self, _signature: &[u8], _shape: SignatureShape, _band: u32) -> BandKey {
        unimplemented!()
    }
    /// Where the rows of a band stand in a packed signature.
    pub fn row_bytes(self, _shape: SignatureShape, _band: u32) -> std::ops::Range<usize> {
        unimplemented!()
    }
    /// The key of a band from its packed rows.
    pub fn key_of_rows(_rows: &[u8], _band: u32) -> BandKey {
        unimplemented!()
    }
    /// 31x8 for k=256, 21x6 for k=128, else chosen by tuning.
    pub fn default_for(_shape: SignatureShape, _threshold: f64) -> Self {
        unimplemented!()
    }
}
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BandingError(pub String);
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BandKey(pub u64);

/// Hash of the canonical text (or of a set): equal for exact duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContentHash(pub u128);

/// A spec with its secret, ready to sign. Cheap to share, `Send + Sync`.
pub struct Pipeline {}
/// Reusable buffers of one thread.
#[derive(Default)]
pub struct Scratch {}
pub struct Signed {
    pub signature: Vec<u8>,
    pub content: ContentHash,
    /* windows, repeats counted */ pub shingles: u64,
}
impl Pipeline {
    pub fn new(_spec: &TextSpec, _secret: Option<&SecretKey>) -> Result<Self, SpecError> {
        unimplemented!()
    }
    /// `None`: the text has no token.
    pub fn sign(&self, _scratch: &mut Scratch, _text: &str) -> Option<Signed> {
        unimplemented!()
    }
    /// A ready set, elements given as 64-bit shingle hashes from `element_text` / `element_integer`; `None` if empty.
    pub fn sign_set(&self, _scratch: &mut Scratch, _elements: &mut Vec<u64>) -> Option<Signed> {
        unimplemented!()
    }
    pub fn element_text(&self, _element: &str) -> u64 {
        unimplemented!()
    }
    pub fn element_integer(&self, _element: i128) -> u64 {
        unimplemented!()
    }
    /// Sorted distinct shingle hashes, for exact comparison.
    pub fn shingle_set(&self, _scratch: &mut Scratch, _text: &str) -> Vec<u64> {
        unimplemented!()
    }
    pub fn canonical(&self, _text: &str) -> String {
        unimplemented!()
    }
}
pub mod verify {
    use super::SignatureShape;
    /// Equal slots of two packed signatures.
    pub fn matching_slots(_a: &[u8], _b: &[u8], _shape: SignatureShape) -> u32 {
        unimplemented!()
    }
    /// J = (m/k - 2^-w) / (1 - 2^-w), clamped.
    pub fn similarity(_matching: u32, _shape: SignatureShape) -> f64 {
        unimplemented!()
    }
    /// 95 % interval of it (Wilson).
    pub fn interval95(_matching: u32, _shape: SignatureShape) -> (f64, f64) {
        unimplemented!()
    }
    /// Least m whose similarity reaches the threshold.
    pub fn matching_min(_threshold: f64, _shape: SignatureShape) -> u32 {
        unimplemented!()
    }
    pub struct Exact {
        pub jaccard: f64,
        pub containment_a_in_b: f64,
        pub containment_b_in_a: f64,
        pub intersection: u64,
    }
    pub fn exact(_a: &[u64], _b: &[u64]) -> Exact {
        unimplemented!()
    }
}
pub mod tuning {
    use super::{Banding, SignatureShape};
    /// s = J + (1-J)/2^w
    pub fn slot_agreement(_jaccard: f64, _bits: u32) -> f64 {
        unimplemented!()
    }
    /// 1-(1-s^r)^b with s = slot_agreement(J).
    pub fn candidate_probability(_jaccard: f64, _banding: Banding, _shape: SignatureShape) -> f64 {
        unimplemented!()
    }
    /// P(candidate and estimate >= threshold), exact under independent slots.
    pub fn verdict_probability(_jaccard: f64, _banding: Banding, _shape: SignatureShape, _threshold: f64) -> f64 {
        unimplemented!()
    }
    #[derive(Clone, Copy, Debug)]
    pub struct Targets {
        pub recall: f64,
        pub s_hi: f64,
        pub s_lo: f64,
        pub candidates_max: f64,
        pub documents: f64,
        pub s_bg: f64,
    }
    #[derive(Clone, Copy, Debug)]
    pub struct Choice {
        pub banding: Banding,
        pub recall_at_s_hi: f64,
        pub candidate_rate_at_s_lo: f64,
        pub background_candidates: f64,
    }
    #[derive(Clone, Debug, PartialEq, thiserror::Error)]
    #[error("{0}")]
    pub struct NoBanding(pub String);
    pub fn choose(_targets: Targets, _shape: SignatureShape) -> Result<Choice, NoBanding> {
        unimplemented!()
    }
}
