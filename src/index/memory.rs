//! What documents take of the index, in bytes, for the memory budget.
//!
//! What the index has taken from the system it keeps for documents to come, so a delete makes no process smaller. What
//! counts here is what documents hold of it, so that a delete makes just the room for another: places in use, and for
//! each posting and id its part of a table as it is after growing. So nothing has to grow past the budget later, and if
//! nothing was deleted the index is at most that large, except for a page of 4 KiB a table and collection.

/// Tenths of a byte that a posting or an id takes in tables that have just grown, to 59 % on average: 64 bytes hold twelve
/// at most. That is on the safe side: on the whole they are at three quarters.
const ENTRY_BYTES_TENTHS: u64 = 91;
/// Percent to which a table may grow at once, from 93 % full to 52 %, rounded up.
const GROWN_PERCENT: u64 = 179;

/// Bytes of the index by part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexBytes {
    /// Signatures, and what else is known of each document.
    pub signatures: u64,
    /// Postings of all bandings.
    pub postings: u64,
    /// The table of ids.
    pub ids: u64,
    pub last_seen: u64,
}

/// What a part takes in memory.
#[derive(Clone, Copy)]
pub(super) struct PartBytes {
    /// Bytes of one row without its last-seen time.
    pub row_bytes: u64,
    /// Bytes of one last-seen time; 0 if they are not kept.
    pub last_seen_bytes: u64,
    /// Bytes of all tables.
    pub table_bytes: u64,
    /// Bands of the present banding, and of the next or 0.
    pub bands: [u32; 2],
}

/// What documents hold, by the bytes of the index and how many places of it are in use.
pub(super) struct Holding {
    pub part: PartBytes,
    /// Bytes of the table of ids.
    pub id_bytes: u64,
    pub documents: u64,
    /// Whether there are places that are not in use.
    pub any_empty: bool,
}

impl Holding {
    /// What the documents hold.
    pub(super) fn claim(&self) -> u64 {
        let held = self.part.table_bytes + self.id_bytes;
        // Links have no postings, and documents with equal signatures share theirs.
        let tables = self.grown_bytes(self.documents).min(held * GROWN_PERCENT / 100);
        // They take whole pages, which tells where entries are few.
        let tables = if self.any_empty { tables } else { tables.max(held) };
        self.documents * self.row_bytes() + tables
    }

    /// What one document more takes at most.
    pub(super) fn claim_of_one(&self) -> u64 {
        self.row_bytes() + self.grown_bytes(1)
    }

    fn row_bytes(&self) -> u64 {
        self.part.row_bytes + self.part.last_seen_bytes
    }

    /// What the postings and ids of so many documents take in tables that have just grown.
    fn grown_bytes(&self, documents: u64) -> u64 {
        // A posting a band, and one in the table of signatures.
        let postings: u64 = self.part.bands.iter().filter(|&&bands| bands > 0).map(|&bands| u64::from(bands) + 1).sum();
        let ids = 1;
        documents * (postings + ids) * ENTRY_BYTES_TENTHS / 10
    }
}
