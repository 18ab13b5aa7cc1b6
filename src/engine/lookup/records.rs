//! `seq` -> the record behind it, for answers that name documents.
//! Documents that are not on disk yet, and those that have just got there, are here; the rest is in the store.
//! So a decision finds the ids it cites, and the shingles it compares, in memory and never reads the disk under the
//! decision lock.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hapax_core::ShingleSet;
use parking_lot::RwLock;
use tokio::sync::OwnedSemaphorePermit;

use crate::store::{Head, Record, Store};
use crate::types::{Metadata, Seq};
use crate::verdicts::{Kept, Result};

/// Records kept after they are durable: enough that a decision seldom has to look twice.
const KEPT: usize = 1024;
/// Bytes of shingles and payloads that go with them.
const KEPT_BYTES: usize = 16 << 20;

/// A share of what may wait for the disk, given back when dropped.
pub(crate) type Room = Arc<OwnedSemaphorePermit>;

/// Records by `seq`: the newest in memory, all in the store.
pub(crate) struct Records {
    recent: RwLock<Recent>,
    /// Documents that are going. Whoever sees them still must find their records, though the store may have none.
    leaving: RwLock<HashMap<Seq, Arc<Record>>>,
    /// Documents that get other metadata, which is not on disk yet. Only deciders may show it.
    updating: RwLock<HashMap<Seq, Option<Metadata>>>,
    /// How many such updates have got to disk.
    updates: AtomicU64,
    store: Store,
}

#[derive(Default)]
struct Recent {
    records: BTreeMap<Seq, Newest>,
    /// Bytes of what is kept beside them.
    bytes: usize,
    /// All up to here are on disk.
    durable: Seq,
}

/// A record that has just been decided.
struct Newest {
    record: Arc<Record>,
    kept: Option<Kept>,
    /// Until it is on disk.
    room: Option<Room>,
}

impl Recent {
    fn remove(&mut self, seq: Seq) {
        if let Some(Newest { kept: Some(kept), .. }) = self.records.remove(&seq) {
            self.bytes -= kept.bytes();
        }
    }
}

/// The heads one answer needs.
#[derive(Default)]
pub(crate) struct Heads(HashMap<Seq, Head>);

impl Records {
    pub(crate) fn new(store: Store) -> Self {
        let (recent, leaving, updating) = Default::default();
        Self { recent, leaving, updating, updates: AtomicU64::new(0), store }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Notes a record that has been decided and is not on disk yet.
    pub(crate) fn decided(&self, record: Arc<Record>, kept: Option<Kept>, room: Option<Room>) {
        let mut recent = self.recent.write();
        recent.bytes += kept.as_ref().map_or(0, Kept::bytes);
        recent.records.insert(record.seq, Newest { record, kept, room });
    }

    /// Notes a document whose deletion or replacement has been decided.
    pub(crate) fn leaves(&self, mut record: Arc<Record>) {
        if record.payload.is_some() {
            // Nobody reads it here, and readers may keep the record for long.
            record = Arc::new(Record { payload: None, ..Record::clone(&record) });
        }
        self.leaving.write().insert(record.seq, record);
    }

    /// The deletion or replacement was undone.
    pub(crate) fn stays(&self, seq: Seq) -> Arc<Record> {
        self.leaving.write().remove(&seq).expect("what leaves is noted until it stays or is gone")
    }

    /// Notes a document whose update has been decided.
    pub(crate) fn updates(&self, seq: Seq, metadata: Option<Metadata>) {
        self.updating.write().insert(seq, metadata);
    }

    /// The update is on disk. The caller holds the decision lock, so no decision finds it half done.
    pub(crate) fn updated(&self, seq: Seq) {
        let mut updating = self.updating.write();
        let metadata = updating.remove(&seq).expect("an update ends once");
        if let Some(newest) = self.recent.write().records.get_mut(&seq) {
            Arc::make_mut(&mut newest.record).metadata = metadata;
        }
        self.updates.fetch_add(1, Ordering::Relaxed);
    }

    /// The update was undone.
    pub(crate) fn not_updated(&self, seq: Seq) {
        self.updating.write().remove(&seq);
    }

    /// How many updates have got to disk so far. Heads that were loaded at another count may show older metadata.
    pub(crate) fn updates_total(&self) -> u64 {
        self.updates.load(Ordering::Relaxed)
    }

    /// A document's metadata, as decided. Only for answers that wait for all decisions before them.
    pub(crate) fn decided_metadata(&self, head: &Head) -> Option<Metadata> {
        self.updating.read().get(&head.seq).unwrap_or(&head.metadata).clone()
    }

    /// A link is none from here on, on disk as well.
    pub(crate) fn unlink(&self, seq: Seq) {
        if let Some(newest) = self.recent.write().records.get_mut(&seq) {
            Arc::make_mut(&mut newest.record).linked = false;
        }
    }

    /// Forgets a document that was undone, or is gone and no longer looked for.
    pub(crate) fn forget(&self, seq: Seq) {
        self.recent.write().remove(seq);
        self.leaving.write().remove(&seq);
    }

    /// Lets go of the oldest records, all of them on disk up to `durable`.
    pub(crate) fn settle(&self, durable: Seq) {
        let mut recent = self.recent.write();
        // What is on disk waits for it no more.
        let settled = (Bound::Excluded(recent.durable), Bound::Included(durable));
        recent.records.range_mut(settled).for_each(|(_, newest)| newest.room = None);
        recent.durable = durable;
        while (recent.records.len() > KEPT || recent.bytes > KEPT_BYTES)
            && let Some((&seq, _)) = recent.records.first_key_value().filter(|(seq, _)| **seq <= durable)
        {
            recent.remove(seq);
        }
    }

    /// The shingles of each document, where memory has them.
    pub(crate) fn sets(&self, seqs: &[Seq]) -> Vec<Option<Arc<ShingleSet>>> {
        let recent = self.recent.read();
        let set = |seq| recent.records.get(seq).and_then(|newest| Some(Arc::clone(&newest.kept.as_ref()?.set)));
        seqs.iter().map(set).collect()
    }

    /// The whole record; `None` where the document is gone.
    pub(crate) fn record(&self, seq: Seq) -> Result<Option<Arc<Record>>> {
        if let Some(newest) = self.recent.read().records.get(&seq) {
            return Ok(Some(Arc::clone(&newest.record)));
        }
        match self.store.record(seq)? {
            Some(record) => Ok(Some(Arc::new(record))),
            // In this order: a record is noted as leaving before the store lets go of it.
            None => Ok(self.leaving.read().get(&seq).cloned()),
        }
    }

    /// Adds to `heads` those of `seqs` that memory has, and returns those it has not.
    pub(crate) fn recall(&self, heads: &mut Heads, seqs: impl Iterator<Item = Seq>) -> Vec<Seq> {
        let recent = self.recent.read();
        let mut missing = Vec::new();
        for seq in seqs {
            if heads.0.contains_key(&seq) {
                continue;
            }
            match recent.records.get(&seq) {
                Some(newest) => {
                    heads.0.insert(seq, newest.record.head());
                }
                None => missing.push(seq),
            }
        }
        missing
    }

    /// Adds heads from the store; those of documents that are gone and no longer looked for stay missing.
    /// Of metadata so many bytes are loaded, if it is asked for.
    pub(crate) fn load(&self, heads: &mut Heads, missing: &[Seq], metadata_bytes: Option<usize>) -> Result<()> {
        if missing.is_empty() {
            return Ok(());
        }
        let found = self.store.heads(missing, metadata_bytes)?;
        for (&seq, head) in missing.iter().zip(found) {
            let head = head.or_else(|| self.leaving.read().get(&seq).map(|record| record.head()));
            heads.0.extend(head.map(|head| (seq, head)));
        }
        Ok(())
    }
}

impl Heads {
    /// The head of a document, where it has been found.
    pub(crate) fn get(&self, seq: Seq) -> Option<&Head> {
        self.0.get(&seq)
    }
}
