//! A queue of jobs that has its own threads. Jobs of work that has begun go first, because such work holds memory, and
//! its client has already waited. So a document in many pieces is done soon after its first piece. In: jobs. Out: the
//! next job.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::OwnedSemaphorePermit;

use super::coming::Coming;
use super::drain::Drain;
use super::refused::Refused;

/// After this many jobs of begun work in a row, the next job is one of new work. Otherwise endless documents would keep
/// new work out. A document of 1 MiB is 16 jobs.
const BEGUN_IN_A_ROW_MAX: usize = 16;

pub(super) struct PoolWork {
    pub(super) asked: Instant,
    pub(super) permit: OwnedSemaphorePermit,
    /// Whether the job continues work that has begun.
    pub(super) begun: bool,
    pub(super) run: Box<dyn FnOnce() + Send>,
}

#[derive(Default)]
pub(super) struct Lane {
    queue: Mutex<Queue>,
    /// Notified when the queue gets a job or is closed.
    work: Condvar,
}

#[derive(Default)]
struct Queue {
    begun: VecDeque<PoolWork>,
    new: VecDeque<PoolWork>,
    coming: Coming,
    /// The number of jobs that were taken from `begun` since the last one from `new`.
    in_a_row: usize,
    /// The departures from `new`, to estimate waits.
    drain: Drain,
    closed: bool,
}

impl Lane {
    /// Accepts new work whose job will be added later. Refuses it if the job would wait longer than `wait_max`. If
    /// `wait_max` is zero, accepts all work. Returns a number for [`Lane::came`].
    pub(super) fn admit(&self, wait_max: Duration) -> Result<u64, Refused> {
        let (mut queue, now) = (self.queue.lock(), Instant::now());
        queue.admits(now, wait_max)?;
        Ok(queue.coming.add(now))
    }

    /// Returns an error if new work would be refused.
    pub(super) fn judge(&self, wait_max: Duration) -> Result<(), Refused> {
        self.queue.lock().admits(Instant::now(), wait_max)
    }

    /// Records that the work with this number has arrived in the queue, or will never arrive.
    pub(super) fn came(&self, number: u64) {
        self.queue.lock().coming.remove(number);
    }

    /// Adds a job. New work that would wait longer than `wait_max` is refused. If `wait_max` is zero, no work is
    /// refused.
    pub(super) fn push(&self, job: PoolWork, wait_max: Duration) -> Result<(), Refused> {
        let mut queue = self.queue.lock();
        if job.begun {
            queue.begun.push_back(job);
        } else {
            // Accepted work that has not arrived in the queue yet does not count here, because this job is ahead of
            // that work.
            queue.is_in_time(Instant::now(), queue.new.len(), wait_max)?;
            queue.new.push_back(job);
        }
        self.work.notify_one();
        Ok(())
    }

    /// Waits for the next job and takes it. Returns `None` once the lane is closed.
    pub(super) fn next(&self) -> Option<PoolWork> {
        let mut queue = self.queue.lock();
        loop {
            if queue.closed {
                return None;
            }
            if let Some(job) = queue.pop() {
                return Some(job);
            }
            self.work.wait(&mut queue);
        }
    }

    /// Returns how many jobs wait.
    pub(super) fn depth(&self) -> usize {
        let queue = self.queue.lock();
        queue.begun.len() + queue.new.len()
    }

    pub(super) fn close(&self) {
        self.queue.lock().closed = true;
        self.work.notify_all();
    }
}

impl Queue {
    /// Refuses new work if it would wait longer than `wait_max` behind other new work. This includes admitted work whose
    /// job has not come yet.
    fn admits(&mut self, now: Instant, wait_max: Duration) -> Result<(), Refused> {
        let ahead = self.new.len() + self.coming.count(now, wait_max);
        self.is_in_time(now, ahead, wait_max)
    }

    /// Refuses work if it would wait longer than `wait_max` behind `ahead` other jobs. If `wait_max` is zero, refuses
    /// none.
    fn is_in_time(&self, now: Instant, ahead: usize, wait_max: Duration) -> Result<(), Refused> {
        match wait_max.is_zero() || self.drain.wait(now, ahead) <= wait_max {
            true => Ok(()),
            false => Err(Refused::Late),
        }
    }

    fn pop(&mut self) -> Option<PoolWork> {
        let new_is_due = self.in_a_row >= BEGUN_IN_A_ROW_MAX && !self.new.is_empty();
        if !new_is_due && let Some(job) = self.begun.pop_front() {
            self.in_a_row += 1;
            return Some(job);
        }
        let job = self.new.pop_front()?;
        self.in_a_row = 0;
        self.drain.departed(Instant::now(), self.new.len());
        Some(job)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tokio::sync::Semaphore;

    use super::*;

    #[test]
    fn what_has_begun_goes_first_and_new_work_is_not_stopped() {
        let (lane, done, places) = (Lane::default(), Arc::new(Mutex::new(Vec::new())), Arc::new(Semaphore::new(100)));
        let push = |begun: bool, number: usize| {
            let (permit, done) = (Arc::clone(&places).try_acquire_owned().unwrap(), Arc::clone(&done));
            let run = Box::new(move || done.lock().push((begun, number)));
            lane.push(PoolWork { asked: Instant::now(), permit, begun, run }, Duration::ZERO).unwrap();
        };
        (0..3).for_each(|number| push(false, number));
        (0..2 * BEGUN_IN_A_ROW_MAX).for_each(|number| push(true, number));
        while lane.depth() > 0 {
            (lane.next().unwrap().run)();
        }
        let (begun, new) = (|number| (true, number), |number| (false, number));
        let row = BEGUN_IN_A_ROW_MAX;
        let expected: Vec<_> =
            (0..row).map(begun).chain([new(0)]).chain((row..2 * row).map(begun)).chain([new(1), new(2)]).collect();
        assert_eq!(*done.lock(), expected);
    }

    #[test]
    fn work_on_its_way_counts_for_what_comes_after_it() {
        let (lane, places, ms) = (Lane::default(), Arc::new(Semaphore::new(100)), Duration::from_millis);
        let start = Instant::now();
        (0..2).for_each(|at| lane.queue.lock().drain.departed(start + ms(20_000 * at), 1));
        let wait_max = ms(50_000);
        let admitted: Vec<_> = (0..3).map(|_| lane.admit(wait_max).unwrap()).collect();
        assert_eq!(lane.admit(wait_max), Err(Refused::Late), "the fourth would wait for a minute");
        let push = |permit| {
            let run = Box::new(|| ());
            lane.push(PoolWork { asked: Instant::now(), permit, begun: false, run }, wait_max)
        };
        assert!(push(Arc::clone(&places).try_acquire_owned().unwrap()).is_ok(), "it comes before the others");
        admitted.into_iter().for_each(|number| lane.came(number));
        assert_eq!(lane.admit(wait_max).map(drop), Ok(()));
    }
}
