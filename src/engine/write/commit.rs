//! The committer: one thread per collection that writes decisions to disk in order. A transaction takes all decisions
//! that are waiting, up to a limit. In: the queue that the decision lock guards. Out: a new value of `durable`, and an
//! answer for every ticket. If the disk refuses a write, every decision that is not durable is undone and its ticket
//! gets the error.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::commit_window::CommitWindow;
use super::order::{Alone, LastSeenTimes, QueuedWrite, Step, Work};
use super::undo::{alone_failed, refuse_if_uncertain, undo, write_failed};
use super::writes::Writes;
use crate::cpu;
use crate::engine::jobs::Part;
use crate::index::Place;
use crate::store::{Change, StoreError, Writer};
use crate::types::{CollectionName, Job, Seq, TimestampMs};
use crate::verdicts::Result;

/// How long the memory of a removed document may stay in use after its last reader has left. The next write frees the
/// memory earlier.
const LEAVING_CHECK: Duration = Duration::from_millis(20);
/// The number of reports of a job that are forgotten in one transaction.
const REPORTS_FORGOTTEN: usize = 1024;
/// How long the committer removes documents from memory before it looks for the next writes.
const REMOVAL: Duration = Duration::from_millis(2);
/// The longest time that replaces [`REMOVAL`] if decisions are slow.
const REMOVAL_MAX: Duration = Duration::from_millis(10);
/// The number of documents that are removed from memory before the committer checks whether to release the lock.
const REMOVED_AT_ONCE: usize = 8;

/// After a transaction failed because of damaged data, at most this many transactions have only one decision each.
const ALONE: usize = 1024;

/// Starts the committer. It ends once the collection is closed and its queue is empty.
pub(crate) fn start(writes: &Arc<Writes>, collection: &CollectionName, writer: Writer) {
    let pace = CommitWindow::new(writes.lookup().limits().commit_window);
    let committer = Committer { writes: Arc::clone(writes), collection: collection.clone(), writer, pace, alone: 0 };
    let thread = std::thread::Builder::new().name(format!("commit {collection}")).spawn(move || committer.run());
    writes.set_committer(thread.expect("the system can start one more thread"));
}

struct Committer {
    writes: Arc<Writes>,
    collection: CollectionName,
    writer: Writer,
    pace: CommitWindow,
    /// How many of the next transactions have only one decision each, because a transaction failed on damaged data.
    /// Only the decision that needs the damaged data fails then, and the other decisions are stored.
    alone: usize,
}

enum QueuedBatch {
    /// The wait timed out.
    Nothing,
    Writes(Vec<QueuedWrite>, Vec<LastSeenTimes>),
    Alone {
        write: Alone,
        answer: oneshot::Sender<Result<()>>,
    },
}

/// Closes the collection if the committer ever panics, so that no write waits for the committer for ever.
struct CloseOnDrop(Arc<Writes>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        let mut order = self.0.order();
        order.close();
        order.queue().clear();
    }
}

impl Committer {
    fn run(mut self) {
        cpu::run_without_interrupting();
        let _closes = CloseOnDrop(Arc::clone(&self.writes));
        while let Some(batch) = self.next_batch() {
            match batch {
                QueuedBatch::Nothing => {}
                QueuedBatch::Writes(decisions, times) => {
                    self.commit(decisions, times);
                    self.writes.account();
                }
                QueuedBatch::Alone { write, answer } => {
                    let written = match write {
                        Alone::Settings(changeable) => self.writer.set_changeable(changeable),
                        Alone::Golden(pairs) => self.writer.set_golden(&pairs),
                        Alone::Statistics(rows) => self.writer.set_statistics(&rows),
                        Alone::RemoveDoomed(part) => self.remove_doomed(&part),
                        Alone::Job(job) => self.set_job(*job),
                        Alone::ForgetJob(number) => self.forget_job(number),
                    };
                    if let Err(error) = &written {
                        refuse_if_uncertain(&mut self.writes.order(), error);
                    }
                    drop(answer.send(written.map_err(|error| alone_failed(&error))));
                }
            }
            self.remove_gone();
            // This runs without the decision lock, so that no decision waits for it.
            self.writes.lookup().index().resize_tables();
        }
        if let Err(error) = self.writer.close() {
            tracing::error!(collection = %self.collection, %error, "the last checkpoint failed; the log is replayed at the next start");
        }
    }

    /// Removes from memory the documents that no reader can see any longer. Stops after a short time, because writes
    /// wait for this thread.
    fn remove_gone(&self) {
        let (lookup, mut spent, mut most) = (self.writes.lookup(), Duration::ZERO, REMOVAL);
        while spent < most && lookup.index().has_removable() {
            // The lock is taken for a few documents at a time: removing thousands must not keep decisions waiting. But
            // these documents can make decisions slow, and slow decisions must not prevent their removal. Therefore the
            // time for removals grows with the time spent waiting for the lock.
            let asked = Instant::now();
            let _order = self.writes.order();
            let waited = asked.elapsed().min(REMOVAL_MAX);
            most = most.max(waited);
            let started = Instant::now();
            loop {
                for _ in 0..REMOVED_AT_ONCE {
                    let Some(place) = lookup.index().next_removable() else { return };
                    lookup.records().forget(lookup.index().remove(place));
                }
                if started.elapsed() >= waited {
                    break;
                }
            }
            spent += started.elapsed();
        }
    }

    /// Returns the next batch of work; `None` once the collection is closed and the queue is empty.
    fn next_batch(&mut self) -> Option<QueuedBatch> {
        // If removed documents still take memory, the committer does not wait long for work.
        let index = self.writes.lookup().index();
        let wait =
            if index.has_removable() { Some(Duration::ZERO) } else { index.has_leaving().then_some(LEAVING_CHECK) };
        let mut order = self.writes.order();
        while order.queue().is_empty() {
            if order.is_closed() {
                return None;
            }
            if !self.writes.wait_for_work(&mut order, wait) {
                return Some(QueuedBatch::Nothing);
            }
        }
        let (mut decisions, mut seen) = (Vec::new(), Vec::new());
        let mut writing = false;
        let most = if self.alone > 0 { 1 } else { self.writes.lookup().limits().commit_batch_max };
        while decisions.len() < most {
            // An entry that writes nothing waits only for earlier entries, and needs no new transaction.
            if !writing && order.queue().front().is_some_and(Work::writes) {
                let waiting = order.queue().len();
                match self.pace.wait(waiting, most, || order.is_patient()) {
                    None => {
                        self.pace.begin(waiting, most);
                        writing = true;
                    }
                    Some(_) if !(decisions.is_empty() && seen.is_empty()) => break,
                    Some(wait) => {
                        self.writes.wait_for_crowd(&mut order, wait);
                        continue;
                    }
                }
            }
            match order.queue().pop_front() {
                Some(Work::Write(decision)) => decisions.push(decision),
                Some(Work::LastSeen(times)) => seen.push(times),
                Some(Work::Alone { write, answer }) if decisions.is_empty() && seen.is_empty() => {
                    return Some(QueuedBatch::Alone { write, answer });
                }
                Some(alone) => {
                    order.queue().push_front(alone);
                    break;
                }
                None => break,
            }
        }
        Some(QueuedBatch::Writes(decisions, seen))
    }

    fn commit(&mut self, mut decisions: Vec<QueuedWrite>, seen: Vec<LastSeenTimes>) {
        self.alone = self.alone.saturating_sub(1);
        let last = decisions.last().map_or(self.writes.lookup().durable(), |decision| decision.at);
        let change = |decision: &mut QueuedWrite| {
            let merged = decision.merged.clone().map(Change::Merged);
            decision.change.take().into_iter().chain(merged)
        };
        let mut changes: Vec<Change> = decisions.iter_mut().flat_map(change).collect();
        let documents = changes.len();
        // Last-seen times come after the decisions, because some belong to documents that are not on disk yet.
        let times = seen.iter().flat_map(|seen| &seen.times);
        changes.extend(times.map(|&(target, seen)| Change::Touch { target, seen }));
        let told = match self.write(&changes, documents, last) {
            Ok(told) => told,
            Err(error) => {
                // If there was only one decision, it is the one that needs the damaged data.
                if matches!(error, StoreError::Damaged { .. }) && decisions.len() > 1 {
                    self.alone = (decisions.len() + self.writes.order().queue().len()).min(ALONE);
                }
                self.refused(decisions, &error);
                return answer_times(seen, &Err(write_failed(&error)));
            }
        };
        self.publish(&decisions, &changes, last);
        for decision in decisions {
            let QueuedWrite { answer, _turn, .. } = decision;
            drop(answer.send(Ok(())));
        }
        answer_times(seen, &told);
    }

    /// Writes changes to disk. The first `documents` of them are decisions, the others last-seen times. If the
    /// transaction fails and certainly wrote nothing, the decisions are tried again without the last-seen times.
    /// Returns the outcome for the last-seen times.
    fn write(
        &mut self,
        changes: &[Change],
        documents: usize,
        last: Seq,
    ) -> std::result::Result<Result<()>, StoreError> {
        let writes = Arc::clone(&self.writes);
        let meters = writes.lookup().meters();
        if changes.is_empty() {
            return Ok(Ok(()));
        }
        let (started, mut told) = (Instant::now(), Ok(()));
        if let Err(error) = self.store(changes, last) {
            if documents == changes.len() {
                return Err(error);
            }
            tracing::error!(collection = %self.collection, %error, "a commit failed; its last-seen times will be written later");
            meters.commit_failures.increment(1);
            told = Err(write_failed(&error));
            refuse_if_uncertain(&mut self.writes.order(), &error);
            // The decisions do not depend on the last-seen times. If the transaction certainly wrote nothing, the
            // decisions are therefore tried again without the last-seen times.
            if documents > 0 && error.is_uncertain() {
                return Err(error);
            }
            if documents > 0 {
                self.store(&changes[..documents], last)?;
            }
        }
        meters.commit_seconds.record(started.elapsed());
        if documents > 0 {
            meters.commit_documents.record(documents as f64);
        }
        Ok(told)
    }

    /// Makes changes durable. If the disk is full, the reserve makes room for them.
    fn store(&mut self, changes: &[Change], last: Seq) -> std::result::Result<(), StoreError> {
        match self.writer.commit(changes, last) {
            Err(StoreError::Full { .. }) if self.writes.disk().make_room() => self.writer.commit(changes, last),
            committed => committed,
        }
    }

    /// Removes from the disk documents that were deleted by label. If the disk is full, the reserve makes room for this
    /// change.
    fn remove_doomed(&mut self, part: &Part) -> std::result::Result<(), StoreError> {
        let now = TimestampMs::now();
        let deletion = match self.writer.remove_doomed(&part.doomed, now) {
            Err(StoreError::Full { .. }) if self.writes.disk().make_room() => {
                self.writer.remove_doomed(&part.doomed, now)
            }
            removed => removed,
        }?;
        if deletion.ended.is_some() {
            self.writes.lookup().records().store().forget_hidden(deletion.number);
            let (label, documents) = (deletion.label.as_str(), deletion.documents);
            tracing::info!(collection = %self.collection, label, documents, "all documents that were deleted by label are gone from the disk");
        }
        self.writes.jobs().removed(deletion);
        Ok(())
    }

    fn set_job(&mut self, job: Job) -> std::result::Result<(), StoreError> {
        self.writer.set_job(&job)?;
        self.writes.jobs().set(job);
        Ok(())
    }

    fn forget_job(&mut self, number: Seq) -> std::result::Result<(), StoreError> {
        if self.writer.forget_job(number, REPORTS_FORGOTTEN)? {
            self.writes.jobs().forgotten(number);
        }
        Ok(())
    }

    /// Undoes decisions that the disk refused.
    fn refused(&self, decisions: Vec<QueuedWrite>, error: &StoreError) {
        tracing::error!(collection = %self.collection, %error, decisions = decisions.len(), "a commit failed; its writes are undone");
        self.writes.lookup().meters().commit_failures.increment(1);
        if matches!(error, StoreError::Full { .. } | StoreError::Io { .. } | StoreError::Poisoned { .. }) {
            self.writes.disk().note_refusal();
        }
        undo(&self.writes, decisions, error);
    }

    /// Makes decisions visible to all readers after they have reached the disk.
    fn publish(&self, decisions: &[QueuedWrite], changes: &[Change], last: Seq) {
        let lookup = self.writes.lookup();
        self.publish_jobs(decisions);
        self.publish_updates(decisions);
        self.publish_labels(decisions);
        self.publish_items(decisions, changes);
        let promoted = decisions.iter().flat_map(|decision| decision.step.left()).filter_map(|left| left.promoted());
        let promoted: Vec<Place> =
            promoted.inspect(|&(seq, _)| lookup.records().unlink(seq)).map(|(_, place)| place).collect();
        // Checks see the batch from here on. Documents that the batch removed stay in memory until the checks that
        // began earlier have ended.
        lookup.set_durable(last);
        let gone = self.count(decisions);
        lookup.index().gone(gone, promoted);
    }

    /// Notes jobs that are on disk, and hides documents that are deleted by label from reads that list documents.
    fn publish_jobs(&self, decisions: &[QueuedWrite]) {
        let jobs = self.writes.jobs();
        for decision in decisions {
            match &decision.step {
                Step::Doomed(doomed) => {
                    if !doomed.documents.is_empty() {
                        let seqs = doomed.documents.iter().map(|&(seq, ..)| seq).collect();
                        self.writes.lookup().records().store().hide(doomed.number, seqs);
                    }
                    jobs.is_durable(doomed.number);
                }
                Step::BegunMerge(number) => jobs.is_durable(*number),
                Step::None | Step::Added { .. } | Step::Removed { .. } | Step::Updated { .. } => {}
            }
            decision.merged.iter().for_each(|merged| jobs.merged(merged));
        }
    }

    /// Makes metadata that is now on disk visible to all lookups.
    fn publish_updates(&self, decisions: &[QueuedWrite]) {
        let updated = |decision: &QueuedWrite| match decision.step {
            Step::Updated { seq, .. } => Some(seq),
            _ => None,
        };
        let mut updated = decisions.iter().filter_map(updated).peekable();
        if updated.peek().is_some() {
            let _order = self.writes.order();
            updated.for_each(|seq| self.writes.lookup().records().updated(seq));
        }
    }

    /// Sets new labels that are now on disk.
    fn publish_labels(&self, decisions: &[QueuedWrite]) {
        let change = |decision: &QueuedWrite| match decision.step {
            Step::Updated { labels, .. } => labels,
            _ => None,
        };
        let mut changes = decisions.iter().filter_map(change).peekable();
        if changes.peek().is_some() {
            // The index allows one writer at a time.
            let mut order = self.writes.order();
            changes.for_each(|labels| labels.published(self.writes.lookup(), &mut order));
        }
    }

    /// Lets lookups by containment find the new items, and no longer those that are gone.
    fn publish_items(&self, decisions: &[QueuedWrite], changes: &[Change]) {
        let Some(items) = self.writes.lookup().items() else { return };
        items.publish(changes);
        for decision in decisions {
            if let Step::Doomed(doomed) = &decision.step {
                items.remove(doomed.documents.iter().map(|&(seq, ..)| seq));
            }
        }
    }

    /// Updates the counts with these decisions, and returns the documents that are gone. A promotion subtracts one
    /// link. If the promoted document is removed in the same transaction, it counts as an ordinary document then.
    fn count(&self, decisions: &[QueuedWrite]) -> Vec<Place> {
        let lookup = self.writes.lookup();
        let mut gone = Vec::new();
        let (mut documents, mut links) = (0, 0);
        for decision in decisions {
            links -= decision.step.left().iter().filter(|left| left.promoted().is_some()).count() as i64;
            match &decision.step {
                Step::None | Step::Updated { .. } | Step::BegunMerge(_) => {}
                &Step::Added { linked, replaced, .. } => {
                    (documents, links) = (documents + 1, links + i64::from(linked));
                    gone.extend(replaced.map(|(replaced, _)| replaced));
                }
                &Step::Removed { place, .. } => gone.push(place),
                Step::Doomed(doomed) => gone.extend(doomed.documents.iter().map(|&(_, place, _)| place)),
            }
        }
        documents -= gone.len() as i64;
        links -= gone.iter().filter(|&&place| lookup.index().is_link(place)).count() as i64;
        lookup.counts().add(documents, links);
        lookup.records().settle(lookup.durable());
        gone
    }
}

fn answer_times(seen: Vec<LastSeenTimes>, told: &Result<()>) {
    for LastSeenTimes { answer, .. } in seen {
        drop(answer.send(told.clone()));
    }
}
