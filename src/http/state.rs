//! What every handler shares: the collections once they are open, the limits, the key.
//! Knows nothing of routes.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::access::Access;
use super::answer::{AnswerRoom, Answers};
use super::body::Budget;
use super::boot::Boot;
use super::error::Problem;
use super::refusals::Refusals;
use super::stream_place::StreamPlace;
use crate::collections::Settings;
use crate::config::{ApiKey, HttpLimits};
use crate::cpu::CpuPool;
use crate::telemetry::names;

/// What the router is given.
pub struct Wiring {
    /// See [`Boot`].
    pub boot: Arc<Boot>,
    /// See [`HttpLimits`].
    pub limits: HttpLimits,
    /// Where set, all but the probes ask for it.
    pub api_key: Option<ApiKey>,
    /// Which requests are answered if no key is set.
    pub access: Access,
    /// Writes the answer of `/metrics`.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// Where long work is done; the collections' own.
    pub cpu: CpuPool,
    /// What `PUT` fills absent fields from.
    pub default_settings: Settings,
    /// What `"key": "configured"` stands for.
    pub secret_fingerprint: Option<u64>,
}

/// What every handler shares. Cheap to clone.
#[derive(Clone)]
pub struct AppState(Arc<Inner>);

struct Inner {
    wiring: Wiring,
    requests: Arc<Semaphore>,
    bulks: Arc<Semaphore>,
    text_streams: Arc<Semaphore>,
    long_lines: Arc<Semaphore>,
    budget: Budget,
    answers: Answers,
    bulk_answers: Answers,
    draining: CancellationToken,
    refusals: Refusals,
}

impl AppState {
    /// Makes the counters that the limits name.
    pub fn new(wiring: Wiring) -> Self {
        let limits = wiring.limits;
        // There from the start, at 0.
        for gauge in [names::HTTP_BULK_REQUESTS, names::HTTP_TEXT_STREAMS] {
            metrics::gauge!(gauge).set(0.0);
        }
        Self(Arc::new(Inner {
            requests: Arc::new(Semaphore::new(limits.requests_concurrent_max)),
            bulks: Arc::new(Semaphore::new(limits.bulk_requests_max)),
            text_streams: Arc::new(Semaphore::new(limits.text_streams_max)),
            long_lines: Arc::new(Semaphore::new(long_lines_max(&limits))),
            budget: Budget::new(limits.bodies_bytes_max).keeping_some_for_small_ones(2 * limits.body_bytes_max),
            answers: Answers::new(limits.answers_bytes_max / 2).keeping_some_for_short_ones(),
            bulk_answers: Answers::new(limits.answers_bytes_max / 2),
            draining: CancellationToken::new(),
            refusals: Refusals::new(),
            wiring,
        }))
    }

    pub fn limits(&self) -> &HttpLimits {
        &self.0.wiring.limits
    }

    /// See [`Boot`].
    pub fn boot(&self) -> &Boot {
        &self.0.wiring.boot
    }

    /// The key to ask for.
    pub fn api_key(&self) -> Option<&ApiKey> {
        self.0.wiring.api_key.as_ref()
    }

    /// Clients that were refused lately.
    pub(super) fn refusals(&self) -> &Refusals {
        &self.0.refusals
    }

    /// See [`Access`].
    pub(super) fn access(&self) -> &Access {
        &self.0.wiring.access
    }

    /// The text of `/metrics`.
    pub fn metrics(&self) -> String {
        (self.0.wiring.metrics)()
    }

    /// Where long work is done.
    pub fn cpu(&self) -> &CpuPool {
        &self.0.wiring.cpu
    }

    /// What `PUT` fills absent fields from.
    pub fn default_settings(&self) -> &Settings {
        &self.0.wiring.default_settings
    }

    /// What `"key": "configured"` stands for.
    pub fn secret_fingerprint(&self) -> Option<u64> {
        self.0.wiring.secret_fingerprint
    }

    pub(super) fn requests(&self) -> &Arc<Semaphore> {
        &self.0.requests
    }

    /// A place for a bulk request; `None` if all are taken.
    pub(super) fn bulk_place(&self) -> Option<StreamPlace> {
        StreamPlace::take(&self.0.bulks, names::HTTP_BULK_REQUESTS)
    }

    /// A place for a text that streams; `None` if all are taken.
    pub(super) fn text_stream_place(&self) -> Option<StreamPlace> {
        StreamPlace::take(&self.0.text_streams, names::HTTP_TEXT_STREAMS)
    }

    /// Places for long lines of bulk requests that are arriving.
    pub(super) fn long_lines(&self) -> &Arc<Semaphore> {
        &self.0.long_lines
    }

    pub(super) fn budget(&self) -> &Budget {
        &self.0.budget
    }

    pub(super) fn answers(&self) -> &Answers {
        &self.0.answers
    }

    /// Memory for the lines of bulk answers. A client may leave them unread for long, so they have their own.
    pub(super) fn bulk_answers(&self) -> &Answers {
        &self.0.bulk_answers
    }

    /// Room for an answer that would be `bytes` bytes of JSON if it had no bound.
    pub(super) fn answer_room(&self, bytes: usize) -> Result<AnswerRoom, Problem> {
        self.answers().take(bytes.min(self.limits().answer_bytes_max))
    }

    /// Cancelled once the server is going down.
    pub fn draining(&self) -> &CancellationToken {
        &self.0.draining
    }
}

/// Long lines that may be arriving at once: each takes the room of the longest, and its text's, and together they
/// leave half of all room to others.
fn long_lines_max(limits: &HttpLimits) -> usize {
    (limits.bodies_bytes_max / 2 / (2 * limits.bulk_line_bytes_max)).max(1)
}
