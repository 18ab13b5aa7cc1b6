//! What a client gives to be looked up, and what is kept of it.

use hapax_core::{ContentHash, Fingerprint};

/// One element of a given set, shingled as it is. `5` and `"5"` are two elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetElement {
    Text(String),
    /// An integer of `-2^63 ..= 2^64 - 1`.
    Integer(i128),
}

/// What a client gives to be looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Text(String),
    /// A ready set of shingles.
    Set(Vec<SetElement>),
    /// A ready signature: packed little-endian slots.
    Signature {
        /// The packed slots.
        bytes: Vec<u8>,
        /// The spec they were made with; needed unless the collection is `external:`.
        fingerprint: Option<Fingerprint>,
    },
}

impl Content {
    /// How much there is to sign.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Set(elements) => elements.iter().map(SetElement::bytes).sum(),
            Self::Signature { bytes, .. } => bytes.len(),
        }
    }
}

impl SetElement {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Integer(_) => size_of::<u64>(),
        }
    }
}

/// What is kept of a document beside its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Keep {
    #[default]
    Signature,
    /// The hashes of its shingles.
    Shingles,
    Text,
}

impl Keep {
    pub const ALL: [Self; 3] = [Self::Signature, Self::Shingles, Self::Text];

    /// The name on the wire and on disk.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Signature => "signature",
            Self::Shingles => "shingles",
            Self::Text => "text",
        }
    }
}

/// What is kept of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// What the bytes are.
    pub kind: PayloadKind,
    /// Distinct shingles of the document.
    pub shingles: u64,
    /// Its shingles or its text.
    pub bytes: Vec<u8>,
}

/// What the bytes of a [`Payload`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadKind {
    /// A set of shingles.
    Shingles,
    Text,
}

/// The upper half of a content hash: what RAM keeps to propose exact duplicates.
pub fn content_prefix(content: ContentHash) -> u64 {
    (content.0 >> 64) as u64
}
