//! Changes -> disk: the one who writes to a collection's file.

use std::path::Path;
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, params};

use super::checkpoint::{self, Checkpointer, FINISH_PATIENCE, Mode, Poison, WAKE_BYTES};
use crate::store::change::Change;
use crate::store::data_dir::files;
use crate::store::descriptors::out_of_descriptors;
use crate::store::error::{Result, StoreError};
use crate::store::format::connection::LOG_BYTES_MAX;
use crate::store::format::connection::{BUSY_TIMEOUT, never_sync};
use crate::store::format::ledger::{Ledger, move_ledger};
use crate::store::format::meta::{read_meta, write_meta};
use crate::store::format::payload;
use crate::store::format::rows::{DocumentRow, SignatureRow};
use crate::store::format::verdict;
use crate::store::log::moved::{self, Moved};
use crate::store::read::readers::Readers;
use crate::store::record::Record;
use crate::store::settings::{Changeable, Meta};
use crate::types::{Keep, Seq};

const COMMITTING: &str = "committing";

/// The exclusive right to write to one collection. Dropped without [`close`](Self::close), everything committed is still
/// on disk, in the log.
#[derive(Debug)]
pub struct Writer {
    pub(in crate::store) connection: Connection,
    checkpointer: Checkpointer,
    readers: Arc<Readers>,
    pub(in crate::store) collection: String,
    /// Whether documents have payloads.
    keep: Keep,
    /// As on disk.
    ledger: Ledger,
    pub(in crate::store) poison: Poison,
    page_bytes: u64,
    pub(in crate::store) log_bytes: u64,
    /// Where it is finished next even if the thread is far behind.
    finish_last_bytes: u64,
    /// Log that is not in the database yet.
    behind_bytes: u64,
    /// Log at which the thread is woken next: as long as somebody is in its way, waking it for each commit is in vain.
    wake_at_bytes: u64,
    /// Where the log is finished next; moved on when a reader is in the way, so that one slow reader does not cost every
    /// commit a wait.
    pub(in crate::store) finish_at_bytes: u64,
    pub(in crate::store) buffer: Vec<u8>,
}

impl Writer {
    pub(in crate::store) fn new(connection: Connection, path: &Path, meta: &Meta, ledger: Ledger) -> Result<Self> {
        let collection = meta.name.as_str();
        let poison = Poison::default();
        let page_bytes: i64 = connection
            .pragma_query_value(None, "page_size", |row| row.get(0))
            .map_err(|error| StoreError::from_sqlite(collection, "reading its page size", error))?;
        Ok(Self {
            checkpointer: Checkpointer::start(path, collection, poison.clone(), true)?,
            readers: Arc::new(Readers::new(path, collection)),
            connection,
            collection: collection.to_owned(),
            keep: meta.keep,
            ledger,
            poison,
            page_bytes: page_bytes as u64,
            log_bytes: 0,
            finish_last_bytes: 0,
            behind_bytes: 0,
            wake_at_bytes: 0,
            finish_at_bytes: LOG_BYTES_MAX,
            buffer: Vec::new(),
        })
    }

    /// The log starts anew with each life of the file, so that the remains of a torn transaction are never taken for
    /// commits of a later one. Where the disk can't do that, the collection is still good for reading.
    pub(in crate::store) fn restart_log(&self) -> Result<()> {
        let Err(error) = self.empty_log() else { return Ok(()) };
        match StoreError::from_sqlite(&self.collection, "moving its log into the database", error) {
            StoreError::Full { .. } | StoreError::Busy { .. } => Ok(()),
            // Nothing was tried: the disk may be well.
            error if out_of_descriptors(&error) => Err(error),
            error @ StoreError::Io { .. } => {
                tracing::error!(error = error.chain(), "the disk fails; this collection takes no writes");
                self.poison.note(&error);
                Ok(())
            }
            error => Err(error),
        }
    }

    /// Moves the log into the database, notes that for [`look`](crate::store::log::look::look), and empties it. The first sync that fails is told,
    /// whatever the next would say.
    fn empty_log(&self) -> rusqlite::Result<()> {
        let log = checkpoint::run(&self.connection, Mode::Passive)?;
        if log.frames > 0 && log.frames == log.checkpointed_frames && self.syncs() {
            self.note_moved(log.frames);
        }
        checkpoint::run(&self.connection, Mode::Truncate).map(drop)
    }

    fn syncs(&self) -> bool {
        let level = self.connection.pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0));
        level.is_ok_and(|level| level > 0)
    }

    /// Without this note only a power failure that keeps an old `-shm` file would be taken for damage.
    fn note_moved(&self, frames: u64) {
        let Some(path) = self.connection.path().map(|path| files::log(Path::new(path))) else { return };
        let noted =
            Moved::of_log(&path, frames, &self.connection).and_then(|moved| moved.write(&moved::path_of(&path)));
        if let Err(error) = noted {
            tracing::warn!(collection = self.collection, %error, "no note that the log is in the database");
        }
    }

    pub(in crate::store) fn readers(&self) -> Arc<Readers> {
        self.readers.clone()
    }

    /// From here on nothing is synced: what is committed outlives neither the process for sure nor the system.
    pub fn never_sync(&mut self) -> Result<()> {
        self.checkpointer.stop();
        never_sync(&self.connection)
            .map_err(|error| StoreError::from_sqlite(&self.collection, "opening its file", error))?;
        let path = self.readers.path();
        self.checkpointer = Checkpointer::start(path, &self.collection, self.poison.clone(), false)?;
        Ok(())
    }

    /// Makes the changes durable, all or none: on disk when this returns `Ok`. `last_seq` is the last place of the order
    /// given out so far, at or after the last change's.
    ///
    /// After [`StoreError::Full`] and [`StoreError::OutOfOrder`] nothing of the batch is kept and the next commit may
    /// succeed. After any other error the writer is poisoned: whether the batch is on disk shows when the file is
    /// reopened.
    pub fn commit(&mut self, changes: &[Change], last_seq: Seq) -> Result<()> {
        self.check_order(changes, last_seq)?;
        self.finish_log()?;
        let mut ledger = self.ledger;
        let old = self.ledger;
        self.transaction(|this| {
            for change in changes {
                match change {
                    Change::Insert(record) => this.insert(record, &mut ledger)?,
                    Change::Delete { seq, target, promoted } => {
                        this.remove(*target, *seq, &mut ledger)?;
                        this.promote(*promoted, *seq, &mut ledger)?;
                    }
                    Change::Replace { record, target, promoted } => {
                        this.remove(*target, record.seq, &mut ledger)?;
                        this.promote(*promoted, record.seq, &mut ledger)?;
                        this.insert(record, &mut ledger)?;
                    }
                    Change::Update { seq, target, metadata } => {
                        this.update(*target, metadata.as_ref(), *seq, &mut ledger)?;
                    }
                    Change::Touch { target, seen } => this.touch(*target, *seen, &mut ledger)?,
                }
            }
            ledger.last_seq = last_seq;
            match move_ledger(&this.connection, &old, &ledger) {
                Ok(true) => Ok(()),
                Ok(false) => Err(StoreError::Busy {
                    collection: this.collection.clone(),
                    detail: "its ledger moved since this writer's last commit".to_owned(),
                }),
                Err(error) => Err(this.sqlite(error)),
            }
        })?;
        self.ledger = ledger;
        self.watch_log();
        Ok(())
    }

    /// Changes the settings that may change, durably.
    pub fn set_changeable(&mut self, changeable: Changeable) -> Result<()> {
        self.transaction(|this| {
            let mut meta = read_meta(&this.connection, &this.collection)?;
            meta.changeable = changeable;
            write_meta(&this.connection, &meta).map_err(|error| this.sqlite(error))
        })
    }

    /// Moves the log into the database and closes the file, to readers too: every [`Store`](super::Store) of it answers
    /// [`StoreError::Closed`] from here on. Where a reader is still at work, the log stays beside the file, and counts.
    pub fn close(mut self) -> Result<()> {
        self.readers.close();
        self.checkpointer.stop();
        self.check_usable()?;
        let closing = |error| StoreError::from_sqlite(&self.collection, "closing its file", error);
        self.empty_log().map_err(closing)?;
        // The last one to leave removes the empty log.
        self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(closing)?;
        self.connection
            .close()
            .map_err(|(_, error)| StoreError::from_sqlite(&self.collection, "closing its file", error))
    }

    /// How long a commit waits for a lock that another program holds.
    #[cfg(test)]
    pub(in crate::store) fn set_patience(&self, wait: std::time::Duration) {
        self.connection.busy_timeout(wait).unwrap();
    }

    /// Refuses a writer whose disk failed.
    pub(in crate::store) fn check_usable(&self) -> Result<()> {
        match self.poison.reason() {
            None => Ok(()),
            Some(reason) => {
                Err(StoreError::Poisoned { collection: self.collection.clone(), reason: reason.to_owned() })
            }
        }
    }

    fn check_order(&self, changes: &[Change], last_seq: Seq) -> Result<()> {
        let mut last = self.ledger.last_seq;
        for seq in changes.iter().filter_map(Change::seq) {
            if seq <= last {
                return Err(self.out_of_order(seq, format!("it comes after {}", last.0)));
            }
            last = seq;
        }
        if last_seq < last {
            return Err(self.out_of_order(last, format!("the last place given out is {}", last_seq.0)));
        }
        if i64::try_from(last_seq.0).is_err() {
            return Err(self.out_of_order(last_seq, "the order ends at 2^63".to_owned()));
        }
        Ok(())
    }

    fn transaction(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.check_usable()?;
        // An operator's own SQLite session may hold the file: that must not cost the collection its writes for good.
        self.execute("BEGIN IMMEDIATE")
            .map_err(|error| StoreError::NotBegun { collection: self.collection.clone(), detail: error.chain() })?;
        let done = work(self).and_then(|()| self.execute("COMMIT"));
        let Err(error) = done else { return Ok(()) };
        // Some errors end the transaction by themselves.
        if !self.connection.is_autocommit()
            && let Err(failed) = self.execute("ROLLBACK")
        {
            self.poison.note(&StoreError::Io {
                collection: self.collection.clone(),
                doing: "rolling back",
                source: failed.chain().into(),
            });
        }
        self.poison.note(&error);
        Err(error)
    }

    fn execute(&self, sql: &str) -> Result<()> {
        let executed = self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        executed.map(drop).map_err(|error| self.sqlite(error))
    }

    fn insert(&mut self, record: &Record, ledger: &mut Ledger) -> Result<()> {
        let signature = SignatureRow::of(record);
        let sum = signature.sum(&mut self.buffer);
        ledger.signatures.add(sum);
        self.run(
            record.seq,
            "INSERT INTO signature (seq, id_fingerprint, content_prefix, flags, bytes, cluster, seen_ms, sum)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                signature.seq.0 as i64,
                signature.id_fingerprint as i64,
                signature.content_prefix as i64,
                signature.flags(),
                signature.bytes,
                signature.cluster.0 as i64,
                signature.seen.0,
                sum as i64
            ],
        )?;
        let verdict = verdict::to_json(&record.verdict);
        let document = DocumentRow::of(record, &verdict);
        let sum = document.sum(&mut self.buffer);
        ledger.documents.add(sum);
        self.run(
            record.seq,
            "INSERT INTO document
             (seq, id, metadata, content_hash, flags, first_seen_ms, shingles, verdict, id_first_seen_ms, sum)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                document.seq.0 as i64,
                record.id.as_str(),
                record.metadata.as_ref().map(|metadata| metadata.as_str()),
                document.content,
                document.flags,
                document.first_seen_ms,
                document.shingles.map(|shingles| shingles as i64),
                verdict,
                document.id_first_seen_ms,
                sum as i64
            ],
        )?;
        match (&record.payload, self.keep) {
            (None, Keep::Signature) => Ok(()),
            (Some(payload), Keep::Shingles | Keep::Text) => {
                let inserted = payload::insert(&self.connection, record.seq, payload);
                ledger.payloads.add(self.executed(record.seq, inserted)?);
                Ok(())
            }
            (payload, keep) => {
                let brought = if payload.is_some() { "a payload" } else { "no payload" };
                Err(self.out_of_order(record.seq, format!("it has {brought}, where {} is kept", keep.as_str())))
            }
        }
    }

    pub(in crate::store) fn run(&self, seq: Seq, sql: &str, values: impl rusqlite::Params) -> Result<()> {
        let executed = self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute(values));
        self.executed(seq, executed).map(drop)
    }

    fn executed<T>(&self, seq: Seq, executed: rusqlite::Result<T>) -> Result<T> {
        executed.map_err(|error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::ConstraintViolation | rusqlite::ErrorCode::TooBig) => {
                self.out_of_order(seq, error.to_string())
            }
            _ => self.sqlite(error),
        })
    }

    fn remove(&mut self, target: Seq, seq: Seq, ledger: &mut Ledger) -> Result<()> {
        let signature = self.take("DELETE FROM signature WHERE seq = ?1 RETURNING sum", target)?;
        let document = self.take("DELETE FROM document WHERE seq = ?1 RETURNING sum", target)?;
        match (signature, document) {
            (Some(signature), Some(document)) => {
                ledger.signatures.subtract(signature);
                ledger.documents.subtract(document);
                if self.keep == Keep::Signature {
                    return Ok(());
                }
                let payload = self.take("DELETE FROM payload WHERE seq = ?1 RETURNING sum", target)?;
                ledger.payloads.subtract(payload.ok_or_else(|| self.gone(target, "payload"))?);
                Ok(())
            }
            (None, None) => Err(self.out_of_order(seq, format!("there is no record {} to remove", target.0))),
            (signature, _) => Err(self.gone(target, if signature.is_some() { "document" } else { "signature" })),
        }
    }

    fn gone(&self, target: Seq, row: &str) -> StoreError {
        let detail = format!("its {row} is gone");
        StoreError::Damaged { collection: self.collection.clone(), record: Some(target), detail }
    }

    fn take(&self, sql: &str, target: Seq) -> Result<Option<u64>> {
        let taken = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row([target.0 as i64], |row| row.get::<_, i64>(0)).optional());
        taken.map(|sum| sum.map(|sum| sum as u64)).map_err(|error| self.sqlite(error))
    }

    /// Before the commit that would grow the log past its bound, and not after it: its callers have their answer by then.
    fn finish_log(&mut self) -> Result<()> {
        if self.log_bytes < self.finish_at_bytes {
            return Ok(());
        }
        self.check_usable()?;
        // Whoever was in the way, a backup perhaps, is there still, or has left the thread with so much work that commits
        // would wait long for it here.
        if self.behind_bytes > LOG_BYTES_MAX && self.log_bytes < self.finish_last_bytes {
            return Ok(());
        }
        let finish = || {
            self.connection.busy_timeout(FINISH_PATIENCE)?;
            let finished = checkpoint::run(&self.connection, Mode::Restart);
            self.connection.busy_timeout(BUSY_TIMEOUT)?;
            finished
        };
        match self.checkpointer.exclusively(finish) {
            Ok(log) if !log.busy => {
                self.finish_at_bytes = LOG_BYTES_MAX;
                self.finish_last_bytes = 0;
            }
            Ok(_) => {
                self.finish_at_bytes = self.log_bytes + LOG_BYTES_MAX / 4;
                self.finish_last_bytes = self.log_bytes + 4 * LOG_BYTES_MAX;
            }
            Err(error) => {
                let error = StoreError::from_sqlite(&self.collection, "moving its log into the database", error);
                self.poison.note(&error);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Looks how far the log has grown. Where that fails the next commit looks again, and has the error if it is real.
    fn watch_log(&mut self) {
        if let Ok(log) = checkpoint::run(&self.connection, Mode::Noop) {
            let log_bytes = log.frames * self.page_bytes;
            if log_bytes < self.log_bytes {
                self.wake_at_bytes = 0;
            }
            self.log_bytes = log_bytes;
            self.behind_bytes = log.frames.saturating_sub(log.checkpointed_frames) * self.page_bytes;
            if self.behind_bytes >= WAKE_BYTES && log_bytes >= self.wake_at_bytes {
                self.wake_at_bytes = log_bytes + WAKE_BYTES / 4;
                self.checkpointer.wake();
            }
        }
    }

    pub(in crate::store) fn sqlite(&self, error: rusqlite::Error) -> StoreError {
        StoreError::from_sqlite(&self.collection, COMMITTING, error)
    }

    pub(in crate::store) fn out_of_order(&self, seq: Seq, detail: String) -> StoreError {
        StoreError::OutOfOrder { collection: self.collection.clone(), seq, detail }
    }
}
