//! The documents of chaos: groups that share nothing, and how similar the variants of a group are.

use std::collections::BTreeSet;

use hapax::collections::Settings;
use hapax::types::{Content, Keep, Metadata, SetElement, Verify};
use hapax_core::{Banding, SignatureShape, Spec, verify};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SHAPE: SignatureShape = SignatureShape { k: 64, bits: 8 };
const THRESHOLD: f64 = 0.8;
/// One row a band: documents that share a slot are candidates, so no similar document is missed.
pub const SURE: (u32, u32) = (64, 1);

/// The content of a document: groups share nothing, and some variants of a group are similar.
pub type Of = (u64, u64);

/// The kind of content, and how similar any two documents are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum World {
    /// Given signatures, compared by the estimate.
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
            Self::Signatures => Content::Signature { bytes: signature(of), fingerprint: None },
            Self::Sets => Content::Set(set(of).into_iter().map(SetElement::Integer).collect()),
        }
    }

    pub fn empty(self) -> Content {
        match self {
            // A sketch of nothing has equal slots.
            Self::Signatures => Content::Signature { bytes: vec![0; SHAPE.bytes()], fingerprint: None },
            Self::Sets => Content::Set(Vec::new()),
        }
    }

    pub fn similarity(self, a: Of, b: Of) -> f64 {
        match self {
            Self::Signatures => verify::similarity(equal(a, b), SHAPE),
            Self::Sets => {
                let (a, b) = (set(a), set(b));
                let both = a.intersection(&b).count();
                both as f64 / (a.len() + b.len() - both) as f64
            }
        }
    }

    pub fn alike(self, a: Of, b: Of) -> bool {
        match self {
            Self::Signatures => equal(a, b) >= verify::matching_min(THRESHOLD, SHAPE),
            Self::Sets => self.similarity(a, b) >= THRESHOLD,
        }
    }
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

fn equal(a: Of, b: Of) -> u32 {
    signature(a).iter().zip(signature(b)).filter(|(a, b)| **a == *b).count() as u32
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

/// Writes the content into the metadata; an update changes the rest.
pub fn metadata((group, variant): Of, note: u32) -> Metadata {
    Metadata::new(format!(r#"{{"of":"{group}/{variant}","note":{note}}}"#)).unwrap()
}

pub fn told(metadata: Option<&Metadata>) -> Of {
    let json: serde_json::Value = serde_json::from_str(metadata.expect("all have some").as_str()).unwrap();
    let (group, variant) = json["of"].as_str().unwrap().split_once('/').unwrap();
    (group.parse().unwrap(), variant.parse().unwrap())
}
