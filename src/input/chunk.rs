//! Documents that are sent together, and the place that each of them came from.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::reason::Reason;
use super::table_header::TableHeader;

/// The largest number of documents in a chunk. It is well below the server's default limit of 20,000, because a chunk
/// is sent again if its connection is lost.
const DOCUMENTS_MAX: usize = 2_000;
/// The number of bytes at which a chunk is full. A longer document is a chunk of its own.
const BYTES_MAX: usize = 4 << 20;

/// The place that a document came from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The file as it was given; `-` is stdin.
    pub file: Arc<str>,
    /// The place in the file.
    pub place: Place,
}

/// A place in a file. The numbers of lines and of records begin with 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Line {
        number: u64,
        /// The byte at which the line begins, after decompression.
        offset: u64,
    },
    /// A row of a Parquet file. Rows begin with 0, as in the libraries that read such files.
    Row(u64),
    /// A record of a WARC file or of a table.
    Record {
        number: u64,
        /// The byte at which the record begins. In a compressed WARC file, it is the byte at which the gzip member or the
        /// zstd frame of the record begins; in a compressed table, it is counted after decompression.
        offset: u64,
    },
    /// The whole file.
    File,
}

impl Origin {
    /// The number of the line, the row or the record; 1 for a whole file.
    pub fn number(&self) -> u64 {
        match self.place {
            Place::File => 1,
            Place::Row(number) | Place::Line { number, .. } | Place::Record { number, .. } => number,
        }
    }

    /// The id of a document that has none: its file, and the number of its line, row or record. A document that is a
    /// whole file has no number.
    pub fn made_id(&self) -> String {
        if self.place == Place::File { self.file.to_string() } else { format!("{}:{}", self.file, self.number()) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Line { number, offset } => write!(f, "{}:{number} at byte {offset}", self.file),
            Place::Row(number) => write!(f, "{}, row {number}", self.file),
            Place::Record { number, offset } => write!(f, "{}, record {number} at byte {offset}", self.file),
            Place::File => f.write_str(&self.file),
        }
    }
}

/// Documents that are sent together.
#[derive(Clone, Debug, Default)]
pub struct Chunk {
    /// The documents in the form of the API, one in each line.
    pub lines: Vec<Vec<u8>>,
    /// The lines of the file that the documents came from, if `Wanted::originals` is set. The original of a row of a
    /// Parquet file is a JSON object with all columns. WARC files and text files have no originals.
    pub originals: Vec<Vec<u8>>,
    /// The header of the table that the originals are records of. An output needs it before the first of them.
    pub header: Option<Arc<TableHeader>>,
    /// The field `Wanted::also` of each record of a table and of each row of a Parquet file, in a line of JSON.
    pub ranked: Vec<Vec<u8>>,
    /// The place that each document came from.
    pub origins: Vec<Origin>,
    /// The lines and records from which no document was made, with the reasons.
    pub failures: Vec<(Origin, Reason)>,
    /// Records that have no page.
    pub skipped: u64,
    /// The number of bytes that these documents occupy in the file on disk.
    pub input_bytes: u64,
    /// The number of bytes of these documents after decompression. For records of a WARC file, this is the size of the
    /// documents that were made from the records.
    pub text_bytes: u64,
    bytes: usize,
}

impl Chunk {
    /// Returns a chunk with one document that did not come from a line of a file.
    pub fn single(origin: Origin, line: Vec<u8>) -> Self {
        let mut chunk = Self::default();
        chunk.push(origin, line, None);
        chunk
    }

    /// Returns an empty chunk, of a table if there is a header.
    pub(super) fn of_table(header: Option<Arc<TableHeader>>) -> Self {
        Self { header, ..Self::default() }
    }

    /// The part of the file that a document was made from, or the document itself if there is none.
    pub fn original(&self, at: usize) -> &[u8] {
        self.originals.get(at).unwrap_or(&self.lines[at])
    }

    /// A JSON object with all fields of a document: those of its line, its row or its record.
    pub fn object(&self, at: usize) -> Cow<'_, [u8]> {
        match (&self.header, self.originals.get(at)) {
            (Some(header), Some(record)) => Cow::Owned(header.object(record)),
            _ => Cow::Borrowed(self.original(at)),
        }
    }

    /// A line of JSON with the field [`Wanted::also`](super::Wanted::also) of a document, if the document has this field.
    pub fn ranked(&self, at: usize) -> &[u8] {
        match self.ranked.get(at) {
            Some(line) => line,
            // A record of a table is no JSON.
            None if self.header.is_some() => &self.lines[at],
            None => self.original(at),
        }
    }

    /// Adds the documents of another chunk if both have whole files, and if there is room. Otherwise returns the other
    /// chunk.
    pub fn join(&mut self, other: Self) -> Result<(), Box<Self>> {
        if !self.is_of_whole_files() || !other.is_of_whole_files() || self.is_full(other.bytes) {
            return Err(Box::new(other));
        }
        self.bytes += other.bytes;
        self.lines.extend(other.lines);
        self.origins.extend(other.origins);
        self.input_bytes += other.input_bytes;
        self.text_bytes += other.text_bytes;
        Ok(())
    }

    /// Whether each document is a whole file, as texts are, and none of them has failed.
    pub fn is_of_whole_files(&self) -> bool {
        !self.lines.is_empty()
            && self.failures.is_empty()
            && self.origins.iter().all(|origin| origin.place == Place::File)
    }

    /// Returns whether the chunk has no room for a document of `next` bytes. If its original line is stored too, `next`
    /// includes the bytes of that line.
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
