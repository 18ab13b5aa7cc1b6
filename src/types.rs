//! The words of the service: identities, contents, verdicts.
//! Values here are valid by construction; nothing here knows of storage, HTTP or threads.

use std::fmt;
use std::sync::Arc;

use hapax_core::Fingerprint;

/// Longest document id, in bytes of UTF-8.
pub const ID_BYTES_MAX: usize = 2048;
/// Longest metadata, in bytes of compact JSON.
pub const METADATA_BYTES_MAX: usize = 16 * 1024;

/// A document's name, chosen by the client: 1 to [`ID_BYTES_MAX`] bytes of UTF-8, any characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocId(Arc<str>);

/// Why a text is not an id, a metadata or a collection name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// Empty id.
    #[error("an id has at least one byte")]
    IdEmpty,
    /// Id over [`ID_BYTES_MAX`].
    #[error("an id has at most {ID_BYTES_MAX} bytes of UTF-8, this one has {bytes}")]
    IdTooLong {
        /// How long it was.
        bytes: usize,
    },
    /// Metadata over [`METADATA_BYTES_MAX`].
    #[error("metadata has at most {METADATA_BYTES_MAX} bytes as compact JSON, this has {bytes}")]
    MetadataTooLong {
        /// How long it was.
        bytes: usize,
    },
    /// A collection name outside the pattern.
    #[error("a collection name matches [a-z0-9][a-z0-9_-]{{0,63}}")]
    CollectionName,
}

impl DocId {
    /// Checks the length; every character is allowed.
    pub fn new(text: impl Into<Arc<str>>) -> Result<Self, InvalidName> {
        let text = text.into();
        match text.len() {
            0 => Err(InvalidName::IdEmpty),
            bytes if bytes > ID_BYTES_MAX => Err(InvalidName::IdTooLong { bytes }),
            _ => Ok(Self(text)),
        }
    }

    /// The id as given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What the client keeps beside a document: the compact text of a JSON object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata(Arc<str>);

impl Metadata {
    /// `json` must be the compact text of a JSON object; only its length is checked here.
    pub fn new(json: impl Into<Arc<str>>) -> Result<Self, InvalidName> {
        let json = json.into();
        if json.len() > METADATA_BYTES_MAX {
            return Err(InvalidName::MetadataTooLong { bytes: json.len() });
        }
        Ok(Self(json))
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the object has no key. Such metadata is stored as none.
    pub fn is_empty(&self) -> bool {
        &*self.0 == "{}"
    }
}

/// A collection's name: `[a-z0-9][a-z0-9_-]{0,63}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CollectionName(Arc<str>);

impl CollectionName {
    /// Checks the pattern.
    pub fn new(text: &str) -> Result<Self, InvalidName> {
        let head = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let tail = |byte: u8| head(byte) || byte == b'_' || byte == b'-';
        let bytes = text.as_bytes();
        let fits = (1..=64).contains(&bytes.len()) && head(bytes[0]) && bytes.iter().all(|&byte| tail(byte));
        if fits { Ok(Self(text.into())) } else { Err(InvalidName::CollectionName) }
    }

    /// The collection that always exists.
    pub fn default_collection() -> Self {
        Self("default".into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for CollectionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A place in a collection's commit order, and the identity of the document stored there. Never reused; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Seq(pub u64);

/// A place in a listing of clusters: behind a document of a cluster, which is named by the `seq` of its founder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ClusterPlace {
    /// The cluster.
    pub cluster: Seq,
    /// The document.
    pub seq: Seq,
}

/// A document's place in memory. Reused, so it means nothing without a [`Seq`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// Milliseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct TimestampMs(pub i64);

/// One element of a given set, shingled as it is. `5` and `"5"` are two elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetElement {
    /// A string.
    Text(String),
    /// An integer of `-2^63 ..= 2^64 - 1`.
    Integer(i128),
}

/// What a client gives to be looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Plain text.
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

/// What a lookup found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictKind {
    /// No document at or above the threshold.
    Unique,
    /// At least one document at or above the threshold.
    NearDuplicate,
    /// A document with equal canonical text (or equal set).
    ExactDuplicate,
    /// Nothing to compare: no token, no shingle.
    Empty,
}

impl VerdictKind {
    /// All kinds, for labels.
    pub const ALL: [Self; 4] = [Self::Unique, Self::NearDuplicate, Self::ExactDuplicate, Self::Empty];

    /// The name on the wire and in labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unique => "unique",
            Self::NearDuplicate => "near_duplicate",
            Self::ExactDuplicate => "exact_duplicate",
            Self::Empty => "empty",
        }
    }

    /// Whether another document was found.
    pub fn is_duplicate(self) -> bool {
        matches!(self, Self::NearDuplicate | Self::ExactDuplicate)
    }
}

/// What was done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Looked up only.
    Checked,
    /// Stored under a new id.
    Inserted,
    /// Stored in place of the id's earlier content.
    Replaced,
    /// The id already holds this content; the verdict is the one of its first insertion.
    Unchanged,
    /// The id already holds this content and has other metadata now; the verdict is the one of its first insertion.
    Updated,
    /// The id was stored as a link to the original, without postings.
    Linked,
    /// Nothing was stored.
    Skipped,
    /// The id held other content, which is deleted; the new content is not stored.
    Removed,
}

impl Outcome {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Checked => "checked",
            Self::Inserted => "inserted",
            Self::Replaced => "replaced",
            Self::Unchanged => "unchanged",
            Self::Updated => "updated",
            Self::Linked => "linked",
            Self::Skipped => "skipped",
            Self::Removed => "removed",
        }
    }
}

/// How a similarity was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// From the slots of two signatures.
    Estimate,
    /// From the contents themselves.
    Exact,
}

impl Method {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Estimate => "estimate",
            Self::Exact => "exact",
        }
    }
}

/// A Jaccard similarity with its 95 % interval, which is the similarity itself where that is exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Similarity {
    /// 0 to 1.
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// How it was found.
    pub method: Method,
}

/// Distinct shingles of a document and of one like it, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// In both.
    pub both: u64,
    /// In the document that was asked about.
    pub query: u64,
    /// In the one that was found.
    pub found: u64,
}

impl Overlap {
    /// In either.
    pub fn either(self) -> u64 {
        self.query + self.found - self.both
    }

    /// The Jaccard similarity; documents without a shingle have none, and are never compared.
    pub fn similarity(self) -> Similarity {
        let value = self.both as f64 / self.either() as f64;
        Similarity { value, low: value, high: value, method: Method::Exact }
    }

    /// Share of the asked document's shingles that are in the found one.
    pub fn containment_in_match(self) -> f64 {
        self.both as f64 / self.query as f64
    }

    /// Share of the found document's shingles that are in the asked one.
    pub fn containment_of_match(self) -> f64 {
        self.both as f64 / self.found as f64
    }
}

/// A stored document at or above the threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    /// Its id.
    pub id: DocId,
    /// Whether its content is equal.
    pub same_content: bool,
    /// How alike.
    pub similarity: Similarity,
    /// How many shingles they share, where they were compared exactly.
    pub overlap: Option<Overlap>,
    /// When this content was first stored under its id.
    pub first_seen: TimestampMs,
    /// Its metadata, where asked for.
    pub metadata: Option<Metadata>,
    /// It has metadata that was asked for and is not here.
    pub metadata_omitted: bool,
}

/// What was left out of an answer that would have been too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Omitted {
    /// Matches, the last ones.
    pub matches: u64,
    /// The metadata of so many of the matches that are there.
    pub metadata: u64,
}

/// The earlier content of a replaced or conflicting id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Previous {
    /// How alike the old and the new content are.
    pub similarity: Similarity,
    /// When that content was first stored under the id.
    pub first_seen: TimestampMs,
}

/// The answer to "have we seen this, or nearly this?".
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What was found.
    pub kind: VerdictKind,
    /// What was done.
    pub outcome: Outcome,
    /// Whether this content is durably held under this id now.
    pub stored: bool,
    /// The id asked about, where one was given.
    pub id: Option<DocId>,
    /// The best match's id.
    pub duplicate_of: Option<DocId>,
    /// The best match's similarity.
    pub similarity: Option<f64>,
    /// The first-seen document of the cluster it was stored in; absent if it is that itself. If it was not stored, that of
    /// the cluster of its best match, if this is a link.
    pub representative: Option<DocId>,
    /// The threshold judged by.
    pub threshold: f64,
    /// Best first; at most the limit asked for.
    pub matches: Vec<Match>,
    /// How many more there would be if the answer had no bound.
    pub omitted_matches: u64,
    /// Distinct documents compared; those with equal signatures are compared as one.
    pub candidates: u32,
    /// Postings and candidates that a cap kept from being looked at: where there are any, one may be a match. A
    /// document may be counted once for each band.
    pub unread: u64,
    /// Shingles in the document, repeats counted; absent for a given signature.
    pub shingles: Option<u64>,
    /// The id's earlier content, where there is one and it differs.
    pub previous: Option<Previous>,
    /// Chance that a document exactly at a lowered threshold is proposed at all.
    pub expected_recall: Option<f64>,
}

/// What to do with a document that has a duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnDuplicate {
    /// Do not store it.
    #[default]
    Skip,
    /// Keep the id, pointing to the original, without postings.
    Link,
    /// Store and index it all the same.
    Store,
}

/// What to do when the id already holds other content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnExisting {
    /// Refuse.
    #[default]
    Conflict,
    /// Let the old content go, and store the new one unless it is empty or a duplicate that is to be skipped.
    Replace,
    /// Keep the old.
    Keep,
}

/// How a match is confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Verify {
    /// By equal slots of the signatures.
    #[default]
    Estimate,
    /// By the shingles themselves.
    Exact,
}

impl Verify {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Estimate, Self::Exact];

    /// The name on the wire and on disk.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Estimate => "estimate",
            Self::Exact => "exact",
        }
    }
}

/// What is kept of a document beside its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Keep {
    /// Nothing.
    #[default]
    Signature,
    /// The hashes of its shingles.
    Shingles,
    /// Its canonical text.
    Text,
}

impl Keep {
    /// All of them.
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

/// A stored document as clients see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Its id.
    pub id: DocId,
    /// Its place in the order.
    pub seq: Seq,
    /// Its metadata.
    pub metadata: Option<Metadata>,
    /// When this content was first stored under the id.
    pub first_seen: TimestampMs,
    /// When the id was first stored, with whatever content.
    pub id_first_seen: TimestampMs,
    /// When it was last seen; absent where documents stay for ever, and in pages.
    pub last_seen: Option<TimestampMs>,
    /// When it goes, if it is not seen again; absent likewise.
    pub expires: Option<TimestampMs>,
    /// Shingles, repeats counted; absent for a given signature.
    pub shingles: Option<u64>,
    /// The verdict at its insertion.
    pub verdict: VerdictKind,
    /// The original it was found to duplicate.
    pub duplicate_of: Option<DocId>,
    /// The first-seen document of its cluster; absent where it is that itself.
    pub representative: Option<DocId>,
    /// Whether it is a link without postings.
    pub linked: bool,
}
