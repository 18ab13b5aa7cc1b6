//! The content that a client sends to be looked up, and the parts of it that are stored.

use hapax_core::{ContentHash, Fingerprint, SketchKind, Spec};

use super::page::Html;

/// One element of a given set. It is used as a shingle unchanged; `5` and `"5"` are two elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetElement {
    Text(String),
    /// An integer from `-2^63` to `2^64 - 1`.
    Integer(i128),
}

/// The content that a client sends to be looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Text(String),
    /// A page, whose text is extracted as the collection says.
    Html(Html),
    /// A set whose elements are used as shingles.
    Set(Vec<SetElement>),
    /// A signature that the client computed.
    Signature {
        /// The slots, packed, little-endian.
        bytes: Vec<u8>,
        /// The spec that the signature was made with. Required unless the spec of the collection is `external:`.
        fingerprint: Option<Fingerprint>,
        /// The text that the signature was made from.
        text: Option<SignedText>,
    },
}

/// The facts about a text that its signature does not contain. With these facts, a signature counts as the text itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedText {
    pub content: ContentHash,
    pub shingles: u64,
}

impl Content {
    /// Returns the number of bytes to sign.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Html(html) => html.markup.len(),
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

/// The data that a collection stores for each document in addition to its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Keep {
    #[default]
    Signature,
    /// The hashes of the shingles.
    Shingles,
    Text,
}

impl Keep {
    pub const ALL: [Self; 3] = [Self::Signature, Self::Shingles, Self::Text];

    /// Returns the name in the API and on disk.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Signature => "signature",
            Self::Shingles => "shingles",
            Self::Text => "text",
        }
    }

    /// Parses a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|keep| keep.as_str() == name)
    }
}

/// The shingles or the text that a collection stores for a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    pub kind: PayloadKind,
    /// The number of distinct shingles of the document.
    pub shingles: u64,
    /// The encoded shingles, or the compressed text.
    pub bytes: Vec<u8>,
}

/// The meaning of the bytes of a [`Payload`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadKind {
    /// The set of shingles.
    Shingles,
    Text,
    /// The n-grams of an item, in a collection that is searched by containment.
    Grams,
}

/// How the documents of a collection are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// By the similarity of whole texts, estimated from signatures.
    Similarity,
    /// By the share of a stored text that another text contains, computed from n-grams.
    Containment,
}

impl IndexKind {
    pub const ALL: [Self; 2] = [Self::Similarity, Self::Containment];

    /// Returns the name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Similarity => "similarity",
            Self::Containment => "containment",
        }
    }

    /// Returns the index of the collections with a spec. A spec without a sketch has nothing that estimates a
    /// similarity.
    pub fn of(spec: &Spec) -> Self {
        if spec.sketch() == Some(SketchKind::None) { Self::Containment } else { Self::Similarity }
    }
}

/// Returns the upper half of a content hash. Only this half is in memory, which is enough to propose exact duplicates.
pub fn content_prefix(content: ContentHash) -> u64 {
    (content.0 >> 64) as u64
}
