//! The read connections of one collection: at most [`READERS_MAX`], and one more for its writer. A connection is lent
//! to one reader at a time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex, RwLock};
use rusqlite::Connection;

use super::doomed::Doomed;
use super::joined::{Entered, Joined};
use super::snapshot::Snapshot;
use crate::store::error::{Result, StoreError};
use crate::store::format::connection::{Role, connect};
use crate::store::format::ledger::read_last_seq;

/// The maximum number of connections that read one collection, each with up to 1 MiB of cached pages. Further readers
/// wait for a connection.
const READERS_MAX: usize = 8;

/// The read connections of one collection.
#[derive(Debug)]
pub(in crate::store) struct Readers {
    path: PathBuf,
    collection: String,
    state: Mutex<Connections>,
    returned: Condvar,
    doomed: RwLock<Arc<Doomed>>,
    joined: Joined,
}

#[derive(Debug, Default)]
struct Connections {
    idle: Vec<Connection>,
    lent: usize,
    /// Set when the writer closes. A connection opened after that might find another collection at this path.
    closed: bool,
}

impl Readers {
    pub(in crate::store) fn new(path: &Path, collection: &str) -> Self {
        Self {
            path: path.to_owned(),
            collection: collection.to_owned(),
            state: Mutex::default(),
            returned: Condvar::new(),
            doomed: RwLock::default(),
            joined: Joined::new(path, collection),
        }
    }

    pub(in crate::store) fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::store) fn collection(&self) -> &str {
        &self.collection
    }

    /// Returns whether no new read can start.
    pub(in crate::store) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Returns the documents that are deleted by label and still on disk.
    pub(in crate::store) fn doomed(&self) -> Arc<Doomed> {
        Arc::clone(&self.doomed.read())
    }

    /// Changes the set that [`doomed`](Self::doomed) returns, for reads that begin from now on.
    pub(in crate::store) fn set_doomed(&self, change: impl FnOnce(&Doomed) -> Doomed) {
        let mut doomed = self.doomed.write();
        *doomed = Arc::new(change(&doomed));
    }

    /// Returns the documents that joined a cluster.
    pub(in crate::store) fn joined(&self) -> &Joined {
        &self.joined
    }

    /// Opens a separate connection, for long work.
    pub(in crate::store) fn connect(&self) -> Result<Connection> {
        if self.is_closed() {
            return Err(self.closed());
        }
        connect(&self.path, Role::Reader)
    }

    /// Prevents new reads. Running reads finish normally.
    pub(in crate::store) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.idle.clear();
        self.returned.notify_all();
    }

    /// Whether no connection is open.
    pub(in crate::store) fn are_unused(&self) -> bool {
        let state = self.state.lock();
        state.idle.is_empty() && state.lent == 0
    }

    /// Closes the idle connections.
    pub(in crate::store) fn release(&self) {
        let idle = std::mem::take(&mut self.state.lock().idle);
        drop(idle);
    }

    fn closed(&self) -> StoreError {
        StoreError::Closed { collection: self.collection.clone() }
    }

    pub(in crate::store) fn read<T>(&self, work: impl FnOnce(&mut Snapshot<'_>) -> Result<T>) -> Result<T> {
        self.read_on(self.borrow(READERS_MAX)?, None, work)
    }

    /// Like [`read`](Self::read), for work that also needs to know which documents joined which cluster.
    pub(in crate::store) fn read_clusters<T>(&self, work: impl FnOnce(&mut Snapshot<'_>) -> Result<T>) -> Result<T> {
        self.read_on(self.borrow(READERS_MAX)?, Some(self.joined.enter()), work)
    }

    /// Like [`read`](Self::read), but without waiting for other readers. For the writer only.
    pub(in crate::store) fn read_at_once<T>(&self, work: impl FnOnce(&mut Snapshot<'_>) -> Result<T>) -> Result<T> {
        self.read_on(self.borrow(usize::MAX)?, None, work)
    }

    fn read_on<T>(
        &self,
        loan: Loan<'_>,
        entered: Option<Entered<'_>>,
        work: impl FnOnce(&mut Snapshot<'_>) -> Result<T>,
    ) -> Result<T> {
        // Read the list of these documents before the snapshot begins, because documents are removed first from the
        // disk and then from the list.
        let doomed = self.doomed();
        let connection = loan.connection.as_ref().expect("a loan has its connection until it is dropped");
        let _moment =
            Moment::fix(connection).map_err(|error| StoreError::from_sqlite(&self.collection, "reading", error))?;
        let clusters = match entered {
            // The first row that is read fixes the moment.
            Some(entered) => Some(entered.with(read_last_seq(connection, &self.collection)?)),
            None => None,
        };
        work(&mut Snapshot::new(connection, &self.collection, doomed, clusters))
    }

    fn borrow(&self, lent_max: usize) -> Result<Loan<'_>> {
        let mut state = self.state.lock();
        loop {
            if state.closed {
                return Err(self.closed());
            }
            if state.lent < lent_max {
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

/// A transaction in which a connection sees the file as it is at one moment. It only reads, so it is never committed.
struct Moment<'a>(&'a Connection);

impl<'a> Moment<'a> {
    // The statements are cached, because preparing them again took a tenth of the time of a short read.
    fn fix(connection: &'a Connection) -> rusqlite::Result<Self> {
        connection.prepare_cached("BEGIN")?.execute([])?;
        Ok(Self(connection))
    }
}

impl Drop for Moment<'_> {
    fn drop(&mut self) {
        // If this fails, the connection is closed when its loan ends.
        drop(self.0.prepare_cached("ROLLBACK").and_then(|mut end| end.execute([])));
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
            // A connection that is still in a transaction would show an old state of the file.
            state.idle.extend(self.connection.take().filter(Connection::is_autocommit));
        }
        self.readers.returned.notify_one();
    }
}
