//! The bytes of the index that documents take, for the memory budget.
//!
//! The index does not return memory to the system. It reuses the memory for later documents, so a delete does not make
//! the process smaller. This file counts the share of that memory that documents use: their places, and the memory that
//! each posting and id takes in a table that has just grown. A delete therefore makes room for another document, and
//! the index does not exceed the budget later. If nothing was deleted, the index is at most as large as this count,
//! except for a page of 4 KiB per table and collection.

/// The size of a posting or an id in tables that have just grown, in tenths of a byte. Such tables are 59 % full on
/// average, and 64 bytes hold twelve entries at most. This is on the safe side: at other times, tables are fuller, on
/// average three quarters full.
pub(super) const ENTRY_BYTES_TENTHS: u64 = 91;
/// A table may grow to this percentage of its size at once: from 91 % full to 52 % full, rounded up.
const GROWN_PERCENT: u64 = 175;

/// The bytes of the index by part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexBytes {
    /// Signatures, and the other facts about each document.
    pub signatures: u64,
    /// Postings of all bandings.
    pub postings: u64,
    /// The table of ids.
    pub ids: u64,
    pub last_seen: u64,
    pub labels: u64,
}

/// The memory that a part takes.
#[derive(Clone, Copy)]
pub(super) struct PartBytes {
    /// The bytes of one row without its last-seen time.
    pub row_bytes: u64,
    /// The bytes of one last-seen time; 0 if last-seen times are not kept.
    pub last_seen_bytes: u64,
    /// The bytes of the labels of one row; 0 if no document has had labels.
    pub labels_bytes: u64,
    /// The bytes of all tables.
    pub table_bytes: u64,
    /// The number of bands of the present banding, and of the next one; 0 if there is no next banding.
    pub bands: [u32; 2],
}

/// The facts from which the memory of the documents is computed.
pub(super) struct Holding {
    pub part: PartBytes,
    /// The bytes of the table of ids.
    pub id_bytes: u64,
    /// The bytes of the sets of labels.
    pub label_bytes: u64,
    pub documents: u64,
    /// Whether there are places that are not in use.
    pub any_empty: bool,
}

impl Holding {
    /// Returns the bytes that the documents take.
    pub(super) fn claim(&self) -> u64 {
        let held = self.part.table_bytes + self.id_bytes;
        // Tables may be smaller than the estimate: links have no postings, and documents with equal signatures share
        // theirs.
        let tables = self.grown_bytes(self.documents).min(held * GROWN_PERCENT / 100);
        // Tables take whole pages, which matters if there are few entries.
        let tables = if self.any_empty { tables } else { tables.max(held) };
        self.documents * self.row_bytes() + tables + self.label_bytes
    }

    /// Estimates the bytes that another banding takes while it is built. Assumes that the number of documents without
    /// postings is the same as in the present banding.
    pub(super) fn claim_of_banding(&self, bands: u32) -> u64 {
        // The number of present tables, including the table of signatures.
        let present = u64::from(self.part.bands[0]) + 1;
        self.part.table_bytes * GROWN_PERCENT / 100 / present * u64::from(bands)
    }

    /// Returns the maximum number of bytes that one more document takes.
    pub(super) fn claim_of_one(&self) -> u64 {
        self.row_bytes() + self.grown_bytes(1)
    }

    fn row_bytes(&self) -> u64 {
        self.part.row_bytes + self.part.last_seen_bytes + self.part.labels_bytes
    }

    /// Returns the bytes that the postings and ids of `documents` take in tables that have just grown.
    fn grown_bytes(&self, documents: u64) -> u64 {
        // One posting per band, and one in the table of signatures.
        let postings: u64 = self.part.bands.iter().filter(|&&bands| bands > 0).map(|&bands| u64::from(bands) + 1).sum();
        let ids = 1;
        documents * (postings + ids) * ENTRY_BYTES_TENTHS / 10
    }
}
