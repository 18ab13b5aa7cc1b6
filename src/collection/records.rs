//! `seq` -> the record behind it, for answers that name documents.
//! Documents that are not on disk yet, and those that have just got there, are here; the rest is in the store.
//! So a decision finds the ids it cites in memory and never reads the disk under the decision lock.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::RwLock;

use super::Result;
use crate::store::{Head, Record, Store};
use crate::types::Seq;

/// Records kept after they are durable: enough that a decision seldom has to look twice.
const KEPT: usize = 1024;

/// Records by `seq`: the newest in memory, all in the store.
pub(super) struct Records {
    recent: RwLock<BTreeMap<Seq, Arc<Record>>>,
    /// Documents that are going. Whoever sees them still must find their records, though the store may have none.
    leaving: RwLock<HashMap<Seq, Arc<Record>>>,
    store: Store,
}

/// The heads one answer needs.
#[derive(Default)]
pub(super) struct Heads(HashMap<Seq, Head>);

impl Records {
    /// With nothing recent.
    pub(super) fn new(store: Store) -> Self {
        Self { recent: RwLock::default(), leaving: RwLock::default(), store }
    }

    /// The store behind.
    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// Notes a record that has been decided and is not on disk yet.
    pub(super) fn decided(&self, record: Arc<Record>) {
        self.recent.write().insert(record.seq, record);
    }

    /// Notes a document whose deletion or replacement has been decided.
    pub(super) fn leaves(&self, record: Arc<Record>) {
        self.leaving.write().insert(record.seq, record);
    }

    /// The deletion or replacement was undone.
    pub(super) fn stays(&self, seq: Seq) {
        self.leaving.write().remove(&seq);
    }

    /// A link is none from here on, on disk as well.
    pub(super) fn unlink(&self, seq: Seq) {
        if let Some(record) = self.recent.write().get_mut(&seq) {
            Arc::make_mut(record).linked = false;
        }
    }

    /// Forgets a document that was undone, or is gone and no longer looked for.
    pub(super) fn forget(&self, seq: Seq) {
        self.recent.write().remove(&seq);
        self.leaving.write().remove(&seq);
    }

    /// Lets go of the oldest records, all of them on disk up to `durable`.
    pub(super) fn settle(&self, durable: Seq) {
        let mut recent = self.recent.write();
        while recent.len() > KEPT && recent.first_key_value().is_some_and(|(&seq, _)| seq <= durable) {
            recent.pop_first();
        }
    }

    /// The whole record; `None` where the document is gone.
    pub(super) fn record(&self, seq: Seq) -> Result<Option<Arc<Record>>> {
        if let Some(record) = self.recent.read().get(&seq) {
            return Ok(Some(Arc::clone(record)));
        }
        match self.store.record(seq)? {
            Some(record) => Ok(Some(Arc::new(record))),
            // In this order: a record is noted as leaving before the store lets go of it.
            None => Ok(self.leaving.read().get(&seq).cloned()),
        }
    }

    /// Adds to `heads` those of `seqs` that memory has, and returns those it has not.
    pub(super) fn recall(&self, heads: &mut Heads, seqs: impl Iterator<Item = Seq>) -> Vec<Seq> {
        let recent = self.recent.read();
        let mut missing = Vec::new();
        for seq in seqs {
            if heads.0.contains_key(&seq) {
                continue;
            }
            match recent.get(&seq) {
                Some(record) => {
                    heads.0.insert(seq, record.head());
                }
                None => missing.push(seq),
            }
        }
        missing
    }

    /// Adds heads from the store; those of documents that are gone and no longer looked for stay missing.
    pub(super) fn load(&self, heads: &mut Heads, missing: &[Seq], with_metadata: bool) -> Result<()> {
        if missing.is_empty() {
            return Ok(());
        }
        let found = self.store.heads(missing, with_metadata)?;
        for (&seq, head) in missing.iter().zip(found) {
            let head = head.or_else(|| self.leaving.read().get(&seq).map(|record| record.head()));
            heads.0.extend(head.map(|head| (seq, head)));
        }
        Ok(())
    }
}

impl Heads {
    /// The head of a document, where it has been found.
    pub(super) fn get(&self, seq: Seq) -> Option<&Head> {
        self.0.get(&seq)
    }
}
