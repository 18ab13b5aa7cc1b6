//! Documents one by one -> full chunks. Knows nothing of formats.

use std::sync::Arc;

use super::chunk::{Chunk, Origin};
use super::reason::{InputError, Reason};
use super::table_header::TableHeader;

/// The documents of one file, which are collected into chunks.
pub(super) struct Gather<'a> {
    give: &'a mut dyn FnMut(Chunk) -> bool,
    chunk: Chunk,
    /// The header of the file, if it is a table.
    header: Option<Arc<TableHeader>>,
    /// The bytes of the file that were counted in earlier chunks.
    reported: u64,
    given: bool,
}

/// A part of a file: a line, a row or a record.
pub(super) struct Part<'a> {
    pub origin: Origin,
    pub document: Result<Vec<u8>, Reason>,
    /// The part unchanged, if it is wanted.
    pub original: Option<&'a [u8]>,
    /// The number that a document of a table is ranked by, if it is wanted. See [`Chunk::ranked`].
    pub ranked: Option<Vec<u8>>,
    /// The number of bytes of the part after decompression.
    pub text_bytes: u64,
}

impl<'a> Gather<'a> {
    pub(super) fn new(give: &'a mut dyn FnMut(Chunk) -> bool) -> Self {
        Self { give, chunk: Chunk::default(), header: None, reported: 0, given: false }
    }

    /// Like [`new`](Self::new), for a table with this header.
    pub(super) fn of_table(header: Arc<TableHeader>, give: &'a mut dyn FnMut(Chunk) -> bool) -> Self {
        let chunk = Chunk::of_table(Some(Arc::clone(&header)));
        Self { chunk, header: Some(header), ..Self::new(give) }
    }

    /// Adds a part. `taken`: the number of bytes that were read from the file. Returns false if no further chunks are
    /// taken.
    pub(super) fn add(&mut self, part: Part<'_>, taken: u64) -> Result<bool, InputError> {
        let original = part.original.map_or(0, <[u8]>::len);
        if !self.has_room(part.document.as_ref().map_or(0, |document| document.len() + original), taken)? {
            return Ok(false);
        }
        self.chunk.text_bytes += part.text_bytes;
        match part.document {
            Ok(document) => {
                self.chunk.ranked.extend(part.ranked);
                self.chunk.push(part.origin, document, part.original.map(<[u8]>::to_vec));
            }
            Err(reason) => self.chunk.failures.push((part.origin, reason)),
        }
        Ok(true)
    }

    /// Counts bytes that belong to no document.
    pub(super) fn blank(&mut self, bytes: u64) {
        self.chunk.text_bytes += bytes;
    }

    /// Counts a record without a page. Returns false if no further chunks are taken.
    pub(super) fn skip(&mut self, taken: u64) -> Result<bool, InputError> {
        let has_room = self.has_room(0, taken)?;
        self.chunk.skipped += u64::from(has_room);
        Ok(has_room)
    }

    /// Gives the last chunk, even if it is empty.
    pub(super) fn finish(mut self, taken: u64) -> Result<(), InputError> {
        self.pass(taken).map(drop)
    }

    /// Passes the chunk on if it has no room for a document of this size. Returns false if no further chunks are taken.
    fn has_room(&mut self, bytes: usize, taken: u64) -> Result<bool, InputError> {
        if self.chunk.is_full(bytes) { self.pass(taken) } else { Ok(true) }
    }

    fn pass(&mut self, taken: u64) -> Result<bool, InputError> {
        let next = Chunk::of_table(self.header.clone());
        let mut chunk = std::mem::replace(&mut self.chunk, next);
        chunk.input_bytes = taken - std::mem::replace(&mut self.reported, taken);
        if !std::mem::replace(&mut self.given, true) {
            refuse_without_field(&chunk)?;
        }
        Ok((self.give)(chunk))
    }
}

/// Refuses a file if all lines of its first chunk lack a field, because the later lines will then lack this field, too.
fn refuse_without_field(chunk: &Chunk) -> Result<(), InputError> {
    let lack_a_field = chunk.failures.iter().all(|(_, reason)| matches!(reason, Reason::NoField(_)));
    match chunk.failures.first() {
        Some((_, Reason::NoField(field))) if chunk.lines.is_empty() && lack_a_field => {
            Err(InputError::NoField(field.clone()))
        }
        _ => Ok(()),
    }
}
