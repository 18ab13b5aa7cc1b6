//! Decides whether a request may begin. Each class of requests has its own places. Therefore an operator gets an answer
//! even during many checks or long streams, and streams do not take the places of checks. For requests of
//! `Class::Single`, the time until they get a thread is limited too.
//! In: a request that is about to begin. Out: its place, or 503. Knows nothing of bodies.

use std::sync::Arc;
use std::time::Duration;

use metrics::{Counter, Histogram};
use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

use super::batches::Batches;
use super::delay_limit::DelayLimit;
use super::error::{Code, Problem};
use super::run_queue;
use crate::config::HttpLimits;
use crate::cpu::Refused;
use crate::telemetry::names::{self, label, value};

/// If the pool for long work would refuse the work of a request, the longest allowed wait of this request is divided by
/// this number.
const HOPELESS_SOONER: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// One answer about documents: a check, an insertion, a batch, a page.
    Single,
    /// A stream of documents. Each piece of a stream's work waits for a place of this class. Another limit applies to
    /// the number of streams.
    Bulk,
    /// A request about the server or about whole collections.
    Admin,
    /// Probes and metrics. Never refused.
    Probe,
}

/// The places of each class.
pub(super) struct Admission {
    single: Arc<Places>,
    bulk: Arc<Places>,
    admin: Arc<Places>,
    batches: Batches,
    /// Held by the request that works on the keys file.
    keys_turn: Arc<Mutex<()>>,
    /// Held by the search of the audit log that runs.
    audit_turn: Arc<Mutex<()>>,
}

/// The places of one class.
pub(super) struct Places {
    free: Arc<Semaphore>,
    delay: DelayLimit,
    /// The limit for requests whose work the pool for long work would refuse.
    hopeless_delay: DelayLimit,
    full: &'static str,
    refused: Counter,
    waits: Option<Histogram>,
}

impl Admission {
    /// `threads` is the number of threads that work on batches.
    pub(super) fn new(limits: &HttpLimits, threads: usize) -> Self {
        let many = "too many requests at once (`server.requests_concurrent_max`); try again later";
        let single = Places {
            delay: DelayLimit::new(limits.queue_delay_max),
            hopeless_delay: DelayLimit::new(limits.queue_delay_max / HOPELESS_SOONER),
            waits: Some(metrics::histogram!(names::HTTP_QUEUE_WAIT)),
            ..Places::new(value::CLASS_SINGLE, limits.requests_concurrent_max, many)
        };
        let bulk = "all places for bulk requests are taken (`server.bulk_requests_max`); try again later";
        let admin = "too many administrative requests at once (`server.admin_requests_max`); try again later";
        Self {
            batches: Batches::new(threads, limits.batch_delay_max, single.refused.clone()),
            single: Arc::new(single),
            keys_turn: Arc::default(),
            audit_turn: Arc::default(),
            bulk: Arc::new(Places::new(value::CLASS_BULK, limits.requests_concurrent_max, bulk)),
            admin: Arc::new(Places::new(value::CLASS_ADMIN, limits.admin_requests_max, admin)),
        }
    }

    /// Waits for the turn of a request to work on the keys file.
    pub(super) async fn keys_turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.keys_turn).lock_owned().await
    }

    /// Waits for the turn of a request to search the audit log.
    pub(super) async fn audit_turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.audit_turn).lock_owned().await
    }

    /// Returns the places of batches. A batch also needs a place of its class.
    pub(super) fn batches(&self) -> &Batches {
        &self.batches
    }

    /// The places of a class. A place of the bulk class is for one piece of a stream's work.
    pub(super) fn of(&self, class: Class) -> &Arc<Places> {
        match class {
            Class::Single | Class::Probe => &self.single,
            Class::Bulk => &self.bulk,
            Class::Admin => &self.admin,
        }
    }
}

impl Places {
    fn new(class: &'static str, places: usize, full: &'static str) -> Self {
        let refused = metrics::counter!(names::HTTP_SHED, label::CLASS => class);
        // Registered from the start, so that an alert sees the first refusal.
        refused.increment(0);
        let off = || DelayLimit::new(Duration::ZERO);
        let free = Arc::new(Semaphore::new(places));
        Self { free, delay: off(), hopeless_delay: off(), full, refused, waits: None }
    }

    /// Records how long a new request has waited for a thread, and refuses the request if that was too long. `judge`
    /// returns an error if the pool for long work would refuse the request's work.
    pub(super) fn arrive(&self, judge: impl FnOnce() -> Result<(), Refused>) -> Result<(), Problem> {
        let waited = run_queue::waited();
        if let Some(waits) = &self.waits {
            waits.record(waited.as_secs_f64());
        }
        // Accepting the request and decoding the beginning of its body would take longer than refusing it now.
        if self.hopeless_delay.refuses(waited)
            && let Err(refused) = judge()
        {
            run_queue::refuses();
            return Err(refused.into());
        }
        if self.delay.refuses(waited) && run_queue::has_time_to_refuse() {
            run_queue::refuses();
            return Err(self.refuse(
                "the server has more to do than it can do in time (`server.queue_delay_max_ms`); nothing was done for \
                 this request; try again later",
            ));
        }
        Ok(())
    }

    /// Takes a place; 503 if none is free. The time that the request has waited no longer matters: its body has been
    /// read, and a refusal would waste that work.
    pub(super) fn take(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.free).try_acquire_owned().map_err(|_| self.full())
    }

    /// Waits for a place for one piece of work.
    pub(super) async fn piece(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.free).acquire_owned().await.expect("the places are never closed")
    }

    /// Returns the answer to a request for which there is no place.
    pub(super) fn full(&self) -> Problem {
        self.refuse(self.full)
    }

    /// Counts a refusal, and returns it.
    pub(super) fn refuse(&self, detail: &str) -> Problem {
        self.refused.increment(1);
        Problem::new(Code::Overloaded, detail)
    }

    /// Returns how many places are free.
    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.free.available_permits()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::http::run_queue::Timed;

    #[tokio::test]
    async fn a_request_that_waited_too_long_is_refused_while_that_lasts() {
        let limit = Duration::from_millis(1);
        let defaults = crate::config::defaults().server.limits;
        let admission = Admission::new(&HttpLimits { queue_delay_max: limit, ..defaults }, 1);
        let after = |class, waited, judge: fn() -> Result<(), Refused>| {
            let since = Instant::now().checked_sub(waited).expect("the clock began earlier");
            let places = Arc::clone(admission.of(class));
            Timed::ready_since(async move { places.arrive(judge).and_then(|()| places.take()) }, since)
        };
        assert!(after(Class::Single, 5 * limit, || Ok(())).await.is_ok(), "one alone is not overload");
        // Each of these requests continues the run of long waits.
        let refused = loop {
            if let Err(problem) = after(Class::Single, 5 * limit, || Ok(())).await {
                break problem;
            }
        };
        assert_eq!(refused.code, Code::Overloaded);
        assert!(refused.retry_after.is_some());
        for class in [Class::Bulk, Class::Admin] {
            assert!(after(class, 5 * limit, || Err(Refused::Late)).await.is_ok(), "{class:?}");
        }
    }

    #[tokio::test]
    async fn a_request_whose_work_would_be_refused_is_refused_sooner() {
        let places =
            &Places { hopeless_delay: DelayLimit::new(Duration::from_nanos(1)), ..Places::new("single", 1, "") };
        let after = |judge: fn() -> Result<(), Refused>| {
            let since = Instant::now().checked_sub(Duration::from_millis(1)).expect("the clock began earlier");
            Timed::ready_since(async move { places.arrive(judge) }, since)
        };
        while after(|| Err(Refused::Late)).await.is_ok() {}
        assert!(after(|| Ok(())).await.is_ok(), "its work would be done");
    }
}
