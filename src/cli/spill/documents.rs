//! Signed documents -> bytes in a temporary file -> the same documents, in several streams of one file.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};

use super::file::{Piece, Pieces, SpillFile};
use super::line_runs::LineKey;
use crate::cli::corpus::named::Named;
use crate::cli::corpus::rank::Rank;
use crate::cli::corpus::signing::Document;
use crate::corpus::{CorpusSigner, read_signed, write_signed};
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
    /// The whole stream.
    whole: Pieces,
}

pub(in crate::cli) const DAMAGED: &str = "a temporary file was damaged";

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
        let whole = self.file.pieces(pieces);
        Ok(StoredDocuments { bytes: whole.read(self.buffer_bytes), record: Vec::new(), whole })
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
    /// Returns the documents of the stream from the first one on.
    pub(in crate::cli) fn again(&self) -> Self {
        let bytes = self.whole.read(self.bytes.capacity());
        Self { bytes, record: Vec::new(), whole: self.whole.clone() }
    }

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

/// Returns a key by which documents with a higher rank come first.
pub(in crate::cli) fn order_of(record: &[u8]) -> LineKey {
    words_of(record).map_or([0; 3], |(rank, _)| rank.map(|word| !word))
}

/// Returns the numbers at the beginning of a record, and the bytes behind them.
fn words_of(bytes: &[u8]) -> Option<([u64; 3], &[u8])> {
    let (words, rest) = bytes.split_at_checked(24)?;
    Some(([0, 8, 16].map(|at| u64::from_ne_bytes(words[at..at + 8].try_into().expect("eight bytes"))), rest))
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
        rank.words().iter().for_each(|word| bytes.extend_from_slice(&word.to_ne_bytes()));
        Self::write_names(*file, origin, id.as_ref(), bytes);
        write_signed(signed, bytes);
    }

    /// Appends the bytes of the names of a document.
    pub(in crate::cli) fn write_names(file: usize, origin: &Origin, id: Option<&DocId>, bytes: &mut Vec<u8>) {
        let (kind, number, offset) = match origin.place {
            Place::Line { number, offset } => (0, number, offset),
            Place::Row(number) => (1, number, 0),
            Place::Record { number, offset } => (2, number, offset),
            Place::File => (3, 0, 0),
        };
        // No id is empty.
        let id = id.map_or("", DocId::as_str);
        for number in [file as u64, kind, number, offset, id.len() as u64] {
            bytes.extend_from_slice(&number.to_ne_bytes());
        }
        bytes.extend_from_slice(id.as_bytes());
    }

    /// Reads the number of the file and the names of a document. Also returns the bytes behind them.
    pub(in crate::cli) fn read_names<'a>(&self, mut bytes: &'a [u8]) -> Option<(usize, Named, &'a [u8])> {
        let mut number = || {
            let (number, rest) = bytes.split_first_chunk()?;
            bytes = rest;
            Some(u64::from_ne_bytes(*number))
        };
        let [file, kind, at, offset, id] = [number()?, number()?, number()?, number()?, number()?];
        let place = match kind {
            0 => Place::Line { number: at, offset },
            1 => Place::Row(at),
            2 => Place::Record { number: at, offset },
            _ => Place::File,
        };
        let file = file as usize;
        let (id, bytes) = bytes.split_at_checked(id as usize)?;
        let id = if id.is_empty() { None } else { Some(DocId::new(std::str::from_utf8(id).ok()?).ok()?) };
        let origin = Origin { file: Arc::clone(self.0.get(file)?.as_ref()?), place };
        Some((file, Named { origin, id }, bytes))
    }

    fn document_of(&self, bytes: &[u8], signer: &CorpusSigner) -> Option<Document> {
        let (rank, bytes) = words_of(bytes)?;
        let (file, Named { origin, id }, bytes) = self.read_names(bytes)?;
        Some(Document { file, origin, id, rank: Rank::of_words(rank)?, signed: read_signed(signer, bytes)?, at: 0 })
    }
}
