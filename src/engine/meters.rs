//! A collection's metrics, looked up once: finding a metric by name and labels costs more than a probe of the index.

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use crate::telemetry::names::{self, label, value};
use crate::telemetry::recorder;
use crate::types::{CollectionName, Verdict, VerdictKind};

/// The operation that a verdict was given for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Check,
    Insert,
}

pub(crate) struct Meters {
    pub probe_seconds: Histogram,
    pub verify_seconds: Histogram,
    pub candidates: Histogram,
    pub fullest_bucket: Histogram,
    pub candidates_above: Counter,
    pub candidates_below: Counter,
    pub exact_compared: Histogram,
    pub exact_read_bytes: Counter,
    pub ids_cached: Counter,
    pub ids_read: Counter,
    pub decision_seconds: Histogram,
    pub commit_seconds: Histogram,
    pub commit_documents: Histogram,
    pub commit_failures: Counter,
    pub memory_refused: Counter,
    pub expired: Counter,
    pub touched: Counter,
    pub expiry_lag_seconds: Gauge,
    incomplete: Counter,
    verdicts: [[Counter; VerdictKind::ALL.len()]; 2],
}

impl Meters {
    pub(crate) fn new(collection: &CollectionName) -> Self {
        let name = || collection.to_string();
        recorder::admit(label::COLLECTION, collection.as_str());
        let by_collection = |metric: &'static str| histogram!(metric, label::COLLECTION => name());
        let result = |result: &'static str| counter!(names::VERIFIED_CANDIDATES, label::COLLECTION => name(), label::RESULT => result);
        let ids =
            |result: &'static str| counter!(names::ID_CACHE, label::COLLECTION => name(), label::RESULT => result);
        let verdicts = |op: &'static str| {
            VerdictKind::ALL.map(|kind| {
                counter!(names::VERDICTS, label::COLLECTION => name(), label::OP => op, label::VERDICT => kind.as_str())
            })
        };
        Self {
            probe_seconds: by_collection(names::PROBE_DURATION),
            verify_seconds: by_collection(names::VERIFY_DURATION),
            candidates: by_collection(names::CHECK_CANDIDATES),
            fullest_bucket: by_collection(names::BUCKET_DOCUMENTS),
            candidates_above: result(value::RESULT_MATCH),
            candidates_below: result(value::RESULT_BELOW),
            exact_compared: by_collection(names::EXACT_COMPARED),
            exact_read_bytes: counter!(names::EXACT_READ_BYTES, label::COLLECTION => name()),
            ids_cached: ids(value::RESULT_HIT),
            ids_read: ids(value::RESULT_MISS),
            decision_seconds: by_collection(names::DECISION_DURATION),
            commit_seconds: by_collection(names::COMMIT_DURATION),
            commit_documents: by_collection(names::COMMIT_DOCUMENTS),
            commit_failures: counter!(names::COMMIT_FAILURES, label::COLLECTION => name()),
            memory_refused: counter!(names::MEMORY_REFUSED, label::COLLECTION => name()),
            expired: counter!(names::EXPIRED_DOCUMENTS, label::COLLECTION => name()),
            touched: counter!(names::TOUCHED_DOCUMENTS, label::COLLECTION => name()),
            expiry_lag_seconds: gauge!(names::EXPIRY_LAG, label::COLLECTION => name()),
            incomplete: counter!(names::INCOMPLETE_VERDICTS, label::COLLECTION => name()),
            verdicts: [verdicts(value::OP_CHECK), verdicts(value::OP_INSERT)],
        }
    }

    pub(crate) fn verdict(&self, op: Op, verdict: &Verdict) {
        if verdict.unread > 0 {
            self.incomplete.increment(1);
        }
        let kind = VerdictKind::ALL.iter().position(|kind| *kind == verdict.kind).expect("ALL has every kind");
        self.verdicts[op as usize][kind].increment(1);
    }
}

/// Hides all metric series of a collection. [`Meters::new`] makes them again.
pub(crate) fn forget(collection: &CollectionName) {
    recorder::forget(label::COLLECTION, collection.as_str());
}

/// Shows series of a collection that is not open too, such as the one that says it is damaged.
pub(crate) fn admit(collection: &CollectionName) {
    recorder::admit(label::COLLECTION, collection.as_str());
}
