//! Reads the pages of a Parquet file into buffers that are used again. Otherwise, the allocator would return each large
//! buffer to the system at once, and the system would clear the memory of each new buffer. Clearing the memory takes
//! longer than reading the page.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::mem;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// The most unused buffers that are kept. A file can have eighteen columns, but most files have few.
const KEPT_MAX: usize = 8;
/// A larger buffer is not kept. Libraries write pages of about one MiB.
const KEPT_BYTES_MAX: usize = 2 << 20;

/// A Parquet file. Several threads may read from copies of it at the same time: the place in the file is never used.
#[derive(Clone)]
pub(crate) struct PageSource {
    file: Arc<File>,
    free: Buffers,
}

/// The bytes of a file from an offset on.
pub(crate) struct FromOffset {
    file: Arc<File>,
    offset: u64,
}

impl Read for FromOffset {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// Buffers that are not in use.
#[derive(Clone, Default)]
struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

impl PageSource {
    pub(super) fn new(file: File) -> Self {
        Self { file: Arc::new(file), free: Buffers::default() }
    }

    /// Frees the memory of the buffers that are not in use.
    pub(super) fn free_buffers(&self) {
        self.free.0.lock().clear();
    }
}

impl Length for PageSource {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for PageSource {
    type T = BufReader<FromOffset>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(FromOffset { file: Arc::clone(&self.file), offset: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // A length in the file may be wrong, so it must not decide how much memory is taken.
        let end = start.saturating_add(length as u64);
        if end > self.len() {
            return Err(ParquetError::EOF(format!("a page ends at {end}, but the file has {} bytes", self.len())));
        }
        let mut bytes = self.free.0.lock().pop().unwrap_or_default();
        bytes.clear();
        bytes.reserve_exact(length);
        let file = FromOffset { file: Arc::clone(&self.file), offset: start };
        let read = file.take(length as u64).read_to_end(&mut bytes)?;
        if read != length {
            return Err(ParquetError::EOF(format!("a page has {length} bytes, but only {read} could be read")));
        }
        Ok(Bytes::from_owner(Page { bytes, free: self.free.clone() }))
    }
}

/// The bytes of a page. When the page is dropped, its buffer is kept for another page.
struct Page {
    bytes: Vec<u8>,
    free: Buffers,
}

impl AsRef<[u8]> for Page {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let mut free = self.free.0.lock();
        if free.len() < KEPT_MAX && self.bytes.capacity() <= KEPT_BYTES_MAX {
            free.push(mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn source(bytes: &[u8]) -> PageSource {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        PageSource::new(file)
    }

    #[test]
    fn buffers_are_used_again_and_hold_what_was_asked() {
        let source = source(b"0123456789");
        let first = source.get_bytes(2, 5).unwrap();
        let second = source.get_bytes(0, 3).unwrap();
        assert_eq!((&first[..], &second[..]), (&b"23456"[..], &b"012"[..]));
        let part = first.slice(1..3);
        drop(first);
        assert!(source.free.0.lock().is_empty(), "a part of the page is still in use");
        drop((part, second));
        assert_eq!(source.free.0.lock().len(), 2);
        assert_eq!(&source.get_bytes(4, 6).unwrap()[..], b"456789");
        assert_eq!(source.free.0.lock().len(), 2);
    }

    #[test]
    fn few_buffers_are_kept_and_no_large_ones() {
        let source = source(&vec![7; KEPT_BYTES_MAX + 1]);
        drop((0..KEPT_MAX + 3).map(|_| source.get_bytes(0, 100).unwrap()).collect::<Vec<_>>());
        assert_eq!(source.free.0.lock().len(), KEPT_MAX);
        source.free.0.lock().clear();
        drop(source.get_bytes(0, KEPT_BYTES_MAX + 1).unwrap());
        assert!(source.free.0.lock().is_empty());
    }

    #[test]
    fn a_page_behind_the_end_of_the_file_is_an_error() {
        assert!(source(b"0123456789").get_bytes(8, 3).is_err());
    }
}
