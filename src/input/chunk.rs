//! Documents that are sent together, with the places that they came from.

use std::fmt;
use std::sync::Arc;

use super::reason::Reason;

/// Documents of one chunk, well below the server's default limit of 20,000: if a connection is lost, its chunk is sent
/// again.
const DOCUMENTS_MAX: usize = 2_000;
/// Bytes at which a chunk is full. A longer document is a chunk of its own.
const BYTES_MAX: usize = 4 << 20;

/// The place that a document came from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The file as it was given; `-` is stdin.
    pub file: Arc<str>,
    /// The place in the file.
    pub place: Place,
}

/// A place in a file. Numbers begin with 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Line(u64),
    /// A record of a WARC file.
    Record {
        number: u64,
        /// The byte at which it begins; in a compressed file, that of its gzip member or zstd frame.
        offset: u64,
    },
}

impl Origin {
    /// The number of the line, or of the record.
    pub fn number(&self) -> u64 {
        match self.place {
            Place::Line(number) | Place::Record { number, .. } => number,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Line(number) => write!(f, "{}:{number}", self.file),
            Place::Record { number, offset } => write!(f, "{}, record {number} at byte {offset}", self.file),
        }
    }
}

/// Documents that are sent together.
#[derive(Clone, Debug, Default)]
pub struct Chunk {
    /// Documents in the form of the API, one a line.
    pub lines: Vec<Vec<u8>>,
    /// The lines of the file that they came from, if they were asked for and are lines of a file.
    pub originals: Vec<Vec<u8>>,
    /// The place that each document came from.
    pub origins: Vec<Origin>,
    /// Lines and records that are not documents, and the reasons.
    pub failures: Vec<(Origin, Reason)>,
    /// Records that have no page.
    pub skipped: u64,
    /// Bytes of the file that these documents take, as they are on disk.
    pub input_bytes: u64,
    /// The same, decompressed; for records, the bytes of the documents.
    pub text_bytes: u64,
    bytes: usize,
}

impl Chunk {
    /// Returns a chunk with one document, which is not a line of a file.
    pub fn single(origin: Origin, line: Vec<u8>) -> Self {
        let mut chunk = Self::default();
        chunk.push(origin, line, None);
        chunk
    }

    /// Whether there is no room for a document of `next` bytes, with its line in the file if that is kept too.
    pub(super) fn is_full(&self, next: usize) -> bool {
        !self.lines.is_empty() && (self.lines.len() >= DOCUMENTS_MAX || self.bytes + next > BYTES_MAX)
            || self.failures.len() >= DOCUMENTS_MAX
            || self.skipped >= DOCUMENTS_MAX as u64
    }

    pub(super) fn push(&mut self, origin: Origin, line: Vec<u8>, original: Option<Vec<u8>>) {
        self.bytes += line.len() + 1 + original.as_ref().map_or(0, Vec::len);
        self.originals.extend(original);
        self.lines.push(line);
        self.origins.push(origin);
    }
}
