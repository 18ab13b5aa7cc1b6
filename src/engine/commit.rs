//! The committer: one thread a collection that puts decisions on disk, in order, as many at a time as are waiting.
//! In: the queue behind the decision lock. Out: `durable` moved on and every ticket answered; or, where the disk
//! refuses, every decision that is not durable undone, newest first, and its ticket told so.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;
use tokio::sync::oneshot;

use super::doubt::DOUBTFUL;
use super::epoch::Leaving;
use super::order::{Decision, Order, Step, Work};
use super::pace::Pace;
use super::{Collection, CollectionError, Result, WriteFailure};
use crate::store::{Change, Changeable, StoreError, Writer};
use crate::types::{Seq, Slot, TimestampMs};

/// How soon after its last reader the memory of a removed document is given back, where no write comes before.
const LEAVING_CHECK: Duration = Duration::from_millis(20);

/// Runs until the collection is closed and its queue is empty.
pub(crate) fn run(collection: &Collection, mut writer: Writer) {
    // Should this thread ever panic, nobody may go on waiting for it.
    let _closes = CloseOnDrop(collection);
    let mut leaving = Leaving::default();
    let mut pace = Pace::new(collection.limits.commit_window);
    while let Some(batch) = next_batch(collection, &mut pace, !leaving.is_empty()) {
        match batch {
            Batch::Nothing => {}
            Batch::Decisions(decisions, sights) => {
                commit(collection, &mut writer, &mut leaving, decisions, sights);
                collection.account_now();
            }
            Batch::Settings { changeable, answer } => {
                let written = writer.set_changeable(changeable);
                if let Err(error) = &written {
                    refuse_where_uncertain(&mut collection.order.lock(), error);
                }
                drop(answer.send(written.map_err(|error| write_failed(&error))));
            }
        }
        while let Some(gone) = leaving.pop() {
            for slot in gone {
                // Taken for each document anew: unlinking thousands must not keep deciders waiting.
                let mut order = collection.order.lock();
                forget(collection, &mut order, slot);
                order.memory.leaving -= 1;
            }
        }
    }
    if let Err(error) = writer.close() {
        tracing::error!(collection = %collection.name, %error, "the last checkpoint failed; the log is replayed at the next start");
    }
}

enum Batch {
    /// Nothing came in time.
    Nothing,
    Decisions(Vec<Decision>, Vec<Sights>),
    Settings {
        changeable: Changeable,
        answer: oneshot::Sender<Result<()>>,
    },
}

/// Documents that were seen again, and who asks whether that is on disk.
struct Sights {
    sights: Vec<(Seq, TimestampMs)>,
    answer: oneshot::Sender<Result<()>>,
}

struct CloseOnDrop<'a>(&'a Collection);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        let mut order = self.0.order.lock();
        order.closed = true;
        order.queue.clear();
    }
}

/// What to do next; `None` once the collection is closed and nothing is left. With `hurry` it does not wait long for work.
fn next_batch(collection: &Collection, pace: &mut Pace, hurry: bool) -> Option<Batch> {
    let mut order = collection.order.lock();
    while order.queue.is_empty() {
        if order.closed {
            return None;
        }
        if hurry {
            if collection.work.wait_for(&mut order, LEAVING_CHECK).timed_out() {
                return Some(Batch::Nothing);
            }
        } else {
            collection.work.wait(&mut order);
        }
    }
    let (mut decisions, mut seen) = (Vec::new(), Vec::new());
    let mut writing = false;
    while decisions.len() < collection.limits.commit_batch_max {
        // What only waited for those before it does not wait for the next transaction.
        if !writing && order.queue.front().is_some_and(Work::writes) {
            match pace.wait() {
                None => {
                    pace.begin();
                    writing = true;
                }
                Some(_) if !(decisions.is_empty() && seen.is_empty()) => break,
                Some(wait) => {
                    MutexGuard::unlocked(&mut order, || std::thread::sleep(wait));
                    continue;
                }
            }
        }
        match order.queue.pop_front() {
            Some(Work::Decision(decision)) => decisions.push(decision),
            Some(Work::Sights { sights, answer }) => seen.push(Sights { sights, answer }),
            Some(Work::Settings { changeable, answer }) if decisions.is_empty() && seen.is_empty() => {
                return Some(Batch::Settings { changeable, answer });
            }
            Some(settings) => {
                order.queue.push_front(settings);
                break;
            }
            None => break,
        }
    }
    Some(Batch::Decisions(decisions, seen))
}

fn commit(
    collection: &Collection,
    writer: &mut Writer,
    leaving: &mut Leaving,
    mut decisions: Vec<Decision>,
    seen: Vec<Sights>,
) {
    let last = decisions.last().map_or(collection.durable(), |decision| decision.at);
    let mut changes: Vec<Change> = decisions.iter_mut().filter_map(|decision| decision.change.take()).collect();
    let documents = changes.len();
    // Behind the decisions: some were made about documents that are not on disk yet.
    let sights = seen.iter().flat_map(|seen| &seen.sights);
    changes.extend(sights.map(|&(target, seen)| Change::Touch { target, seen }));
    let mut told = Ok(());
    if !changes.is_empty() {
        let started = Instant::now();
        let mut written = writer.commit(&changes, last);
        if let Err(error) = &written
            && documents < changes.len()
        {
            tracing::error!(collection = %collection.name, %error, "a commit failed; its last-seen times are kept for later");
            collection.meters.commit_failures.increment(1);
            told = Err(write_failed(error));
            refuse_where_uncertain(&mut collection.order.lock(), error);
            // No decision rests on them: what else it held is tried without them.
            if documents == 0 {
                written = Ok(());
            } else if !error.is_uncertain() {
                written = writer.commit(&changes[..documents], last);
            }
        }
        if let Err(error) = written {
            tracing::error!(collection = %collection.name, %error, decisions = decisions.len(), "a commit failed; its decisions are undone");
            collection.meters.commit_failures.increment(1);
            if matches!(error, StoreError::Full { .. } | StoreError::Io { .. } | StoreError::Poisoned { .. }) {
                collection.disk.note_refusal();
            }
            undo(collection, decisions, &error);
            answer_sights(seen, &Err(write_failed(&error)));
            return;
        }
        collection.meters.commit_seconds.record(started.elapsed());
        if documents > 0 {
            collection.meters.commit_documents.record(documents as f64);
        }
    }
    finish_updates(collection, &decisions);
    // On disk, so they may be found at once; and a check that no longer sees whom they follow must find them.
    decisions.iter().filter_map(|decision| decision.step.left()).for_each(|left| collection.promoted(left));
    // Checks see the batch from here on. What it removed waits for those that began before.
    collection.durable.store(last.0, Ordering::Release);
    leaving.push(&collection.epochs, settle(collection, &decisions));
    for decision in decisions {
        let Decision { answer, _latch, _place, .. } = decision;
        drop(answer.send(Ok(())));
    }
    answer_sights(seen, &told);
}

fn answer_sights(seen: Vec<Sights>, told: &Result<()>) {
    for Sights { answer, .. } in seen {
        drop(answer.send(told.clone()));
    }
}

/// Metadata that is now on disk is shown to all lookups.
fn finish_updates(collection: &Collection, decisions: &[Decision]) {
    let updated = |decision: &Decision| match decision.step {
        Step::Updated { seq } => Some(seq),
        Step::None | Step::Added { .. } | Step::Removed { .. } => None,
    };
    let mut updated = decisions.iter().filter_map(updated).peekable();
    if updated.peek().is_some() {
        let _order = collection.order.lock();
        updated.for_each(|seq| collection.records.updated(seq));
    }
}

/// Counts what is now durable, and returns what is now gone. A link that was promoted in the same transaction came as a
/// link, and goes as an ordinary document.
fn settle(collection: &Collection, decisions: &[Decision]) -> Vec<Slot> {
    let mut gone = Vec::new();
    let (mut documents, mut links) = (0, 0);
    for decision in decisions {
        links -= i64::from(decision.step.left().is_some_and(|left| left.promoted.is_some()));
        match decision.step {
            Step::None | Step::Updated { .. } => {}
            Step::Added { linked, replaced, .. } => {
                (documents, links) = (documents + 1, links + i64::from(linked));
                gone.extend(replaced.map(|(replaced, _)| replaced));
            }
            Step::Removed { slot, .. } => gone.push(slot),
        }
    }
    documents -= gone.len() as i64;
    links -= gone.iter().filter(|&&slot| collection.arena.is_linked(slot)).count() as i64;
    collection.documents.fetch_add(documents, Ordering::Relaxed);
    collection.linked.fetch_add(links, Ordering::Relaxed);
    collection.records.settle(collection.durable());
    collection.order.lock().memory.leaving += gone.len() as u64;
    gone
}

/// Takes a document out of memory: postings first, so that none ever names an empty slot.
fn forget(collection: &Collection, order: &mut Order, slot: Slot) {
    let seen = collection.arena.peek(slot).expect("a slot is freed once");
    collection.live.read().leave(&collection.arena, slot);
    collection.ids.remove(&collection.arena, slot);
    collection.records.forget(seen.seq);
    collection.arena.free(slot);
    order.free.push(slot);
}

/// Undoes every decision that is not durable, newest first, so that each finds the index as it left it. The lock is
/// held throughout: whoever decides next sees none of what is undone.
fn undo(collection: &Collection, failed: Vec<Decision>, error: &StoreError) {
    // What was still in the queue has not been near the disk.
    let (tried, uncertain) = (failed.len(), error.is_uncertain());
    let mut decisions = failed;
    let mut order = collection.order.lock();
    for work in std::mem::take(&mut order.queue) {
        match work {
            Work::Decision(decision) => decisions.push(decision),
            // New settings and sights rest on no decision.
            other @ (Work::Settings { .. } | Work::Sights { .. }) => order.queue.push_back(other),
        }
    }
    refuse_where_uncertain(&mut order, error);
    for (at, decision) in decisions.iter().enumerate().rev() {
        let in_doubt = uncertain && at < tried;
        match decision.step {
            Step::None => {}
            Step::Updated { seq } => collection.records.not_updated(seq),
            Step::Added { slot, replaced, .. } => {
                collection.unjoin_cluster(&mut order, slot);
                forget(collection, &mut order, slot);
                if let Some((replaced, left)) = replaced {
                    stay(collection, replaced, in_doubt);
                    collection.rejoin_cluster(&mut order, left);
                }
            }
            Step::Removed { slot, left } => {
                stay(collection, slot, in_doubt);
                collection.rejoin_cluster(&mut order, left);
            }
        }
    }
    // Nothing up to here is undecided any more. The numbers are not given out again.
    collection.durable.store(order.last.0, Ordering::Release);
    drop(order);
    for decision in decisions {
        drop(decision.answer.send(Err(write_failed(error))));
    }
}

/// What was undone or refused may stand on disk all the same. No answer may rest on either before the file is opened anew.
fn refuse_where_uncertain(order: &mut Order, error: &StoreError) {
    if error.is_uncertain() {
        order.refused = Some(format!(
            "an earlier write failed so that nobody can tell what is on disk; restart to write again ({error})"
        ));
    }
}

/// Takes a deletion or replacement back, or notes that it is unclear what became of it.
fn stay(collection: &Collection, slot: Slot, in_doubt: bool) {
    let seen = collection.arena.peek(slot).expect("what leaves keeps its slot until that is durable");
    let record = collection.records.stays(seen.seq);
    if in_doubt {
        collection.doubts.add(seen.seq, slot, record.id.clone());
    }
    collection.arena.set_removed(slot, if in_doubt { DOUBTFUL } else { Seq(0) });
}

fn write_failed(error: &StoreError) -> CollectionError {
    // Where the writer is poisoned, an earlier write was the uncertain one.
    let uncertain = error.is_uncertain() || matches!(error, StoreError::Poisoned { .. });
    let why = if uncertain { WriteFailure::Uncertain } else { WriteFailure::NothingKept };
    CollectionError::write_failed(why, error)
}

impl Collection {
    /// Starts the committer.
    pub(crate) fn start_committer(self: &Arc<Self>, writer: Writer) {
        let collection = Arc::clone(self);
        let name = format!("commit {}", self.name);
        let thread = std::thread::Builder::new().name(name).spawn(move || run(&collection, writer));
        *self.committer.lock() = Some(thread.expect("the system has room for one thread more"));
    }
}
