//! Index and store as one thing: check, decide, commit, delete.
//! In: contents, ids, options. Out: verdicts that rest only on what is on disk.
//! Knows nothing of HTTP or of files' formats.
//!
//! A write goes through `prepare` (sign), `latch` (its id), `order` (decide under one lock, enter the index as
//! pending) and `commit` (group commit, then answer). A check goes through `prepare` and `judge` alone and never waits
//! for a write.

pub(crate) mod boot;
pub(crate) mod buckets;
pub(crate) mod cluster_pages;
pub(crate) mod clusters;
pub(crate) mod commit;
pub(crate) mod compare;
#[allow(dead_code)]
pub(crate) mod decision;
pub(crate) mod disk;
pub(crate) mod doubt;
pub(crate) mod epoch;
pub(crate) mod exact;
pub(crate) mod expiry;
pub(crate) mod judge;
pub(crate) mod latch;
pub(crate) mod long_work;
pub(crate) mod memory;
pub(crate) mod meters;
pub(crate) mod order;
pub(crate) mod pace;
pub(crate) mod pairs;
pub(crate) mod payload_room;
pub(crate) mod rebanding;
pub(crate) mod records;
pub(crate) mod rounds;
pub(crate) mod scrub;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hapax_core::{IllFormed, Spec, tuning, verify};
use parking_lot::{Condvar, Mutex, RwLock};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::index::{Arena, BandIndex, IdIndex};
use crate::store;
use crate::telemetry::names::{self, label};
use crate::types::{
    CollectionName, Content, DocId, Document, Keep, Metadata, Method, OnDuplicate, OnExisting, Outcome, Overlap, Seq,
    Similarity, Slot, TimestampMs, Verdict, Verify,
};

pub use buckets::HotBucket;
pub use cluster_pages::{ClusterMember, ClusterPage, ClustersPage};
pub use compare::{Comparand, Comparison, ExactComparison};
pub use order::Ticket;
pub use scrub::ScrubConfig;

use crate::verdicts::{
    Changes, CollectionError, Description, ID_JSON_BYTES_MAX, Limits, Made, PrepareOptions, Prepared, Preparer,
    Purpose, Result, Settings, TextSigner, WriteFailure, check_threshold, fitting,
};
use disk::DataDisk;
use doubt::Doubts;
use epoch::{Epochs, Reading};
use exact::{Compared, Exact, IN_PASSING};
use expiry::{SeenTimes, Sweep};
use judge::{Judgement, Query, Ranked, View};
use latch::{Latch, Latches};
use meters::{Meters, Op};
use order::{ATTEMPTS, Decided, Disk, Existing, Insertion, Order, changing, wait_for_commit};

use payload_room::PayloadRoom;
use records::{Heads, Records};

/// How to look a document up.
#[derive(Clone, Copy, Debug)]
pub struct CheckOptions {
    /// In place of the collection's own.
    pub threshold: Option<f64>,
    /// Most matches in the answer.
    pub limit: usize,
    /// Whether matches bring their metadata.
    pub with_metadata: bool,
}

/// How to insert a document.
#[derive(Clone, Copy, Debug)]
pub struct InsertOptions {
    /// What to do when it has a duplicate.
    pub on_duplicate: OnDuplicate,
    /// What to do when its id holds other content.
    pub on_existing: OnExisting,
    /// Most matches in the answer.
    pub limit: usize,
    /// Whether matches bring their metadata.
    pub with_metadata: bool,
}

/// One collection, open.
pub struct Collection {
    pub(crate) name: CollectionName,
    pub(crate) preparer: Preparer,
    pub(crate) created: TimestampMs,
    /// Documents of before there was a note of it count as seen then.
    pub(crate) seen_floor: TimestampMs,
    pub(crate) limits: Limits,
    pub(crate) arena: Arena,
    pub(crate) ids: IdIndex,
    pub(crate) records: Records,
    pub(crate) live: RwLock<Live>,
    pub(crate) order: Mutex<Order>,
    /// Told when the queue has work.
    pub(crate) work: Condvar,
    /// The place in the order up to which everything is on disk.
    pub(crate) durable: AtomicU64,
    pub(crate) epochs: Epochs,
    /// What an uncertain write leaves.
    pub(crate) doubts: Doubts,
    pub(crate) documents: AtomicI64,
    pub(crate) linked: AtomicI64,
    pub(crate) meters: Meters,
    pub(crate) latches: Arc<Latches>,
    pub(crate) places: Arc<Semaphore>,
    pub(crate) payload_room: PayloadRoom,
    pub(crate) committer: Mutex<Option<JoinHandle<()>>>,
    pub(crate) rebanding: tokio::sync::Mutex<()>,
    /// The sweeper's own.
    pub(crate) sweep: Mutex<Sweep>,
    pub(crate) disk: Arc<DataDisk>,
}

/// A lookup, ready to be made.
pub(crate) struct Check {
    id: Option<DocId>,
    made: Made,
    shingles: Option<u64>,
    options: CheckOptions,
    /// Bytes of the answer.
    bytes_max: usize,
}

/// What a lookup found in memory.
pub(crate) struct Looked<'a> {
    judgement: Judgement,
    threshold: f64,
    expected_recall: Option<f64>,
    /// Where the survivors are yet to be compared.
    exact: Option<Exact<'a>>,
}

impl Looked<'_> {
    pub(crate) fn cited(&self, check: &Check) -> &[Ranked] {
        order::cited(&self.judgement, check.options.limit)
    }
}

/// What can change while the collection is open.
pub(crate) struct Live {
    pub(crate) settings: Settings,
    /// Equal slots from which a candidate is a match, or survives to be compared exactly.
    pub(crate) matching_min: u32,
    pub(crate) bands: Arc<BandIndex>,
    /// The index under a new banding, while it is being built.
    pub(crate) next: Option<Arc<BandIndex>>,
    /// When documents were last seen; absent where they stay for ever.
    pub(crate) seen_times: Option<Arc<SeenTimes>>,
}

impl Collection {
    /// Its name.
    pub fn name(&self) -> &CollectionName {
        &self.name
    }

    /// Its settings now.
    pub fn settings(&self) -> Settings {
        self.live.read().settings.clone()
    }

    /// Its settings and counts.
    pub fn describe(&self) -> Description {
        let [documents, linked] = [&self.documents, &self.linked].map(counted);
        Description::new(self.name.clone(), self.settings(), self.created, documents, Some(linked))
    }

    /// Makes a document ready to be judged.
    pub async fn prepare(&self, content: Content) -> Result<Prepared> {
        self.prepare_with(content, PrepareOptions::default()).await
    }

    /// Makes a document ready to be judged, or for other uses.
    pub async fn prepare_with(&self, content: Content, options: PrepareOptions) -> Result<Prepared> {
        self.preparer.prepare(content, options, self.verify()).await
    }

    /// Begins a text that will be given in pieces.
    pub fn text_signer(&self, ill_formed: IllFormed, options: PrepareOptions) -> Result<TextSigner> {
        self.preparer.text_signer(ill_formed, options, self.verify())
    }

    /// Bytes that a text of so many takes at the most beside itself while it is prepared: its shingles, in a collection
    /// where they are kept or compared.
    pub fn shingle_bytes(&self, purpose: Purpose, text_bytes: usize) -> usize {
        self.preparer.shingle_bytes(purpose, text_bytes, self.verify())
    }

    /// Whether contents that are looked up are compared by their shingles.
    pub fn compares_shingles(&self) -> bool {
        self.verify() == Verify::Exact
    }

    fn verify(&self) -> Verify {
        self.live.read().settings.verify
    }

    /// Looks a document up. Never writes and never waits for a write.
    pub async fn check(
        self: &Arc<Self>,
        id: Option<DocId>,
        prepared: Prepared,
        options: CheckOptions,
    ) -> Result<Verdict> {
        self.check_within(id, prepared, options, usize::MAX).await
    }

    /// As [`check`](Self::check), for an answer of so many bytes; see [`Verdict::fit`].
    pub async fn check_within(
        self: &Arc<Self>,
        id: Option<DocId>,
        prepared: Prepared,
        options: CheckOptions,
        bytes_max: usize,
    ) -> Result<Verdict> {
        if let Some(threshold) = options.threshold {
            check_threshold(threshold)?;
        }
        let (made, shingles) = prepared.into_parts();
        let Some(made) = made else { return Ok(self.nothing_to_check(id)) };
        let check = Check { id, made, shingles, options, bytes_max };
        let mut verdict = match self.check_in_memory(&check) {
            Some(verdict) => verdict,
            None => self.blocking(move |collection| collection.check_now(check)).await?,
        };
        verdict.fit(bytes_max);
        Ok(verdict)
    }

    /// Check-and-insert: decided when this returns, durable when the ticket is.
    pub async fn insert(
        self: &Arc<Self>,
        id: DocId,
        metadata: Option<Metadata>,
        prepared: Prepared,
        options: InsertOptions,
    ) -> Result<Ticket<Verdict>> {
        self.insert_within(id, metadata, prepared, options, usize::MAX).await
    }

    /// As [`insert`](Self::insert), for an answer of so many bytes; see [`Verdict::fit`]. What is stored is the same.
    pub async fn insert_within(
        self: &Arc<Self>,
        id: DocId,
        metadata: Option<Metadata>,
        prepared: Prepared,
        options: InsertOptions,
        bytes_max: usize,
    ) -> Result<Ticket<Verdict>> {
        let (made, shingles) = prepared.into_parts();
        let Some(made) = made else { return self.insert_empty(id, options.on_existing).await };
        let room = match &made.kept {
            Some(kept) if kept.payload.is_some() => Some(self.payload_room.take(kept.bytes()).await?),
            _ if self.preparer.keep() == Keep::Signature => None,
            _ => {
                return Err(CollectionError::Invalid {
                    field: "document",
                    detail: "was prepared to be looked up".into(),
                });
            }
        };
        let (latch, place) = self.enter(&id).await?;
        let insertion = Insertion { id, metadata, made, room, shingles, options, bytes_max };
        let mut ticket = match self.decide_insert(insertion, latch, place, Disk::Later)? {
            Decided::Now(ticket) => ticket,
            Decided::Later(insertion, latch, place) => {
                let decide = move |collection: &Self| collection.decide_insert(insertion, latch, place, Disk::Now);
                match self.blocking(decide).await? {
                    Decided::Now(ticket) => ticket,
                    Decided::Later(..) => unreachable!("the disk was to be read at once"),
                }
            }
        };
        // Here and not where it is decided: that is under a lock.
        ticket.value_mut().fit(bytes_max);
        self.meters.verdict(Op::Insert, ticket.value());
        Ok(ticket)
    }

    /// Deletes an id; the ticket says whether it was there.
    pub async fn delete(self: &Arc<Self>, id: DocId) -> Result<Ticket<bool>> {
        let (latch, place) = self.enter(&id).await?;
        self.blocking(move |collection| collection.decide_delete(&id, latch, place)).await
    }

    /// The document of an id.
    pub async fn document(self: &Arc<Self>, id: &DocId) -> Result<Option<Document>> {
        let id = id.clone();
        self.blocking(move |collection| {
            let (_reading, view) = collection.read();
            let existing = collection.find(&id, store::id_fingerprint(&id), view)?;
            let Some(existing) = existing else { return Ok(None) };
            let representative = collection.representative_of(&existing.record)?;
            Ok(Some({
                let record = &existing.record;
                let lifetime = collection.lifetime(&existing);
                Document {
                    id: record.id.clone(),
                    seq: record.seq,
                    metadata: record.metadata.clone(),
                    first_seen: record.first_seen,
                    id_first_seen: record.id_first_seen,
                    last_seen: lifetime.map(|(last_seen, _)| last_seen),
                    expires: lifetime.map(|(_, expires)| expires),
                    shingles: record.shingles,
                    verdict: record.verdict.kind,
                    duplicate_of: record.verdict.duplicate_of.clone(),
                    representative,
                    linked: record.linked,
                }
            }))
        })
        .await
    }

    /// Documents in order of `seq`, after the given one, as many as fit into so many bytes of JSON and at least one; and
    /// whether more may follow.
    pub async fn documents_within(
        self: &Arc<Self>,
        after: Seq,
        limit: usize,
        bytes_max: usize,
    ) -> Result<(Vec<Document>, bool)> {
        self.blocking(move |collection| {
            let (mut documents, mut after) = (Vec::new(), after);
            loop {
                let asked = limit - documents.len();
                let mut read: usize = documents.iter().map(Document::bytes).sum();
                let fits = |document: &Document| {
                    read += document.bytes();
                    read <= bytes_max
                };
                let page = collection.records.store().page_while(after, asked, fits)?;
                let more = page.len() == asked || read > bytes_max;
                after = page.last().map_or(after, |document| document.seq);
                documents.extend(collection.without_doubtful(page)?);
                let has_room = documents.len() < limit && read <= bytes_max;
                if more && (has_room || documents.is_empty()) {
                    continue;
                }
                // Now with the ids of their representatives.
                let fitting = fitting(&documents, bytes_max, Document::bytes);
                let more = more || fitting < documents.len();
                documents.truncate(fitting);
                return Ok((documents, more));
            }
        })
        .await
    }

    /// Documents in order of `seq`, after the given one.
    pub async fn documents(self: &Arc<Self>, after: Seq, limit: usize) -> Result<Vec<Document>> {
        Ok(self.documents_within(after, limit, usize::MAX).await?.0)
    }

    /// Whether it takes no writes until a restart, because the disk failed under one.
    pub(crate) fn refuses_writes(&self) -> bool {
        self.order.lock().refused.is_some()
    }

    /// Stops taking writes, waits until those taken are on disk, and closes the file; blocking.
    pub fn close(&self) {
        {
            let mut order = self.order.lock();
            order.closed = true;
            self.work.notify_one();
        }
        let committer = self.committer.lock().take();
        if let Some(committer) = committer
            && committer.join().is_err()
        {
            tracing::error!(collection = %self.name, "the committer panicked");
        }
    }

    /// Sets the gauges.
    pub fn observe(&self) {
        let label = || self.name.to_string();
        let set = |name: &'static str, value: f64| metrics::gauge!(name, label::COLLECTION => label()).set(value);
        set(names::LOG_BYTES, self.records.store().log_bytes() as f64);
        set(names::DOCUMENTS, self.documents.load(Ordering::Relaxed) as f64);
        set(names::COMMIT_QUEUE_DEPTH, (self.limits.commit_queue_max - self.places.available_permits()) as f64);
        set(names::COMMIT_QUEUE_MAX, self.limits.commit_queue_max as f64);
        set(names::COMMIT_PAYLOAD_BYTES, self.payload_room.bytes_waiting() as f64);
        set(names::COMMIT_PAYLOAD_BYTES_MAX, self.payload_room.bytes_max() as f64);
        let bands = Arc::clone(&self.live.read().bands);
        set(names::BUCKET_DOCUMENTS_LARGEST, bands.sizes().largest() as f64);
        set(names::BUCKET_DOCUMENTS_P99, bands.sizes().quantile(0.99) as f64);
        self.account_now();
        let parts = {
            let order = self.order.lock();
            let clusters = (names::value::PART_CLUSTERS, order.clusters.bytes());
            self.index_bytes(&self.live.read(), order.slots).into_iter().chain([clusters])
        };
        for (part, bytes) in parts {
            metrics::gauge!(names::INDEX_BYTES, label::COLLECTION => label(), label::PART => part).set(bytes as f64);
        }
    }

    /// The view of a check. What it shows stays readable until the guard is dropped.
    pub(crate) fn read(&self) -> (Reading, View) {
        // Entered first: what leaves after this waits, whichever place is taken below.
        let reading = self.epochs.enter();
        (reading, View::Durable(self.durable()))
    }

    pub(crate) fn durable(&self) -> Seq {
        Seq(self.durable.load(Ordering::Acquire))
    }

    /// The verdict, where it takes no look at the disk.
    pub(crate) fn check_in_memory(&self, check: &Check) -> Option<Verdict> {
        // First: what becomes durable after the look for its id is not to be seen.
        let (_reading, view) = self.read();
        let id_may_be_held =
            check.id.as_ref().is_some_and(|id| !self.ids.candidates(&self.arena, store::id_fingerprint(id)).is_empty());
        if id_may_be_held {
            return None;
        }
        let mut compared = Compared::default();
        let mut looked = self.look(check, None, view, &compared.mistaken);
        if let Some(exact) = looked.exact
            && !self.settle_survivors(exact, &mut looked.judgement, &mut compared, IN_PASSING).is_empty()
        {
            return None;
        }
        let mut heads = Heads::default();
        let missing = self.records.recall(&mut heads, looked.cited(check).iter().map(|found| found.seq));
        let content = check.made.content;
        if !missing.is_empty()
            || looked.judgement.mistakes(check.options.limit, &heads, content).next().is_some()
            || looked.judgement.best_link().is_some()
        {
            return None;
        }
        Some(self.conclude(check, None, looked, &heads, &compared))
    }

    pub(crate) fn check_now(&self, check: Check) -> Result<Verdict> {
        let mut compared = Compared::default();
        for attempt in 0..ATTEMPTS {
            let (_reading, view) = self.read();
            let existing = match &check.id {
                Some(id) => match self.find(id, store::id_fingerprint(id), view) {
                    // The lookup says that it is not complete.
                    Err(CollectionError::Doubtful { .. }) => None,
                    found => found?,
                },
                None => None,
            };
            let mut looked = self.look(&check, existing.as_ref(), view, &compared.mistaken);
            if let Some(exact) = looked.exact {
                let left = self.settle_survivors(exact, &mut looked.judgement, &mut compared, u64::MAX);
                if !left.is_empty() {
                    self.compare_survivors(exact, &left, &mut compared)?;
                    // Seen from here it is there, and a replacement is not: from a later place it is the other way.
                    if compared.take_gone(&left) {
                        wait_for_commit(attempt);
                        continue;
                    }
                    self.settle_survivors(exact, &mut looked.judgement, &mut compared, 0);
                }
            }
            let mut heads = Heads::default();
            let missing = self.records.recall(&mut heads, looked.cited(&check).iter().map(|found| found.seq));
            self.records.load(&mut heads, &missing, check.options.with_metadata.then_some(check.bytes_max))?;
            let mistakes: Vec<Seq> =
                looked.judgement.mistakes(check.options.limit, &heads, check.made.content).collect();
            if !mistakes.is_empty() {
                compared.mistaken.extend(mistakes);
                continue;
            }
            let link = looked.judgement.best_link().map(|link| link.seq);
            let changed = existing.as_ref().filter(|existing| !self.holds(existing, &check.made));
            let previous = changed.map(|existing| self.previous(existing, &check.made)).transpose()?;
            let mut verdict = self.conclude(&check, existing.as_ref(), looked, &heads, &compared);
            verdict.previous = previous;
            if let Some(link) = link
                && let Some(record) = self.records.record(link)?
            {
                match self.representative_of(&record) {
                    Ok(representative) => verdict.representative = representative,
                    Err(CollectionError::Doubtful { .. }) => verdict.unread += 1,
                    Err(error) => return Err(error),
                }
            }
            return Ok(verdict);
        }
        Err(changing())
    }

    pub(crate) fn look<'a>(
        &self,
        check: &'a Check,
        existing: Option<&Existing>,
        view: View,
        mistaken: &HashSet<Seq>,
    ) -> Looked<'a> {
        // Held until the probe is over: a banding that has been taken over is no longer kept up to date.
        let live = self.live.read();
        let threshold = check.options.threshold.unwrap_or(live.settings.threshold);
        let exact = Exact::of(&check.made, &live.settings, threshold);
        let verify = if exact.is_some() { Verify::Exact } else { Verify::Estimate };
        let query = Query {
            signature: &check.made.signature,
            content: check.made.content_prefix(),
            own: existing.map(|existing| existing.slot),
            matching_min: match check.options.threshold {
                None if verify == live.settings.verify => live.matching_min,
                _ => exact::matching_min(verify, threshold, self.preparer.spec()),
            },
            members_max: judge::members_max(check.options.limit, mistaken),
            contents_max: exact.map(|_| self.limits.exact_reads_max),
            mistaken,
        };
        let mut judgement = self.judge(&live.bands, view, &query);
        judgement.unread += self.doubted(&query, check.id.as_ref());
        Looked {
            exact,
            judgement,
            threshold,
            expected_recall: (threshold < live.settings.threshold)
                .then(|| tuning::candidate_probability(threshold, live.bands.banding(), self.preparer.shape())),
        }
    }

    pub(crate) fn conclude(
        &self,
        check: &Check,
        existing: Option<&Existing>,
        looked: Looked<'_>,
        heads: &Heads,
        compared: &Compared,
    ) -> Verdict {
        let Check { id, made, shingles, options, .. } = check;
        let CheckOptions { limit, with_metadata, .. } = *options;
        let mut verdict = self.verdict(&looked.judgement, heads, made.content, limit, |head| {
            head.metadata.clone().filter(|_| with_metadata)
        });
        verdict.threshold = looked.threshold;
        verdict.shingles = *shingles;
        verdict.stored = existing.is_some_and(|existing| self.holds(existing, made));
        verdict.id = id.clone();
        verdict.expected_recall = looked.expected_recall;
        looked.judgement.meter(&self.meters);
        compared.meter(&self.meters);
        self.meters.verdict(Op::Check, &verdict);
        verdict
    }

    pub(crate) fn nothing_to_check(&self, id: Option<DocId>) -> Verdict {
        let verdict = self.empty_verdict(id, Outcome::Checked);
        self.meters.verdict(Op::Check, &verdict);
        verdict
    }

    /// The right to write an id, and a place in the queue.
    pub(crate) async fn enter(&self, id: &DocId) -> Result<(Latch, OwnedSemaphorePermit)> {
        let wait = self.limits.commit_queue_wait;
        let entered = async {
            let latch = self.latches.acquire(id).await;
            let place = Arc::clone(&self.places).acquire_owned().await.expect("the places are never closed");
            (latch, place)
        };
        tokio::time::timeout(wait, entered).await.map_err(|_| CollectionError::Overloaded {
            detail: format!(
                "{} writes, or an earlier one of the same id, wait for the disk; nothing was written",
                self.limits.commit_queue_max - self.places.available_permits()
            ),
            retry_after: wait.max(Duration::from_secs(1)),
        })
    }

    /// An insertion without a token: never stored, so at most the id's earlier content goes.
    pub(crate) async fn insert_empty(self: &Arc<Self>, id: DocId, on_existing: OnExisting) -> Result<Ticket<Verdict>> {
        let ticket = match on_existing {
            OnExisting::Conflict | OnExisting::Keep => {
                Ticket::ready(self.empty_verdict(Some(id), Outcome::Skipped), self.durable())
            }
            OnExisting::Replace => {
                let (latch, place) = self.enter(&id).await?;
                self.blocking(move |collection| collection.decide_emptying(id, latch, place)).await?
            }
        };
        self.meters.verdict(Op::Insert, ticket.value());
        Ok(ticket)
    }

    /// Runs work that reads the disk off the async threads.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let collection = Arc::clone(self);
        match tokio::task::spawn_blocking(move || work(&collection)).await {
            Ok(result) => result,
            Err(stopped) => std::panic::resume_unwind(stopped.into_panic()),
        }
    }

    pub(crate) fn similarity(&self, matching: u32, same_content: bool, overlap: Option<Overlap>) -> Similarity {
        similarity(self.preparer.spec(), matching, same_content, overlap)
    }

    pub(crate) fn judge(&self, bands: &BandIndex, view: View, query: &Query<'_>) -> Judgement {
        judge::judge(&self.arena, bands, self.preparer.shape(), &self.limits, view, query)
    }
}

/// The one number for a pair, wherever it is asked for.
pub(crate) fn similarity(spec: &Spec, matching: u32, same_content: bool, overlap: Option<Overlap>) -> Similarity {
    if same_content {
        return Similarity { value: 1.0, low: 1.0, high: 1.0, method: Method::Exact };
    }
    if let Some(overlap) = overlap {
        return overlap.similarity();
    }
    let (low, high) = verify::interval95(matching, spec.shape(), spec.sketch());
    Similarity { value: verify::similarity(matching, spec.shape()), low, high, method: Method::Estimate }
}

/// What is counted is there, so a count that is below zero is a fault of ours.
pub(crate) fn counted(count: &AtomicI64) -> u64 {
    let count = count.load(Ordering::Relaxed);
    debug_assert!(count >= 0, "{count} documents");
    count.max(0) as u64
}

impl Live {
    /// Enters a published document into the index, and into the one that is being built.
    pub(crate) fn enter(&self, arena: &Arena, slot: Slot, findable: bool) {
        self.indexes().for_each(|bands| bands.insert(arena, slot, findable));
    }

    /// Takes it out again, before its slot is freed.
    pub(crate) fn leave(&self, arena: &Arena, slot: Slot) {
        self.indexes().for_each(|bands| bands.remove(arena, slot));
    }

    /// Makes a link findable by its bands, or unfindable again. An index under construction that has not got to it yet
    /// takes it as it is then.
    pub(crate) fn set_findable(&self, arena: &Arena, slot: Slot, findable: bool) {
        self.indexes().for_each(|bands| bands.set_findable(arena, slot, findable));
    }

    pub(crate) fn indexes(&self) -> impl Iterator<Item = &BandIndex> {
        [&self.bands].into_iter().chain(&self.next).map(|bands| &**bands)
    }

    pub(crate) fn new(bands: BandIndex, settings: Settings, seen_times: Option<Arc<SeenTimes>>) -> Self {
        let matching_min = exact::matching_min(settings.verify, settings.threshold, &settings.spec);
        Self { settings, matching_min, bands: Arc::new(bands), next: None, seen_times }
    }
}
