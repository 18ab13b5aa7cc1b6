//! The documents of a local collection, or of files of signatures, in chunks. Runs in a thread. The signatures of all
//! documents stay in memory. Of the rows of files, the ids and contents do too, because later rows may name them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hapax_core::{ContentHash, ShingleSet};
use tokio::sync::mpsc;

use super::error::CopyError;
use super::filled::{LeftOut, document_of};
use crate::collections::offline::StoredCollection;
use crate::load::{self, LoadFile, Target};
use crate::redis::{FillError, FilledDocument};
use crate::store::{Earlier, Record, StoreError};
use crate::types::{DocId, Seq, TimestampMs};
use crate::verdicts::Settings;

/// The number of documents of a chunk.
const CHUNK: usize = 1024;
/// A chunk ends early when its documents have so many shingles.
const HASHES: u64 = 1 << 20;
/// There is room for at most so many signatures before the first one is read, whatever a file says.
const RESERVED_BYTES_MAX: u64 = 64 << 30;

/// A chunk of documents.
pub(super) type Reading = Vec<FilledDocument>;

/// Where documents are copied from.
pub enum CopySource {
    /// Files of signatures that have the same settings.
    Files(Vec<LoadFile>),
    /// A collection in a data directory.
    Stored(Box<StoredCollection>),
}

/// The data of all documents that stays in memory until the end.
pub(super) struct AllRead {
    /// The signatures of all documents, one after the other.
    pub signatures: Vec<u8>,
    pub left_out: LeftOut,
}

impl CopySource {
    /// Returns the settings of the new collection.
    pub(super) fn settings(&self, default: &Settings) -> Settings {
        match self {
            Self::Files(files) => files.first().expect("a copy has a file").settings().settings(default),
            Self::Stored(stored) => stored.settings().clone(),
        }
    }

    /// Returns the largest possible number of documents, if the files tell the truth.
    pub fn documents_at_most(&self) -> u64 {
        match self {
            Self::Files(files) => files.iter().map(LoadFile::rows).fold(0, u64::saturating_add),
            Self::Stored(stored) => stored.documents_total(),
        }
    }

    /// Reads all documents, and sends them in chunks. Ends if the receiver is gone.
    pub(super) fn read(
        self,
        settings: &Settings,
        give: mpsc::Sender<Reading>,
        stop: &Arc<AtomicBool>,
    ) -> Result<AllRead, CopyError> {
        let bytes = settings.spec.shape().bytes();
        let wanted = self.documents_at_most().saturating_mul(bytes as u64).min(RESERVED_BYTES_MAX);
        let mut chunks = Chunks::new(give);
        drop(chunks.signatures.try_reserve(usize::try_from(wanted).unwrap_or(0)));
        let is_stopped = || stop.load(Ordering::Relaxed);
        match self {
            Self::Files(files) => {
                let rows = Rows { chunks, ids: String::new(), rows: Vec::new(), of_links: Vec::new(), bytes };
                let (mut rows, loaded) =
                    load::read_into(files, settings, (rows, TimestampMs::now()), &|_| {}, &is_stopped)?;
                rows.chunks.left_out.empty = loaded.empty;
                rows.chunks.end()
            }
            Self::Stored(stored) => {
                let mut last = Seq(0);
                loop {
                    let records = stored.records(last, CHUNK)?;
                    let Some(record) = records.last() else { return chunks.end() };
                    last = record.seq;
                    for record in records {
                        chunks.add(record);
                    }
                    if chunks.is_closed || is_stopped() {
                        return Err(FillError::Interrupted.into());
                    }
                }
            }
        }
    }
}

/// Sends documents.
struct Chunks {
    give: mpsc::Sender<Reading>,
    chunk: Reading,
    /// The shingles of its documents.
    hashes: u64,
    signatures: Vec<u8>,
    left_out: LeftOut,
    /// Whether the receiver is gone, because the copy has failed.
    is_closed: bool,
}

impl Chunks {
    fn new(give: mpsc::Sender<Reading>) -> Self {
        Self {
            give,
            chunk: Vec::new(),
            hashes: 0,
            signatures: Vec::new(),
            left_out: LeftOut::default(),
            is_closed: false,
        }
    }

    /// Returns the place of the signature, unless the record is a link.
    fn add(&mut self, record: Record) -> Option<usize> {
        self.left_out = self.left_out.plus(LeftOut::of(&record));
        let document = document_of(record)?;
        let place = self.signatures.len();
        self.signatures.extend_from_slice(&document.signature);
        self.hashes += document.set.as_ref().map_or(0, ShingleSet::len);
        self.chunk.push(document);
        if self.chunk.len() == CHUNK || self.hashes >= HASHES {
            self.hashes = 0;
            self.send();
        }
        Some(place)
    }

    fn send(&mut self) {
        let chunk = std::mem::take(&mut self.chunk);
        self.is_closed |= self.give.blocking_send(chunk).is_err();
    }

    fn end(mut self) -> Result<AllRead, CopyError> {
        self.send();
        let Self { signatures, left_out, .. } = self;
        Ok(AllRead { signatures, left_out })
    }
}

/// The rows of files that were read.
struct Rows {
    chunks: Chunks,
    /// The ids of all rows, one after the other.
    ids: String,
    rows: Vec<Row>,
    /// The signatures of links, one after the other.
    of_links: Vec<u8>,
    /// The size of a signature.
    bytes: usize,
}

struct Row {
    /// Where its id ends.
    id_end: usize,
    /// Where its signature begins: among those of links, if it is one.
    signature: usize,
    is_link: bool,
    has_content: bool,
    content: ContentHash,
}

impl Target for Rows {
    fn push(&mut self, record: Record) -> Result<(), StoreError> {
        self.ids.push_str(record.id.as_str());
        let id_end = self.ids.len();
        let (has_content, content) = (!record.given, record.content);
        let of_link = self.of_links.len();
        if record.linked {
            self.of_links.extend_from_slice(&record.signature);
        }
        let place = self.chunks.add(record);
        let (signature, is_link) = (place.unwrap_or(of_link), place.is_none());
        self.rows.push(Row { id_end, signature, is_link, has_content, content });
        Ok(())
    }

    fn earlier(&mut self, seq: Seq) -> Result<Earlier, StoreError> {
        let place = seq.0 as usize - 1;
        let row = &self.rows[place];
        let id_begin = if place == 0 { 0 } else { self.rows[place - 1].id_end };
        let signatures = if row.is_link { &self.of_links } else { &self.chunks.signatures };
        Ok(Earlier {
            id: DocId::new(&self.ids[id_begin..row.id_end]).expect("it was an id"),
            signature: signatures[row.signature..row.signature + self.bytes].to_vec(),
            content: row.has_content.then_some(row.content),
        })
    }

    fn is_closed(&self) -> bool {
        self.chunks.is_closed
    }
}
