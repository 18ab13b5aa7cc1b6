//! The scrub: a thread that reads every record of the open collections again, at a bounded rate, and reports those that
//! differ from the data that was written. Damage is therefore found while there are still backups, even if no request
//! reads the record. After each step, the thread pauses for long enough that it does not exceed this rate on average.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use metrics::{Counter, Gauge, counter, gauge};

use super::rounds::Rounds;
use super::targets::{States, Target};
use crate::telemetry::names::{self, label};
use crate::types::Seq;
use crate::verdicts::{CollectionError, ScrubConfig};

/// The time between two searches for a collection that is due.
const IDLE: Duration = Duration::from_millis(200);
/// The longest pause after one step. A slower scrub makes smaller steps instead of longer pauses.
const STEP_TIME: Duration = Duration::from_millis(250);
/// The maximum number of bytes to read in one step.
const STEP_BYTES_MAX: u64 = 1 << 20;

/// Starts the scrub of one data directory.
pub(super) fn start(config: ScrubConfig, open: impl Fn() -> Option<Vec<Target>> + Send + 'static) -> Rounds {
    let mut passes = States::default();
    Rounds::start("hapax-scrub", open, move |collections, _| {
        passes.keep(&collections, Pass::new);
        // The collection whose pass has been due for the longest time is next, so that every collection has its turn. A
        // pass in progress counts as due since its start was due.
        let next = collections.iter().min_by_key(|&collection| passes.of(collection).due);
        match next.filter(|&collection| passes.of(collection).is_due()) {
            Some(collection) => passes.of(collection).step(collection, config),
            None => IDLE,
        }
    })
}

/// The progress of the scrub in one collection.
struct Pass {
    after: Seq,
    records_read: u64,
    errors_found: u64,
    /// The earliest start of the current or the next pass.
    due: Instant,
    records: Counter,
    errors: Counter,
    progress: Gauge,
    completed: Gauge,
}

impl Pass {
    fn new(collection: &Target) -> Self {
        let name = || collection.name.to_string();
        let pass = Self {
            after: Seq(0),
            records_read: 0,
            errors_found: 0,
            due: Instant::now(),
            records: counter!(names::SCRUB_RECORDS, label::COLLECTION => name()),
            errors: counter!(names::SCRUB_ERRORS, label::COLLECTION => name()),
            progress: gauge!(names::SCRUB_PROGRESS, label::COLLECTION => name()),
            completed: gauge!(names::SCRUB_COMPLETED, label::COLLECTION => name()),
        };
        // The series exist from the start, so that an alert on their rate sees the first error.
        pass.records.increment(0);
        pass.errors.increment(0);
        pass.progress.set(0.0);
        pass.completed.set(0.0);
        pass
    }

    fn is_due(&self) -> bool {
        self.due <= Instant::now()
    }

    /// Reads the next records, and returns how long to pause.
    fn step(&mut self, collection: &Target, config: ScrubConfig) -> Duration {
        let started = Instant::now();
        let rate = config.bytes_per_second;
        let bytes_max = (rate as f64 * STEP_TIME.as_secs_f64()) as u64;
        let (lookup, bytes_max) = (&collection.lookup, bytes_max.clamp(1, STEP_BYTES_MAX));
        let scrubbed = lookup.records().store().scrub(lookup.preparer().keep(), self.after, bytes_max);
        let scrubbed = match scrubbed.map_err(CollectionError::from) {
            Ok(scrubbed) => scrubbed,
            // The collection was closed in the meantime, or cannot be read at all. The next pass tries again.
            Err(error) => {
                if let CollectionError::Damaged { .. } | CollectionError::Store(_) = error {
                    self.errors.increment(1);
                    tracing::error!(collection = %collection.name, %error, "the scrub failed; it starts again after `scrub.interval_s`");
                }
                self.end(config.interval);
                return IDLE;
            }
        };
        self.records.increment(scrubbed.records);
        self.records_read += scrubbed.records;
        let errors =
            (scrubbed.damaged.len() + scrubbed.golden.len() + scrubbed.jobs.len() + scrubbed.statistics.len()) as u64;
        self.errors.increment(errors);
        self.errors_found += errors;
        for detail in scrubbed.golden {
            tracing::error!(collection = %collection.name, detail, "the golden set is damaged");
        }
        for detail in scrubbed.statistics {
            tracing::error!(collection = %collection.name, detail, "the statistics are damaged");
        }
        for detail in scrubbed.jobs {
            tracing::error!(collection = %collection.name, detail, "the jobs are damaged");
        }
        for (seq, detail) in scrubbed.damaged {
            tracing::error!(collection = %collection.name, record = seq.0, detail, "a record is damaged");
        }
        match scrubbed.next {
            Some(next) => {
                self.after = next;
                let documents = lookup.counts().documents().max(1);
                self.progress.set((self.records_read as f64 / documents as f64).min(0.999));
            }
            None => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                self.completed.set(now.as_secs_f64());
                self.progress.set(1.0);
                let (records, errors) = (self.records_read, self.errors_found);
                tracing::info!(collection = %collection.name, records, errors, "the scrub has read every record");
                self.end(config.interval);
            }
        }
        Duration::from_secs_f64(scrubbed.bytes as f64 / rate as f64).saturating_sub(started.elapsed())
    }

    fn end(&mut self, interval: Duration) {
        (self.after, self.records_read, self.errors_found) = (Seq(0), 0, 0);
        self.due = Instant::now() + interval;
    }
}
