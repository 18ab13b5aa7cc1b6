//! The commit order: one lock under which every write is decided.
//! In: a prepared document or an id to delete. Out: a [`Ticket`] that is good once all it rests on is on disk.
//! Under the lock there is no I/O, no await and no wait for room: what a decision needs from the disk is fetched
//! before, and where the decision turns out to need more, the lock is given up first.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use hapax_core::{ContentHash, verify};

use super::clusters::{Clusters, Left};
use super::exact::{Compared, Exact, IN_PASSING};
use super::judge::{self, Judgement, Query, Ranked, View};
use super::latch::Latch;
use super::memory::Share;
use super::records::Heads;
use super::{Collection, CollectionError, InsertOptions, Live, Result, WriteFailure};
use crate::index::{Entry, SLOTS_MAX};
use crate::store::{self, Change, Changeable, Head, Record, StoredMatch, StoredVerdict};
use crate::types::{
    DocId, Match, Metadata, Method, OnDuplicate, OnExisting, Outcome, Previous, Seq, Similarity, Slot, TimestampMs,
    Verdict, VerdictKind, Verify,
};
use crate::verdicts::Made;

/// How often a decision may find that it needs something of a document that it has not fetched yet.
pub(crate) const ATTEMPTS: u32 = 16;

/// All that the decision lock guards.
pub(crate) struct Order {
    /// The last `seq` given out.
    pub last: Seq,
    /// Decisions that the committer has not taken yet.
    pub queue: VecDeque<Work>,
    /// Slots below this have been used.
    pub slots: u32,
    /// Used slots that stand empty.
    pub free: Vec<Slot>,
    /// Who stands for whom.
    pub clusters: Clusters,
    /// No more work is taken.
    pub closed: bool,
    /// Why no write is taken until the file is opened again: an earlier one may or may not be on disk.
    pub refused: Option<String>,
    /// What the collection takes of the memory budget.
    pub memory: Share,
}

/// What waits for the committer, in order.
pub(crate) enum Work {
    /// A decision about a document.
    Decision(Decision),
    /// New settings.
    Settings {
        /// What to write.
        changeable: Changeable,
        /// Told when it is on disk.
        answer: oneshot::Sender<Result<()>>,
    },
    /// Documents that were seen again, and when. No answer to a client rests on them.
    Sights {
        /// What to write.
        sights: Vec<(Seq, TimestampMs)>,
        /// Told when it is on disk.
        answer: oneshot::Sender<Result<()>>,
    },
}

impl Work {
    /// Whether it takes a transaction.
    pub(crate) fn writes(&self) -> bool {
        match self {
            Self::Decision(decision) => decision.change.is_some(),
            Self::Settings { .. } | Self::Sights { .. } => true,
        }
    }
}

/// A decision on its way to the disk. Dropping it lets the next operation on the id begin.
pub(crate) struct Decision {
    /// What to write; nothing for an answer that only has to wait for those before it.
    pub change: Option<Change>,
    /// What it did to the index.
    pub step: Step,
    /// The last `seq` given out when it was made.
    pub at: Seq,
    /// Told when it is on disk.
    pub answer: oneshot::Sender<Result<()>>,
    pub _latch: Latch,
    pub _place: OwnedSemaphorePermit,
}

/// An effect on the index, to be finished when durable or undone when not.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    None,
    Added { slot: Slot, linked: bool, replaced: Option<(Slot, Left)> },
    Removed { slot: Slot, left: Left },
    Updated { seq: Seq },
}

impl Step {
    /// How a document that goes with it leaves its cluster.
    pub(crate) fn left(&self) -> Option<Left> {
        match *self {
            Self::None | Self::Updated { .. } | Self::Added { replaced: None, .. } => None,
            Self::Added { replaced: Some((_, left)), .. } | Self::Removed { left, .. } => Some(left),
        }
    }
}

/// A decision that may not be on disk yet.
pub struct Ticket<T> {
    value: T,
    at: Seq,
    durable: Option<oneshot::Receiver<Result<()>>>,
}

impl<T> Ticket<T> {
    pub(crate) fn ready(value: T, at: Seq) -> Self {
        Self { value, at, durable: None }
    }

    /// The place in the commit order that was the last given out when this was decided; a change's own place.
    pub fn at(&self) -> Seq {
        self.at
    }

    /// The answer, not yet to be given.
    pub(crate) fn value(&self) -> &T {
        &self.value
    }

    /// The answer's most bytes in JSON.
    pub fn json_bytes(&self) -> usize
    where
        T: std::borrow::Borrow<crate::types::Verdict>,
    {
        self.value.borrow().bytes()
    }

    /// The answer, to be changed before it is given.
    pub(crate) fn value_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// Returns once everything the answer rests on is on disk.
    pub async fn wait(self) -> Result<T> {
        if let Some(durable) = self.durable {
            durable.await.unwrap_or_else(|_| Err(closed()))?;
        }
        Ok(self.value)
    }
}

/// The document that holds an id.
pub(crate) struct Existing {
    pub slot: Slot,
    pub record: Arc<Record>,
}

/// What an insertion is about.
pub(crate) struct Insertion {
    pub id: DocId,
    pub metadata: Option<Metadata>,
    pub made: Made,
    /// Room for what is kept of it, on its way to the disk.
    pub room: Option<Arc<OwnedSemaphorePermit>>,
    pub shingles: Option<u64>,
    pub options: InsertOptions,
    /// Bytes of the answer.
    pub bytes_max: usize,
}

impl Insertion {
    /// Most bytes of metadata to load, if any is asked for.
    fn metadata_bytes(&self) -> Option<usize> {
        self.options.with_metadata.then_some(self.bytes_max)
    }
}

/// A document that is to be stored, judged.
struct NewEntry<'a> {
    insertion: &'a Insertion,
    /// The document that it replaces.
    existing: Option<&'a Existing>,
    verdict: &'a Verdict,
    cited: &'a [Ranked],
    /// The representative of the cluster that it joins.
    joins: Option<(Seq, Slot)>,
}

/// Whether a decision may read the disk on the thread it is made on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disk {
    Now,
    Later,
}

/// A decision, or all it needs to be made where the disk may be read.
pub(crate) enum Decided {
    Now(Ticket<Verdict>),
    Later(Insertion, Latch, OwnedSemaphorePermit),
}

impl Order {
    pub(crate) fn new(last: Seq, slots: u32, clusters: Clusters, memory: Share) -> Self {
        let (queue, free) = (VecDeque::new(), Vec::new());
        Self { last, queue, slots, free, clusters, closed: false, refused: None, memory }
    }

    fn next(&mut self) -> Seq {
        self.last.0 += 1;
        self.last
    }

    fn take_slot(&mut self) -> Option<Slot> {
        self.free.pop().or_else(|| {
            let slot = Slot(self.slots);
            (u64::from(self.slots) < SLOTS_MAX).then(|| {
                self.slots += 1;
                slot
            })
        })
    }

    pub(crate) fn open(&self) -> Result<()> {
        match &self.refused {
            Some(detail) => Err(CollectionError::WriteFailed { detail: detail.clone(), why: WriteFailure::Uncertain }),
            None if self.closed => Err(closed()),
            None => Ok(()),
        }
    }
}

pub(crate) fn closed() -> CollectionError {
    CollectionError::Overloaded {
        detail: "the collection is closing; nothing was written".into(),
        retry_after: Duration::from_secs(5),
    }
}

/// Nothing came of [`ATTEMPTS`].
pub(crate) fn changing() -> CollectionError {
    CollectionError::Overloaded {
        detail: "the documents this one resembles change faster than they can be read".into(),
        retry_after: Duration::from_secs(1),
    }
}

/// For a look that met a document on disk already gone, though not yet for those who look: that is a matter of
/// microseconds, unless the committer has to wait for a processor.
pub(crate) fn wait_for_commit(attempt: u32) {
    std::thread::sleep(Duration::from_millis(u64::from(attempt)));
}

impl Collection {
    /// Check-and-insert. The caller holds the id's latch and a place in the queue.
    pub(crate) fn decide_insert(
        &self,
        insertion: Insertion,
        latch: Latch,
        place: OwnedSemaphorePermit,
        disk: Disk,
    ) -> Result<Decided> {
        let id_fingerprint = store::id_fingerprint(&insertion.id);
        if disk == Disk::Later && !self.ids.candidates(&self.arena, id_fingerprint).is_empty() {
            return Ok(Decided::Later(insertion, latch, place));
        }
        let existing = self.find(&insertion.id, id_fingerprint, View::Decided)?;
        let made = &insertion.made;
        if let Some(existing) = &existing {
            if self.holds(existing, made) {
                return Ok(Decided::Now(self.decide_again(existing, &insertion, latch, place)?));
            }
            if insertion.options.on_existing == OnExisting::Conflict {
                return Err(CollectionError::IdConflict { id: insertion.id });
            }
        }

        // Under the id's latch its content stays what it is.
        let previous = existing.as_ref().map(|existing| self.previous(existing, made)).transpose()?;
        let mut heads = Heads::default();
        let mut updates = self.records.updates_total();
        let mut compared = Compared::default();
        for attempt in 0..ATTEMPTS {
            let mut order = self.order.lock();
            order.open()?;
            let live = self.live.read();
            let query = Query {
                signature: &made.signature,
                content: made.content_prefix(),
                own: existing.as_ref().map(|existing| existing.slot),
                matching_min: live.matching_min,
                members_max: judge::members_max(insertion.options.limit, &compared.mistaken),
                contents_max: (live.settings.verify == Verify::Exact).then_some(self.limits.exact_reads_max),
                mistaken: &compared.mistaken,
            };
            let leaving = existing.as_ref().map(|existing| existing.record.seq);
            let judgement = self.judge(&live.bands, View::Decided, &query);
            let mut judgement = self.with_representatives(judgement, &order.clusters, &query, leaving);
            if let Some(exact) = Exact::of(made, &live.settings, live.settings.threshold) {
                // New ones may come as fast as others are compared. They are in memory: in the end, length is no excuse.
                let in_passing = if attempt < ATTEMPTS / 2 { IN_PASSING } else { u64::MAX };
                let left = self.settle_survivors(exact, &mut judgement, &mut compared, in_passing);
                if !left.is_empty() {
                    drop((live, order));
                    if disk == Disk::Later {
                        return Ok(Decided::Later(insertion, latch, place));
                    }
                    self.compare_survivors(exact, &left, &mut compared)?;
                    continue;
                }
            }
            let cited = cited(&judgement, insertion.options.limit);
            let of_link = judgement.best_link().and_then(|link| order.clusters.stands_for(link.seq, leaving));
            let representative = match insertion.options.on_duplicate {
                OnDuplicate::Skip => None,
                OnDuplicate::Link | OnDuplicate::Store => {
                    of_link.or_else(|| order.clusters.choose(&judgement.ranked, leaving))
                }
            };
            let with_metadata = insertion.options.with_metadata;
            if with_metadata && self.records.updates_total() != updates && attempt < ATTEMPTS / 2 {
                heads = Heads::default();
            }
            let named = cited.iter().map(|found| found.seq).chain(of_link.or(representative).map(|(seq, _)| seq));
            let missing = self.records.recall(&mut heads, named);
            if !missing.is_empty() {
                drop((live, order));
                if disk == Disk::Later {
                    return Ok(Decided::Later(insertion, latch, place));
                }
                updates = self.records.updates_total();
                self.records.load(&mut heads, &missing, insertion.metadata_bytes())?;
                continue;
            }
            let mistakes: Vec<Seq> = judgement.mistakes(insertion.options.limit, &heads, made.content).collect();
            if !mistakes.is_empty() {
                compared.mistaken.extend(mistakes);
                continue;
            }

            let mut verdict = self.verdict(&judgement, &heads, made.content, insertion.options.limit, |found| {
                if with_metadata { self.records.decided_metadata(found) } else { None }
            });
            verdict.threshold = live.settings.threshold;
            verdict.shingles = insertion.shingles;
            verdict.previous = previous;
            let (existing, kind, options) = (existing.as_ref(), verdict.kind, insertion.options);
            verdict.outcome = outcome(existing.is_some(), kind, options, representative.is_some());
            verdict.stored = !matches!(verdict.outcome, Outcome::Skipped | Outcome::Removed);
            let beside = if verdict.stored { representative } else { of_link };
            let beside = beside.filter(|(seq, _)| verdict.stored || cited.first().is_some_and(|best| best.seq != *seq));
            verdict.representative = beside.and_then(|(seq, _)| heads.get(seq)).map(|head| head.id.clone());
            if let (Some(original), true) = (cited.first(), live.settings.touch) {
                self.sighted(&live, original.slot);
                of_link.into_iter().for_each(|(_, slot)| self.sighted(&live, slot));
            }

            let (change, step) = match (verdict.outcome, existing) {
                (Outcome::Skipped, _) => (None, Step::None),
                (Outcome::Removed, Some(existing)) => {
                    let (change, step) = self.take_out(&mut order, &live, existing);
                    (Some(change), step)
                }
                _ => {
                    let joins = representative;
                    let entry = NewEntry { insertion: &insertion, existing, verdict: &verdict, cited, joins };
                    let (change, step) = self.enter_index(&mut order, &live, entry)?;
                    (Some(change), step)
                }
            };
            drop(live);
            verdict.id = Some(insertion.id);
            judgement.meter(&self.meters);
            compared.meter(&self.meters);
            return Ok(Decided::Now(self.enqueue(&mut order, verdict, change, step, latch, place)));
        }
        Err(changing())
    }

    /// Stores a document, in place of the one that held its id.
    fn enter_index(&self, order: &mut Order, live: &Live, entry: NewEntry<'_>) -> Result<(Change, Step)> {
        let NewEntry { insertion, existing, verdict, cited, joins } = entry;
        let made = &insertion.made;
        self.admit(live, order)?;
        let slot = order.take_slot().ok_or_else(|| CollectionError::Overloaded {
            detail: format!("the collection holds {} documents, the most it can", SLOTS_MAX),
            retry_after: Duration::from_secs(60),
        })?;
        let seq = order.next();
        let linked = verdict.outcome == Outcome::Linked;
        let left = existing.map(|existing| self.leave_cluster(order, live, existing.record.seq));
        let cluster = joins.map(|found| order.clusters.join(seq, slot, found));
        let now = now();
        let id_fingerprint = store::id_fingerprint(&insertion.id);
        let record = Arc::new(Record {
            seq,
            id: insertion.id.clone(),
            id_fingerprint,
            signature: made.signature.clone(),
            content: made.content.unwrap_or(ContentHash(0)),
            given: made.content.is_none(),
            linked,
            metadata: insertion.metadata.clone().filter(|metadata| !metadata.is_empty()),
            first_seen: now,
            id_first_seen: existing.map_or(now, |existing| existing.record.id_first_seen),
            seen: now,
            cluster: cluster.unwrap_or_default(),
            shingles: insertion.shingles,
            verdict: stored_verdict(verdict, cited),
            payload: made.kept.as_ref().and_then(|kept| kept.payload.clone()),
        });
        // Before the sweeper can take it for the document that was here.
        if let Some(seen_times) = &live.seen_times {
            seen_times.set(slot, now);
        }
        let (signature, content) = (&record.signature, made.content_prefix());
        self.arena.publish(slot, Entry { seq, id_fingerprint, content, linked, signature, last_seen: now });
        live.enter(&self.arena, slot, !linked);
        self.ids.insert(&self.arena, slot);
        self.records.decided(Arc::clone(&record), made.kept.clone(), insertion.room.clone());
        let change = match existing {
            Some(existing) => {
                self.records.leaves(Arc::clone(&existing.record));
                self.arena.set_removed(existing.slot, seq);
                let promoted = left.and_then(Left::promoted_seq);
                Change::Replace { record, target: existing.record.seq, promoted }
            }
            None => Change::Insert(record),
        };
        let replaced = existing.map(|existing| existing.slot).zip(left);
        Ok((change, Step::Added { slot, linked, replaced }))
    }

    /// Inserts what the id already holds: at most its metadata changes. Absent metadata changes nothing, `{}` clears.
    fn decide_again(
        &self,
        existing: &Existing,
        insertion: &Insertion,
        latch: Latch,
        place: OwnedSemaphorePermit,
    ) -> Result<Ticket<Verdict>> {
        let verdict = self.repeat(existing, insertion)?;
        let seq = existing.record.seq;
        let mut order = self.order.lock();
        // A delete that failed may be on disk all the same.
        order.open()?;
        self.sighted_again(existing);
        let given = |metadata: &Option<Metadata>| metadata.clone().filter(|metadata| !metadata.is_empty());
        let metadata = given(&insertion.metadata);
        let keeps = insertion.metadata.is_none() || insertion.options.on_existing == OnExisting::Keep;
        if keeps || metadata == given(&existing.record.metadata) {
            return Ok(Ticket::ready(verdict, self.durable()));
        }
        let change = Change::Update { seq: order.next(), target: seq, metadata: metadata.clone() };
        self.records.updates(seq, metadata);
        let verdict = Verdict { outcome: Outcome::Updated, ..verdict };
        Ok(self.enqueue(&mut order, verdict, Some(change), Step::Updated { seq }, latch, place))
    }

    /// Deletes an id. The caller holds its latch and a place in the queue.
    pub(crate) fn decide_delete(&self, id: &DocId, latch: Latch, place: OwnedSemaphorePermit) -> Result<Ticket<bool>> {
        let id_fingerprint = store::id_fingerprint(id);
        let existing = self.find(id, id_fingerprint, View::Decided)?;
        let mut order = self.order.lock();
        // Also where there is nothing to delete: an insert that failed may be on disk all the same.
        order.open()?;
        let Some(existing) = existing else { return Ok(Ticket::ready(false, self.durable())) };
        Ok(self.remove(&mut order, existing, latch, place))
    }

    /// Decides that a document goes.
    pub(crate) fn remove(
        &self,
        order: &mut Order,
        existing: Existing,
        latch: Latch,
        place: OwnedSemaphorePermit,
    ) -> Ticket<bool> {
        let (change, step) = self.take_out(order, &self.live.read(), &existing);
        self.enqueue(order, true, Some(change), step, latch, place)
    }

    /// A document goes, and nothing takes its place.
    fn take_out(&self, order: &mut Order, live: &Live, existing: &Existing) -> (Change, Step) {
        let Existing { slot, ref record } = *existing;
        let seq = order.next();
        self.arena.set_removed(slot, seq);
        let left = self.leave_cluster(order, live, record.seq);
        self.records.leaves(Arc::clone(record));
        (Change::Delete { seq, target: record.seq, promoted: left.promoted_seq() }, Step::Removed { slot, left })
    }

    /// Replaces what an id holds by an empty document, which is never stored: the old content goes.
    pub(crate) fn decide_emptying(
        &self,
        id: DocId,
        latch: Latch,
        place: OwnedSemaphorePermit,
    ) -> Result<Ticket<Verdict>> {
        let existing = self.find(&id, store::id_fingerprint(&id), View::Decided)?;
        let mut verdict = self.empty_verdict(Some(id), Outcome::Skipped);
        let mut order = self.order.lock();
        order.open()?;
        let Some(existing) = existing else { return Ok(Ticket::ready(verdict, self.durable())) };
        verdict.outcome = Outcome::Removed;
        // Nothing has no shingle in common with anything.
        let similarity = Similarity { value: 0.0, low: 0.0, high: 0.0, method: Method::Exact };
        verdict.previous = Some(Previous { similarity, first_seen: existing.record.first_seen });
        let (change, step) = self.take_out(&mut order, &self.live.read(), &existing);
        Ok(self.enqueue(&mut order, verdict, Some(change), step, latch, place))
    }

    /// The document that holds an id in this view; an error if nobody can tell whether it is there. Under the id's latch
    /// the answer stays true.
    pub(crate) fn find(&self, id: &DocId, id_fingerprint: u64, view: View) -> Result<Option<Existing>> {
        for slot in self.ids.candidates(&self.arena, id_fingerprint) {
            let Some(seen) = self.arena.peek(slot).filter(|seen| view.sees(seen)) else { continue };
            if let Some(record) = self.records.record(seen.seq)?
                && record.id == *id
            {
                return Ok(Some(Existing { slot, record }));
            }
        }
        self.certain(id)?;
        Ok(None)
    }

    /// Whether the id holds just this content.
    pub(crate) fn holds(&self, existing: &Existing, made: &Made) -> bool {
        match made.content {
            Some(content) => !existing.record.given && existing.record.content == content,
            None => existing.record.given && existing.record.signature == made.signature,
        }
    }

    /// How the id's earlier content compares; reads the disk if shingles decide.
    pub(crate) fn previous(&self, existing: &Existing, made: &Made) -> Result<Previous> {
        let exact = Exact::of(made, &self.live.read().settings, 0.0);
        let overlap = exact.map(|exact| self.overlap(exact, existing.record.seq)).transpose()?.flatten();
        let matching = verify::matching_slots(&existing.record.signature, &made.signature, self.preparer.shape());
        Ok(Previous { similarity: self.similarity(matching, false, overlap), first_seen: existing.record.first_seen })
    }

    /// A verdict of nothing to compare.
    pub(crate) fn empty_verdict(&self, id: Option<DocId>, outcome: Outcome) -> Verdict {
        Verdict {
            kind: VerdictKind::Empty,
            outcome,
            stored: false,
            id,
            duplicate_of: None,
            similarity: None,
            representative: None,
            threshold: self.live.read().settings.threshold,
            matches: Vec::new(),
            omitted_matches: 0,
            candidates: 0,
            unread: 0,
            shingles: Some(0),
            previous: None,
            expected_recall: None,
        }
    }

    /// A judgement in clients' words. Documents without a head are gone and left out.
    pub(crate) fn verdict(
        &self,
        judgement: &Judgement,
        heads: &Heads,
        content: Option<ContentHash>,
        limit: usize,
        metadata: impl Fn(&Head) -> Option<Metadata>,
    ) -> Verdict {
        let mut matches: Vec<Match> = cited(judgement, limit)
            .iter()
            .filter_map(|found| {
                let head = heads.get(found.seq)?;
                let same_content = found.same_content && content == Some(head.content);
                let metadata = metadata(head);
                Some(Match {
                    id: head.id.clone(),
                    same_content,
                    similarity: self.similarity(found.matching, same_content, found.overlap),
                    overlap: found.overlap,
                    first_seen: head.first_seen,
                    metadata_omitted: metadata.is_none() && head.metadata_left,
                    metadata,
                })
            })
            .collect();
        let (kind, duplicate_of, similarity) = match matches.first() {
            None => (VerdictKind::Unique, None, None),
            Some(best) => {
                let kind = if best.same_content { VerdictKind::ExactDuplicate } else { VerdictKind::NearDuplicate };
                (kind, Some(best.id.clone()), Some(best.similarity.value))
            }
        };
        matches.truncate(limit);
        Verdict {
            kind,
            outcome: Outcome::Checked,
            stored: false,
            id: None,
            duplicate_of,
            similarity,
            representative: None,
            threshold: 0.0,
            matches,
            omitted_matches: 0,
            candidates: judgement.candidates,
            unread: judgement.unread,
            shingles: None,
            previous: None,
            expected_recall: None,
        }
    }

    /// The first verdict again, as far as what it cites is still there.
    fn repeat(&self, existing: &Existing, insertion: &Insertion) -> Result<Verdict> {
        let StoredVerdict { kind, duplicate_of, threshold, candidates, unread, matches } = &existing.record.verdict;
        let mut heads = Heads::default();
        let with_metadata = insertion.options.with_metadata;
        let missing = self.records.recall(&mut heads, matches.iter().map(|found| found.seq));
        self.records.load(&mut heads, &missing, insertion.metadata_bytes())?;
        let shown: Vec<Match> = matches
            .iter()
            .take(insertion.options.limit)
            .filter_map(|found| {
                let head = heads.get(found.seq)?;
                Some(Match {
                    id: head.id.clone(),
                    same_content: found.exact,
                    similarity: self.similarity(found.matching, found.exact, found.overlap),
                    overlap: found.overlap,
                    first_seen: head.first_seen,
                    metadata: head.metadata.clone().filter(|_| with_metadata),
                    metadata_omitted: head.metadata_left,
                })
            })
            .collect();
        Ok(Verdict {
            kind: *kind,
            outcome: Outcome::Unchanged,
            stored: true,
            id: Some(existing.record.id.clone()),
            duplicate_of: duplicate_of.clone(),
            similarity: matches.first().map(|best| self.similarity(best.matching, best.exact, best.overlap).value),
            representative: self.representative_of(&existing.record)?,
            threshold: *threshold,
            matches: shown,
            omitted_matches: 0,
            candidates: *candidates,
            unread: *unread,
            shingles: existing.record.shingles,
            previous: None,
            expected_recall: None,
        })
    }

    fn enqueue<T>(
        &self,
        order: &mut Order,
        value: T,
        change: Option<Change>,
        step: Step,
        latch: Latch,
        place: OwnedSemaphorePermit,
    ) -> Ticket<T> {
        if change.is_none() && self.durable() >= order.last {
            return Ticket::ready(value, order.last);
        }
        let (answer, durable) = oneshot::channel();
        let decision = Decision { change, step, at: order.last, answer, _latch: latch, _place: place };
        order.queue.push_back(Work::Decision(decision));
        self.work.notify_one();
        Ticket { value, at: order.last, durable: Some(durable) }
    }
}

/// What becomes of a document whose content its id does not hold yet. `joins`: a representative was found.
fn outcome(id_is_held: bool, kind: VerdictKind, options: InsertOptions, joins: bool) -> Outcome {
    let InsertOptions { on_duplicate, on_existing, .. } = options;
    match (kind.is_duplicate(), on_duplicate) {
        _ if id_is_held && on_existing == OnExisting::Keep => Outcome::Skipped,
        (true, OnDuplicate::Skip) if id_is_held => Outcome::Removed,
        (true, OnDuplicate::Skip) => Outcome::Skipped,
        // A cluster's founder must stay searchable, so what is like members only is never stored as a link.
        (true, OnDuplicate::Link) if joins => Outcome::Linked,
        _ if id_is_held => Outcome::Replaced,
        _ => Outcome::Inserted,
    }
}

/// The part of a judgement an answer speaks of; the best match even where no match is to be listed.
pub(crate) fn cited(judgement: &Judgement, limit: usize) -> &[Ranked] {
    &judgement.ranked[..judgement.ranked.len().min(limit.max(1))]
}

pub(crate) fn now() -> TimestampMs {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    TimestampMs(since.as_millis() as i64)
}

fn stored_verdict(verdict: &Verdict, cited: &[Ranked]) -> StoredVerdict {
    let exact = |at: usize| verdict.matches.get(at).is_some_and(|found| found.same_content);
    StoredVerdict {
        kind: verdict.kind,
        duplicate_of: verdict.duplicate_of.clone(),
        threshold: verdict.threshold,
        candidates: verdict.candidates,
        unread: verdict.unread,
        matches: cited
            .iter()
            .enumerate()
            .map(|(at, &Ranked { seq, matching, overlap, .. })| StoredMatch {
                seq,
                matching,
                exact: exact(at),
                overlap,
            })
            .collect(),
    }
}
