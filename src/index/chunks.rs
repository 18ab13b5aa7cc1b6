//! Numbered rows of cells, in chunks that never move. A row can therefore be read without a lock while other rows are
//! added. Each chunk is twice as large as the one before. The system provides zeroed chunks, so pages that were never
//! written to take no memory.

use super::ahead;
use super::sync::{AtomicU64, OnceLock, zeroed};

/// The number of rows in the first chunk.
const FIRST_ROWS: u64 = 64;
const CHUNKS: usize = 25;
/// The maximum number of rows. It is a little less than 2^31, so that the highest bit of a row's number is free for
/// other uses.
pub(super) const ROWS_MAX: u64 = FIRST_ROWS * ((1 << CHUNKS) - 1);
/// The bytes of a cache line.
pub(super) const LINE_BYTES: usize = 64;

/// Rows of a fixed number of 64-bit cells.
pub(super) struct Chunks {
    cells_per_row: usize,
    chunks: [OnceLock<Chunk>; CHUNKS],
}

struct Chunk {
    cells: Box<[AtomicU64]>,
    /// The index of the first cell that is at the beginning of a cache line.
    first: usize,
}

impl Chunks {
    pub(super) fn new(cells_per_row: usize) -> Self {
        Self { cells_per_row, chunks: std::array::from_fn(|_| OnceLock::new()) }
    }

    /// Returns a row, and allocates its chunk if necessary. A row is zeroed until it is written to.
    pub(super) fn make(&self, row: u32) -> &[AtomicU64] {
        let (level, offset) = locate(row);
        let chunk = self.chunks[level].get_or_init(|| {
            const SPARE: usize = LINE_BYTES / size_of::<u64>() - 1;
            let cells = zeroed(((FIRST_ROWS as usize) << level) * self.cells_per_row + SPARE);
            let first = cells.as_ptr().align_offset(LINE_BYTES).min(SPARE);
            Chunk { cells, first }
        });
        let row = self.row_of(chunk, offset);
        let end = chunk.cells.as_ptr_range().end.addr();
        ahead::used(row.as_ptr().addr(), size_of_val(row), end);
        row
    }

    /// Returns a row; `None` if its chunk has not been allocated.
    #[inline]
    pub(super) fn row(&self, row: u32) -> Option<&[AtomicU64]> {
        let (level, offset) = locate(row);
        Some(self.row_of(self.chunks.get(level)?.get()?, offset))
    }

    #[inline]
    fn row_of<'a>(&self, chunk: &'a Chunk, offset: usize) -> &'a [AtomicU64] {
        &chunk.cells[chunk.first + offset * self.cells_per_row..][..self.cells_per_row]
    }
}

#[inline]
fn locate(row: u32) -> (usize, usize) {
    let position = u64::from(row) + FIRST_ROWS;
    let level = (position.ilog2() - FIRST_ROWS.ilog2()) as usize;
    (level, (position - (FIRST_ROWS << level)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_map_to_chunks_without_gaps() {
        let mut expected = (0, 0);
        for row in 0..1_000_000 {
            assert_eq!(locate(row), expected, "row {row}");
            expected.1 += 1;
            if expected.1 == (FIRST_ROWS as usize) << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        assert_eq!(locate(ROWS_MAX as u32 - 1).0, CHUNKS - 1);
    }
}
