//! Makes a whole collection's file from records, in one transaction and without a log. While it is made, the file has a
//! name that is never opened as a collection. In: records, in order of `seq`. Out: a complete and checked file on disk.
//! The file gets its final name in one step.

use std::mem;
use std::path::{Path, PathBuf};
use std::thread;

use hapax_core::ContentHash;
use rusqlite::{Connection, OptionalExtension};

use super::building_writer::{BuildingWriter, OpenFile};
use super::data_dir::files;
use super::error::{Result, StoreError};
use super::format::creation::{begin_new, finish_new, refuse_orphan};
use super::format::rows::is_given;
use super::integrity::inspection::{Finding, inspect_as};
use super::read::readers::Readers;
use super::record::Record;
use super::settings::Meta;
use crate::types::{DocId, Seq};

/// The name of the operation in error messages.
const BUILDING: &str = "building its file";

/// A group is written when it has `GROUP_MAX` documents, or `GROUP_BYTES_MAX` bytes of payloads and metadata.
const GROUP_MAX: usize = 256;
const GROUP_BYTES_MAX: usize = 1 << 20;

/// The parts of an added record with which later records are compared.
pub struct Earlier {
    pub id: DocId,
    pub signature: Vec<u8>,
    /// The hash of the content; `None` if the client gave only a signature.
    pub content: Option<ContentHash>,
}

/// A file that is being made. The file is removed if this value is dropped.
pub struct Building {
    writer: BuildingWriter,
    collection: String,
    last_seq: Seq,
    /// The last added documents, not yet passed to the writer. `group_bytes` is the size of their payloads and
    /// metadata.
    group: Vec<Record>,
    group_bytes: usize,
    file: Unfinished,
}

/// A complete file without its final name. The file is removed if this value is dropped before
/// [`publish`](Self::publish).
pub struct Built(Unfinished);

/// Removes the file when it is dropped, if the file does not have its final name.
struct Unfinished {
    path: PathBuf,
    named: bool,
}

impl Building {
    /// Begins a file that will be at `path`. The caller holds the data directory's lock, and builds no other file for
    /// this path.
    pub fn begin(path: &Path, meta: &Meta) -> Result<Self> {
        let collection = meta.name.as_str();
        let io = |error| StoreError::from_io(collection, BUILDING, error);
        let sqlite = |error| StoreError::from_sqlite(collection, BUILDING, error);
        if path.exists() {
            return Err(StoreError::Exists { path: path.to_owned() });
        }
        refuse_orphan(path)?;
        files::discard_loading(path).map_err(io)?;
        let file = Unfinished { path: path.to_owned(), named: false };
        let made = files::loading(path);
        let connection = begin_new(&made, meta).map_err(sqlite)?;
        // A failed build is thrown away, so nothing has to be undone, and the sync at the end is enough.
        connection
            .execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -16384; BEGIN")
            .map_err(sqlite)?;
        let readers = Readers::new(&made, collection);
        let writer = BuildingWriter::start(OpenFile::new(connection, readers, meta.keep)).map_err(io)?;
        let (last_seq, group, group_bytes) = Default::default();
        Ok(Self { writer, collection: collection.to_owned(), last_seq, group, group_bytes, file })
    }

    /// Adds a document. Its `seq` must be higher than that of the last added document. The error may be about an
    /// earlier document.
    pub fn push(&mut self, record: Record) -> Result<()> {
        self.last_seq = record.seq;
        let payload = record.payload.as_ref().map_or(0, |payload| payload.bytes.len());
        self.group_bytes += payload + record.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len());
        self.group.push(record);
        if self.group.len() < GROUP_MAX && self.group_bytes < GROUP_BYTES_MAX { Ok(()) } else { self.write() }
    }

    /// Passes the group to the writer.
    fn write(&mut self) -> Result<()> {
        self.group_bytes = 0;
        self.writer.give(mem::replace(&mut self.group, Vec::with_capacity(GROUP_MAX)))
    }

    /// Returns the parts of a document that was added before.
    pub fn earlier(&mut self, seq: Seq) -> Result<Earlier> {
        if let Ok(at) = self.group.binary_search_by_key(&seq, |record| record.seq) {
            let Record { id, signature, content, given, .. } = &self.group[at];
            let content = (!given).then_some(*content);
            return Ok(Earlier { id: id.clone(), signature: signature.clone(), content });
        }
        let collection = &self.collection;
        self.writer.read(|file| read_earlier(file.connection(), collection, seq))
    }

    /// Completes the file, reads all of it again, and syncs it. `progress` is called with the share that was read.
    pub fn complete(mut self, progress: &dyn Fn(f64)) -> Result<Built> {
        self.write()?;
        let Self { writer, collection, last_seq, file, .. } = self;
        let sqlite = |error| StoreError::from_sqlite(&collection, BUILDING, error);
        let io = |error| StoreError::from_io(&collection, BUILDING, error);
        let mut open = writer.finish()?;
        open.write_ledger(last_seq)?;
        let connection = open.commit().map_err(sqlite)?;
        // The file is read before it gets a log, because a reader of the log would leave files next to it.
        let made = files::loading(&file.path);
        // Most of the file is synced while its rows are read again. If no thread can be started for this, the last sync
        // does all of it.
        let (inspection, synced) = thread::scope(|scope| {
            let syncing = thread::Builder::new().spawn_scoped(scope, || files::sync(&made));
            let inspection = inspect_as(&made, &collection, progress);
            (inspection, syncing.map_or(Ok(()), |syncing| syncing.join().expect("a sync does not panic")))
        });
        synced.map_err(io)?;
        if let Some(Finding { place, detail, .. }) = inspection?.findings.first() {
            let detail = format!("its new file is damaged: {place}: {detail}");
            return Err(StoreError::damaged(&collection, None, detail));
        }
        finish_new(connection).map_err(sqlite)?;
        files::sync(&made).map_err(io)?;
        Ok(Built(file))
    }
}

/// Reads the parts of a document that was written.
fn read_earlier(connection: &Connection, collection: &str, seq: Seq) -> Result<Earlier> {
    let sql = "SELECT d.id, s.bytes, d.content_hash, d.flags FROM document d JOIN signature s ON s.seq = d.seq
               WHERE d.seq = ?1";
    let read = |row: &rusqlite::Row<'_>| {
        let (id, signature): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
        let content: [u8; 16] = row.get(2)?;
        Ok((id, signature, u128::from_be_bytes(content), row.get::<_, u8>(3)?))
    };
    let found = connection.prepare_cached(sql);
    let found = found.and_then(|mut statement| statement.query_row([seq.0 as i64], read).optional());
    let found = found.map_err(|error| StoreError::from_sqlite(collection, BUILDING, error))?;
    let lost = |detail| StoreError::damaged(collection, seq, detail);
    let (id, signature, content, flags) = found.ok_or_else(|| lost("a row that was just written is gone"))?;
    let id = DocId::new(id).map_err(|_| lost("its id is invalid"))?;
    let content = (!is_given(flags)).then_some(ContentHash(content));
    Ok(Earlier { id, signature, content })
}

impl Built {
    /// Gives the file its final name, in one step. The caller makes sure that no collection is created or dropped
    /// meanwhile.
    pub fn publish(mut self) -> Result<()> {
        let path = &self.0.path;
        let io = |error| StoreError::from_io(&files::name_of(path), BUILDING, error);
        if path.exists() {
            return Err(StoreError::Exists { path: path.clone() });
        }
        files::prepare_creation(path).map_err(io)?;
        refuse_orphan(path)?;
        files::finish_loading(path).map_err(io)?;
        self.0.named = true;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.named
            && let Err(error) = files::discard_loading(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "could not remove the file of a failed load");
        }
    }
}
