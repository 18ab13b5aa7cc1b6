//! The state that all handlers share: the collections once they are open, the limits, the keys.
//! Knows nothing of routes.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::admission::{Admission, Class};
use super::answer::{AnswerRoom, Answers};
use super::body::{Budget, ZSTD_WINDOW_BYTES};
use super::boot::Boot;
use super::error::Problem;
use super::foreign::Access;
use super::quota::{Shares, Sources};
use super::refusals::Refusals;
use super::stream_place::StreamPlace;
use super::stream_threads::StreamThreads;
use crate::audit::AuditLog;
use crate::collections::Settings;
use crate::config::{Addresses, HttpLimits, TrustedProxies};
use crate::corpus::SearchLimits;
use crate::cpu::{self, CpuPool};
use crate::keys::KeyRing;
use crate::telemetry::memory::Bound;
use crate::telemetry::names;

/// The parts from which the state is built.
pub struct Wiring {
    pub boot: Arc<Boot>,
    pub limits: HttpLimits,
    /// The keys of clients. All routes except the probes require a key, unless the key ring is open.
    pub keys: KeyRing,
    /// Decides which requests are answered if no key is set.
    pub access: Access,
    /// The limits of addresses without a valid key, and the proxies that are trusted to name a client's address.
    pub addresses: Addresses,
    /// Writes the text of `/metrics`.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// The pool for long work, shared with the collections.
    pub cpu: CpuPool,
    /// The limit on the memory of the process.
    pub memory: Arc<Bound>,
    /// The number of threads for the documents of bulk and batch requests; one per core if `None`.
    pub stream_threads: Option<usize>,
    pub defaults: Defaults,
    /// The log of decisions; `None` if they are not logged.
    pub audit: Option<Arc<AuditLog>>,
    /// Whether the pages of the console are served.
    pub console: bool,
}

/// The settings and the limits of requests that name none.
pub struct Defaults {
    /// The settings that `PUT` uses for absent fields.
    pub settings: Settings,
    /// The fingerprint of the secret to which `"key": "configured"` refers.
    pub secret_fingerprint: Option<u64>,
    /// The limits on the comparing of the documents of one list.
    pub search_limits: SearchLimits,
}

/// The state that all handlers share. Cheap to clone.
#[derive(Clone)]
pub struct AppState(Arc<Inner>);

struct Inner {
    wiring: Wiring,
    admission: Admission,
    stream_threads: StreamThreads,
    bulks: Arc<Semaphore>,
    text_streams: Arc<Semaphore>,
    long_lines: Arc<Semaphore>,
    budget: Budget,
    answers: Answers,
    bulk_answers: Answers,
    draining: CancellationToken,
    refusals: Refusals,
    shares: Shares,
}

impl AppState {
    /// Creates the semaphores and budgets for the limits.
    pub fn new(wiring: Wiring) -> Self {
        let limits = wiring.limits;
        // Sets the gauges to 0, so that the metrics exist from the start.
        for gauge in [names::HTTP_BULK_REQUESTS, names::HTTP_TEXT_STREAMS] {
            metrics::gauge!(gauge).set(0.0);
        }
        // Registered from the start, so that an alert on its rate sees the first failure.
        metrics::counter!(names::HTTP_ELSEWHERE_FAILURES).increment(0);
        let stream_threads = wiring.stream_threads.unwrap_or_else(cpu::cores);
        Self(Arc::new(Inner {
            admission: Admission::new(&limits, stream_threads),
            stream_threads: StreamThreads::start(stream_threads),
            bulks: Arc::new(Semaphore::new(limits.bulk_requests_max)),
            text_streams: Arc::new(Semaphore::new(limits.text_streams_max)),
            long_lines: Arc::new(Semaphore::new(long_lines_max(&limits))),
            budget: Budget::new(limits.bodies_bytes_max)
                .keeping_some_for_small_ones(2 * limits.body_bytes_max)
                .with_windows(2 * limits.bulk_line_bytes_max, ZSTD_WINDOW_BYTES)
                .within(&wiring.memory),
            answers: Answers::new(limits.answers_bytes_max / 2)
                .keeping_some_for_encoders()
                .keeping_some_for_short_ones(),
            bulk_answers: Answers::new(limits.answers_bytes_max / 2).keeping_some_for_encoders(),
            draining: CancellationToken::new(),
            refusals: Refusals::new(),
            shares: Shares::new(wiring.addresses.limits, limits.source_documents_per_second),
            wiring,
        }))
    }

    pub fn limits(&self) -> &HttpLimits {
        &self.0.wiring.limits
    }

    pub fn boot(&self) -> &Boot {
        &self.0.wiring.boot
    }

    pub fn keys(&self) -> &KeyRing {
        &self.0.wiring.keys
    }

    pub(super) fn refusals(&self) -> &Refusals {
        &self.0.refusals
    }

    pub(super) fn shares(&self) -> &Shares {
        &self.0.shares
    }

    pub(super) fn trusted_proxies(&self) -> &TrustedProxies {
        &self.0.wiring.addresses.trusted_proxies
    }

    pub(super) fn access(&self) -> &Access {
        &self.0.wiring.access
    }

    pub fn metrics(&self) -> String {
        self.shares().keep_keys(&self.keys().valid());
        (self.0.wiring.metrics)()
    }

    pub fn cpu(&self) -> &CpuPool {
        &self.0.wiring.cpu
    }

    pub fn default_settings(&self) -> &Settings {
        &self.0.wiring.defaults.settings
    }

    pub fn search_limits(&self) -> SearchLimits {
        self.0.wiring.defaults.search_limits
    }

    pub fn secret_fingerprint(&self) -> Option<u64> {
        self.0.wiring.defaults.secret_fingerprint
    }

    pub(super) fn console_is_on(&self) -> bool {
        self.0.wiring.console
    }

    pub(super) fn audit(&self) -> Option<&Arc<AuditLog>> {
        self.0.wiring.audit.as_ref()
    }

    /// The places of each class of requests.
    pub(super) fn admission(&self) -> &Admission {
        &self.0.admission
    }

    /// The threads that work on the documents of bulk and batch requests.
    pub(super) fn stream_threads(&self) -> &StreamThreads {
        &self.0.stream_threads
    }

    /// Takes a place for a bulk request; 503 if all are taken.
    pub(super) fn bulk_place(&self) -> Result<StreamPlace, Problem> {
        let place = StreamPlace::take(&self.0.bulks, names::HTTP_BULK_REQUESTS);
        place.ok_or_else(|| self.0.admission.of(Class::Bulk).full())
    }

    /// Takes a place for a streamed text; 503 if all are taken.
    pub(super) fn text_stream_place(&self) -> Result<StreamPlace, Problem> {
        let place = StreamPlace::take(&self.0.text_streams, names::HTTP_TEXT_STREAMS);
        place.ok_or_else(|| {
            let detail = "all places for streamed texts are taken (`server.text_streams_max`); try again later";
            self.0.admission.of(Class::Single).refuse(detail)
        })
    }

    /// The places for long lines of bulk requests, held while a line arrives.
    pub(super) fn long_lines(&self) -> &Arc<Semaphore> {
        &self.0.long_lines
    }

    pub(super) fn budget(&self) -> &Budget {
        &self.0.budget
    }

    pub(super) fn answers(&self) -> &Answers {
        &self.0.answers
    }

    /// The rate limit of each source of documents.
    pub(super) fn sources(&self) -> &Sources {
        self.shares().sources()
    }

    /// The memory for the lines of bulk answers. It is separate, because a client may leave such lines unread for a
    /// long time.
    pub(super) fn bulk_answers(&self) -> &Answers {
        &self.0.bulk_answers
    }

    /// Returns the size limit for an answer that cannot be shortened, in bytes of JSON.
    pub(super) fn whole_answer_bytes_max(&self) -> usize {
        self.answers().longest().min(self.limits().answer_bytes_max)
    }

    /// Reserves memory for an answer of `bytes` bytes of JSON, but at most for the longest allowed answer.
    pub(super) fn answer_room(&self, bytes: usize) -> Result<AnswerRoom, Problem> {
        self.answers().take(bytes.min(self.limits().answer_bytes_max))
    }

    /// The token that is cancelled when the server shuts down.
    pub fn draining(&self) -> &CancellationToken {
        &self.0.draining
    }
}

/// Returns how many long lines may arrive at once. Each reserves memory for the longest line and its text. Together,
/// they take at most half of the memory for bodies. The other half is for other requests.
fn long_lines_max(limits: &HttpLimits) -> usize {
    (limits.bodies_bytes_max / 2 / (2 * limits.bulk_line_bytes_max)).max(1)
}
