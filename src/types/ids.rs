//! What clients name things by: ids, metadata, collections' names. Valid by construction.

use std::fmt;
use std::sync::Arc;

/// Longest document id, in bytes of UTF-8.
pub const ID_BYTES_MAX: usize = 2048;
/// Most bytes of an id in JSON.
pub const ID_JSON_BYTES_MAX: usize = 6 * ID_BYTES_MAX;
/// Longest metadata, in bytes of compact JSON.
pub const METADATA_BYTES_MAX: usize = 16 * 1024;

/// A document's name, chosen by the client: 1 to [`ID_BYTES_MAX`] bytes of UTF-8, any characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocId(Arc<str>);

/// Why a text is not an id, a metadata or a collection name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
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

    /// Bytes of it in JSON, without the quotes.
    pub fn json_bytes(&self) -> usize {
        let bytes = |byte: u8| match byte {
            b'"' | b'\\' => 2,
            0..0x20 => 6,
            _ => 1,
        };
        self.as_str().bytes().map(bytes).sum()
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
