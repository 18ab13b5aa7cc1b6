//! The state of one connection, and how long it may stay in that state. In: bytes, requests, ends of answers. Out: the
//! time at which the connection must end. Knows nothing of sockets or of HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::Context;
use std::time::Duration;

use axum::http::HeaderMap;
use futures::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::traffic::{FIELD_BYTES, Traffic};
use crate::http::sending::Unread;

/// How long a connection may stay open after it was told to end, if it has no request to answer.
pub(crate) const LEAVING_TIME: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// A request is being answered, or the client has not read all of an answer. Both have time limits of their own.
    Busy,
    /// No request has arrived yet, or only a part of a request's head.
    Head,
    Idle,
}

/// The time limits of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionTimes {
    /// For the first request: the time from the opening of the connection to the end of the head. For later requests:
    /// the time from the first byte of a head to its end.
    pub(crate) header_timeout: Duration,
    /// The time from the end of an answer to the first byte of the next request.
    pub(crate) keep_alive_timeout: Duration,
    /// Replaces `keep_alive_timeout` while the server stops. A request that is then on its way is still answered.
    pub(crate) drain_idle: Duration,
}

/// Whether a connection is about to end, and in which stage its end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    No,
    /// The server began to stop at this time. The connection takes one more request, if that request arrives soon.
    Stopping(Instant),
    /// The connection was told at this time to end. It takes no more requests.
    Leaving(Instant),
}

/// The state of one connection. Times are in milliseconds since the connection was opened, plus one.
pub(crate) struct Activity {
    opened: Instant,
    answers: AtomicUsize,
    /// The time at which bytes of an answer began to wait for the client to read them; 0 if no bytes wait.
    write_waits_since: AtomicU64,
    traffic: Traffic,
    /// The answers that are being sent. The list may still contain answers that have ended.
    sending: Mutex<Vec<Unread>>,
    /// The time at which the connection was opened, or at which its last answer ended.
    free_since: AtomicU64,
    /// The time at which the first byte after `free_since` arrived; 0 if none has arrived.
    head_since: AtomicU64,
    begun: AtomicBool,
    /// Whether the connection is HTTP/2. Over HTTP/2, arriving bytes may belong to no request.
    multiplexed: AtomicBool,
    asked_to_leave: AtomicBool,
    over: AtomicBool,
    waker: AtomicWaker,
}

impl Activity {
    /// Makes the state of a connection that has just been opened.
    pub(crate) fn new() -> Arc<Self> {
        Self::opened(Instant::now())
    }

    fn opened(opened: Instant) -> Arc<Self> {
        Arc::new(Self {
            opened,
            answers: AtomicUsize::new(0),
            write_waits_since: AtomicU64::new(0),
            traffic: Traffic::default(),
            sending: Mutex::default(),
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
        // Never 0, because 0 means "none".
        self.opened.elapsed().as_millis() as u64 + 1
    }

    fn moment(&self, ms: u64) -> Instant {
        self.opened + Duration::from_millis(ms)
    }

    /// Records that the client has sent some bytes.
    pub(crate) fn bytes_came(&self, count: usize) {
        let now = self.now();
        self.traffic.receive(count as u64, now);
        if self.answers() == 0 && self.head_since.load(Ordering::Relaxed) == 0 {
            self.head_since.store(now, Ordering::Relaxed);
        }
    }

    /// Records whether bytes of an answer are waiting for the client to read.
    pub(crate) fn write_waits(&self, waits: bool) {
        self.write_waits_since.store(if waits { self.now() } else { 0 }, Ordering::Release);
        if !waits {
            self.free_since.store(self.now(), Ordering::Release);
        }
    }

    /// Records that a whole head has arrived. The request counts as being answered until the returned value is dropped.
    pub(crate) fn answer(self: &Arc<Self>, multiplexed: bool) -> Answering {
        self.answers.fetch_add(1, Ordering::AcqRel);
        self.head_since.store(0, Ordering::Relaxed);
        if !self.begun.load(Ordering::Relaxed) {
            self.multiplexed.store(multiplexed, Ordering::Relaxed);
            self.begun.store(true, Ordering::Release);
        }
        Answering(Arc::clone(self))
    }

    /// Returns how many requests are being answered.
    pub(crate) fn answers(&self) -> usize {
        self.answers.load(Ordering::Acquire)
    }

    /// Records that an answer is made and is being sent.
    pub(crate) fn sends(&self, answer: Unread) {
        let mut sending = self.sending.lock();
        // Ended answers are removed only now and then. So the cost of an answer does not depend on the number of open
        // answers.
        if sending.len() >= 8 && sending.len() >= 2 * self.answers() {
            sending.retain(Unread::is_open);
        }
        sending.push(answer);
    }

    /// If the connection only waits for its client to read answers, returns for how long. Returns `None` if a request
    /// is still being worked on.
    pub(crate) fn unread_for(&self) -> Option<Duration> {
        let since = self.write_waits_since.load(Ordering::Acquire);
        if since > 0 {
            // A client may send all of a long body before it reads. Over HTTP/2, a client can send bytes at any time,
            // so received bytes do not count.
            let sent = if self.is_multiplexed() { 0 } else { self.traffic.last_received() };
            return Some(self.moment(since.max(sent)).elapsed());
        }
        let mut sending = self.sending.lock();
        sending.retain(Unread::is_open);
        if sending.len() < self.answers() {
            return None;
        }
        sending.iter().map(Unread::waited).try_fold(None, |longest, waited| Some(longest.max(Some(waited?))))?
    }

    pub(crate) fn state(&self) -> ConnectionState {
        if self.answers() > 0 || self.write_waits_since.load(Ordering::Acquire) > 0 {
            return ConnectionState::Busy;
        }
        let begun = self.begun.load(Ordering::Acquire);
        let partial = self.head_since.load(Ordering::Relaxed) > 0 && !self.multiplexed.load(Ordering::Relaxed);
        if !begun || partial { ConnectionState::Head } else { ConnectionState::Idle }
    }

    /// Returns the time since which no request is being answered; `None` if the connection is busy or over.
    pub(crate) fn free_since(&self) -> Option<Instant> {
        (self.state() != ConnectionState::Busy && !self.over.load(Ordering::Relaxed))
            .then(|| self.moment(self.free_since.load(Ordering::Acquire)))
    }

    /// Records a piece of the body of a request or of an answer.
    pub(crate) fn carried(&self, bytes: usize) {
        self.traffic.carry(bytes as u64);
    }

    /// Records the headers of a request. Nothing is recorded for HTTP/1, which has no limit of this kind.
    pub(crate) fn carried_headers(&self, headers: &HeaderMap) {
        if !self.is_multiplexed() {
            return;
        }
        let bytes: u64 =
            headers.iter().map(|(name, value)| (name.as_str().len() + value.len()) as u64 + FIELD_BYTES).sum();
        self.traffic.carry(bytes);
    }

    /// Whether the client sends far more bytes than its requests need. False for HTTP/1, because there a client can
    /// send only requests. Before the first request, the version of HTTP is not known, so the bytes are checked. The
    /// check ends no HTTP/1 connection, because the head of a request is far shorter than a flood.
    pub(crate) fn is_flooded(&self) -> bool {
        (self.is_multiplexed() || !self.begun.load(Ordering::Relaxed)) && self.traffic.is_flood()
    }

    /// Whether the connection is known to be HTTP/2.
    pub(crate) fn is_multiplexed(&self) -> bool {
        self.multiplexed.load(Ordering::Relaxed)
    }

    /// Returns the time at which the connection has waited too long and must end; `None` while it is busy.
    pub(crate) fn due(&self, patience: &ConnectionTimes, ending: Ending) -> Option<Instant> {
        let free_since = self.moment(self.free_since.load(Ordering::Acquire));
        let usual = match self.state() {
            ConnectionState::Busy => return None,
            ConnectionState::Idle => free_since + patience.keep_alive_timeout,
            ConnectionState::Head => {
                let begun = self.begun.load(Ordering::Acquire);
                let since = if begun { self.moment(self.head_since.load(Ordering::Relaxed)) } else { free_since };
                since + patience.header_timeout
            }
        };
        Some(match ending {
            Ending::No => usual,
            Ending::Leaving(since) => since.max(free_since) + LEAVING_TIME,
            Ending::Stopping(since) => usual.min(since.max(free_since) + patience.drain_idle),
        })
    }

    /// Records that the connection has given up its place.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Asks the connection to make room. The connection ignores this if it has work by then.
    pub(crate) fn ask_to_leave(&self) {
        self.asked_to_leave.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Returns whether the connection was asked to leave since the last call.
    pub(crate) fn take_asked_to_leave(&self) -> bool {
        self.asked_to_leave.swap(false, Ordering::AcqRel)
    }

    /// Registers the connection's task. The task is woken when an answer ends in another task, or when the connection
    /// is asked to leave.
    pub(crate) fn register(&self, cx: &Context<'_>) {
        self.waker.register(cx.waker());
    }
}

/// A request that is being answered.
pub(crate) struct Answering(Arc<Activity>);

impl Drop for Answering {
    fn drop(&mut self) {
        // Set before the count is reduced: a thread that sees that nothing is being answered must also see the right
        // `free_since`.
        self.0.free_since.store(self.0.now(), Ordering::Release);
        if self.0.answers.fetch_sub(1, Ordering::AcqRel) == 1 && self.0.multiplexed.load(Ordering::Relaxed) {
            self.0.waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: ConnectionTimes = ConnectionTimes {
        header_timeout: Duration::from_secs(10),
        keep_alive_timeout: Duration::from_secs(75),
        drain_idle: Duration::from_secs(5),
    };

    fn seconds_left(activity: &Activity) -> Option<u64> {
        seconds_left_while(activity, Ending::No)
    }

    fn seconds_left_while(activity: &Activity, ending: Ending) -> Option<u64> {
        let due = activity.due(&PATIENCE, ending)?;
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
        activity.bytes_came(1);
        drop(answering);
        assert_eq!(
            (activity.state(), seconds_left(&activity)),
            (ConnectionState::Idle, Some(75)),
            "those were the body's"
        );
        activity.bytes_came(1);
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
        activity.bytes_came(1);
        assert_eq!(seconds_left(&activity), Some(6));
    }

    #[test]
    fn of_http_2_only_requests_count() {
        let activity = Activity::opened(Instant::now() - Duration::from_secs(70));
        drop(activity.answer(true));
        activity.free_since.store(1, Ordering::Relaxed);
        activity.bytes_came(1);
        assert_eq!(
            (activity.state(), seconds_left(&activity)),
            (ConnectionState::Idle, Some(5)),
            "an acknowledged PING is none"
        );
    }

    #[test]
    fn a_stop_leaves_an_idle_connection_a_moment_for_a_request_that_is_on_its_way() {
        let activity = Activity::opened(Instant::now() - Duration::from_secs(3));
        let stopping = Ending::Stopping(Instant::now() - Duration::from_secs(1));
        assert_eq!(seconds_left_while(&activity, stopping), Some(4), "its first request may be on its way");
        let answering = activity.answer(false);
        assert_eq!(seconds_left_while(&activity, stopping), None);
        drop(answering);
        assert_eq!(seconds_left_while(&activity, stopping), Some(5));
        let leaving = Ending::Leaving(Instant::now());
        assert_eq!(seconds_left_while(&activity, leaving), Some(2));
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
