//! A collection's metrics, looked up once: finding a metric by name and labels costs more than a probe of the index.

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use parking_lot::Mutex;

use crate::index::Survey;
use crate::telemetry::names::{self, label, value};
use crate::telemetry::recorder;
use crate::types::{CollectionName, TimestampMs, Verdict, VerdictKind};
use crate::verdicts::{GoldenReport, NearSource, Settings};

/// A reason why a lookup may not have found all matches: one of its limits, or a document in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Bucket,
    Candidates,
    ExactReads,
    Doubt,
}

impl Bound {
    pub(crate) const ALL: [Self; 4] = [Self::Bucket, Self::Candidates, Self::ExactReads, Self::Doubt];

    fn as_str(self) -> &'static str {
        match self {
            Self::Bucket => value::BOUND_BUCKET,
            Self::Candidates => value::BOUND_CANDIDATES,
            Self::ExactReads => value::BOUND_EXACT_READS,
            Self::Doubt => value::BOUND_DOUBT,
        }
    }
}

/// An operation that returns a verdict.
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
    survey: SurveyMeters,
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
    pub source_refused: Counter,
    pub expired: Counter,
    pub touched: Counter,
    pub expiry_lag_seconds: Gauge,
    shingles: Histogram,
    similarity: Histogram,
    match_age_seconds: Histogram,
    incomplete: Counter,
    bounded: [Counter; Bound::ALL.len()],
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
            survey: SurveyMeters::new(collection),
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
            source_refused: counter!(names::SOURCE_DOCUMENTS_REFUSED, label::COLLECTION => name()),
            expired: counter!(names::EXPIRED_DOCUMENTS, label::COLLECTION => name()),
            touched: counter!(names::TOUCHED_DOCUMENTS, label::COLLECTION => name()),
            expiry_lag_seconds: gauge!(names::EXPIRY_LAG, label::COLLECTION => name()),
            shingles: by_collection(names::DOCUMENT_SHINGLES),
            similarity: by_collection(names::MATCH_SIMILARITY),
            match_age_seconds: by_collection(names::MATCH_AGE),
            bounded: Bound::ALL.map(
                |bound| counter!(names::LOOKUPS_BOUNDED, label::COLLECTION => name(), label::BOUND => bound.as_str()),
            ),
            incomplete: counter!(names::INCOMPLETE_VERDICTS, label::COLLECTION => name()),
            verdicts: [verdicts(value::OP_CHECK), verdicts(value::OP_INSERT)],
        }
    }

    /// Shows the results of a survey.
    pub(crate) fn surveyed(&self, collection: &CollectionName, survey: &Survey) {
        self.survey.set(survey);
        for band in &survey.missing {
            let (name, band) = (collection.to_string(), band.to_string());
            counter!(names::CANARY_LOST_IN_BAND, label::COLLECTION => name, label::BAND => band).increment(1);
        }
        if !survey.missing.is_empty() {
            let postings = survey.missing.len();
            tracing::error!(%collection, postings, looked_up = survey.looked_up, "postings are missing; restart the server to build the index again");
        }
    }

    /// Counts a lookup of the canary.
    pub(crate) fn canary_looked(&self, collection: &CollectionName, similarity: f64, source: NearSource, found: bool) {
        let source = match source {
            NearSource::Text => value::SOURCE_TEXT,
            NearSource::Slots => value::SOURCE_SLOTS,
        };
        let count = |metric: &'static str| {
            counter!(metric, label::COLLECTION => collection.to_string(), label::SIMILARITY => two_digits(similarity),
                label::SOURCE => source)
        };
        count(names::CANARY_LOOKUPS).increment(1);
        count(names::CANARY_FOUND).increment(u64::from(found));
    }

    /// Shows the recall that the canary measured at a similarity; `None` if the canary does not use that similarity.
    pub(crate) fn canary(&self, collection: &CollectionName, similarity: f64, recall: Option<CanaryRecall>) {
        let none = CanaryRecall { share: f64::NAN, low: f64::NAN, high: f64::NAN, expected: f64::NAN };
        let CanaryRecall { share, low, high, expected } = recall.unwrap_or(none);
        for (metric, value) in [
            (names::CANARY_RECALL, share),
            (names::CANARY_RECALL_LOW, low),
            (names::CANARY_RECALL_HIGH, high),
            (names::CANARY_RECALL_EXPECTED, expected),
        ] {
            let similarity = two_digits(similarity);
            gauge!(metric, label::COLLECTION => collection.to_string(), label::SIMILARITY => similarity).set(value);
        }
    }

    /// Shows the mean number of candidates of the documents in one class of lengths, and the number that the S-curve
    /// predicts. `means` is `None` if the class has no document.
    pub(crate) fn drift(&self, collection: &CollectionName, shingles: &'static str, means: Option<DriftMeans>) {
        let means = means.unwrap_or(DriftMeans::NONE);
        let DriftMeans { observed, expected, observed_similarity, expected_similarity, background } = means;
        for (metric, value) in [
            (names::DRIFT_OBSERVED, observed),
            (names::DRIFT_EXPECTED, expected),
            (names::DRIFT_GAP, observed - expected),
            (names::DRIFT_SIMILARITY_OBSERVED, observed_similarity),
            (names::DRIFT_SIMILARITY_EXPECTED, expected_similarity),
            (names::DRIFT_SIMILARITY_GAP, observed_similarity - expected_similarity),
            (names::BACKGROUND_SIMILARITY, background),
        ] {
            gauge!(metric, label::COLLECTION => collection.to_string(), label::SHINGLES => shingles).set(value);
        }
    }

    /// Shows how the verdicts on the golden set agree with its labels.
    pub(crate) fn golden(&self, collection: &CollectionName, report: &GoldenReport) {
        let of = |metric: &'static str| gauge!(metric, label::COLLECTION => collection.to_string());
        let pairs = [
            (value::PAIR_DUPLICATE, report.all.duplicates),
            (value::PAIR_DIFFERENT, report.all.pairs - report.all.duplicates),
        ];
        for (kind, count) in pairs {
            gauge!(names::GOLDEN_PAIRS, label::COLLECTION => collection.to_string(), label::KIND => kind)
                .set(count as f64);
        }
        // Without pairs there is no ratio, so the value is NaN. Comparisons with NaN are false, so no alert fires.
        of(names::GOLDEN_RECALL).set(report.all.recall().unwrap_or(f64::NAN));
        of(names::GOLDEN_PRECISION).set(report.all.precision().unwrap_or(f64::NAN));
        for stretch in &report.stretches {
            let similarity = format!("{:.2}-{:.2}", stretch.from, stretch.to);
            let of = |metric: &'static str| gauge!(metric, label::COLLECTION => collection.to_string(), label::SIMILARITY => similarity.clone());
            of(names::GOLDEN_RECALL_BY_SIMILARITY).set(stretch.recall().unwrap_or(f64::NAN));
            of(names::GOLDEN_ERROR).set(stretch.error_abs_mean().unwrap_or(f64::NAN));
        }
        of(names::GOLDEN_EVALUATED).set(TimestampMs::now().0 as f64 / 1e3);
    }

    pub(crate) fn bounded(&self, bound: Bound) {
        self.bounded[bound as usize].increment(1);
    }

    pub(crate) fn verdict(&self, op: Op, verdict: &Verdict) {
        if verdict.unread > 0 {
            self.incomplete.increment(1);
        }
        if let Some(shingles) = verdict.shingles {
            self.shingles.record(shingles as f64);
        }
        if let Some(similarity) = verdict.similarity {
            self.similarity.record(similarity);
        }
        if let Some(best) = verdict.matches.first() {
            let age_ms = TimestampMs::now().0.saturating_sub(best.first_seen.0);
            self.match_age_seconds.record(age_ms as f64 / 1e3);
        }
        let kind = VerdictKind::ALL.iter().position(|kind| *kind == verdict.kind).expect("ALL has every kind");
        self.verdicts[op as usize][kind].increment(1);
    }
}

/// Means over documents of one class of lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DriftMeans {
    /// The number of other documents that the bands propose for a document.
    pub observed: f64,
    /// The number of documents that the S-curve predicts.
    pub expected: f64,
    /// The similarity of a document to those that the bands propose for it; NaN if they propose none.
    pub observed_similarity: f64,
    /// The similarity of a document to those that the S-curve predicts.
    pub expected_similarity: f64,
    /// The similarity of a document to any other document.
    pub background: f64,
}

impl DriftMeans {
    /// The means of a class without documents.
    const NONE: Self = Self {
        observed: f64::NAN,
        expected: f64::NAN,
        observed_similarity: f64::NAN,
        expected_similarity: f64::NAN,
        background: f64::NAN,
    };
}

/// The share of the canary's lookups that found their document, with its 95 % interval (Wilson), and the share that
/// theory expects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CanaryRecall {
    share: f64,
    low: f64,
    high: f64,
    expected: f64,
}

impl CanaryRecall {
    pub(crate) fn of(found: f64, looks: f64, expected: f64) -> Self {
        const Z: f64 = 1.96;
        let share = found / looks;
        let centre = share + Z * Z / (2.0 * looks);
        let half = Z * (share * (1.0 - share) / looks + Z * Z / (4.0 * looks * looks)).sqrt();
        let whole = 1.0 + Z * Z / looks;
        let (low, high) = ((centre - half) / whole, (centre + half) / whole);
        // Rounding must not put the share outside of its interval.
        Self { share, low: low.clamp(0.0, share), high: high.clamp(share, 1.0), expected }
    }
}

fn two_digits(similarity: f64) -> String {
    format!("{similarity:.2}")
}

/// How crowded the buckets are, and whether documents can be found.
struct SurveyMeters {
    largest: Gauge,
    p50: Gauge,
    p99: Gauge,
    over_cap: Gauge,
    lost: Counter,
    looked_up: Counter,
}

impl SurveyMeters {
    fn new(collection: &CollectionName) -> Self {
        let of = |metric: &'static str| gauge!(metric, label::COLLECTION => collection.to_string());
        Self {
            largest: of(names::BUCKET_DOCUMENTS_LARGEST),
            p50: of(names::BUCKET_DOCUMENTS_P50),
            p99: of(names::BUCKET_DOCUMENTS_P99),
            over_cap: of(names::BUCKETS_OVER_CAP),
            lost: counter!(names::CANARY_LOST, label::COLLECTION => collection.to_string()),
            looked_up: counter!(names::CANARY_DOCUMENTS, label::COLLECTION => collection.to_string()),
        }
    }

    fn set(&self, survey: &Survey) {
        let &Survey { largest, p50, p99, over_cap, looked_up, ref missing } = survey;
        self.lost.increment(missing.len() as u64);
        self.looked_up.increment(looked_up);
        let gauges = [(&self.largest, largest), (&self.p50, p50), (&self.p99, p99), (&self.over_cap, over_cap)];
        gauges.into_iter().for_each(|(gauge, value)| gauge.set(value as f64));
    }
}

/// The settings of a collection, as labels of a gauge.
#[derive(Default)]
pub(crate) struct CollectionInfo {
    /// The values of the labels that the gauge has now.
    told: Mutex<Option<[String; 4]>>,
}

impl CollectionInfo {
    pub(crate) fn set(&self, collection: &CollectionName, settings: &Settings) {
        let (spec, verify) = (settings.spec.fingerprint().to_string(), settings.verify.as_str().to_owned());
        let values = [spec, settings.banding.bands().to_string(), settings.banding.rows().to_string(), verify];
        let mut told = self.told.lock();
        if told.as_ref() == Some(&values) {
            return;
        }
        if told.is_some() {
            recorder::withdraw(names::COLLECTION_INFO, label::COLLECTION, collection.as_str());
        }
        let [spec, bands, rows, verify] = values.clone();
        gauge!(names::COLLECTION_INFO, label::COLLECTION => collection.to_string(), label::SPEC => spec,
            label::BANDS => bands, label::ROWS => rows, label::VERIFY => verify)
        .set(1.0);
        *told = Some(values);
    }
}

/// Shows by how many versions the extractor is newer than the one with which a collection was created.
pub(crate) fn extractor(collection: &CollectionName, created_with: u32, now: u32) {
    gauge!(names::EXTRACTOR_BEHIND, label::COLLECTION => collection.to_string())
        .set(f64::from(now) - f64::from(created_with));
}

/// Removes all metric series of a collection. [`Meters::new`] creates them again.
pub(crate) fn forget(collection: &CollectionName) {
    recorder::forget(label::COLLECTION, collection.as_str());
}

/// Allows metric series of a collection that is not open, such as the series which says that the collection is damaged.
pub(crate) fn admit(collection: &CollectionName) {
    recorder::admit(label::COLLECTION, collection.as_str());
}
