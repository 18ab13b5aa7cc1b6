//! The documents of the chaos test. Their groups have nothing in common. The similarity of any two variants of a group
//! is known.

use std::collections::{BTreeMap, BTreeSet};

use hapax::collections::Settings;
use hapax::types::{Content, Keep, Metadata, SetElement, Verify};
use hapax_core::{Banding, SignatureShape, Spec, verify};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The groups that writers use.
pub const GROUPS: u64 = 6;
/// The group of a document that is removed only by expiry.
pub const GHOSTS: u64 = GROUPS;
/// The group of a document that no merge can store.
pub const POISON: u64 = GROUPS + 1;
pub const VARIANTS: u64 = 24;
const SHAPE: SignatureShape = SignatureShape { k: 64, bits: 8 };
const THRESHOLD: f64 = 0.8;
/// A banding with one row in each band. Documents that share a slot are candidates, so no similar document is missed.
pub const SURE: (u32, u32) = (64, 1);

/// The content of a document: its group and its variant. Groups have nothing in common, and some variants of a group
/// are similar.
pub type Of = (u64, u64);

/// How two documents of a group compare.
#[derive(Clone, Copy)]
pub struct Pair {
    pub similarity: f64,
    /// Whether they are duplicates of each other.
    pub alike: bool,
    /// Whether their contents are equal, as far as the server knows. The server does not know the content of a given
    /// signature.
    pub same: bool,
}

/// How any two documents compare.
pub struct Truth(BTreeMap<(Of, u64), Pair>);

impl Truth {
    /// Returns how two documents compare; `None` if they are of different groups.
    pub fn of(&self, a: Of, b: Of) -> Option<Pair> {
        if a.0 == b.0 { Some(self.0[&(a, b.1)]) } else { None }
    }
}

/// The kind of content, and how similar any two documents are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum World {
    /// Signatures that the client sends, compared by the estimate.
    Signatures,
    /// Sets, compared exactly.
    Sets,
}

impl World {
    pub fn settings(self) -> Settings {
        let spec = match self {
            Self::Signatures => "hapax1;external:chaos:64x8".to_owned(),
            Self::Sets => Spec::default().to_string().replace("fss256x8", "fss64x8"),
        };
        let settings = Settings::new(Spec::parse(&spec).unwrap(), banding(SURE), THRESHOLD);
        match self {
            Self::Signatures => settings,
            Self::Sets => Settings { keep: Keep::Shingles, verify: Verify::Exact, ..settings },
        }
    }

    pub fn content(self, of: Of) -> Content {
        match self {
            Self::Signatures => Content::Signature { bytes: signature(of), fingerprint: None, text: None },
            Self::Sets => Content::Set(set(of).into_iter().map(SetElement::Integer).collect()),
        }
    }

    pub fn empty(self) -> Content {
        match self {
            // In a sketch of an empty set, all slots are equal.
            Self::Signatures => Content::Signature { bytes: vec![0; SHAPE.bytes()], fingerprint: None, text: None },
            Self::Sets => Content::Set(Vec::new()),
        }
    }

    /// Compares all documents of each group.
    pub fn truth(self) -> Truth {
        let mut truth = BTreeMap::new();
        for group in 0..=POISON {
            let signatures: Vec<_> = (0..VARIANTS).map(|variant| signature((group, variant))).collect();
            let sets: Vec<_> = (0..VARIANTS).map(|variant| set((group, variant))).collect();
            for (a, b) in (0..VARIANTS).flat_map(|a| (0..VARIANTS).map(move |b| (a, b))) {
                let [left, right] = [a as usize, b as usize];
                let pair = match self {
                    Self::Signatures => by_estimate(&signatures[left], &signatures[right]),
                    Self::Sets => by_shingles(&sets[left], &sets[right]),
                };
                truth.insert(((group, a), b), pair);
            }
        }
        Truth(truth)
    }
}

fn by_estimate(a: &[u8], b: &[u8]) -> Pair {
    let equal = a.iter().zip(b).filter(|(a, b)| a == b).count() as u32;
    let alike = equal >= verify::matching_min(THRESHOLD, SHAPE);
    Pair { similarity: verify::similarity(equal, SHAPE), alike, same: false }
}

fn by_shingles(a: &BTreeSet<i128>, b: &BTreeSet<i128>) -> Pair {
    let both = a.intersection(b).count();
    let similarity = both as f64 / (a.len() + b.len() - both) as f64;
    Pair { similarity, alike: similarity >= THRESHOLD, same: a == b }
}

pub fn banding((bands, rows): (u32, u32)) -> Banding {
    Banding::new(bands, rows, SHAPE).unwrap()
}

fn signature((group, variant): Of) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(group);
    let mut bytes: Vec<u8> = (0..SHAPE.bytes()).map(|_| rng.random()).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(group * 1000 + variant);
    for _ in 0..variant % 12 {
        bytes[rng.random_range(0..SHAPE.bytes())] = rng.random();
    }
    bytes
}

fn set((group, variant): Of) -> BTreeSet<i128> {
    let mut rng = ChaCha8Rng::seed_from_u64(group);
    let mut set: BTreeSet<i128> = (0..50).map(|_| i128::from(rng.random::<u32>())).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(group * 1000 + variant);
    for _ in 0..variant % 9 {
        let gone = *set.iter().nth(rng.random_range(0..set.len())).unwrap();
        set.remove(&gone);
        set.insert(i128::from(rng.random::<u32>()));
    }
    set
}

/// Returns metadata that contains the content and a note. Updates change only the note.
pub fn metadata((group, variant): Of, note: u32) -> Metadata {
    Metadata::new(format!(r#"{{"of":"{group}/{variant}","note":{note}}}"#)).unwrap()
}

/// Returns the content that metadata describes.
pub fn told(metadata: Option<&Metadata>) -> Of {
    let json: serde_json::Value = serde_json::from_str(metadata.expect("all have some").as_str()).unwrap();
    let (group, variant) = json["of"].as_str().unwrap().split_once('/').unwrap();
    (group.parse().unwrap(), variant.parse().unwrap())
}
