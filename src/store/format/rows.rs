//! Writes and reads the rows of `signature` and `document`, with the checksum that covers every column of a row.
//! This file knows the meaning of the columns, but nothing about connections. If a checksum changes here, every stored
//! record looks damaged. Therefore the test `sums_are_frozen` pins the checksums.

use hapax_core::ContentHash;
use rusqlite::Row;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::columns::{
    DOCUMENT_SEED, Flaw, SIGNATURE_SEED, WRONG_SUM, WRONG_TYPE, bytes, integer, is_null, push_text, unsigned_byte, utf8,
};
use super::verdict;
use crate::store::record::{Head, Record, StoredVerdict};
use crate::types::{
    Capture, CaptureDate, DocId, Document, Labels, Metadata, PageMark, PayloadDigest, Seq, TimestampMs, content_prefix,
};

const LINKED: u8 = 1;
const GIVEN: u8 = 2;

/// The columns of `signature s`, in the order of [`SignatureRow::read`].
macro_rules! signature_columns {
    () => {
        "s.seq, s.id_fingerprint, s.content_prefix, s.flags, s.bytes, s.cluster, s.seen_ms, s.labels, s.sum"
    };
}
pub(in crate::store) use signature_columns;

/// The columns of `document d`, in the order of [`DocumentRow::read`].
macro_rules! document_columns {
    () => {
        "d.seq, d.id, d.metadata, d.content_hash, d.flags, d.first_seen_ms, d.shingles, d.verdict, d.id_first_seen_ms, \
         d.page_hash, d.extractor, d.capture_date, d.payload_digest, d.sum"
    };
}
pub(in crate::store) use document_columns;

/// The number of columns of `document`.
pub(in crate::store) const DOCUMENT_COLUMN_COUNT: usize = 14;

/// A row of `signature`: the part of a record that the index needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignatureRow<'a> {
    pub seq: Seq,
    /// A 64-bit hash of the id.
    pub id_fingerprint: u64,
    /// The upper 64 bits of the content hash; meaningless if `given`.
    pub content_prefix: u64,
    /// Whether the document is a link, which has no postings.
    pub linked: bool,
    /// Whether the client gave the signature.
    pub given: bool,
    /// The packed slots.
    pub bytes: &'a [u8],
    /// The cluster of the document; `Seq(0)` if the document is the founder.
    pub cluster: Seq,
    /// When the document was last seen. 0 in rows of format 1, which did not store this time.
    pub seen: TimestampMs,
    /// The text of the labels. Absent in rows of formats 1 to 4, which did not store labels.
    pub labels: Option<&'a str>,
}

impl<'a> SignatureRow<'a> {
    pub(in crate::store) fn of(record: &'a Record) -> Self {
        Self {
            seq: record.seq,
            id_fingerprint: record.id_fingerprint,
            content_prefix: content_prefix(record.content),
            linked: record.linked,
            given: record.given,
            bytes: &record.signature,
            cluster: record.cluster,
            seen: record.seen,
            labels: record.labels.as_ref().map(Labels::as_str),
        }
    }

    pub(in crate::store) fn flags(&self) -> u8 {
        flags(self.linked, self.given)
    }

    pub(in crate::store) fn labels(&self) -> Result<Option<Labels>, Flaw> {
        self.labels.map(Labels::parse).transpose().map_err(|_| "its labels cannot be read")
    }

    pub(in crate::store) fn sum(&self, buffer: &mut Vec<u8>) -> u64 {
        buffer.clear();
        buffer.extend_from_slice(&self.seq.0.to_le_bytes());
        buffer.extend_from_slice(&self.id_fingerprint.to_le_bytes());
        buffer.extend_from_slice(&self.content_prefix.to_le_bytes());
        buffer.push(self.flags());
        buffer.extend_from_slice(self.bytes);
        // Rows of format 1 have neither a cluster nor a last-seen time, and their checksum does not cover them.
        if (self.cluster, self.seen) != (Seq(0), TimestampMs(0)) {
            buffer.extend_from_slice(&self.cluster.0.to_le_bytes());
            buffer.extend_from_slice(&self.seen.0.to_le_bytes());
        }
        if let Some(labels) = self.labels {
            push_text(buffer, Some(labels.as_bytes()));
        }
        xxh3_64_with_seed(buffer, SIGNATURE_SEED)
    }

    /// Reads the row that starts at column `first`, verifies it, and returns it with its checksum.
    pub(in crate::store) fn read(row: &'a Row<'_>, first: usize, buffer: &mut Vec<u8>) -> Result<(Self, u64), Flaw> {
        let flags = unsigned_byte(row, first + 3)?;
        let this = Self {
            seq: Seq(integer(row, first)? as u64),
            id_fingerprint: integer(row, first + 1)? as u64,
            content_prefix: integer(row, first + 2)? as u64,
            linked: flags & LINKED != 0,
            given: flags & GIVEN != 0,
            bytes: bytes(row, first + 4)?,
            cluster: Seq(integer(row, first + 5)? as u64),
            seen: TimestampMs(integer(row, first + 6)?),
            labels: if is_null(row, first + 7)? { None } else { Some(utf8(bytes(row, first + 7)?)?) },
        };
        let sum = integer(row, first + 8)? as u64;
        if this.flags() == flags && this.sum(buffer) == sum { Ok((this, sum)) } else { Err(WRONG_SUM) }
    }
}

/// A row of `document`, borrowed.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct DocumentRow<'a> {
    pub(in crate::store) seq: Seq,
    pub(in crate::store) id: &'a [u8],
    pub(in crate::store) metadata: Option<&'a [u8]>,
    pub(in crate::store) content: [u8; 16],
    pub(in crate::store) flags: u8,
    pub(in crate::store) first_seen_ms: i64,
    pub(in crate::store) shingles: Option<u64>,
    pub(in crate::store) verdict: &'a [u8],
    /// Absent if the id was first stored with this content, as in all rows of formats 1 and 2.
    pub(in crate::store) id_first_seen_ms: Option<i64>,
    /// Absent if the text did not come from a page, as in all rows of formats 1 to 4.
    pub(in crate::store) page: Option<PageMark>,
    /// Absent if the client gave none, as in all rows of formats 1 to 4.
    pub(in crate::store) capture_date: Option<&'a [u8]>,
    /// Absent in the same cases as `capture_date`.
    pub(in crate::store) payload_digest: Option<&'a [u8]>,
}

impl<'a> DocumentRow<'a> {
    pub(in crate::store) fn of(record: &'a Record, verdict: &'a str) -> Self {
        Self {
            seq: record.seq,
            id: record.id.as_str().as_bytes(),
            metadata: record.metadata.as_ref().map(|metadata| metadata.as_str().as_bytes()),
            content: record.content.0.to_be_bytes(),
            flags: flags(record.linked, record.given),
            first_seen_ms: record.first_seen.0,
            shingles: record.shingles,
            verdict: verdict.as_bytes(),
            id_first_seen_ms: (record.id_first_seen != record.first_seen).then_some(record.id_first_seen.0),
            page: record.page,
            capture_date: None,
            payload_digest: None,
        }
        .with_capture(&record.capture)
    }

    /// Returns the same row with this capture.
    pub(in crate::store) fn with_capture(self, capture: &'a Capture) -> Self {
        let Capture { date, digest } = capture;
        Self {
            capture_date: date.as_ref().map(|date| date.as_str().as_bytes()),
            payload_digest: digest.as_ref().map(|digest| digest.as_str().as_bytes()),
            ..self
        }
    }

    pub(in crate::store) fn sum(&self, buffer: &mut Vec<u8>) -> u64 {
        buffer.clear();
        buffer.extend_from_slice(&self.seq.0.to_le_bytes());
        buffer.extend_from_slice(&self.first_seen_ms.to_le_bytes());
        buffer.extend_from_slice(&self.content);
        buffer.push(self.flags);
        match self.shingles {
            None => buffer.push(0),
            Some(shingles) => {
                buffer.push(1);
                buffer.extend_from_slice(&shingles.to_le_bytes());
            }
        }
        push_text(buffer, Some(self.id));
        push_text(buffer, self.metadata);
        push_text(buffer, Some(self.verdict));
        if let Some(id_first_seen_ms) = self.id_first_seen_ms {
            buffer.extend_from_slice(&id_first_seen_ms.to_le_bytes());
        }
        if let Some(PageMark { hash, extractor }) = self.page {
            // The tag is needed because the time before it may be absent.
            buffer.push(1);
            buffer.extend_from_slice(&hash.to_be_bytes());
            buffer.extend_from_slice(&extractor.to_le_bytes());
        }
        for (tag, text) in [(2, self.capture_date), (3, self.payload_digest)] {
            if text.is_some() {
                buffer.push(tag);
                push_text(buffer, text);
            }
        }
        xxh3_64_with_seed(buffer, DOCUMENT_SEED)
    }

    /// Returns the same row without the mark of a link.
    pub(in crate::store) fn unlinked(self) -> Self {
        Self { flags: self.flags & !LINKED, ..self }
    }

    /// Reads the row that starts at column `first` and verifies it.
    pub(in crate::store) fn read(row: &'a Row<'_>, first: usize, buffer: &mut Vec<u8>) -> Result<Self, Flaw> {
        Self::read_summed(row, first, buffer).map(|(this, _)| this)
    }

    /// Like [`read`](Self::read), but also returns the checksum.
    pub(in crate::store) fn read_summed(
        row: &'a Row<'_>,
        first: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<(Self, u64), Flaw> {
        let this = Self {
            seq: Seq(integer(row, first)? as u64),
            id: bytes(row, first + 1)?,
            metadata: if is_null(row, first + 2)? { None } else { Some(bytes(row, first + 2)?) },
            content: bytes(row, first + 3)?.try_into().map_err(|_| WRONG_TYPE)?,
            flags: unsigned_byte(row, first + 4)?,
            first_seen_ms: integer(row, first + 5)?,
            shingles: if is_null(row, first + 6)? { None } else { Some(integer(row, first + 6)? as u64) },
            verdict: bytes(row, first + 7)?,
            id_first_seen_ms: if is_null(row, first + 8)? { None } else { Some(integer(row, first + 8)?) },
            page: page_mark(row, first + 9)?,
            capture_date: if is_null(row, first + 11)? { None } else { Some(bytes(row, first + 11)?) },
            payload_digest: if is_null(row, first + 12)? { None } else { Some(bytes(row, first + 12)?) },
        };
        let sum = integer(row, first + 13)? as u64;
        if this.sum(buffer) == sum { Ok((this, sum)) } else { Err(WRONG_SUM) }
    }

    /// Checks that all parts can be read. `readable` is a verdict that is known to be readable, or empty. If the verdict
    /// of this row can be read, it is stored there.
    pub(in crate::store) fn check(&self, readable: &mut Vec<u8>) -> Result<(), Flaw> {
        if readable.is_empty() || readable != self.verdict {
            self.verdict()?;
            readable.clear();
            readable.extend_from_slice(self.verdict);
        }
        self.id()?;
        self.metadata()?;
        self.capture().map(drop)
    }

    pub(in crate::store) fn head(&self, with_metadata: bool) -> Result<Head, Flaw> {
        self.head_within(&mut if with_metadata { Some(usize::MAX) } else { None }, false)
    }

    /// Includes the metadata if it is requested and fits into the remaining `metadata_bytes`. Subtracts its length from
    /// the remaining bytes. If the metadata does not fit, sets the remaining bytes to 0.
    pub(in crate::store) fn head_within(
        &self,
        metadata_bytes: &mut Option<usize>,
        with_capture: bool,
    ) -> Result<Head, Flaw> {
        let (mut metadata, mut metadata_left) = (None, false);
        if let (Some(left), Some(json)) = (metadata_bytes, self.metadata) {
            match left.checked_sub(json.len()) {
                Some(rest) => (*left, metadata) = (rest, self.metadata()?),
                None => (*left, metadata_left) = (0, true),
            }
        }
        Ok(Head {
            seq: self.seq,
            id: self.id()?,
            metadata,
            metadata_left,
            capture: if with_capture { self.capture()? } else { Capture::default() },
            content: self.content(),
            given: self.given(),
            linked: self.linked(),
            first_seen: TimestampMs(self.first_seen_ms),
            shingles: self.shingles,
        })
    }

    /// Returns the document without its labels and its representative, which are not in this row.
    pub(in crate::store) fn document(&self) -> Result<Document, Flaw> {
        let verdict = self.verdict()?;
        Ok(Document {
            id: self.id()?,
            seq: self.seq,
            metadata: self.metadata()?,
            labels: None,
            capture: self.capture()?,
            first_seen: TimestampMs(self.first_seen_ms),
            id_first_seen: self.id_first_seen(),
            last_seen: None,
            expires: None,
            shingles: self.shingles,
            verdict: verdict.kind,
            duplicate_of: verdict.duplicate_of,
            representative: None,
            linked: self.linked(),
        })
    }

    pub(in crate::store) fn record(&self, signature: &SignatureRow<'_>) -> Result<Record, Flaw> {
        Ok(Record {
            seq: self.seq,
            id: self.id()?,
            id_fingerprint: signature.id_fingerprint,
            signature: signature.bytes.to_vec(),
            content: self.content(),
            given: self.given(),
            linked: self.linked(),
            metadata: self.metadata()?,
            labels: signature.labels()?,
            capture: self.capture()?,
            first_seen: TimestampMs(self.first_seen_ms),
            id_first_seen: self.id_first_seen(),
            seen: signature.seen,
            cluster: signature.cluster,
            shingles: self.shingles,
            page: self.page,
            verdict: self.verdict()?,
            payload: None,
        })
    }

    fn id(&self) -> Result<DocId, Flaw> {
        DocId::new(utf8(self.id)?).map_err(|_| "its id is invalid")
    }

    fn metadata(&self) -> Result<Option<Metadata>, Flaw> {
        let Some(json) = self.metadata else { return Ok(None) };
        Metadata::new(utf8(json)?).map(Some).map_err(|_| "its metadata is too long")
    }

    fn capture(&self) -> Result<Capture, Flaw> {
        let date = |date| CaptureDate::new(utf8(date)?).map_err(|_| "the date of its capture is invalid");
        let digest = |digest| PayloadDigest::new(utf8(digest)?).map_err(|_| "the digest of its payload is invalid");
        Ok(Capture {
            date: self.capture_date.map(date).transpose()?,
            digest: self.payload_digest.map(digest).transpose()?,
        })
    }

    fn verdict(&self) -> Result<StoredVerdict, Flaw> {
        verdict::from_json(self.verdict).ok_or("its verdict cannot be read")
    }

    fn id_first_seen(&self) -> TimestampMs {
        TimestampMs(self.id_first_seen_ms.unwrap_or(self.first_seen_ms))
    }

    pub(in crate::store) fn content(&self) -> ContentHash {
        ContentHash(u128::from_be_bytes(self.content))
    }

    fn linked(&self) -> bool {
        self.flags & LINKED != 0
    }

    pub(in crate::store) fn given(&self) -> bool {
        self.flags & GIVEN != 0
    }
}

/// Reads the hash of a page, and the version of the extractor after it. Either both are present or both are absent.
fn page_mark(row: &Row<'_>, first: usize) -> Result<Option<PageMark>, Flaw> {
    match (is_null(row, first)?, is_null(row, first + 1)?) {
        (true, true) => Ok(None),
        (false, false) => {
            let hash: [u8; 16] = bytes(row, first)?.try_into().map_err(|_| WRONG_TYPE)?;
            let extractor = u32::try_from(integer(row, first + 1)?).map_err(|_| WRONG_TYPE)?;
            Ok(Some(PageMark { hash: u128::from_be_bytes(hash), extractor }))
        }
        _ => Err(WRONG_TYPE),
    }
}

/// Whether the flags of a row say that the client gave only a signature.
pub(in crate::store) fn is_given(flags: u8) -> bool {
    flags & GIVEN != 0
}

fn flags(linked: bool, given: bool) -> u8 {
    (if linked { LINKED } else { 0 }) | (if given { GIVEN } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_is_checked_unless_it_is_the_last_one_that_could_be_read() {
        let verdict = r#"{"verdict":"unique","threshold":0.8,"candidates":0,"complete":true}"#;
        let row = |verdict: &'static str| DocumentRow {
            seq: Seq(1),
            id: b"a",
            metadata: None,
            content: [0; 16],
            flags: 0,
            first_seen_ms: 0,
            shingles: None,
            verdict: verdict.as_bytes(),
            id_first_seen_ms: None,
            page: None,
            capture_date: None,
            payload_digest: None,
        };
        let mut readable = Vec::new();
        for (verdict, is_sound) in [("", false), (verdict, true), (verdict, true), ("{}", false), ("", false)] {
            assert_eq!(row(verdict).check(&mut readable).is_ok(), is_sound, "{verdict:?}");
        }
        assert_eq!(readable, verdict.as_bytes());
    }
}
