//! A WARC file (ISO 28500) -> its pages, as documents in the form of the API. In: units of a file. Out: for each record
//! a document, or the reason why there is none. Only damaged records are lost: reading continues with the next gzip
//! member, or the next line that begins with `WARC/`. Memory is bounded: a record has at most [`RECORD_BYTES_MAX`]
//! bytes, and its page after decompression has at most as many. This module must never know how documents are sent.
//!
//! The crate `warc` (0.4) is not used: it reads whole records of any length into memory, and reads nothing after the
//! first damaged record.

mod body;
mod charset;
mod header;
mod page;
mod stream;
#[cfg(test)]
mod tests;

use std::io;

use super::units::Units;
use header::Header;
use page::Outcome;
use stream::{Fault, Stream};

/// The longest record whose page is read, and the longest page. By default, the server refuses longer documents.
const RECORD_BYTES_MAX: usize = 16 << 20;
/// The number of first bytes of a longer record. These bytes show whether the record has a page.
const HEAD_BYTES: usize = 64 << 10;

/// One record.
#[derive(Debug)]
pub(super) struct Record {
    /// The number of the record in the file, from 1. A damaged part of the file counts as one record.
    pub(super) number: u64,
    /// The offset at which the record begins in the file; in a compressed file, the offset of its gzip member or zstd
    /// frame.
    pub(super) offset: u64,
    /// The document of the record; `None` if the record has no page.
    pub(super) document: Result<Option<Vec<u8>>, String>,
}

/// The records of a file, in their order.
pub(super) struct Records {
    stream: Stream,
    block: Vec<u8>,
    number: u64,
}

impl Records {
    pub(super) fn new(units: Units) -> Self {
        Self { stream: Stream::new(units), block: Vec::new(), number: 0 }
    }

    /// The number of bytes that were read from the file.
    pub(super) fn taken(&self) -> u64 {
        self.stream.taken()
    }

    /// Returns the next record; `None` at the end of the file.
    pub(super) fn next(&mut self) -> io::Result<Option<Record>> {
        let begun = self.stream.next_record();
        let offset = self.stream.offset();
        if matches!(begun, Ok(false)) {
            return Ok(None);
        }
        self.number += 1;
        let document = match begun.and_then(|_| self.document()) {
            Ok(Outcome::Document(line)) => Ok(Some(line)),
            Ok(Outcome::NotAPage) => Ok(None),
            Ok(Outcome::Failed(reason)) | Err(Fault::Damaged(reason)) => Err(reason),
            Err(Fault::Read(error)) => return Err(error),
        };
        Ok(Some(Record { number: self.number, offset, document }))
    }

    fn document(&mut self) -> Result<Outcome, Fault> {
        let header = Header::parse(&self.stream.header()?);
        let length = match header.get("content-length").map(str::parse::<u64>) {
            Some(Ok(length)) => length,
            Some(Err(_)) => return Err(self.stream.lose("its Content-Length is not a number")),
            None => return Err(self.stream.lose("it has no Content-Length")),
        };
        match usize::try_from(length) {
            Ok(length) if length <= RECORD_BYTES_MAX => {
                self.stream.block(length, &mut self.block)?;
                Ok(page::document(&header, &self.block, RECORD_BYTES_MAX))
            }
            _ => {
                let is_page = page::is_page(&header, self.stream.head(HEAD_BYTES)?);
                self.stream.skip(length)?;
                let reason = || format!("the record has {length} bytes; the limit is {RECORD_BYTES_MAX}");
                Ok(if is_page { Outcome::Failed(reason()) } else { Outcome::NotAPage })
            }
        }
    }
}
