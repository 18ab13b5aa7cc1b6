//! What a connection does, and until when it may go on doing nothing.
//! Comes in: bytes, requests, ends of answers. Goes out: the moment at which the connection has to end.
//! Knows nothing of sockets or of HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::Context;
use std::time::Duration;

use futures::task::AtomicWaker;
use tokio::time::Instant;

/// How long a connection that was told to end may take, once nothing is being answered on it.
pub(crate) const LEAVING_TIME: Duration = Duration::from_secs(2);

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// A request is being answered, or an answer waits for the client to read: these have times of their own.
    Busy,
    /// No request has come yet, or a part of a request's head.
    Head,
    Idle,
}

/// Times that a connection is given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionTimes {
    /// For the first request to come, and for each head from its first byte on.
    pub(crate) header_timeout: Duration,
    /// From the end of an answer to the first byte of the next request.
    pub(crate) keep_alive_timeout: Duration,
}

/// One connection's. Moments are milliseconds since it was opened, and one more.
pub(crate) struct Activity {
    opened: Instant,
    answers: AtomicUsize,
    write_waits: AtomicBool,
    /// The opening, or the end of the last answer.
    free_since: AtomicU64,
    /// The first byte since then; 0: none came.
    head_since: AtomicU64,
    begun: AtomicBool,
    /// HTTP/2: bytes may come without being a request.
    multiplexed: AtomicBool,
    asked_to_leave: AtomicBool,
    over: AtomicBool,
    waker: AtomicWaker,
}

impl Activity {
    /// Of a connection that has just been opened.
    pub(crate) fn new() -> Arc<Self> {
        Self::opened(Instant::now())
    }

    fn opened(opened: Instant) -> Arc<Self> {
        Arc::new(Self {
            opened,
            answers: AtomicUsize::new(0),
            write_waits: AtomicBool::new(false),
            free_since: AtomicU64::new(1),
            head_since: AtomicU64::new(0),
            begun: AtomicBool::new(false),
            multiplexed: AtomicBool::new(false),
            asked_to_leave: AtomicBool::new(false),
            over: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        })
    }

    fn now(&self) -> u64 {
        // Never 0, which means "not".
        self.opened.elapsed().as_millis() as u64 + 1
    }

    fn moment(&self, ms: u64) -> Instant {
        self.opened + Duration::from_millis(ms)
    }

    /// The client has sent something.
    pub(crate) fn bytes_came(&self) {
        if self.answers.load(Ordering::Acquire) == 0 && self.head_since.load(Ordering::Relaxed) == 0 {
            self.head_since.store(self.now(), Ordering::Relaxed);
        }
    }

    /// Whether bytes of an answer wait for the client to make room.
    pub(crate) fn write_waits(&self, waits: bool) {
        self.write_waits.store(waits, Ordering::Release);
        if !waits {
            self.free_since.store(self.now(), Ordering::Release);
        }
    }

    /// A whole head has come; the request is being answered until what this returns is dropped.
    pub(crate) fn answer(self: &Arc<Self>, multiplexed: bool) -> Answering {
        self.answers.fetch_add(1, Ordering::AcqRel);
        self.head_since.store(0, Ordering::Relaxed);
        if !self.begun.load(Ordering::Relaxed) {
            self.multiplexed.store(multiplexed, Ordering::Relaxed);
            self.begun.store(true, Ordering::Release);
        }
        Answering(Arc::clone(self))
    }

    /// What it waits for.
    pub(crate) fn state(&self) -> ConnectionState {
        if self.answers.load(Ordering::Acquire) > 0 || self.write_waits.load(Ordering::Acquire) {
            return ConnectionState::Busy;
        }
        let begun = self.begun.load(Ordering::Acquire);
        let partial = self.head_since.load(Ordering::Relaxed) > 0 && !self.multiplexed.load(Ordering::Relaxed);
        if !begun || partial { ConnectionState::Head } else { ConnectionState::Idle }
    }

    /// Since when nothing is being answered; `None`: something is, or the connection is over.
    pub(crate) fn free_since(&self) -> Option<Instant> {
        (self.state() != ConnectionState::Busy && !self.over.load(Ordering::Relaxed))
            .then(|| self.moment(self.free_since.load(Ordering::Acquire)))
    }

    /// When it has waited long enough; `None`: not as long as it is busy.
    pub(crate) fn due(&self, patience: &ConnectionTimes, leaving: Option<Instant>) -> Option<Instant> {
        let free_since = self.moment(self.free_since.load(Ordering::Acquire));
        match (self.state(), leaving) {
            (ConnectionState::Busy, _) => None,
            (_, Some(leaving)) => Some(leaving.max(free_since) + LEAVING_TIME),
            (ConnectionState::Idle, None) => Some(free_since + patience.keep_alive_timeout),
            (ConnectionState::Head, None) => {
                let begun = self.begun.load(Ordering::Acquire);
                let since = if begun { self.moment(self.head_since.load(Ordering::Relaxed)) } else { free_since };
                Some(since + patience.header_timeout)
            }
        }
    }

    /// The connection has given up its place.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Asks the connection to make room, if it is not busy by then.
    pub(crate) fn ask_to_leave(&self) {
        self.asked_to_leave.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Whether it was asked to, since the last time that this was called.
    pub(crate) fn take_asked_to_leave(&self) -> bool {
        self.asked_to_leave.swap(false, Ordering::AcqRel)
    }

    /// Has the connection's task woken when an answer ends elsewhere, or when it is asked to leave.
    pub(crate) fn register(&self, cx: &Context<'_>) {
        self.waker.register(cx.waker());
    }
}

/// A request that is being answered.
pub(crate) struct Answering(Arc<Activity>);

impl Drop for Answering {
    fn drop(&mut self) {
        // Before the count: a thread that sees that nothing is being answered must also see since when.
        self.0.free_since.store(self.0.now(), Ordering::Release);
        if self.0.answers.fetch_sub(1, Ordering::AcqRel) == 1 && self.0.multiplexed.load(Ordering::Relaxed) {
            self.0.waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: ConnectionTimes =
        ConnectionTimes { header_timeout: Duration::from_secs(10), keep_alive_timeout: Duration::from_secs(75) };

    fn seconds_left(activity: &Activity) -> Option<u64> {
        let due = activity.due(&PATIENCE, None)?;
        Some((due - Instant::now()).as_secs_f64().round() as u64)
    }

    #[test]
    fn heads_have_one_time_and_the_waits_between_answers_another() {
        let activity = Activity::new();
        assert_eq!(
            (activity.state(), seconds_left(&activity)),
            (ConnectionState::Head, Some(10)),
            "a new one owes a request"
        );
        let answering = activity.answer(false);
        assert_eq!((activity.state(), seconds_left(&activity)), (ConnectionState::Busy, None));
        activity.bytes_came();
        drop(answering);
        assert_eq!(
            (activity.state(), seconds_left(&activity)),
            (ConnectionState::Idle, Some(75)),
            "those were the body's"
        );
        activity.bytes_came();
        assert_eq!((activity.state(), seconds_left(&activity)), (ConnectionState::Head, Some(10)));
        drop(activity.answer(false));
        assert_eq!((activity.state(), seconds_left(&activity)), (ConnectionState::Idle, Some(75)));
    }

    #[test]
    fn a_head_has_its_time_from_its_first_byte_on() {
        let activity = Activity::opened(Instant::now() - Duration::from_secs(100));
        activity.begun.store(true, Ordering::Relaxed);
        activity.free_since.store(50_000, Ordering::Relaxed);
        assert_eq!(seconds_left(&activity), Some(25));
        activity.head_since.store(96_000, Ordering::Relaxed);
        assert_eq!(seconds_left(&activity), Some(6));
        activity.bytes_came();
        assert_eq!(seconds_left(&activity), Some(6));
    }

    #[test]
    fn of_http_2_only_requests_count() {
        let activity = Activity::opened(Instant::now() - Duration::from_secs(70));
        drop(activity.answer(true));
        activity.free_since.store(1, Ordering::Relaxed);
        activity.bytes_came();
        assert_eq!(
            (activity.state(), seconds_left(&activity)),
            (ConnectionState::Idle, Some(5)),
            "an acknowledged PING is none"
        );
    }

    #[test]
    fn an_answer_that_is_still_being_read_is_not_cut_off() {
        let activity = Activity::opened(Instant::now() - Duration::from_secs(100));
        drop(activity.answer(false));
        activity.free_since.store(1, Ordering::Relaxed);
        activity.write_waits(true);
        assert_eq!((activity.state(), activity.free_since()), (ConnectionState::Busy, None));
        activity.write_waits(false);
        assert_eq!(seconds_left(&activity), Some(75));
    }
}
