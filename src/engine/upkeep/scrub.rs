//! The thread that reads every record of the open collections again, at a bounded rate, and tells of those that are not
//! what was written: damage is found while there are backups, and not when somebody asks for the record.
//! It rests between two steps for as long as the bytes it read are worth.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use metrics::{Counter, Gauge, counter, gauge};

use super::rounds::Rounds;
use crate::engine::lookup::Lookup;
use crate::telemetry::names::{self, label};
use crate::types::{CollectionName, Seq};
use crate::verdicts::{CollectionError, ScrubConfig};

/// How often it is looked whether a collection has become due.
const IDLE: Duration = Duration::from_millis(200);
/// The longest rest between two steps of a slow scrub, by making steps smaller.
const STEP_TIME: Duration = Duration::from_millis(250);
/// Bytes read at once at most.
const STEP_BYTES_MAX: u64 = 1 << 20;

/// The scrub of one data directory.
pub(super) fn start(config: ScrubConfig, open: impl Fn() -> Option<Vec<ScrubTarget>> + Send + 'static) -> Rounds {
    let mut passes = HashMap::new();
    Rounds::start("hapax-scrub", open, move |collections, _| {
        // By identity: another of the same name may have been made meanwhile, and has series of its own.
        let is_of = |pass: &Pass, collection: &ScrubTarget| pass.of.as_ptr() == Arc::as_ptr(&collection.lookup);
        passes.retain(|_, pass: &mut Pass| collections.iter().any(|collection| is_of(pass, collection)));
        for collection in &collections {
            passes.entry(collection.name.clone()).or_insert_with(|| Pass::new(collection));
        }
        // Who waits longest, so that none is passed over; a pass under way has waited since it became due.
        let next = collections.iter().min_by_key(|collection| passes[&collection.name].due);
        match next.filter(|collection| passes[&collection.name].is_due()) {
            Some(collection) => {
                let pass = passes.get_mut(&collection.name).expect("it was just entered");
                pass.step(collection, config)
            }
            None => IDLE,
        }
    })
}

/// A collection to be read again.
pub(crate) struct ScrubTarget {
    pub name: CollectionName,
    /// What has its records.
    pub lookup: Arc<Lookup>,
}

/// How far the scrub of one collection is.
struct Pass {
    of: Weak<Lookup>,
    after: Seq,
    records_read: u64,
    errors_found: u64,
    /// When it began or begins, at the earliest.
    due: Instant,
    records: Counter,
    errors: Counter,
    progress: Gauge,
    completed: Gauge,
}

impl Pass {
    fn new(collection: &ScrubTarget) -> Self {
        let name = || collection.name.to_string();
        let pass = Self {
            of: Arc::downgrade(&collection.lookup),
            after: Seq(0),
            records_read: 0,
            errors_found: 0,
            due: Instant::now(),
            records: counter!(names::SCRUB_RECORDS, label::COLLECTION => name()),
            errors: counter!(names::SCRUB_ERRORS, label::COLLECTION => name()),
            progress: gauge!(names::SCRUB_PROGRESS, label::COLLECTION => name()),
            completed: gauge!(names::SCRUB_COMPLETED, label::COLLECTION => name()),
        };
        // There from the start: an alert on their rate sees the first error.
        pass.records.increment(0);
        pass.errors.increment(0);
        pass.progress.set(0.0);
        pass.completed.set(0.0);
        pass
    }

    fn is_due(&self) -> bool {
        self.due <= Instant::now()
    }

    /// Reads on, and says how long to rest.
    fn step(&mut self, collection: &ScrubTarget, config: ScrubConfig) -> Duration {
        let started = Instant::now();
        let rate = config.bytes_per_second;
        let bytes_max = (rate as f64 * STEP_TIME.as_secs_f64()) as u64;
        let (lookup, bytes_max) = (&collection.lookup, bytes_max.clamp(1, STEP_BYTES_MAX));
        let scrubbed = lookup.records().store().scrub(lookup.preparer().keep(), self.after, bytes_max);
        let scrubbed = match scrubbed.map_err(CollectionError::from) {
            Ok(scrubbed) => scrubbed,
            // Closed meanwhile, or not to be read at all: it is tried again when it is due the next time.
            Err(error) => {
                if let CollectionError::Damaged { .. } | CollectionError::Store(_) = error {
                    self.errors.increment(1);
                    tracing::error!(collection = %collection.name, %error, "the scrub cannot go on");
                }
                self.end(config.interval);
                return IDLE;
            }
        };
        self.records.increment(scrubbed.records);
        self.records_read += scrubbed.records;
        self.errors.increment(scrubbed.damaged.len() as u64);
        self.errors_found += scrubbed.damaged.len() as u64;
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
                tracing::info!(collection = %collection.name, records, errors, "every record was read again");
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
