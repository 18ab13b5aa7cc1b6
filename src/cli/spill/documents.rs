//! Signed documents -> bytes in a temporary file -> the same documents, in several streams of one file.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};

use super::file::{Piece, Pieces, SpillFile};
use crate::cli::corpus::signing::Document;
use crate::corpus::CorpusSigner;
use crate::input::{Origin, Place};
use crate::types::DocId;

/// The names of the files that documents come from, by their numbers.
#[derive(Default)]
pub(in crate::cli) struct FileNames(Vec<Option<Arc<str>>>);

/// Documents that are being written to several streams.
pub(in crate::cli) struct DocumentStreams {
    file: SpillFile,
    streams: Vec<Stream>,
    buffer_bytes: usize,
}

#[derive(Default)]
struct Stream {
    buffer: Vec<u8>,
    pieces: Vec<Piece>,
}

/// The documents of a stream, one after another.
pub(in crate::cli) struct StoredDocuments {
    bytes: BufReader<Pieces>,
    record: Vec<u8>,
}

const DAMAGED: &str = "a temporary file was damaged";

impl DocumentStreams {
    /// `buffer_bytes`: the memory of each stream.
    pub(in crate::cli) fn create(folder: &Path, streams: usize, buffer_bytes: usize) -> Result<Self> {
        let file = SpillFile::create(folder)?;
        Ok(Self { file, streams: (0..streams).map(|_| Stream::default()).collect(), buffer_bytes })
    }

    /// Adds a document, as [`bytes_of`] has written it, to a stream.
    pub(in crate::cli) fn add(&mut self, stream: usize, record: &[u8]) -> Result<()> {
        let Stream { buffer, pieces } = &mut self.streams[stream];
        if buffer.len() + record.len() + size_of::<u32>() > self.buffer_bytes && !buffer.is_empty() {
            pieces.push(self.file.append(buffer)?);
            buffer.clear();
        }
        if buffer.capacity() == 0 {
            buffer.reserve_exact(self.buffer_bytes);
        }
        buffer.extend_from_slice(&(record.len() as u32).to_ne_bytes());
        buffer.extend_from_slice(record);
        Ok(())
    }

    /// Returns the documents of a stream, which gets no further ones.
    pub(in crate::cli) fn read(&mut self, stream: usize) -> Result<StoredDocuments> {
        let Stream { buffer, mut pieces } = std::mem::take(&mut self.streams[stream]);
        pieces.push(self.file.append(&buffer)?);
        Ok(StoredDocuments { bytes: self.file.read(pieces, self.buffer_bytes), record: Vec::new() })
    }

    /// Writes the buffers of all streams.
    pub(in crate::cli) fn flush(&mut self) -> Result<()> {
        for Stream { buffer, pieces } in &mut self.streams {
            pieces.push(self.file.append(buffer)?);
            *buffer = Vec::new();
        }
        Ok(())
    }
}

impl StoredDocuments {
    /// Returns the bytes of the next document.
    pub(in crate::cli) fn next_record(&mut self) -> Result<Option<&[u8]>> {
        let mut length = [0; size_of::<u32>()];
        if self.bytes.fill_buf().context(DAMAGED)?.is_empty() {
            return Ok(None);
        }
        self.bytes.read_exact(&mut length).context(DAMAGED)?;
        self.record.resize(u32::from_ne_bytes(length) as usize, 0);
        self.bytes.read_exact(&mut self.record).context(DAMAGED)?;
        Ok(Some(&self.record))
    }

    /// Returns the next document.
    pub(in crate::cli) fn next(&mut self, names: &FileNames, signer: &CorpusSigner) -> Result<Option<Document>> {
        let Some(record) = self.next_record()? else { return Ok(None) };
        names.document_of(record, signer).context(DAMAGED).map(Some)
    }
}

impl FileNames {
    /// Replaces `bytes` by those of a document.
    pub(in crate::cli) fn bytes_of(&mut self, document: &Document, bytes: &mut Vec<u8>) {
        let Document { file, origin, id, rank, signed, .. } = document;
        if self.0.len() <= *file {
            self.0.resize(file + 1, None);
        }
        self.0[*file].get_or_insert_with(|| Arc::clone(&origin.file));
        bytes.clear();
        bytes.extend_from_slice(&rank.to_ne_bytes());
        let (kind, number, offset) = match origin.place {
            Place::Line(number) => (0, number, 0),
            Place::Row(number) => (1, number, 0),
            Place::Record { number, offset } => (2, number, offset),
            Place::File => (3, 0, 0),
        };
        for number in [*file as u64, kind, number, offset] {
            bytes.extend_from_slice(&number.to_ne_bytes());
        }
        // No id is empty.
        let id = id.as_ref().map_or("", |id| id.as_str());
        bytes.extend_from_slice(&(id.len() as u64).to_ne_bytes());
        bytes.extend_from_slice(id.as_bytes());
        signed.write(bytes);
    }

    fn document_of(&self, mut bytes: &[u8], signer: &CorpusSigner) -> Option<Document> {
        let mut number = || {
            let (number, rest) = bytes.split_first_chunk()?;
            bytes = rest;
            Some(u64::from_ne_bytes(*number))
        };
        let rank = f64::from_bits(number()?);
        let [file, kind, at, offset, id] = [number()?, number()?, number()?, number()?, number()?];
        let place = match kind {
            0 => Place::Line(at),
            1 => Place::Row(at),
            2 => Place::Record { number: at, offset },
            _ => Place::File,
        };
        let file = file as usize;
        let (id, bytes) = bytes.split_at_checked(id as usize)?;
        let id = if id.is_empty() { None } else { Some(DocId::new(std::str::from_utf8(id).ok()?).ok()?) };
        let origin = Origin { file: Arc::clone(self.0.get(file)?.as_ref()?), place };
        Some(Document { file, origin, id, rank, signed: signer.read(bytes)?, at: 0 })
    }
}
