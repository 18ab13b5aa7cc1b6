//! The bytes of a file -> the same bytes, which can be read again. At least the last mebibyte that was read is kept.
//! In a damaged compressed file, the next intact part may begin before the place at which the decoder noticed the
//! damage. Knows nothing of compression.

use std::io::{self, BufRead, Read};

use memchr::memmem;

use super::buffered::read_buffered;

/// The least number of bytes that are kept before the present place.
const KEPT_BYTES: usize = 1 << 20;
/// The number of bytes that one read requests.
const READ_BYTES: usize = 1 << 17;

/// A reader that can go back.
pub(super) struct Rewinding {
    input: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// The present place in the buffer.
    at: usize,
    /// The offset of the buffer's first byte in the file.
    begin: u64,
    failed: bool,
}

impl Rewinding {
    pub(super) fn new(input: Box<dyn Read + Send>) -> Self {
        Self { input, buffer: Vec::new(), at: 0, begin: 0, failed: false }
    }

    /// The offset of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.begin + self.at as u64
    }

    /// The number of bytes that were read from the file.
    pub(super) fn taken(&self) -> u64 {
        self.begin + self.buffer.len() as u64
    }

    /// Whether the file itself could not be read. Other errors come from a decoder.
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Goes back to this offset. If the bytes at the offset are no longer kept, goes back to the first byte that is
    /// kept.
    pub(super) fn rewind(&mut self, offset: u64) {
        let at = usize::try_from(offset.saturating_sub(self.begin)).unwrap_or(usize::MAX);
        self.at = at.min(self.buffer.len());
    }

    /// Returns the next `count` bytes, or fewer at the end of the file. The place does not change.
    pub(super) fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        while self.buffer.len() - self.at < count && self.extend()? {}
        let end = self.buffer.len().min(self.at + count);
        Ok(&self.buffer[self.at..end])
    }

    /// Goes to the next place where these bytes begin, and returns true. If there is none, goes to the end of the file
    /// and returns false.
    pub(super) fn find(&mut self, bytes: &[u8]) -> io::Result<bool> {
        loop {
            if let Some(found) = memmem::find(&self.buffer[self.at..], bytes) {
                self.at += found;
                return Ok(true);
            }
            // The bytes may begin at the end of the buffer.
            self.at = self.at.max(self.buffer.len().saturating_sub(bytes.len() - 1));
            if !self.extend()? {
                self.at = self.buffer.len();
                return Ok(false);
            }
        }
    }

    /// Reads more. Returns false at the end of the file.
    fn extend(&mut self) -> io::Result<bool> {
        let old = self.at.saturating_sub(KEPT_BYTES);
        // The buffer is moved only if half of it can be dropped, so that each byte is moved once.
        if old >= KEPT_BYTES {
            self.buffer.drain(..old);
            self.begin += old as u64;
            self.at -= old;
        }
        let filled = self.buffer.len();
        self.buffer.resize(filled + READ_BYTES, 0);
        let read = loop {
            match self.input.read(&mut self.buffer[filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.buffer.truncate(filled + read.as_ref().map_or(0, |count| *count));
        self.failed |= read.is_err();
        read.map(|count| count > 0)
    }
}

impl BufRead for Rewinding {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.buffer.len() {
            self.extend()?;
        }
        Ok(&self.buffer[self.at..])
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
    }
}

impl Read for Rewinding {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_over_the_ends_of_reads_and_read_again() {
        let mut bytes = vec![b'.'; 3 * KEPT_BYTES];
        let places = [0, READ_BYTES - 2, 5 * READ_BYTES - 1, 3 * KEPT_BYTES - 4];
        for place in places {
            bytes[place..place + 4].copy_from_slice(b"here");
        }
        let mut reader = Rewinding::new(Box::new(io::Cursor::new(bytes)));
        for place in places {
            assert!(reader.find(b"here").unwrap());
            assert_eq!(reader.offset(), place as u64);
            reader.consume(1);
        }
        assert!(!reader.find(b"here").unwrap());
        let last = *places.last().unwrap() as u64;
        reader.rewind(last);
        assert_eq!(reader.offset(), last);
        assert_eq!(reader.peek(9).unwrap(), b"here");
        reader.rewind(0);
        assert!(reader.offset() > 0 && last - reader.offset() >= KEPT_BYTES as u64, "{}", reader.offset());
        assert_eq!(reader.taken(), 3 * KEPT_BYTES as u64);
    }
}
