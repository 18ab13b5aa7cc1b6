//! Units -> headers and blocks of records, and the next record after damage. It remembers no more than one record, and
//! gives bytes back if a record was shorter than its header says. Knows nothing of pages.

use std::io;

use memchr::memmem;

use crate::input::units::{UnitError, Units};

/// The beginning of the first line of a record.
pub(super) const RECORD: &[u8] = b"WARC/";
/// The length of the two line ends between two records.
const BLANK_BYTES: usize = 4;
/// The longest header of a record.
const HEADER_BYTES_MAX: usize = 64 << 10;
/// The beginning of a record, with the end of the blank line before it. A page may contain it, so it is looked for only
/// after damage.
const NEXT_RECORD: &[u8] = b"\nWARC/1.";
/// The length of that with the whole blank line.
const NEXT_RECORD_BYTES: usize = NEXT_RECORD.len() + 3;

/// How reading a header or a block ended, other than well.
#[derive(Debug)]
pub(super) enum Fault {
    /// The file cannot be read.
    Read(io::Error),
    /// The record is damaged. The next one may be intact.
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
    /// Bytes that were read, and belong to the next records.
    back: Vec<u8>,
    /// The place in `back`.
    at: usize,
    /// Whether a record was damaged, so that the next one must be looked for.
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

    /// The offset in the file of the next byte; in a compressed file, of its gzip member or zstd frame.
    pub(super) fn offset(&self) -> u64 {
        let ahead = if self.units.are_compressed() { 0 } else { (self.back.len() - self.at) as u64 };
        self.units.offset() - ahead
    }

    /// Goes to the beginning of the next record. Returns false at the end of the file. Without damage, there are only
    /// blank lines between two records.
    pub(super) fn next_record(&mut self) -> Result<bool, Fault> {
        loop {
            match self.look_for_record() {
                // The damaged record was reported, and this is the same damage. The next unit follows.
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

    /// Reads the lines up to the next blank one. If this fails, the next record must be looked for.
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

    /// Appends the next line, with its end.
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

    /// Makes the next record one that must be looked for, because the end of this one is unknown.
    pub(super) fn lose(&mut self, reason: &str) -> Fault {
        self.lost = true;
        Fault::Damaged(reason.to_owned())
    }

    /// Reads the next `length` bytes into `block`. If a record turns out to be shorter than that, it fails, and the next
    /// record is the one that begins inside.
    pub(super) fn block(&mut self, length: usize, block: &mut Vec<u8>) -> Result<(), Fault> {
        block.clear();
        self.lost = true;
        // These bytes were read for a longer record, whose length was wrong. So this one's may be wrong too.
        if let Some(end) = next_record(self.given_back(length)) {
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
                return Err(self.cut_off(length, block));
            }
            let taken = bytes.len().min(missing);
            block.extend_from_slice(&bytes[..taken]);
            self.consume(taken);
        }
        self.end_of_record(length, block)
    }

    /// Skips a block that is too long to be kept. If a record seems to begin inside, it is the next one.
    pub(super) fn skip(&mut self, length: u64) -> Result<(), Fault> {
        self.lost = true;
        let mut left = length;
        while left > 0 {
            let bytes = self.peek(NEXT_RECORD_BYTES)?;
            if bytes.is_empty() {
                if self.continues()? {
                    continue;
                }
                return Err(Fault::Damaged(format!("the record is cut off: {left} of {length} bytes are missing")));
            }
            let bytes = &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            if let Some(end) = next_record(bytes) {
                self.consume(end);
                return Err(shorter(length, length - left + end as u64));
            }
            // The beginning of a record may lie across the end of these bytes.
            let taken =
                (bytes.len() + 1).checked_sub(NEXT_RECORD_BYTES).filter(|taken| *taken > 0).unwrap_or(bytes.len());
            left -= taken as u64;
            self.consume(taken);
        }
        self.lost = false;
        Ok(())
    }

    /// Looks at the bytes behind a block: a blank line, or the end of the unit, which must be whole then.
    fn end_of_record(&mut self, length: usize, block: &mut Vec<u8>) -> Result<(), Fault> {
        let bytes = self.peek(BLANK_BYTES + RECORD.len())?;
        let blank = bytes.iter().take(BLANK_BYTES).take_while(|byte| b"\r\n".contains(byte)).count();
        let after = &bytes[blank..];
        // A record may follow without a blank line.
        if !(after.is_empty() || blank == BLANK_BYTES || after.starts_with(RECORD)) {
            return Err(self.no_end(length, block));
        }
        self.consume(blank);
        // The checksum of a gzip member or a zstd frame is behind its last byte.
        self.fill()?;
        self.lost = false;
        Ok(())
    }

    /// The record is shorter than its header says, and a part of the next ones was read for it; or it is longer.
    fn no_end(&mut self, length: usize, block: &mut Vec<u8>) -> Fault {
        self.give_back(block).map_or_else(
            || Fault::Damaged(format!("the record goes on after the {length} bytes that its Content-Length says")),
            |end| shorter(length as u64, end),
        )
    }

    fn cut_off(&mut self, length: usize, block: &mut Vec<u8>) -> Fault {
        let missing = length - block.len();
        self.give_back(block).map_or_else(
            || Fault::Damaged(format!("the record is cut off: {missing} of {length} bytes are missing")),
            |end| shorter(length as u64, end),
        )
    }

    /// Gives the records that begin inside `block` back, and returns where the first one does.
    fn give_back(&mut self, block: &mut Vec<u8>) -> Option<u64> {
        let length = block.len();
        // The next record may begin across the end of the block.
        let more = self
            .peek(NEXT_RECORD_BYTES)
            .map_or(Vec::new(), |bytes| bytes[..bytes.len().min(NEXT_RECORD_BYTES)].to_vec());
        block.extend_from_slice(&more);
        let Some(end) = next_record(block) else {
            block.truncate(length);
            return None;
        };
        self.consume(more.len());
        // All bytes given back before were read for this block.
        block.extend_from_slice(&self.back[self.at..]);
        self.back = std::mem::take(block);
        self.at = end;
        Some(end as u64)
    }

    /// Whether the record goes on in the next unit. If a record begins there, it does not.
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

    /// The first of the bytes that were given back, at most `count`.
    fn given_back(&self, count: usize) -> &[u8] {
        &self.back[self.at..self.back.len().min(self.at.saturating_add(count))]
    }

    /// Returns the next bytes of the unit, and none only at its end.
    fn fill(&mut self) -> Result<&[u8], Fault> {
        self.peek(1)
    }

    fn peek(&mut self, count: usize) -> Result<&[u8], Fault> {
        if self.at < self.back.len() && self.back.len() - self.at < count {
            // A few bytes of `back` are left, and the rest is in the unit.
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

fn shorter(length: u64, end: u64) -> Fault {
    Fault::Damaged(format!("its Content-Length is {length}, but the next record begins after {end} bytes"))
}

/// Returns the end of the record after which the next one begins inside these bytes.
fn next_record(bytes: &[u8]) -> Option<usize> {
    memmem::find_iter(bytes, NEXT_RECORD).find_map(|at| match &bytes[..at] {
        [before @ .., b'\r', b'\n', b'\r'] => Some(before.len()),
        [before @ .., b'\n'] => Some(before.len()),
        _ => None,
    })
}
