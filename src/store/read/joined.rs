//! Which documents joined which cluster, in memory. The rows of `signature` store this, too, in order of `seq`. The
//! file has no index by cluster. With such an index, each document that joins a cluster would change one more page. In
//! a measurement, this made such inserts a quarter slower. In: the rows of a scan, and the changes of each commit. Out:
//! the documents that joined a cluster, in order of `seq`, as they are in a snapshot of the file.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::path::{Path, PathBuf};

use parking_lot::{Mutex, RwLock, RwLockWriteGuard};
use rusqlite::Connection;

use crate::store::error::{Result, StoreError};
use crate::store::format::connection::{Role, connect};
use crate::types::Seq;

/// The bytes that a document takes, assuming half full nodes: documents join in ascending order.
const ENTRY_BYTES: usize = size_of::<Membership>() * 2 + 2;

/// A cluster, and a document that joined it.
pub(super) type Membership = (Seq, Seq);

/// The documents of one collection that joined a cluster.
#[derive(Debug)]
pub(in crate::store) struct Joined {
    path: PathBuf,
    collection: String,
    state: RwLock<State>,
    /// The value of [`State::committed`] at the beginning of each running read, and the number of these reads.
    reads: Mutex<BTreeMap<Seq, usize>>,
}

#[derive(Debug, Default)]
struct State {
    /// All documents that joined a cluster, also those that the running transaction stores, and those in `left`. `None`
    /// before they are read from the file.
    all: Option<BTreeSet<Membership>>,
    /// The documents that the running transaction removes, and removed documents that a snapshot may still have. Each
    /// has the last position in the commit order of the transaction that removes it.
    left: BTreeMap<Membership, Seq>,
    /// The last position in the commit order of the last commit. Each snapshot that begins from now on has this commit.
    committed: Seq,
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

    /// Notes a document that is removed. `cluster` is the value in its row, which may be damaged; `None` if it has lost
    /// the row.
    pub(in crate::store) fn removed(&mut self, cluster: Option<Seq>, seq: Seq) {
        let cluster = cluster.unwrap_or(Seq(u64::MAX));
        if cluster != Seq(0) && !self.joined.remove(&(cluster, seq)) {
            self.left.push((cluster, seq));
        }
    }
}

impl State {
    fn apply(&mut self, moves: &Moves, last_seq: Seq) {
        let Some(all) = &mut self.all else { return };
        all.extend(&moves.joined);
        self.left.extend(moves.left.iter().filter_map(|&left| Some((known(all, left)?, last_seq))));
    }

    fn undo(&mut self, moves: &Moves) {
        let Some(all) = &mut self.all else { return };
        for joined in &moves.joined {
            all.remove(joined);
        }
        for left in moves.left.iter().filter_map(|&left| known(all, left)) {
            self.left.remove(&left);
        }
    }

    /// Forgets the documents that left by position `oldest`.
    fn purge(&mut self, oldest: Seq) {
        let Some(all) = &mut self.all else { return };
        self.left.retain(|left, &mut at| {
            let kept = at > oldest;
            if !kept {
                all.remove(left);
            }
            kept
        });
    }
}

impl Joined {
    pub(super) fn new(path: &Path, collection: &str) -> Self {
        let (state, reads) = Default::default();
        Self { path: path.to_owned(), collection: collection.to_owned(), state, reads }
    }

    /// Sets all documents that joined a cluster. No commit may run meanwhile.
    pub(in crate::store) fn set(&self, all: Vec<Membership>) {
        self.state.write().all = Some(all.into_iter().collect());
    }

    /// Adds the changes of a transaction that is complete, but not committed. `last_seq` is its last position in the
    /// commit order. Only snapshots that have this position see the changes.
    pub(in crate::store) fn begin(&self, moves: &Moves, last_seq: Seq) -> Result<()> {
        self.filled()?.apply(moves, last_seq);
        Ok(())
    }

    /// Ends the changes of a transaction, which may have failed.
    pub(in crate::store) fn end(&self, moves: &Moves, last_seq: Seq, committed: bool) {
        let mut state = self.state.write();
        if !committed {
            return state.undo(moves);
        }
        state.committed = last_seq;
        let oldest = self.reads.lock().keys().next().copied();
        state.purge(oldest.unwrap_or(last_seq));
    }

    /// Begins a read. Call this before the snapshot of the read begins.
    pub(super) fn enter(&self) -> Entered<'_> {
        let state = self.state.read();
        *self.reads.lock().entry(state.committed).or_default() += 1;
        Entered { joined: self, at: state.committed }
    }

    fn look<T>(&self, look: impl Fn(&State, &BTreeSet<Membership>) -> T) -> Result<T> {
        let state = self.state.read();
        if let Some(all) = &state.all {
            return Ok(look(&state, all));
        }
        drop(state);
        let state = RwLockWriteGuard::downgrade(self.filled()?);
        Ok(look(&state, state.all.as_ref().expect("they were read")))
    }

    /// Reads the documents from the file, if no scan has done so. Transactions wait for this lock before they commit, so
    /// the file must be read as it is now, and not as the caller's snapshot is.
    fn filled(&self) -> Result<RwLockWriteGuard<'_, State>> {
        let mut state = self.state.write();
        if state.all.is_none() {
            let read = read_all(&connect(&self.path, Role::Reader)?);
            let doing = "reading its clusters";
            state.all = Some(read.map_err(|error| StoreError::from_sqlite(&self.collection, doing, error))?);
        }
        Ok(state)
    }

    /// Returns the approximate bytes of the trees.
    pub(in crate::store) fn bytes(&self) -> u64 {
        let state = self.state.read();
        let all = state.all.as_ref().map_or(0, BTreeSet::len);
        (all * ENTRY_BYTES + state.left.len() * (ENTRY_BYTES + 2 * size_of::<Seq>())) as u64
    }
}

/// A running read.
pub(super) struct Entered<'a> {
    joined: &'a Joined,
    at: Seq,
}

impl<'a> Entered<'a> {
    /// Returns the clusters as a snapshot has them. `last_seq` is the last position in the commit order of the snapshot.
    pub(super) fn with(self, last_seq: Seq) -> ClusterView<'a> {
        ClusterView { entered: self, last_seq }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut reads = self.joined.reads.lock();
        let count = reads.get_mut(&self.at).expect("this read was counted");
        *count -= 1;
        if *count == 0 {
            reads.remove(&self.at);
        }
    }
}

/// The documents that joined a cluster, as a snapshot has them.
pub(super) struct ClusterView<'a> {
    entered: Entered<'a>,
    last_seq: Seq,
}

impl ClusterView<'_> {
    /// Returns up to `limit` documents that joined `cluster`, after the document `after`.
    pub(super) fn documents(&self, cluster: Seq, after: Seq, limit: usize) -> Result<Vec<Seq>> {
        let range = (Excluded((cluster, after)), Included((cluster, Seq(u64::MAX))));
        self.entered.joined.look(|state, all| {
            let there = all.range(range).filter(|joined| self.has(state, **joined));
            there.map(|&(_, seq)| seq).take(limit).collect()
        })
    }

    /// Returns the next cluster that a document has joined.
    pub(super) fn cluster_after(&self, cluster: Seq) -> Result<Option<Seq>> {
        let range = (Excluded((cluster, Seq(u64::MAX))), Unbounded);
        self.entered
            .joined
            .look(|state, all| all.range(range).find(|joined| self.has(state, **joined)).map(|&(cluster, _)| cluster))
    }

    /// Visits up to `limit` documents that joined clusters, in the order of the clusters, after `after`. Returns those
    /// that the snapshot has, and the last visited one if there may be more.
    pub(super) fn joined_after(
        &self,
        after: Membership,
        limit: usize,
    ) -> Result<(Vec<Membership>, Option<Membership>)> {
        self.entered.joined.look(|state, all| {
            let visited = all.range((Excluded(after), Unbounded)).take(limit);
            let (mut joined, mut last, mut count) = (Vec::with_capacity(limit), None, 0);
            for &membership in visited {
                (last, count) = (Some(membership), count + 1);
                if self.has(state, membership) {
                    joined.push(membership);
                }
            }
            (joined, last.filter(|_| count == limit))
        })
    }

    fn has(&self, state: &State, joined: Membership) -> bool {
        joined.1 <= self.last_seq && state.left.get(&joined).is_none_or(|&left| left > self.last_seq)
    }
}

/// Returns the true cluster of a document that leaves. If its row was damaged or lost, all documents are searched.
fn known(all: &BTreeSet<Membership>, left: Membership) -> Option<Membership> {
    let is_it = |other: &&Membership| other.1 == left.1;
    if all.contains(&left) { Some(left) } else { all.iter().find(is_it).copied() }
}

fn read_all(connection: &Connection) -> rusqlite::Result<BTreeSet<Membership>> {
    let mut statement = connection.prepare("SELECT cluster, seq FROM signature WHERE cluster <> 0")?;
    let seq = |row: &rusqlite::Row<'_>, at| row.get::<_, i64>(at).map(|seq| Seq(seq as u64));
    let rows = statement.query_map([], |row| Ok((seq(row, 0)?, seq(row, 1)?)))?;
    rows.collect()
}
