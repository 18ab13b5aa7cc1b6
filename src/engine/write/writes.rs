//! `Writes` holds everything that writes need: the lookup that they decide with, the commit order, and the turns of
//! ids.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hapax_core::Banding;
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::oneshot;

use super::commit_window::Wait;
use super::id_turn::{WriteTurn, WriteTurns};
use super::lock::{DecisionLock, HoldsLong, OpenOrder};
use super::merge_place::MergePlace;
use super::order::{Alone, LastSeenTimes, Order, QueuedWrite, Step, Work};
use super::payload_room::{PayloadBudget, PayloadRoom};
use super::ticket::Ticket;
use crate::engine::disk::DataDisk;
use crate::engine::jobs::{Jobs, Part};
use crate::engine::lookup::Lookup;
use crate::engine::statistics::LabelStatistics;
use crate::store::{Change, Changeable, StoredStatistics};
use crate::types::{GoldenPair, Job, Merged, Seq, TimestampMs, retry_after};
use crate::verdicts::{CollectionError, Result};

/// Receives the outcome of a write that was sent to the disk.
pub(crate) type Written = oneshot::Receiver<Result<()>>;

/// Everything that writes need.
pub(crate) struct Writes {
    lookup: Arc<Lookup>,
    order: DecisionLock,
    /// Notified when the queue has work.
    work: Condvar,
    turns: WriteTurns,
    /// Room for shingles, texts and metadata on their way to the disk.
    payload_room: PayloadRoom,
    disk: Arc<DataDisk>,
    jobs: Jobs,
    /// How often decisions were undone.
    undone: AtomicU64,
    statistics: LabelStatistics,
    committer: Mutex<Option<JoinHandle<()>>>,
}

/// How full the queue for the disk is.
pub(crate) struct QueueGauges {
    pub depth: usize,
    /// The bytes of payloads that wait.
    pub payload_bytes: usize,
    /// The bytes of the clusters in memory.
    pub cluster_bytes: u64,
}

impl Writes {
    /// Makes the writes of a collection that has just been opened.
    pub(crate) fn new(
        lookup: Arc<Lookup>,
        order: Order,
        payloads: PayloadBudget,
        disk: Arc<DataDisk>,
        (jobs, statistics): (Jobs, LabelStatistics),
    ) -> Self {
        let limits = lookup.limits();
        let turns = WriteTurns::new(limits.commit_queue_max, limits.commit_queue_wait);
        let payload_room = PayloadRoom::new(payloads, limits.commit_queue_wait);
        let order = DecisionLock::new(order, lookup.meters().decision_seconds.clone());
        Self {
            lookup,
            order,
            work: Condvar::new(),
            turns,
            payload_room,
            disk,
            jobs,
            undone: AtomicU64::new(0),
            statistics,
            committer: Mutex::new(None),
        }
    }

    pub(crate) fn lookup(&self) -> &Arc<Lookup> {
        &self.lookup
    }

    pub(super) fn turns(&self) -> &WriteTurns {
        &self.turns
    }

    pub(super) fn payload_room(&self) -> &PayloadRoom {
        &self.payload_room
    }

    /// Returns how often decisions were undone. This number changes only under the decision lock.
    pub(crate) fn undone(&self) -> u64 {
        self.undone.load(Ordering::Acquire)
    }

    /// Notes that decisions are undone. The caller has the decision lock.
    pub(super) fn note_undone(&self) {
        self.undone.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn statistics(&self) -> &LabelStatistics {
        &self.statistics
    }

    pub(crate) fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    pub(super) fn disk(&self) -> &DataDisk {
        &self.disk
    }

    /// Takes the decision lock, even if the collection is closed.
    pub(super) fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock()
    }

    /// Takes the decision lock. Returns an error if no write is accepted.
    pub(super) fn open_order(&self) -> Result<OpenOrder<'_>> {
        self.order.open()
    }

    /// Like [`open_order`](Self::open_order), for a document of a merge. Also returns an error if decisions were undone
    /// since its step began. An earlier document of the merge may have been undone, and the merge would then skip that
    /// document.
    pub(super) fn open_order_of(&self, merge: Option<MergePlace>) -> Result<OpenOrder<'_>> {
        let order = self.open_order()?;
        if merge.is_some_and(|place| place.undone != self.undone()) {
            return Err(CollectionError::Overloaded {
                detail: "earlier documents of the merge could not be stored, and must be stored first".to_owned(),
                retry_after: retry_after::SOON,
            });
        }
        Ok(order)
    }

    /// Announces that the decision lock will be held for a long time, until the returned value is dropped.
    pub(super) fn hold_long(&self) -> HoldsLong<'_> {
        self.order.hold_long()
    }

    /// Returns whether threads that serve requests should avoid waiting for the decision lock.
    pub(super) fn is_held_long(&self) -> bool {
        self.order.is_held_long()
    }

    /// Runs `work` under the decision lock, with the last `seq` assigned. Returns `None` if the collection is closed.
    pub(crate) fn exclusively<T>(&self, work: impl FnOnce(Seq) -> T) -> Option<T> {
        let order = self.order.lock();
        let done = (!order.is_closed()).then(|| work(order.last()));
        // The lock is released fairly, because a thread that takes and releases it in a loop would rarely let another
        // thread have it.
        MutexGuard::unlock_fair(order);
        done
    }

    /// Runs `work` under the decision lock, whether or not the collection is closed.
    pub(crate) fn locked<T>(&self, work: impl FnOnce() -> T) -> T {
        let _order = self.order.lock();
        work()
    }

    /// Sends a decision to the disk. If it changes nothing and all earlier decisions are on disk, the ticket is ready
    /// at once.
    pub(super) fn enqueue<T>(
        &self,
        order: &mut Order,
        value: T,
        (change, step): (Option<Change>, Step),
        turn: impl Into<Option<WriteTurn>>,
    ) -> Ticket<T> {
        self.enqueue_noted(order, value, (change, step), (None, false), turn)
    }

    /// Like [`enqueue`](Self::enqueue), but also takes the report of a merge and whether the write is patient.
    pub(super) fn enqueue_noted<T>(
        &self,
        order: &mut Order,
        value: T,
        (change, step): (Option<Change>, Step),
        (merged, patient): (Option<Arc<Merged>>, bool),
        turn: impl Into<Option<WriteTurn>>,
    ) -> Ticket<T> {
        let at = order.last();
        if change.is_none() && merged.is_none() && self.lookup.durable() >= at {
            return Ticket::ready(value, at);
        }
        let (answer, durable) = oneshot::channel();
        if order.push(Work::Write(QueuedWrite { change, merged, step, at, patient, answer, _turn: turn.into() })) {
            self.work.notify_one();
        }
        Ticket::waiting(value, at, durable)
    }

    /// Sends settings to the disk.
    pub(crate) fn write_settings(&self, changeable: Changeable) -> Result<Written> {
        self.write_alone(Alone::Settings(changeable))
    }

    /// Sends a golden set to the disk, in place of the earlier one.
    pub(crate) fn write_golden(&self, pairs: Arc<Vec<GoldenPair>>) -> Result<Written> {
        self.write_alone(Alone::Golden(pairs))
    }

    /// Removes from the disk documents that were deleted by label.
    pub(crate) fn remove_doomed(&self, part: Arc<Part>) -> Result<Written> {
        self.write_alone(Alone::RemoveDoomed(part))
    }

    /// Sends statistics to the disk.
    pub(crate) fn write_statistics(&self, rows: Arc<Vec<StoredStatistics>>) -> Result<Written> {
        self.write_alone(Alone::Statistics(rows))
    }

    /// Sends the new state of a job to the disk.
    pub(crate) fn write_job(&self, job: Job) -> Result<Written> {
        self.write_alone(Alone::Job(Box::new(job)))
    }

    /// Forgets reports of a job that has ended, or the job itself if it has no report left.
    pub(crate) fn forget_job(&self, number: Seq) -> Result<Written> {
        self.write_alone(Alone::ForgetJob(number))
    }

    fn write_alone(&self, write: Alone) -> Result<Written> {
        let (answer, written) = oneshot::channel();
        self.send(Work::Alone { write, answer })?;
        Ok(written)
    }

    /// Sends last-seen times to the disk with the next transaction.
    pub(crate) fn write_last_seen(&self, times: Vec<(Seq, TimestampMs)>) -> Result<Written> {
        let (answer, written) = oneshot::channel();
        self.send(Work::LastSeen(LastSeenTimes { times, answer }))?;
        Ok(written)
    }

    fn send(&self, work: Work) -> Result<()> {
        let mut order = self.open_order()?;
        if order.push(work) {
            self.work.notify_one();
        }
        Ok(())
    }

    /// Waits until the queue has work, for `wait` at most. Returns false if the wait timed out.
    pub(super) fn wait_for_work(&self, order: &mut MutexGuard<'_, Order>, wait: Option<Duration>) -> bool {
        match wait {
            Some(wait) => !self.work.wait_for(order, wait).timed_out(),
            None => {
                self.work.wait(order);
                true
            }
        }
    }

    /// Waits for more entries in the queue.
    pub(super) fn wait_for_crowd(&self, order: &mut MutexGuard<'_, Order>, wait: Wait) {
        order.wake_at(wait.entries, wait.is_patient);
        self.work.wait_for(order, wait.time);
        order.wake_at(1, false);
    }

    /// Returns whether writes are refused until a restart, because an earlier write failed with an unknown outcome.
    pub(crate) fn are_refused(&self) -> bool {
        self.order.lock().is_refused()
    }

    /// Updates the memory budget, and logs if it became scarce or is no longer scarce.
    pub(crate) fn account(&self) {
        let mut order = self.order.lock();
        let budget = order.memory_mut().account(&self.lookup);
        drop(order);
        budget.watch();
    }

    /// Returns an error if the memory budget has no room for another banding in addition to the present one.
    pub(crate) fn admit_banding(&self, banding: Banding) -> Result<()> {
        self.order.lock().memory_mut().admit_banding(&self.lookup, banding)
    }

    /// Returns an error if the process has no memory left.
    pub(crate) fn may_grow(&self) -> Result<()> {
        self.order.lock().memory_mut().may_grow()
    }

    /// Returns whether clients need the queue, so that work in the background has to wait.
    pub(crate) fn is_busy(&self) -> bool {
        self.turns.are_scarce()
    }

    /// Returns how full the queue for the disk is.
    pub(crate) fn gauges(&self) -> QueueGauges {
        let (depth, payload_bytes) = (self.turns.taken(), self.payload_room.bytes_waiting());
        let cluster_bytes = self.order.lock().clusters().bytes() + self.lookup.records().store().cluster_bytes();
        QueueGauges { depth, payload_bytes, cluster_bytes }
    }

    /// Keeps the committer's thread, so that [`Self::close`] can wait for it.
    pub(super) fn set_committer(&self, committer: JoinHandle<()>) {
        *self.committer.lock() = Some(committer);
    }

    /// Stops taking writes, waits until all accepted writes are on disk, and closes the file. Blocks the thread.
    /// Returns false if the committer panicked.
    pub(crate) fn close(&self) -> bool {
        {
            let mut order = self.order.lock();
            order.close();
            self.work.notify_one();
        }
        let committer = self.committer.lock().take();
        committer.is_none_or(|committer| committer.join().is_ok())
    }
}
