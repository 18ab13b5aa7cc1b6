//! Which documents joined which cluster, in memory. The rows of `signature` store this, too, in order of `seq`. An
//! index of the file by cluster would change in another page for each document that joins, which made such an insert a
//! third slower. In: the rows of a scan, and the changes of each commit. Out: the documents of a cluster, in order.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use parking_lot::RwLock;
use rusqlite::Connection;

use crate::store::error::{Result, StoreError};
use crate::store::format::connection::{Role, connect};
use crate::types::Seq;

/// The bytes that a document takes, assuming nodes that are two thirds full.
const ENTRY_BYTES: usize = size_of::<(Seq, Seq)>() * 3 / 2 + 3;

/// A cluster, and a document that joined it.
type Membership = (Seq, Seq);

/// The documents of one collection that joined a cluster.
#[derive(Debug)]
pub(in crate::store) struct Joined {
    path: PathBuf,
    collection: String,
    /// `None` before they are read from the file.
    all: RwLock<Option<BTreeSet<Membership>>>,
}

/// The changes of one transaction.
#[derive(Debug, Default)]
pub(in crate::store) struct Moves {
    joined: BTreeSet<Membership>,
    left: Vec<Membership>,
}

impl Moves {
    /// Notes a document that is stored. `Seq(0)` is the cluster of a document that founded one.
    pub(in crate::store) fn stored(&mut self, cluster: Seq, seq: Seq) {
        if cluster != Seq(0) {
            self.joined.insert((cluster, seq));
        }
    }

    /// Notes a document that is removed.
    pub(in crate::store) fn removed(&mut self, cluster: Seq, seq: Seq) {
        if cluster != Seq(0) && !self.joined.remove(&(cluster, seq)) {
            self.left.push((cluster, seq));
        }
    }
}

impl Joined {
    pub(super) fn new(path: &Path, collection: &str) -> Self {
        Self { path: path.to_owned(), collection: collection.to_owned(), all: RwLock::default() }
    }

    /// Sets all documents that joined a cluster. No commit may run meanwhile.
    pub(in crate::store) fn set(&self, all: Vec<Membership>) {
        *self.all.write() = Some(all.into_iter().collect());
    }

    /// Begins the changes of a transaction that is complete, but not committed. Documents leave their clusters before
    /// the commit and join clusters after it. Each document that is found here is therefore in each snapshot that
    /// began before, unless it is newer than the snapshot.
    pub(in crate::store) fn begin(&self, moves: &Moves) {
        if let Some(all) = self.all.write().as_mut() {
            for left in &moves.left {
                all.remove(left);
            }
        }
    }

    /// Ends the changes of a transaction, which may have failed.
    pub(in crate::store) fn end(&self, moves: Moves, committed: bool) {
        let Moves { joined, left } = moves;
        if let Some(all) = self.all.write().as_mut() {
            if committed { all.extend(joined) } else { all.extend(left) }
        }
    }

    /// Calls `look` with the documents as of the last commit. Reads them from the file first, if no scan has done so.
    pub(super) fn look<T>(&self, look: impl FnOnce(&BTreeSet<Membership>) -> T) -> Result<T> {
        if let Some(all) = self.all.read().as_ref() {
            return Ok(look(all));
        }
        let mut all = self.all.write();
        let read = match all.take() {
            Some(read) => read,
            // Commits wait for this lock, so the file must be read as it is now, and not as the caller's snapshot is.
            None => read_all(&connect(&self.path, Role::Reader)?)
                .map_err(|error| StoreError::from_sqlite(&self.collection, "reading its clusters", error))?,
        };
        Ok(look(all.insert(read)))
    }

    /// Returns the approximate bytes of the tree.
    pub(in crate::store) fn bytes(&self) -> u64 {
        self.all.read().as_ref().map_or(0, |all| all.len() * ENTRY_BYTES) as u64
    }
}

fn read_all(connection: &Connection) -> rusqlite::Result<BTreeSet<Membership>> {
    let mut statement = connection.prepare("SELECT cluster, seq FROM signature WHERE cluster <> 0")?;
    let rows =
        statement.query_map([], |row| Ok((Seq(row.get::<_, i64>(0)? as u64), Seq(row.get::<_, i64>(1)? as u64))))?;
    rows.collect()
}
