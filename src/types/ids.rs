//! Ids and metadata of documents, and names of collections, as clients send them. Every value is valid, because the
//! constructors refuse invalid values.

use std::fmt;
use std::sync::Arc;

/// The longest id of a document, in bytes of UTF-8.
pub const ID_BYTES_MAX: usize = 2048;
/// The largest possible size of an id as JSON, in bytes.
pub const ID_JSON_BYTES_MAX: usize = 6 * ID_BYTES_MAX;
/// The longest metadata, in bytes of compact JSON.
pub const METADATA_BYTES_MAX: usize = 16 * 1024;

/// The id of a document, chosen by the client: 1 to [`ID_BYTES_MAX`] bytes of UTF-8, any characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocId(Arc<str>);

/// The reason why a text is not a valid id, metadata or collection name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    #[error("an id must not be empty")]
    IdEmpty,
    /// The id is longer than [`ID_BYTES_MAX`].
    #[error("an id must have at most {ID_BYTES_MAX} bytes of UTF-8, but this one has {bytes}")]
    IdTooLong {
        /// The length of the id.
        bytes: usize,
    },
    /// The metadata is longer than [`METADATA_BYTES_MAX`].
    #[error("metadata must have at most {METADATA_BYTES_MAX} bytes as compact JSON, but this has {bytes}")]
    MetadataTooLong {
        /// The length of the metadata.
        bytes: usize,
    },
    /// The name does not match the pattern.
    #[error("a collection name must be 1 to 64 of `a-z`, `0-9`, `-` and `_`, and begin with a letter or digit")]
    CollectionName,
}

impl DocId {
    /// Checks the length. Every character is allowed.
    pub fn new(text: impl Into<Arc<str>>) -> Result<Self, InvalidName> {
        let text = text.into();
        match text.len() {
            0 => Err(InvalidName::IdEmpty),
            bytes if bytes > ID_BYTES_MAX => Err(InvalidName::IdTooLong { bytes }),
            _ => Ok(Self(text)),
        }
    }

    /// Returns the id as the client sent it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the number of bytes of the id as JSON, without the quotes.
    pub fn json_bytes(&self) -> usize {
        json_bytes(self.as_str())
    }
}

/// Returns the largest possible size of a text as JSON, in bytes, without the quotes.
pub fn json_bytes(text: &str) -> usize {
    let bytes = |byte: u8| match byte {
        b'"' | b'\\' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(bytes).sum()
}

/// The metadata that a client stores with a document: the compact text of a JSON object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata(Arc<str>);

impl Metadata {
    /// Checks only the length. `json` must be the compact text of a JSON object.
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

    /// Returns whether the object has no keys. Such metadata is stored as absent.
    pub fn is_empty(&self) -> bool {
        &*self.0 == "{}"
    }
}

/// The name of a collection: `[a-z0-9][a-z0-9_-]{0,63}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CollectionName(Arc<str>);

impl CollectionName {
    /// The longest name, in bytes.
    pub const BYTES_MAX: usize = 64;

    pub fn new(text: &str) -> Result<Self, InvalidName> {
        let head = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let tail = |byte: u8| head(byte) || byte == b'_' || byte == b'-';
        let bytes = text.as_bytes();
        let fits =
            (1..=Self::BYTES_MAX).contains(&bytes.len()) && head(bytes[0]) && bytes.iter().all(|&byte| tail(byte));
        if fits { Ok(Self(text.into())) } else { Err(InvalidName::CollectionName) }
    }

    /// Returns the collection that always exists.
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
