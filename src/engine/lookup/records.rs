//! `seq` -> its record, for answers that name documents. Documents that are not on disk yet, and those that reached the
//! disk recently, are kept here in memory. The ids of older documents may be in `id_cache`. Everything else is read
//! from the store. Therefore a decision usually finds in memory the ids that it cites and the shingles that it
//! compares. If it does not, it releases the decision lock before it reads the disk.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hapax_core::ShingleSet;
use hashbrown::HashMap;
use parking_lot::RwLock;
use tokio::sync::OwnedSemaphorePermit;

use super::id_cache::{CollectionIds, Identity};
use crate::store::{Additions, Head, Record, Store};
use crate::types::{Capture, Metadata, PayloadDigest, Revisit, Seq};
use crate::verdicts::{Kept, Result};

/// The number of records to keep after they are durable. With this many, a decision rarely has to be repeated.
const KEPT: usize = 1024;
/// The maximum size of the shingles and payloads that are kept with these records, in bytes.
const KEPT_BYTES: usize = 16 << 20;

/// A share of the bytes that may wait for the disk, in this collection and in all collections together. It is returned
/// on drop.
pub(crate) type Room = Arc<[OwnedSemaphorePermit; 2]>;

/// Records by `seq`: the newest ones in memory, all durable ones in the store.
pub(crate) struct Records {
    recent: RwLock<Recent>,
    /// Documents whose removal has been decided. Lookups that still see them must find their records, although the
    /// store may have deleted them.
    leaving: RwLock<HashMap<Seq, Arc<Record>>>,
    /// New metadata, labels, captures and pages of documents, decided but not on disk yet. Only decisions may show
    /// them.
    updating: RwLock<HashMap<Seq, Additions>>,
    /// The number of such updates that have reached the disk.
    updates: AtomicU64,
    ids: CollectionIds,
    store: Store,
}

#[derive(Default)]
struct Recent {
    records: BTreeMap<Seq, Newest>,
    /// The bytes of shingles and payloads that are kept with the records.
    bytes: usize,
    /// Everything up to this `seq` is on disk.
    durable: Seq,
}

/// A record that was decided recently.
struct Newest {
    record: Arc<Record>,
    kept: Option<Kept>,
    /// Held until the record is on disk.
    room: Option<Room>,
}

impl Recent {
    fn remove(&mut self, seq: Seq) -> Option<Arc<Record>> {
        let Newest { record, kept, .. } = self.records.remove(&seq)?;
        self.bytes -= kept.as_ref().map_or(0, Kept::bytes);
        Some(record)
    }
}

/// The documents that one answer names.
#[derive(Default)]
pub(crate) struct Mentions {
    by_seq: HashMap<Seq, Mention>,
    /// How many of these documents were in the cache of ids.
    cached: u64,
    /// How many of these documents were read from the store because they were not in the cache.
    read: u64,
}

/// The facts about a document that an answer names.
#[derive(Debug)]
pub(crate) struct Mention {
    pub identity: Identity,
    /// The metadata, if it was requested.
    pub metadata: Option<Metadata>,
    /// Whether metadata was requested but left in the file, because other records used up the bytes allowed for it.
    pub metadata_left: bool,
    /// The capture that the content came from, if it was requested.
    pub capture: Capture,
}

impl Records {
    pub(crate) fn new(store: Store, ids: CollectionIds) -> Self {
        let (recent, leaving, updating) = Default::default();
        Self { recent, leaving, updating, updates: AtomicU64::new(0), ids, store }
    }

    /// Returns the bytes of the ids in memory.
    pub(crate) fn ids_bytes(&self) -> u64 {
        self.ids.bytes()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Adds a record that has been decided and is not on disk yet.
    pub(crate) fn decided(&self, record: Arc<Record>, kept: Option<Kept>, room: Option<Room>) {
        let mut recent = self.recent.write();
        recent.bytes += kept.as_ref().map_or(0, Kept::bytes);
        recent.records.insert(record.seq, Newest { record, kept, room });
    }

    /// Keeps the record of a document whose deletion or replacement has been decided.
    pub(crate) fn leaves(&self, mut record: Arc<Record>) {
        if record.payload.is_some() {
            // Nothing reads the payload of this record, and lookups may keep the record for a long time. So the payload
            // is left out.
            record = Arc::new(Record { payload: None, ..Record::clone(&record) });
        }
        self.leaving.write().insert(record.seq, record);
    }

    /// Returns the record of a document whose deletion or replacement was undone, and no longer keeps it as leaving.
    pub(crate) fn stays(&self, seq: Seq) -> Arc<Record> {
        self.leaving.write().remove(&seq).expect("a leaving document is kept until it stays or is gone")
    }

    /// Keeps the new parts of a document whose update has been decided.
    pub(crate) fn updates(&self, seq: Seq, additions: Additions) {
        self.updating.write().insert(seq, additions);
    }

    /// Makes an update visible to all lookups after it has reached the disk. The caller holds the decision lock, so no
    /// decision sees half of the change.
    pub(crate) fn updated(&self, seq: Seq) {
        let mut updating = self.updating.write();
        let additions = updating.remove(&seq).expect("an update ends once");
        if let Some(newest) = self.recent.write().records.get_mut(&seq) {
            newest.record = Arc::new(Record::clone(&newest.record).with_additions(additions));
        }
        self.updates.fetch_add(1, Ordering::Relaxed);
    }

    /// Drops an update that was undone.
    pub(crate) fn not_updated(&self, seq: Seq) {
        self.updating.write().remove(&seq);
    }

    /// Returns how many updates have reached the disk so far. Mentions that were loaded at another count may show older
    /// metadata.
    pub(crate) fn updates_total(&self) -> u64 {
        self.updates.load(Ordering::Relaxed)
    }

    /// Returns a document's metadata, including an update that is decided but not on disk yet. Only for answers that
    /// wait until all earlier decisions are on disk.
    pub(crate) fn decided_metadata(&self, seq: Seq, mention: &Mention) -> Option<Metadata> {
        self.updating.read().get(&seq).map_or(&mention.metadata, |additions| &additions.metadata).clone()
    }

    /// Returns the revisit of a document's capture, if the capture's payload has this digest. Includes an update that
    /// is decided but not on disk yet. Only for answers that wait until all earlier decisions are on disk.
    pub(crate) fn decided_revisit(&self, seq: Seq, mention: &Mention, digest: &PayloadDigest) -> Option<Revisit> {
        let updating = self.updating.read();
        let capture = updating.get(&seq).map_or(&mention.capture, |additions| &additions.capture);
        Revisit::of(capture, &mention.identity.id, digest)
    }

    /// Marks a former link as an ordinary document, after this change has reached the disk.
    pub(crate) fn unlink(&self, seq: Seq) {
        if let Some(newest) = self.recent.write().records.get_mut(&seq) {
            Arc::make_mut(&mut newest.record).linked = false;
        }
    }

    /// Forgets a document whose insertion was undone, or a document that is gone and that no lookup can see any longer.
    pub(crate) fn forget(&self, seq: Seq) {
        self.recent.write().remove(seq);
        self.leaving.write().remove(&seq);
        self.ids.forget(seq);
    }

    /// Notes that all records up to `durable` are on disk. If there are more records than the limits allow, drops the
    /// oldest ones that are on disk. Their ids go to `id_cache`.
    pub(crate) fn settle(&self, durable: Seq) {
        let mut recent = self.recent.write();
        // Records that have reached the disk release their share of the bytes that may wait.
        let settled = (Bound::Excluded(recent.durable), Bound::Included(durable));
        recent.records.range_mut(settled).for_each(|(_, newest)| newest.room = None);
        recent.durable = durable;
        let mut left = Vec::new();
        while (recent.records.len() > KEPT || recent.bytes > KEPT_BYTES)
            && let Some((&seq, _)) = recent.records.first_key_value().filter(|(seq, _)| **seq <= durable)
        {
            left.extend(recent.remove(seq));
        }
        drop(recent);
        for record in left {
            self.ids.keep(record.seq, &Mention::of_head(record.head()).identity);
        }
    }

    /// Returns the shingles of each document that has them in memory.
    pub(crate) fn sets(&self, seqs: &[Seq]) -> Vec<Option<Arc<ShingleSet>>> {
        let recent = self.recent.read();
        let set = |seq| recent.records.get(seq).and_then(|newest| Some(Arc::clone(&newest.kept.as_ref()?.set)));
        seqs.iter().map(set).collect()
    }

    /// Returns the whole record; `None` if the document is gone.
    pub(crate) fn record(&self, seq: Seq) -> Result<Option<Arc<Record>>> {
        if let Some(newest) = self.recent.read().records.get(&seq) {
            return Ok(Some(Arc::clone(&newest.record)));
        }
        match self.store.record(seq)? {
            Some(record) => Ok(Some(Arc::new(record))),
            // The store is read first: a record is added to `leaving` before the store deletes it.
            None => Ok(self.leaving.read().get(&seq).cloned()),
        }
    }

    /// Adds the mentions of those documents in `seqs` that are in memory, and returns the `seq` of each other document.
    /// Set `ids_suffice` only if all these documents exist, and the answer needs neither metadata nor captures. The
    /// cache has only ids and never-changing facts, and some of its documents may be gone.
    pub(crate) fn recall(
        &self,
        mentions: &mut Mentions,
        seqs: impl Iterator<Item = Seq>,
        ids_suffice: bool,
    ) -> Vec<Seq> {
        let mut seqs = seqs.peekable();
        if seqs.peek().is_none() {
            // Most checks name no document. They do not take the lock, which all checks share.
            return Vec::new();
        }
        mentions.by_seq.reserve(seqs.size_hint().0);
        let recent = self.recent.read();
        let mut missing = Vec::new();
        for seq in seqs {
            if mentions.by_seq.contains_key(&seq) {
                continue;
            }
            if let Some(newest) = recent.records.get(&seq) {
                mentions.by_seq.insert(seq, Mention::of_head(newest.record.head()));
            } else if let Some(identity) = ids_suffice.then(|| self.ids.get(seq)).flatten() {
                mentions.by_seq.insert(seq, Mention::without_metadata(identity));
                mentions.cached += 1;
            } else {
                missing.push(seq);
            }
        }
        missing
    }

    /// Adds mentions from the store. A document that is gone, and that no lookup can see any longer, gets no mention.
    /// Loads metadata if `metadata_bytes` is given, up to that many bytes, and captures if `with_captures`.
    pub(crate) fn load(
        &self,
        mentions: &mut Mentions,
        missing: &[Seq],
        metadata_bytes: Option<usize>,
        with_captures: bool,
    ) -> Result<()> {
        if missing.is_empty() {
            return Ok(());
        }
        let found = self.store.heads(missing, metadata_bytes, with_captures)?;
        if metadata_bytes.is_none() && !with_captures {
            mentions.read += missing.len() as u64;
        }
        for (&seq, head) in missing.iter().zip(found) {
            let stored = head.map(Mention::of_head);
            stored.iter().for_each(|mention| self.ids.keep(seq, &mention.identity));
            let leaving = || self.leaving.read().get(&seq).map(|record| Mention::of_head(record.head()));
            mentions.by_seq.extend(stored.or_else(leaving).map(|mention| (seq, mention)));
        }
        Ok(())
    }
}

impl Mention {
    fn of_head(head: Head) -> Self {
        let Head { id, content, first_seen, metadata, metadata_left, capture, .. } = head;
        Self { identity: Identity { id, content, first_seen }, metadata, metadata_left, capture }
    }

    /// Returns the revisit of the document's capture, if the capture's payload has this digest.
    pub(crate) fn revisit(&self, digest: &PayloadDigest) -> Option<Revisit> {
        Revisit::of(&self.capture, &self.identity.id, digest)
    }

    fn without_metadata(identity: Identity) -> Self {
        Self { identity, metadata: None, metadata_left: false, capture: Capture::default() }
    }
}

impl Mentions {
    /// Returns how many ids were in the cache, and how many were read from the store.
    pub(crate) fn sources(&self) -> (u64, u64) {
        (self.cached, self.read)
    }

    /// Returns the facts about a document that an answer names, if the document has been found.
    pub(crate) fn get(&self, seq: Seq) -> Option<&Mention> {
        self.by_seq.get(&seq)
    }
}
