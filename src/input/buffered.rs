//! The `read` of a reader that has a buffer.

use std::io::{self, BufRead, Read as _};

/// Copies bytes from the buffer of a reader.
pub(super) fn read_buffered(reader: &mut impl BufRead, buffer: &mut [u8]) -> io::Result<usize> {
    let mut available = reader.fill_buf()?;
    let count = available.read(buffer)?;
    reader.consume(count);
    Ok(count)
}
