//! Units -> headers and blocks of records, and the next record after damage. At most one record is in memory. If a
//! record is shorter than its header says, the bytes after the record are read again. Knows nothing of pages.

use std::io;

use memchr::memmem;

use crate::input::units::{UnitError, Units};

/// The beginning of the first line of a record.
pub(super) const RECORD: &[u8] = b"WARC/";
/// The length of the two line ends between two records.
const BLANK_BYTES: usize = 4;
/// The longest header of a record.
const HEADER_BYTES_MAX: usize = 64 << 10;
/// The beginning of a record, with the end of the blank line before it. A page may contain these bytes, so they count
/// as the beginning of a record only after damage.
const NEXT_RECORD: &[u8] = b"\nWARC/1.";
/// The length of `NEXT_RECORD` with the whole blank line.
const NEXT_RECORD_BYTES: usize = NEXT_RECORD.len() + 3;
/// The number of bytes after a block that show whether the block ends there.
const END_BYTES: usize = BLANK_BYTES + RECORD.len();
/// The number of bytes of a long block that are kept, because the length in its header may be wrong.
const INSIDE_BYTES_MAX: usize = 16 << 20;

/// The reason why reading a header or a block failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// The file cannot be read.
    Read(io::Error),
    /// The record is damaged. The next record may be intact.
    Damaged(String),
}

impl From<UnitError> for Fault {
    fn from(error: UnitError) -> Self {
        match error {
            UnitError::Read(error) => Self::Read(error),
            UnitError::Damaged(_) => Self::Damaged(error.to_string()),
        }
    }
}

/// The decompressed bytes of a WARC file.
pub(super) struct Stream {
    units: Units,
    /// Bytes that were read, but belong to the next records.
    back: Vec<u8>,
    /// The place in `back`.
    at: usize,
    /// Whether a record was damaged. If so, the next record must be looked for.
    lost: bool,
}

impl Stream {
    pub(super) fn new(units: Units) -> Self {
        Self { units, back: Vec::new(), at: 0, lost: false }
    }

    /// The number of bytes that were read from the file.
    pub(super) fn taken(&self) -> u64 {
        self.units.taken()
    }

    /// The offset of the next byte in the file; in a compressed file, the offset of its gzip member or zstd frame.
    pub(super) fn offset(&self) -> u64 {
        let ahead = if self.units.are_compressed() { 0 } else { (self.back.len() - self.at) as u64 };
        self.units.offset() - ahead
    }

    /// Goes to the beginning of the next record. Returns false at the end of the file. If nothing is damaged, there are
    /// only blank lines between two records.
    pub(super) fn next_record(&mut self) -> Result<bool, Fault> {
        loop {
            match self.look_for_record() {
                // The damaged record was already reported, and this is the same damage. The search continues in the
                // next unit.
                Err(Fault::Damaged(_)) if self.lost => {}
                found => return found,
            }
        }
    }

    fn look_for_record(&mut self) -> Result<bool, Fault> {
        loop {
            let lost = self.lost;
            let bytes = self.fill()?;
            if bytes.is_empty() {
                if !self.units.next(RECORD)? {
                    return Ok(false);
                }
                continue;
            }
            let blank = bytes.iter().take_while(|byte| b"\r\n".contains(byte)).count();
            if blank > 0 {
                self.consume(blank);
                continue;
            }
            if !lost || self.peek(RECORD.len())?.starts_with(RECORD) {
                self.lost = false;
                return Ok(true);
            }
            self.skip_line()?;
        }
    }

    /// Reads the lines up to the next blank line. If this fails, the next record must be looked for.
    pub(super) fn header(&mut self) -> Result<Vec<u8>, Fault> {
        self.lost = true;
        if !self.peek(RECORD.len())?.starts_with(RECORD) {
            return Err(Fault::Damaged("no record begins here".to_owned()));
        }
        let mut header = Vec::new();
        loop {
            let line = header.len();
            self.line(&mut header)?;
            if header[line..].trim_ascii().is_empty() {
                header.truncate(line);
                self.lost = false;
                return Ok(header);
            }
        }
    }

    /// Appends the next line, including its line end, to `header`.
    fn line(&mut self, header: &mut Vec<u8>) -> Result<(), Fault> {
        loop {
            let bytes = self.fill()?;
            if bytes.is_empty() {
                return Err(Fault::Damaged("the header of the record is cut off".to_owned()));
            }
            let end = memchr::memchr(b'\n', bytes);
            let taken = end.map_or(bytes.len(), |end| end + 1);
            if header.len() + taken > HEADER_BYTES_MAX {
                return Err(Fault::Damaged(format!("the header of the record has more than {HEADER_BYTES_MAX} bytes")));
            }
            header.extend_from_slice(&bytes[..taken]);
            self.consume(taken);
            if end.is_some() {
                return Ok(());
            }
        }
    }

    /// Returns the beginning of a block: `count` bytes, or fewer if the unit ends.
    pub(super) fn head(&mut self, count: usize) -> Result<&[u8], Fault> {
        self.lost = true;
        self.peek(count)
    }

    /// Marks the end of this record as unknown, so that the next record must be looked for.
    pub(super) fn lose(&mut self, reason: &str) -> Fault {
        self.lost = true;
        Fault::Damaged(reason.to_owned())
    }

    /// Reads the next `length` bytes into `block`. Fails if the record is shorter than `length`. If another record
    /// begins inside these bytes, the stream then continues with that record.
    pub(super) fn block(&mut self, length: usize, block: &mut Vec<u8>) -> Result<(), Fault> {
        block.clear();
        self.lost = true;
        // The bytes in `back` were read for an earlier record whose length was wrong. The length of this record may be
        // wrong too.
        if let Some(end) = next_record(self.given_back(length as u64)) {
            self.consume(end);
            return Err(shorter(length as u64, end as u64));
        }
        while block.len() < length {
            let missing = length - block.len();
            let bytes = self.fill()?;
            if bytes.is_empty() {
                if self.continues()? {
                    continue;
                }
                return Err(self.block_or(length, block, || cut_off(missing as u64, length as u64)));
            }
            let taken = bytes.len().min(missing);
            block.extend_from_slice(&bytes[..taken]);
            self.consume(taken);
        }
        self.end_of_record(length, block)
    }

    /// Skips a block that is too long to be kept. Bytes inside the block that look like the beginning of a record may
    /// be a part of a page. Therefore they count as the next record only if this block does not end where its header
    /// says.
    pub(super) fn skip(&mut self, length: u64) -> Result<(), Fault> {
        self.lost = true;
        let ends_well = self.ends_well(length);
        // As in `block`: the bytes in `back` were read for a record whose length was wrong.
        let is_suspect = ends_well == Some(false) || next_record(self.given_back(length)).is_some();
        let mut inside: Option<Inside> = None;
        let mut left = length;
        while left > 0 {
            let bytes = self.peek(NEXT_RECORD_BYTES)?;
            if bytes.is_empty() {
                if self.continues()? {
                    continue;
                }
                return Err(self.inside_or(inside, length, || cut_off(left, length)));
            }
            let within = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let taken = match &mut inside {
                Some(inside) => inside.keep(&bytes[..within]),
                None if ends_well == Some(true) => within,
                None => match next_record(bytes).filter(|&end| end < within) {
                    Some(end) => {
                        inside = Some(Inside::new(length - left + end as u64));
                        end
                    }
                    // The beginning of a record may lie across the end of these bytes.
                    None => within.min(bytes.len().saturating_sub(NEXT_RECORD_BYTES - 1).max(1)),
                },
            };
            left -= taken as u64;
            self.consume(taken);
            if let Some(inside) = inside.as_ref().filter(|_| is_suspect) {
                return Err(shorter(length, inside.end));
            }
        }
        if !self.is_end()? {
            return Err(self.inside_or(inside, length, || goes_on(length)));
        }
        self.end()
    }

    /// Returns whether the block that begins here ends where its header says. Returns `None` if this cannot be known
    /// before the block is read.
    fn ends_well(&self, length: u64) -> Option<bool> {
        // The last byte of the block is included: if it is missing, the file ends earlier.
        let bytes = self.units.ahead(self.offset().checked_add(length - 1)?, END_BYTES + 1)?;
        Some(bytes.split_first().is_some_and(|(_, bytes)| is_end(bytes)))
    }

    /// Goes back to the record that seems to begin inside a block, if the bytes of that record were kept.
    fn inside_or(&mut self, inside: Option<Inside>, length: u64, fault: impl FnOnce() -> Fault) -> Fault {
        let Some(Inside { end, kept: Some(mut kept) }) = inside else { return fault() };
        self.unread(&mut kept);
        shorter(length, end)
    }

    /// Checks the bytes after a block.
    fn end_of_record(&mut self, length: usize, block: &mut Vec<u8>) -> Result<(), Fault> {
        if !self.is_end()? {
            return Err(self.block_or(length, block, || goes_on(length as u64)));
        }
        self.end()
    }

    /// Whether a record may end here: before a blank line, or at the end of the unit.
    fn is_end(&mut self) -> Result<bool, Fault> {
        self.peek(END_BYTES).map(is_end)
    }

    /// Goes to the byte after the end of a record. If the unit ends here, the unit must be intact.
    fn end(&mut self) -> Result<(), Fault> {
        let blank = blank(self.peek(BLANK_BYTES)?);
        self.consume(blank);
        // The checksum of a gzip member or a zstd frame comes after its last byte, so this read verifies the checksum.
        self.fill()?;
        self.lost = false;
        Ok(())
    }

    /// Handles a record that does not end where its header says. If another record begins inside `block`, this record
    /// is shorter than its header says, so the stream goes back to the other record. Otherwise `fault` says why the end
    /// is wrong.
    fn block_or(&mut self, length: usize, block: &mut Vec<u8>, fault: impl FnOnce() -> Fault) -> Fault {
        let read = block.len();
        // The next record may begin inside the block and continue after its end.
        let more = self
            .peek(NEXT_RECORD_BYTES)
            .map_or(Vec::new(), |bytes| bytes[..bytes.len().min(NEXT_RECORD_BYTES)].to_vec());
        block.extend_from_slice(&more);
        let Some(end) = next_record(block) else {
            block.truncate(read);
            return fault();
        };
        self.consume(more.len());
        self.unread(block);
        self.consume(end);
        shorter(length as u64, end as u64)
    }

    /// Puts these bytes back. They are the last bytes that were consumed.
    fn unread(&mut self, bytes: &mut Vec<u8>) {
        // All of these bytes came from `back`, because the unit is read only if `back` is empty. Copying the rest of
        // `back` for each record that is too short would take quadratic time.
        if !self.back.is_empty() && bytes.len() <= self.at {
            self.at -= bytes.len();
            return;
        }
        bytes.extend_from_slice(&self.back[self.at..]);
        (self.back, self.at) = (std::mem::take(bytes), 0);
    }

    /// Goes to the next unit, and returns whether the record continues there. If the next unit begins with another
    /// record, the record does not continue.
    fn continues(&mut self) -> Result<bool, Fault> {
        Ok(self.units.next(RECORD)? && !self.units.peek(RECORD.len())?.starts_with(RECORD))
    }

    fn skip_line(&mut self) -> Result<(), Fault> {
        loop {
            let bytes = self.fill()?;
            let end = memchr::memchr(b'\n', bytes);
            let taken = end.map_or(bytes.len(), |end| end + 1);
            self.consume(taken);
            if end.is_some() || taken == 0 {
                return Ok(());
            }
        }
    }

    /// Returns the next bytes in `back`, at most `count`.
    fn given_back(&self, count: u64) -> &[u8] {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        &self.back[self.at..self.back.len().min(self.at.saturating_add(count))]
    }

    /// Returns the next bytes of the unit. The result is empty only at the end of the unit.
    fn fill(&mut self) -> Result<&[u8], Fault> {
        self.peek(1)
    }

    fn peek(&mut self, count: usize) -> Result<&[u8], Fault> {
        if self.at < self.back.len() && self.back.len() - self.at < count {
            // `back` has a few bytes left, and the other bytes are in the unit.
            let more = self.units.peek(count)?;
            let taken = more.len().min(count);
            let more = more[..taken].to_vec();
            self.back.extend_from_slice(&more);
            self.units.consume(taken);
        }
        if self.at < self.back.len() {
            return Ok(&self.back[self.at..]);
        }
        if !self.back.is_empty() {
            (self.back, self.at) = (Vec::new(), 0);
        }
        Ok(self.units.peek(count)?)
    }

    fn consume(&mut self, count: usize) {
        if self.at < self.back.len() {
            self.at += count;
        } else {
            self.units.consume(count);
        }
    }
}

/// A record that seems to begin inside a long block.
struct Inside {
    /// The number of bytes of the block before this record.
    end: u64,
    /// The bytes of the block from this record on; `None` if there are too many.
    kept: Option<Vec<u8>>,
}

impl Inside {
    fn new(end: u64) -> Self {
        Self { end, kept: Some(Vec::new()) }
    }

    /// Takes the next bytes of the block.
    fn keep(&mut self, bytes: &[u8]) -> usize {
        self.kept = self.kept.take().filter(|kept| kept.len() + bytes.len() <= INSIDE_BYTES_MAX);
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(bytes);
        }
        bytes.len()
    }
}

/// Returns the length of the line ends at the beginning of these bytes, at most [`BLANK_BYTES`].
fn blank(bytes: &[u8]) -> usize {
    bytes.iter().take(BLANK_BYTES).take_while(|byte| b"\r\n".contains(byte)).count()
}

/// Whether a record may end before these bytes. The next record may follow without a blank line.
fn is_end(bytes: &[u8]) -> bool {
    let blank = blank(bytes);
    let after = &bytes[blank..];
    after.is_empty() || blank == BLANK_BYTES || after.starts_with(RECORD)
}

fn cut_off(missing: u64, length: u64) -> Fault {
    Fault::Damaged(format!("the record is cut off: {missing} of {length} bytes are missing"))
}

fn goes_on(length: u64) -> Fault {
    Fault::Damaged(format!("the record continues after the {length} bytes that its Content-Length says"))
}

fn shorter(length: u64, end: u64) -> Fault {
    Fault::Damaged(format!("its Content-Length is {length}, but the next record begins after {end} bytes"))
}

/// Returns the first place in these bytes at which a record ends and another record begins.
fn next_record(bytes: &[u8]) -> Option<usize> {
    memmem::find_iter(bytes, NEXT_RECORD).find_map(|at| match &bytes[..at] {
        [before @ .., b'\r', b'\n', b'\r'] => Some(before.len()),
        [before @ .., b'\n'] => Some(before.len()),
        _ => None,
    })
}
