//! Writes groups of documents into a file that is being made, in a thread of its own, while the caller prepares the
//! next group. In: groups, in order of `seq`. Out: their rows in the open transaction, and the ledger.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;

use super::error::{Result, StoreError};
use super::format::ledger::Ledger;
use super::read::readers::Readers;
use super::record::Record;
use super::write::batch::Batch;
use super::write::documents::insert_all;
use crate::types::{Keep, Seq};

/// The number of groups that may wait while another one is written.
const WAITING_MAX: usize = 1;

/// The file, with an open transaction.
pub(super) struct OpenFile {
    connection: Connection,
    /// A batch uses these readers to read the payloads that it removes. Here nothing is removed, so only the
    /// collection's name is used.
    readers: Readers,
    keep: Keep,
    ledger: Ledger,
    buffer: Vec<u8>,
}

impl OpenFile {
    pub(super) fn new(connection: Connection, readers: Readers, keep: Keep) -> Self {
        Self { connection, readers, keep, ledger: Ledger::default(), buffer: Vec::new() }
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Commits the transaction, and returns the connection.
    pub(super) fn commit(self) -> rusqlite::Result<Connection> {
        self.connection.execute_batch("COMMIT")?;
        Ok(self.connection)
    }

    fn write(&mut self, group: &[Record]) -> Result<()> {
        let mut batch = Batch::new(&self.connection, &self.readers, self.keep, self.ledger, &mut self.buffer);
        insert_all(&mut batch, &group.iter().collect::<Vec<_>>())?;
        self.ledger = *batch.ledger();
        Ok(())
    }

    /// Writes the ledger, after the last group.
    pub(super) fn write_ledger(&mut self, last_seq: Seq) -> Result<()> {
        let batch = Batch::new(&self.connection, &self.readers, self.keep, self.ledger, &mut self.buffer);
        (self.ledger, _) = batch.finish(&Ledger::default(), last_seq)?;
        Ok(())
    }
}

/// A handle to the thread that writes the groups. Dropping it ends the thread.
pub(super) struct BuildingWriter {
    shared: Arc<Shared>,
    /// `None` after the last group.
    groups: Option<SyncSender<Vec<Record>>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    file: Mutex<OpenFile>,
    progress: Mutex<Progress>,
    /// Notified when a group was written, and when the thread ends.
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    /// The number of groups that were passed to the thread and are not written yet.
    unwritten: usize,
    /// The error of a group. Later groups are dropped.
    failed: Option<StoreError>,
    /// Whether the file is no longer needed. If so, later groups are dropped.
    abandoned: bool,
    ended: bool,
}

impl Progress {
    /// Returns the error of an earlier group, if it was not returned before.
    fn check(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

impl BuildingWriter {
    /// Starts the thread.
    pub(super) fn start(file: OpenFile) -> io::Result<Self> {
        let (progress, changed) = Default::default();
        let shared = Arc::new(Shared { file: Mutex::new(file), progress, changed });
        let (groups, given) = sync_channel(WAITING_MAX);
        let of_thread = Arc::clone(&shared);
        let named = thread::Builder::new().name("hapax-load-rows".to_owned());
        let thread = named.spawn(move || of_thread.write_all(&given))?;
        Ok(Self { shared, groups: Some(groups), thread: Some(thread) })
    }

    /// Passes a group to the thread. Returns an error if an earlier group could not be written.
    pub(super) fn give(&mut self, group: Vec<Record>) -> Result<()> {
        let mut progress = self.shared.progress.lock();
        progress.check()?;
        progress.unwritten += 1;
        drop(progress);
        let groups = self.groups.as_ref().expect("groups come before the end");
        if groups.send(group).is_err() {
            self.join();
        }
        Ok(())
    }

    /// Waits until all passed groups are written, and calls `read` with the file.
    pub(super) fn read<T>(&mut self, read: impl FnOnce(&OpenFile) -> Result<T>) -> Result<T> {
        let mut progress = self.shared.progress.lock();
        while progress.unwritten > 0 && !progress.ended {
            self.shared.changed.wait(&mut progress);
        }
        progress.check()?;
        let is_lost = progress.unwritten > 0;
        drop(progress);
        if is_lost {
            self.join();
        }
        read(&self.shared.file.lock())
    }

    /// Waits until all groups are written, ends the thread, and returns the file.
    pub(super) fn finish(mut self) -> Result<OpenFile> {
        self.join();
        self.shared.progress.lock().check()?;
        let shared = Arc::clone(&self.shared);
        drop(self);
        Ok(Arc::into_inner(shared).expect("the thread has ended").file.into_inner())
    }

    /// Waits for the end of the thread. If the thread panicked, this function panics, too.
    fn join(&mut self) {
        if let Err(panic) = self.end() {
            resume_unwind(panic);
        }
    }

    /// Ends the thread after the last group, and returns its panic, if any.
    fn end(&mut self) -> thread::Result<()> {
        self.groups = None;
        self.thread.take().map_or(Ok(()), JoinHandle::join)
    }
}

impl Drop for BuildingWriter {
    /// Waits for the end of the thread, so that nothing is written after the drop.
    fn drop(&mut self) {
        self.shared.progress.lock().abandoned = true;
        // A panic of the thread is ignored: the thread that drops this is panicking, too, or no longer needs the file.
        drop(self.end());
    }
}

impl Shared {
    fn write_all(&self, groups: &Receiver<Vec<Record>>) {
        let _ended = Ended(self);
        let mut is_over = false;
        for group in groups {
            let written = if is_over { Ok(()) } else { self.file.lock().write(&group) };
            // A group may have many megabytes, so it is dropped while no lock is held.
            drop(group);
            let mut progress = self.progress.lock();
            progress.unwritten -= 1;
            is_over |= written.is_err() || progress.abandoned;
            if let Err(error) = written {
                progress.failed = Some(error);
            }
            self.changed.notify_all();
        }
    }
}

/// Reports the end of the thread, even if it panics.
struct Ended<'a>(&'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.progress.lock().ended = true;
        self.0.changed.notify_all();
    }
}
