//! Disk -> records, from any thread, beside the writer. A record that is not what was written is an error that names
//! it, never another answer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use rusqlite::{Connection, Row};

use crate::store::data_dir::files;
use crate::store::error::{Result, StoreError};
use crate::store::format::columns::{Flaw, OUT_OF_ORDER};
use crate::store::format::connection::{Role, connect};
use crate::store::format::ledger::{Ledger, read_ledger};
use crate::store::format::rows::{
    DOCUMENT_COLUMN_COUNT, DocumentRow, SignatureRow, document_columns, signature_columns,
};
use crate::store::record::{Head, Record};
use crate::types::{Document, Seq};

/// Connections reading one collection at a time, each holding up to 1 MiB of pages; who comes later waits for one.
const READERS_MAX: usize = 8;

/// A collection's records. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    pub(in crate::store) readers: Arc<Readers>,
}

impl Store {
    pub(in crate::store) fn new(readers: Arc<Readers>) -> Self {
        Self { readers }
    }

    /// The collection's file.
    pub fn path(&self) -> &Path {
        &self.readers.path
    }

    /// What its write-ahead log takes on the disk.
    pub fn log_bytes(&self) -> u64 {
        std::fs::metadata(files::log(self.path())).map_or(0, |log| log.len())
    }

    /// Whether its writer is closed: no read begins from here on.
    pub fn is_closed(&self) -> bool {
        self.readers.state.lock().closed
    }

    /// One record, whole; `None` if there is none of this `seq`.
    pub fn record(&self, seq: Seq) -> Result<Option<Record>> {
        self.readers.read(|snapshot| snapshot.record(seq))
    }

    /// One record without signature and verdict.
    pub fn head(&self, seq: Seq, with_metadata: bool) -> Result<Option<Head>> {
        self.readers.read(|snapshot| snapshot.document(seq, |row| row.head(with_metadata)))
    }

    /// As [`head`](Self::head), for many, in the order asked for, all as of one moment.
    ///
    /// With so many bytes of metadata at most, if it is asked for: the first that does not fit and those behind it stay
    /// in the file.
    pub fn heads(&self, seqs: &[Seq], mut metadata_bytes: Option<usize>) -> Result<Vec<Option<Head>>> {
        self.readers.read(|snapshot| {
            seqs.iter().map(|seq| snapshot.document(*seq, |row| row.head_within(&mut metadata_bytes))).collect()
        })
    }

    /// The records after `after`, in order of `seq`. Fewer than `limit` means that these are the last.
    pub fn page(&self, after: Seq, limit: usize) -> Result<Vec<Document>> {
        self.page_while(after, limit, |_| true)
    }

    /// As [`page`](Self::page), up to the first that `fits` refuses; that one is always read.
    pub fn page_while(&self, after: Seq, limit: usize, fits: impl FnMut(&Document) -> bool) -> Result<Vec<Document>> {
        self.readers.read(|snapshot| snapshot.page(after, limit, fits))
    }

    pub(in crate::store) fn collection(&self) -> &str {
        &self.readers.collection
    }

    pub(in crate::store) fn read<T>(&self, work: impl FnOnce(&mut Snapshot<'_>) -> Result<T>) -> Result<T> {
        self.readers.read(work)
    }

    /// A connection of its own, for long work.
    pub(in crate::store) fn connect(&self) -> Result<Connection> {
        if self.readers.state.lock().closed {
            return Err(self.readers.closed());
        }
        connect(&self.readers.path, Role::Reader)
    }

    /// The ledger as of now.
    pub(in crate::store) fn ledger(&self) -> Result<Ledger> {
        self.readers.read(|snapshot| read_ledger(snapshot.connection, snapshot.collection))
    }
}

/// The read connections of one collection.
#[derive(Debug)]
pub(in crate::store) struct Readers {
    path: PathBuf,
    collection: String,
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<Connection>,
    lent: usize,
    /// A connection opened from here on might find another collection at this path.
    closed: bool,
}

impl Readers {
    pub(in crate::store) fn new(path: &Path, collection: &str) -> Self {
        Self {
            path: path.to_owned(),
            collection: collection.to_owned(),
            state: Mutex::default(),
            returned: Condvar::new(),
        }
    }

    pub(in crate::store) fn path(&self) -> &Path {
        &self.path
    }

    /// No read begins from here on; those under way end in peace.
    pub(in crate::store) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.idle.clear();
        self.returned.notify_all();
    }

    fn closed(&self) -> StoreError {
        StoreError::Closed { collection: self.collection.clone() }
    }

    pub(in crate::store) fn read<T>(&self, work: impl FnOnce(&mut Snapshot<'_>) -> Result<T>) -> Result<T> {
        let loan = self.borrow()?;
        let connection = loan.connection.as_ref().expect("a loan has its connection until it is dropped");
        // One snapshot for all of `work`. Dropped without a commit: there is nothing to commit.
        let transaction = connection
            .unchecked_transaction()
            .map_err(|error| StoreError::from_sqlite(&self.collection, "reading", error))?;
        let mut snapshot = Snapshot { connection: &transaction, collection: &self.collection, buffer: Vec::new() };
        work(&mut snapshot)
    }

    fn borrow(&self) -> Result<Loan<'_>> {
        let mut state = self.state.lock();
        loop {
            if state.closed {
                return Err(self.closed());
            }
            if state.lent < READERS_MAX {
                break;
            }
            self.returned.wait(&mut state);
        }
        state.lent += 1;
        let idle = state.idle.pop();
        drop(state);
        let mut loan = Loan { readers: self, connection: idle };
        if loan.connection.is_none() {
            loan.connection = Some(connect(&self.path, Role::Reader)?);
        }
        Ok(loan)
    }
}

struct Loan<'a> {
    readers: &'a Readers,
    connection: Option<Connection>,
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        let mut state = self.readers.state.lock();
        state.lent -= 1;
        if !state.closed {
            state.idle.extend(self.connection.take());
        }
        self.readers.returned.notify_one();
    }
}

/// The file as of one moment.
pub(in crate::store) struct Snapshot<'a> {
    pub(in crate::store) connection: &'a Connection,
    pub(in crate::store) collection: &'a str,
    pub(in crate::store) buffer: Vec<u8>,
}

impl Snapshot<'_> {
    fn document<T>(&mut self, seq: Seq, make: impl FnOnce(&DocumentRow<'_>) -> Result<T, Flaw>) -> Result<Option<T>> {
        let sql = concat!("SELECT ", document_columns!(), " FROM document d WHERE d.seq = ?1");
        self.one(seq, sql, |row, buffer| make(&DocumentRow::read(row, 0, buffer)?))
    }

    pub(in crate::store) fn record(&mut self, seq: Seq) -> Result<Option<Record>> {
        let sql = concat!(
            "SELECT ",
            document_columns!(),
            ", ",
            signature_columns!(),
            " FROM document d LEFT JOIN signature s ON s.seq = d.seq WHERE d.seq = ?1"
        );
        self.one(seq, sql, |row, buffer| {
            let document = DocumentRow::read(row, 0, buffer)?;
            let (signature, _) = SignatureRow::read(row, DOCUMENT_COLUMN_COUNT, buffer)?;
            document.record(&signature)
        })
    }

    /// The one row of a document; that a signature has none is damage and not an absence.
    fn one<T>(
        &mut self,
        seq: Seq,
        sql: &str,
        make: impl FnOnce(&Row<'_>, &mut Vec<u8>) -> Result<T, Flaw>,
    ) -> Result<Option<T>> {
        let reading = |error| sqlite(self.collection, error).at_record(seq);
        let mut statement = self.connection.prepare_cached(sql).map_err(reading)?;
        let mut rows = statement.query([seq.0 as i64]).map_err(reading)?;
        match rows.next().map_err(reading)? {
            Some(row) => make(row, &mut self.buffer).map(Some).map_err(|flaw| damaged(self.collection, seq, flaw)),
            None if self.has_signature(seq)? => Err(damaged(self.collection, seq, DOCUMENT_GONE)),
            None => Ok(None),
        }
    }

    /// By way of the signatures, so that a document that is gone leaves a gap to be seen.
    fn page(&mut self, after: Seq, limit: usize, mut fits: impl FnMut(&Document) -> bool) -> Result<Vec<Document>> {
        let reading = |error| sqlite(self.collection, error);
        let mut statement = self
            .connection
            .prepare_cached(concat!(
                "SELECT ",
                document_columns!(),
                ", ",
                signature_columns!(),
                " FROM signature s LEFT JOIN document d ON d.seq = s.seq",
                " WHERE s.seq > ?1 ORDER BY s.seq LIMIT ?2"
            ))
            .map_err(reading)?;
        let bounds = [i64::try_from(after.0).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX)];
        let mut rows = statement.query(bounds).map_err(reading)?;
        let mut documents = Vec::new();
        let (mut first, mut before) = (None, after);
        while let Some(row) = rows.next().map_err(reading)? {
            let seq = Seq(row.get::<_, i64>(DOCUMENT_COLUMN_COUNT).map_err(reading)? as u64);
            if seq <= before {
                return Err(damaged(self.collection, seq, OUT_OF_ORDER));
            }
            (first, before) = (first.or(Some(seq)), seq);
            let document = DocumentRow::read(row, 0, &mut self.buffer).and_then(|row| row.document());
            let document = document.map_err(|flaw| damaged(self.collection, seq, flaw))?;
            let signature = SignatureRow::read(row, DOCUMENT_COLUMN_COUNT, &mut self.buffer);
            let (signature, _) = signature.map_err(|flaw| damaged(self.collection, seq, flaw))?;
            let more = fits(&document);
            documents.push((document, signature.cluster));
            if !more {
                break;
            }
        }
        drop(rows);
        // Looked for from the other side: a damaged inner page might lead past some.
        match self.last_before(first)? {
            Some(skipped) if skipped > after && limit > 0 => Err(damaged(self.collection, skipped, OUT_OF_ORDER)),
            _ => self.with_representatives(documents),
        }
    }

    /// The last record before another, or of all.
    fn last_before(&self, seq: Option<Seq>) -> Result<Option<Seq>> {
        let last = match seq {
            Some(seq) => self
                .connection
                .prepare_cached("SELECT max(seq) FROM signature WHERE seq < ?1")
                .and_then(|mut statement| statement.query_row([seq.0 as i64], |row| row.get::<_, Option<i64>>(0))),
            None => self
                .connection
                .prepare_cached("SELECT max(seq) FROM signature")
                .and_then(|mut statement| statement.query_row([], |row| row.get(0))),
        };
        last.map(|last| last.map(|seq| Seq(seq as u64))).map_err(|error| sqlite(self.collection, error))
    }

    pub(in crate::store) fn has_signature(&self, seq: Seq) -> Result<bool> {
        self.connection
            .prepare_cached("SELECT 1 FROM signature WHERE seq = ?1")
            .and_then(|mut statement| statement.exists([seq.0 as i64]))
            .map_err(|error| sqlite(self.collection, error))
    }
}

const DOCUMENT_GONE: Flaw = "its document is gone";

pub(in crate::store) fn sqlite(collection: &str, error: rusqlite::Error) -> StoreError {
    StoreError::from_sqlite(collection, "reading", error)
}

pub(in crate::store) fn damaged(collection: &str, seq: Seq, flaw: Flaw) -> StoreError {
    StoreError::Damaged { collection: collection.to_owned(), record: Some(seq), detail: flaw.to_owned() }
}
