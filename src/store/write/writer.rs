//! The only writer of a collection's file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::batch::{Batch, committing, out_of_order};
use super::checkpoint::{self, Mode};
use super::checkpointer::Checkpointer;
use super::documents::{insert, insert_all, remove, remove_what_is_left};
use super::emptying;
use super::log_bound::LogBound;
use super::poison::Poison;
use super::touch::touch;
use super::unlink::promote;
use super::update::update;
use crate::store::change::Change;
use crate::store::descriptors::out_of_descriptors;
use crate::store::error::{Result, StoreError};
use crate::store::format::connection::{BUSY_TIMEOUT, never_sync};
use crate::store::format::golden;
use crate::store::format::jobs::{self, DoomedPart};
use crate::store::format::ledger::Ledger;
use crate::store::format::meta::{read_meta, write_meta};
use crate::store::format::statistics::{self, StoredStatistics};
use crate::store::read::joined::Moves;
use crate::store::read::readers::Readers;
use crate::store::settings::{Changeable, Meta};
use crate::types::{GoldenPair, Job, Keep, LabelDeletion, Merge, Seq, TimestampMs};

/// How long the writer waits for readers of old pages, such as a backup.
const FINISH_PATIENCE: Duration = Duration::from_millis(20);

/// The exclusive right to write to one collection. If it is dropped without [`close`](Self::close), all commits are
/// still on disk, in the log.
#[derive(Debug)]
pub struct Writer {
    connection: Connection,
    checkpointer: Checkpointer,
    readers: Arc<Readers>,
    collection: String,
    /// Whether documents have payloads, and of which kind.
    keep: Keep,
    ledger: Ledger,
    poison: Poison,
    log: LogBound,
    buffer: Vec<u8>,
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
            log: LogBound::new(page_bytes as u64),
            buffer: Vec::new(),
        })
    }

    /// Empties the log each time the file is opened, so that the remains of a torn transaction are never mistaken for
    /// later commits. If the disk is full or fails, the collection can still be read.
    pub(in crate::store) fn restart_log(&self) -> Result<()> {
        let Err(error) = emptying::empty(&self.connection, &self.collection) else { return Ok(()) };
        match StoreError::from_sqlite(&self.collection, "moving its write-ahead log into the database", error) {
            StoreError::Full { .. } | StoreError::Busy { .. } => Ok(()),
            // No file could be opened, so nothing was written, and the disk may be fine.
            error if out_of_descriptors(&error) => Err(error),
            error @ StoreError::Io { .. } => {
                tracing::error!(
                    error = error.chain(),
                    "the disk failed while the collection was opened; it accepts no writes"
                );
                self.poison.note(&error);
                Ok(())
            }
            error => Err(error),
        }
    }

    pub(in crate::store) fn readers(&self) -> Arc<Readers> {
        self.readers.clone()
    }

    /// Stops syncing. A crash of the system loses later commits, and a crash of the process may lose them, too.
    pub fn never_sync(&mut self) -> Result<()> {
        self.checkpointer.stop();
        never_sync(&self.connection)
            .map_err(|error| StoreError::from_sqlite(&self.collection, "opening its file", error))?;
        let path = self.readers.path();
        self.checkpointer = Checkpointer::start(path, &self.collection, self.poison.clone(), false)?;
        Ok(())
    }

    /// Makes all changes durable, or none: they are on disk when this returns `Ok`. `last_seq` is the last assigned
    /// position of the commit order. It must be at least the position of the last change.
    ///
    /// After an error that is not [uncertain](StoreError::is_uncertain), nothing of the batch is stored and the next
    /// commit may succeed. After any other error the writer is poisoned, and it is unknown whether the batch is on disk
    /// until the file is opened again.
    pub fn commit(&mut self, changes: &[Change], last_seq: Seq) -> Result<()> {
        self.check_order(changes, last_seq)?;
        self.commit_batch(last_seq, |batch| apply_all(batch, changes))
    }

    /// Changes the changeable settings, durably.
    pub fn set_changeable(&mut self, changeable: Changeable) -> Result<()> {
        self.transaction(|| {
            let mut meta = read_meta(&self.connection, &self.collection)?;
            meta.changeable = changeable;
            write_meta(&self.connection, &meta).map_err(|error| committing(&self.collection, error))
        })
    }

    /// Replaces the golden set, durably.
    pub fn set_golden(&mut self, pairs: &[GoldenPair]) -> Result<()> {
        self.finish_log()?;
        self.transaction(|| {
            golden::write(&self.connection, pairs).map_err(|error| committing(&self.collection, error))
        })?;
        self.watch_log();
        Ok(())
    }

    /// Removes the documents of a part of a deletion by label, and returns the new state of the deletion. The deletion
    /// has ended at `now` if this was its last part. Missing rows of documents are skipped: a repair may have set the
    /// document aside, or the file is damaged. If a missing row made a deletion fail, all writes would stop.
    pub fn remove_doomed(&mut self, part: &DoomedPart, now: TimestampMs) -> Result<LabelDeletion> {
        self.commit_batch(self.ledger.last_seq, |batch| {
            let mut damaged = 0;
            for &seq in &part.seqs {
                damaged += u64::from(remove_what_is_left(batch, seq)?);
            }
            if damaged > 0 {
                tracing::error!(
                    collection = batch.collection(),
                    documents = damaged,
                    "documents that were deleted by label had lost a row; check the file with `hapax verify`"
                );
            }
            let deletion = jobs::removed(batch.connection(), part, now).map_err(|error| batch.failed(error))?;
            deletion.ok_or_else(|| StoreError::damaged(batch.collection(), None, "a job lost a row"))
        })
    }

    /// Commits the changes that `write` writes. `last_seq` is the last assigned position of the commit order.
    fn commit_batch<T>(&mut self, last_seq: Seq, write: impl FnOnce(&mut Batch<'_>) -> Result<T>) -> Result<T> {
        self.finish_log()?;
        let (mut buffer, mut moves) = (std::mem::take(&mut self.buffer), Moves::default());
        let committed = self.transaction(|| {
            let mut batch = Batch::new(&self.connection, &self.readers, self.keep, self.ledger, &mut buffer);
            let written = write(&mut batch)?;
            let ledger;
            (ledger, moves) = batch.finish(&self.ledger, last_seq)?;
            self.readers.joined().begin(&moves, last_seq)?;
            Ok((ledger, written))
        });
        self.buffer = buffer;
        self.readers.joined().end(&moves, last_seq, committed.is_ok());
        let (ledger, written) = committed?;
        self.ledger = ledger;
        self.watch_log();
        Ok(written)
    }

    /// Stores statistics durably. They replace earlier statistics with the same numbers.
    pub fn set_statistics(&mut self, rows: &[StoredStatistics]) -> Result<()> {
        self.finish_log()?;
        self.transaction(|| {
            statistics::put(&self.connection, rows).map_err(|error| committing(&self.collection, error))
        })?;
        self.watch_log();
        Ok(())
    }

    /// Stores the new state of a job, durably.
    pub fn set_job(&mut self, job: &Job) -> Result<()> {
        self.transaction(|| {
            let set = jobs::take(&self.connection, job.number()).and_then(|_| jobs::put(&self.connection, job));
            set.map_err(|error| committing(&self.collection, error))
        })
    }

    /// Removes up to `reports_max` reports of a job that has ended. If no reports are left, also removes the job.
    /// Returns whether the job was removed.
    pub fn forget_job(&mut self, number: Seq, reports_max: usize) -> Result<bool> {
        self.finish_log()?;
        let forgotten = self.transaction(|| {
            jobs::forget(&self.connection, number, reports_max).map_err(|error| committing(&self.collection, error))
        })?;
        self.watch_log();
        Ok(forgotten)
    }

    /// Moves the log into the database and closes the file. Readers cannot use the file either: from now on, every
    /// [`Store`](crate::store::Store) of the file returns [`StoreError::Closed`]. If a read is still running, the log
    /// stays next to the file and remains part of the collection.
    pub fn close(mut self) -> Result<()> {
        self.readers.close();
        self.checkpointer.stop();
        self.check_usable()?;
        let closing = |error| StoreError::from_sqlite(&self.collection, "closing its file", error);
        emptying::empty(&self.connection, &self.collection).map_err(closing)?;
        // The last connection to close removes the empty log.
        self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(closing)?;
        self.connection
            .close()
            .map_err(|(_, error)| StoreError::from_sqlite(&self.collection, "closing its file", error))
    }

    /// Returns an error if the writer is poisoned.
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
                return Err(out_of_order(&self.collection, seq, format!("it must be above {}", last.0)));
            }
            last = seq;
        }
        if last_seq < last {
            return Err(out_of_order(
                &self.collection,
                last,
                format!("the last assigned sequence number is {}", last_seq.0),
            ));
        }
        if i64::try_from(last_seq.0).is_err() {
            return Err(out_of_order(&self.collection, last_seq, "sequence numbers must be below 2^63".to_owned()));
        }
        Ok(())
    }

    fn transaction<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.check_usable()?;
        // An operator's own SQLite session may hold a lock on the file. That must not disable writes for good.
        self.execute("BEGIN IMMEDIATE")
            .map_err(|error| StoreError::NotBegun { collection: self.collection.clone(), detail: error.chain() })?;
        let committed = work().and_then(|done| {
            self.execute("COMMIT").map_err(StoreError::with_unclear_outcome)?;
            Ok(done)
        });
        let mut error = match committed {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        // Some errors end the transaction by themselves.
        if !self.connection.is_autocommit()
            && let Err(failed) = self.execute("ROLLBACK")
        {
            let (collection, source) = (self.collection.clone(), failed.chain().into());
            error = StoreError::Io { collection, doing: "rolling back", source };
        }
        self.poison.note(&error);
        Err(error)
    }

    fn execute(&self, sql: &str) -> Result<()> {
        let executed = self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        executed.map(drop).map_err(|error| committing(&self.collection, error))
    }

    /// Before a commit, checkpoints the log if it has reached its bound. After the commit, it would be too late to
    /// report an error of the checkpoint, because the callers have their answers by then.
    fn finish_log(&mut self) -> Result<()> {
        if !self.log.is_reached() {
            return Ok(());
        }
        self.check_usable()?;
        let finish = || {
            self.connection.busy_timeout(FINISH_PATIENCE)?;
            let finished = checkpoint::run(&self.connection, Mode::Restart);
            self.connection.busy_timeout(BUSY_TIMEOUT)?;
            finished
        };
        match self.checkpointer.exclusively(finish) {
            Ok(left) => {
                self.log.tried(left.busy);
                Ok(())
            }
            Err(error) => {
                let error =
                    StoreError::from_sqlite(&self.collection, "moving its write-ahead log into the database", error)
                        .with_unclear_outcome();
                self.poison.note(&error);
                Err(error)
            }
        }
    }

    /// Checks how long the log is. An error is ignored, because the next commit checks again.
    fn watch_log(&mut self) {
        if let Ok(log) = checkpoint::state(&self.connection)
            && self.log.note(log)
        {
            self.checkpointer.wake();
        }
    }
}

/// Writes the rows of all changes. Consecutive inserts are stored together.
fn apply_all(batch: &mut Batch<'_>, changes: &[Change]) -> Result<()> {
    let are_inserted = |change: &Change, next: &Change| change.inserted().and(next.inserted()).is_some();
    for run in changes.chunk_by(are_inserted) {
        match run {
            [change] => apply(batch, change)?,
            _ => insert_all(batch, &run.iter().filter_map(Change::inserted).collect::<Vec<_>>())?,
        }
    }
    Ok(())
}

/// Writes the rows of one change.
fn apply(batch: &mut Batch<'_>, change: &Change) -> Result<()> {
    match change {
        Change::Insert(record) => insert(batch, record),
        Change::Delete { seq, target, promoted } => {
            remove(batch, *target, *seq)?;
            promote(batch, *promoted, *seq)
        }
        Change::Replace { record, target, promoted } => {
            remove(batch, *target, record.seq)?;
            promote(batch, *promoted, record.seq)?;
            insert(batch, record)
        }
        Change::Update { seq, target, additions } => update(batch, *target, additions, *seq),
        Change::DeleteLabelled { deletion, doomed, promoted } => {
            let number = deletion.number;
            batch.executed(number, jobs::begin_deletion(batch.connection(), deletion, doomed))?;
            promoted.iter().try_for_each(|&link| promote(batch, Some(link), number))
        }
        Change::BeginMerge(merge) => {
            batch.executed(merge.number, jobs::put(batch.connection(), &Job::Merge(Merge::clone(merge))))
        }
        Change::Merged(merged) => match batch.executed(merged.merge, jobs::merged(batch.connection(), merged))? {
            true => Ok(()),
            false => Err(StoreError::damaged(batch.collection(), None, format!("job {} is gone", merged.merge.0))),
        },
        Change::Touch { target, seen } => touch(batch, *target, *seen),
    }
}

/// Access for tests.
#[cfg(test)]
impl Writer {
    pub(in crate::store) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(in crate::store) fn poison(&self) -> &Poison {
        &self.poison
    }

    /// Returns the length of the log after the last commit.
    pub(in crate::store) fn log_bytes(&self) -> u64 {
        self.log.log_bytes()
    }

    /// Makes the next commit first finish the log if the log is at least this long.
    pub(in crate::store) fn finish_log_at(&mut self, log_bytes: u64) {
        self.log.finish_at(log_bytes);
    }

    /// Sets how long a commit waits for a lock that another program holds.
    pub(in crate::store) fn set_patience(&self, wait: std::time::Duration) {
        self.connection.busy_timeout(wait).unwrap();
    }
}
