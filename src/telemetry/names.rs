//! One table of all metrics: name, labels, unit and meaning.
//! In: nothing. Out: constants for the code that measures, descriptions for the recorder, the list for tests. It must
//! not know which code sets a metric, or when.
//!
//! Renaming a metric breaks dashboards. Names are part of the interface, like routes.

use metrics::Unit;

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A number that only grows.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// Observations, counted in these buckets.
    Histogram(&'static [f64]),
}

/// The description of one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// The name in `/metrics`.
    pub name: &'static str,
    pub kind: Kind,
    /// The unit; `None` for plain numbers.
    pub unit: Option<Unit>,
    /// The names of the labels, in no particular order.
    pub labels: &'static [&'static str],
    /// One sentence for the line `# HELP`.
    pub help: &'static str,
}

/// Label names.
pub mod label {
    /// The route template, such as `/v1/collections/{collection}/check`; never the path itself.
    pub const ROUTE: &str = "route";
    pub const METHOD: &str = "method";
    /// The HTTP status, three digits.
    pub const STATUS: &str = "status";
    pub const COLLECTION: &str = "collection";
    /// `verdict`, `deleted`, `error`, `fatal` or `summary`; of refusals for want of memory `document` or `body`; of
    /// pairs of a golden set `duplicate` or `different`.
    pub const KIND: &str = "kind";
    /// `check` or `insert`.
    pub const OP: &str = "op";
    /// A verdict, as in the API.
    pub const VERDICT: &str = "verdict";
    /// `match` or `below_threshold`; for a backup `done`, `cancelled` or `failed`; for an id `hit` or `miss`.
    pub const RESULT: &str = "result";
    /// A sketch, as in the spec, such as `fss256x8`.
    pub const SKETCH: &str = "sketch";
    /// `postings`, `signatures`, `ids`, `clusters`, `seen_times` or `id_cache`.
    pub const PART: &str = "part";
    /// `single`, `bulk` or `admin`.
    pub const CLASS: &str = "class";
    /// The reason why something was refused or closed.
    pub const REASON: &str = "reason";
    /// The name of an API key, as in the keys file.
    pub const KEY: &str = "key";
    /// The limit of a key that was reached, as in the keys file.
    pub const LIMIT: &str = "limit";
    /// Labels with values that clients or operators choose, so that series come and go. `recorder.rs` keeps a series only while the
    /// value of such a label is admitted.
    pub const PASSING: [&str; 3] = [COLLECTION, SKETCH, KEY];
    /// The version of hapax.
    pub const VERSION: &str = "version";
    /// The fingerprint of a collection's spec.
    pub const SPEC: &str = "spec";
    /// What kept a lookup from looking at everything.
    pub const BOUND: &str = "bound";
    /// `text` or `slots`.
    pub const SOURCE: &str = "source";
    /// A similarity, such as `0.85`, or a stretch of them, such as `0.80-0.85`.
    pub const SIMILARITY: &str = "similarity";
    /// The number of a band, from 0 on.
    pub const BAND: &str = "band";
    /// The number of bands, and of rows in each, of a collection.
    pub const BANDS: &str = "bands";
    pub const ROWS: &str = "rows";
    /// `estimate`, `borderline` or `exact`.
    pub const VERIFY: &str = "verify";
}

/// Values of labels that are no words of the API.
pub mod value {
    /// [`super::label::CLASS`]: one answer about documents, such as a check, an insertion or a batch.
    pub const CLASS_SINGLE: &str = "single";
    /// [`super::label::CLASS`]: a stream of documents.
    pub const CLASS_BULK: &str = "bulk";
    /// [`super::label::CLASS`]: about the server or whole collections.
    pub const CLASS_ADMIN: &str = "admin";
    /// [`super::label::SOURCE`]: near-duplicates made by replacing shingles of a stored text.
    pub const SOURCE_TEXT: &str = "text";
    /// [`super::label::SOURCE`]: near-duplicates made by replacing slots of a stored signature.
    pub const SOURCE_SLOTS: &str = "slots";
    /// [`super::label::KIND`]: a pair of a golden set.
    pub const PAIR_DUPLICATE: &str = "duplicate";
    pub const PAIR_DIFFERENT: &str = "different";
    /// [`super::label::BOUND`]: `limits.bucket_read_max`.
    pub const BOUND_BUCKET: &str = "bucket";
    /// [`super::label::BOUND`]: `limits.candidates_max`.
    pub const BOUND_CANDIDATES: &str = "candidates";
    /// [`super::label::BOUND`]: `limits.exact_reads_max` or `limits.exact_bytes_max`.
    pub const BOUND_EXACT_READS: &str = "exact_reads";
    /// [`super::label::BOUND`]: after a failed commit it is unclear whether a document is stored.
    pub const BOUND_DOUBT: &str = "doubt";
    /// [`super::label::OP`]: a lookup that never writes.
    pub const OP_CHECK: &str = "check";
    /// [`super::label::REASON`]: 401 for a request without a key.
    pub const REFUSED_NO_KEY: &str = "no_key";
    /// [`super::label::REASON`]: 401 for a request with another key.
    pub const REFUSED_WRONG_KEY: &str = "wrong_key";
    /// [`super::label::REASON`]: 401 for a request with a key that was valid once.
    pub const REFUSED_EXPIRED_KEY: &str = "expired_key";
    /// [`super::label::REASON`]: 403 for a request that its key does not allow.
    pub const REFUSED_FORBIDDEN: &str = "forbidden";
    /// [`super::label::REASON`]: 403 for a `Host` that is not this server's.
    pub const REFUSED_FOREIGN_HOST: &str = "foreign_host";
    /// [`super::label::REASON`]: 403 for a page of another site.
    pub const REFUSED_FOREIGN_PAGE: &str = "foreign_page";
    /// [`super::label::REASON`]: 429 for an address without a valid key that has reached one of its limits.
    pub const REFUSED_ADDRESS_LIMIT: &str = "address_limit";
    /// [`super::label::REASON`]: no request for `server.keep_alive_timeout_ms`.
    pub const CLOSED_IDLE: &str = "idle";
    /// [`super::label::REASON`]: no complete request head within `server.header_timeout_ms`.
    pub const CLOSED_NO_REQUEST: &str = "no_request";
    /// [`super::label::REASON`]: all places were taken, and this connection had been without a request for longest.
    pub const CLOSED_FOR_ROOM: &str = "room";
    /// [`super::label::REASON`]: a plain HTTP request where TLS is spoken.
    pub const HANDSHAKE_PLAIN_HTTP: &str = "plain_http";
    /// [`super::label::REASON`]: the client sent an alert, mostly because it does not trust the certificate.
    pub const HANDSHAKE_REFUSED: &str = "refused_by_client";
    /// [`super::label::REASON`]: the client's bytes are not TLS, or offer nothing that the server can do.
    pub const HANDSHAKE_INVALID: &str = "invalid";
    /// [`super::label::REASON`]: the client closed the connection within the handshake.
    pub const HANDSHAKE_CLOSED: &str = "closed";
    /// [`super::label::OP`]: an insertion, which checks first.
    pub const OP_INSERT: &str = "insert";
    /// [`super::label::RESULT`]: a candidate at or above the threshold.
    pub const RESULT_MATCH: &str = "match";
    /// [`super::label::RESULT`]: a candidate below the threshold.
    pub const RESULT_BELOW: &str = "below_threshold";
    /// [`super::label::RESULT`]: a complete backup.
    pub const RESULT_DONE: &str = "done";
    /// [`super::label::RESULT`]: a cancelled backup.
    pub const RESULT_CANCELLED: &str = "cancelled";
    /// [`super::label::RESULT`]: a failed backup.
    pub const RESULT_FAILED: &str = "failed";
    /// [`super::label::RESULT`]: an id that was in memory.
    pub const RESULT_HIT: &str = "hit";
    /// [`super::label::RESULT`]: an id that was not in memory.
    pub const RESULT_MISS: &str = "miss";
    /// [`super::label::KIND`]: a document that was not stored.
    pub const REFUSED_DOCUMENT: &str = "document";
    /// [`super::label::KIND`]: a large body that was not read.
    pub const REFUSED_BODY: &str = "body";
    /// [`super::label::PART`]: band postings.
    pub const PART_POSTINGS: &str = "postings";
    /// [`super::label::PART`]: the signature arena.
    pub const PART_SIGNATURES: &str = "signatures";
    /// [`super::label::PART`]: the id map.
    pub const PART_IDS: &str = "ids";
    /// [`super::label::PART`]: ids in memory, so that answers can name documents without reading the disk.
    pub const PART_ID_CACHE: &str = "id_cache";
    /// [`super::label::PART`]: the last-seen times, if documents expire.
    pub const PART_SEEN_TIMES: &str = "seen_times";
    /// [`super::label::PART`]: which document is in which cluster.
    pub const PART_CLUSTERS: &str = "clusters";
}

/// From 10 µs to 10 s, in steps of 1, 2.5, 5.
pub const SECONDS: &[f64] = &[
    0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
    0.5, 1.0, 2.5, 5.0, 10.0,
];
/// From 0 to 4096, the default limit on candidates.
pub const CANDIDATES: &[f64] =
    &[0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0];
/// From 1 to 4096, the default limit on the operations of one transaction.
pub const COMMIT_SIZES: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0];
/// From 0 to a million documents that share a band key.
pub const BUCKET_SIZES: &[f64] =
    &[0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0, 16_384.0, 65_536.0, 1_048_576.0];

/// From 1 shingle to a million.
pub const SHINGLES: &[f64] =
    &[0.0, 1.0, 4.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 16_384.0, 65_536.0, 1_048_576.0];
/// From 0.5 to 1, finer around the thresholds that are used most.
pub const SIMILARITIES: &[f64] =
    &[0.5, 0.6, 0.7, 0.75, 0.8, 0.825, 0.85, 0.875, 0.9, 0.925, 0.95, 0.975, 0.99, 0.999, 1.0];
/// From a second to two years.
pub const AGES: &[f64] = &[
    1.0,
    10.0,
    60.0,
    600.0,
    3600.0,
    21_600.0,
    86_400.0,
    259_200.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    31_536_000.0,
    63_072_000.0,
];

/// From 0 to 1, finer near 0, where most documents are.
pub const RATIOS: &[f64] = &[0.0, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// Declares one constant per metric, and [`ALL`] of them, so that no metric has a name without a description.
macro_rules! metrics_table {
    ($($constant:ident = $name:literal, $kind:expr, $unit:expr, [$($label:expr),*], $help:literal;)*) => {
        $(#[doc = $help] pub const $constant: &str = $name;)*
        /// Every metric of hapax itself. Those named `process_*` come from a library.
        pub const ALL: &[Metric] = &[
            $(Metric { name: $name, kind: $kind, unit: $unit, labels: &[$($label),*], help: $help },)*
        ];
    };
}

metrics_table! {
    HTTP_REQUESTS = "hapax_http_requests_total", Kind::Counter, None, [label::ROUTE, label::METHOD, label::STATUS],
        "Requests answered.";
    HTTP_REQUEST_DURATION = "hapax_http_request_duration_seconds", Kind::Histogram(SECONDS), Some(Unit::Seconds),
        [label::ROUTE, label::METHOD], "Time from the headers of a request to the end of its answer.";
    HTTP_REQUESTS_IN_FLIGHT = "hapax_http_requests_in_flight", Kind::Gauge, None, [],
        "Requests being answered now.";
    HTTP_CONNECTIONS = "hapax_http_connections", Kind::Gauge, None, [],
        "Connections open now.";
    HTTP_REFUSED = "hapax_http_refused_total", Kind::Counter, None, [label::REASON],
        "Requests refused before they were read: the key is missing, wrong, expired or not for this, the host or the \
         page is foreign, or the address has reached a limit.";
    HTTP_SHED = "hapax_http_shed_total", Kind::Counter, None, [label::CLASS],
        "Requests refused with 503 before any work was done for them, because the server had too much to do.";
    HTTP_QUEUE_WAIT = "hapax_http_queue_wait_seconds", Kind::Histogram(SECONDS), Some(Unit::Seconds), [],
        "Time that a request about documents waited for a thread after its connection was ready.";
    KEYS_VALID = "hapax_keys_valid", Kind::Gauge, None, [],
        "Keys that are accepted now; 0 if the server asks for none.";
    KEYS_FILE_BAD = "hapax_keys_file_bad", Kind::Gauge, None, [],
        "1 while the keys file is missing or cannot be used, and the last good keys stay valid; 0 otherwise.";
    KEYS_FILE_ERRORS = "hapax_keys_file_errors_total", Kind::Counter, None, [],
        "Looks at the keys file, one each second, that found it missing or unusable.";
    KEY_REQUESTS = "hapax_key_requests_total", Kind::Counter, None, [label::KEY],
        "Requests accepted, by the name of their API key.";
    KEY_BYTES = "hapax_key_bytes_total", Kind::Counter, Some(Unit::Bytes), [label::KEY],
        "Bytes of request bodies, after decompression, by the name of the API key.";
    KEY_DOCUMENTS = "hapax_key_documents_total", Kind::Counter, None, [label::KEY],
        "Documents and ids in requests, by the name of the API key.";
    KEY_REFUSED = "hapax_key_refused_total", Kind::Counter, None, [label::KEY, label::LIMIT],
        "Requests answered 429 because a limit of their API key was reached.";
    KEY_SLOWED = "hapax_key_slowed_total", Kind::Counter, None, [label::KEY],
        "Times that a bulk request or a streamed text waited because a limit of its API key was reached.";
    HTTP_CONNECTIONS_MAX = "hapax_http_connections_max", Kind::Gauge, None, [],
        "The most connections that may be open.";
    HTTP_CONNECTIONS_CLOSED = "hapax_http_connections_closed_total", Kind::Counter, None, [label::REASON],
        "Connections that the server closed because they had no request, by reason.";
    HTTP_STREAMS_REFUSED = "hapax_http_streams_refused_total", Kind::Counter, None, [],
        "HTTP/2 requests that were refused because too many were open on connections with several.";
    TLS_CERTIFICATE_EXPIRY = "hapax_tls_certificate_expiry_timestamp_seconds", Kind::Gauge, Some(Unit::Seconds), [],
        "When the TLS certificate in use expires, in seconds since 1970.";
    TLS_RELOAD_ERRORS = "hapax_tls_reload_errors_total", Kind::Counter, None, [],
        "Looks at the TLS files, one a second, at which they could not be used; the last certificate stays in use.";
    TLS_HANDSHAKES_FAILED = "hapax_tls_handshakes_failed_total", Kind::Counter, None, [label::REASON],
        "TLS handshakes that failed, by reason.";
    HTTP_BUFFERED_BYTES = "hapax_http_buffered_bytes", Kind::Gauge, Some(Unit::Bytes), [],
        "Memory that request bodies hold now.";
    HTTP_TEXT_STREAMS = "hapax_http_text_streams", Kind::Gauge, None, [],
        "Streamed texts that hold one of the server.text_streams_max places now.";
    HTTP_BULK_REQUESTS = "hapax_http_bulk_requests", Kind::Gauge, None, [],
        "Bulk requests that hold one of the server.bulk_requests_max places now.";
    HTTP_ANSWER_BYTES = "hapax_http_answer_bytes", Kind::Gauge, Some(Unit::Bytes), [],
        "Memory that answers hold now, until they are sent.";
    HTTP_ANSWERS_GIVEN_UP = "hapax_http_answers_given_up_total", Kind::Counter, None, [],
        "Answers that were dropped unfinished because the client did not read them.";
    HTTP_ANSWERS_CUT = "hapax_http_answers_cut_total", Kind::Counter, None, [],
        "Verdicts without some of their matches or metadata, because the answer would have been too long.";
    HTTP_BULK_LINES = "hapax_http_bulk_lines_total", Kind::Counter, None, [label::KIND],
        "Lines of bulk answers.";
    VERDICTS = "hapax_verdicts_total", Kind::Counter, None, [label::COLLECTION, label::OP, label::VERDICT],
        "Verdicts given.";
    DOCUMENT_SHINGLES = "hapax_document_shingles", Kind::Histogram(SHINGLES), None, [label::COLLECTION],
        "Shingles of a document in a verdict, repeats counted.";
    MATCH_SIMILARITY = "hapax_match_similarity", Kind::Histogram(SIMILARITIES), None, [label::COLLECTION],
        "Similarity of the best match of a verdict that has one.";
    MATCH_AGE = "hapax_match_age_seconds", Kind::Histogram(AGES), Some(Unit::Seconds), [label::COLLECTION],
        "How long ago the content of the best match was first stored.";
    INCOMPLETE_VERDICTS = "hapax_incomplete_verdicts_total", Kind::Counter, None, [label::COLLECTION],
        "Verdicts for which a limit on buckets or candidates may have hidden a match.";
    CHECK_CANDIDATES = "hapax_check_candidates", Kind::Histogram(CANDIDATES), None, [label::COLLECTION],
        "Distinct documents that the bands proposed for one document.";
    VERIFIED_CANDIDATES = "hapax_verified_candidates_total", Kind::Counter, None, [label::COLLECTION, label::RESULT],
        "Candidates compared slot by slot, by whether they reached the threshold.";
    SIGN_DURATION = "hapax_sign_duration_seconds", Kind::Histogram(SECONDS), Some(Unit::Seconds), [label::SKETCH],
        "Time to make the signature of one document from its text.";
    OPH_EMPTY_SLOTS = "hapax_oph_empty_slots_ratio", Kind::Histogram(RATIOS), None, [label::SKETCH],
        "Share of a document's slots that no shingle reached, for oph sketches.";
    CPU_QUEUE_DEPTH = "hapax_cpu_queue_depth", Kind::Gauge, None, [],
        "Long jobs that wait for a processor, without those of bulk and batch requests.";
    CPU_QUEUE_MAX = "hapax_cpu_queue_max", Kind::Gauge, None, [],
        "The most long jobs that may wait for a processor.";
    CPU_REFUSED = "hapax_cpu_refused_total", Kind::Counter, None, [],
        "Long jobs refused because the queue was full, or because they would have waited too long.";
    CPU_QUEUE_WAIT = "hapax_cpu_queue_wait_seconds", Kind::Histogram(SECONDS), Some(Unit::Seconds), [],
        "Time that a long job waited for a place in the queue and then for a processor.";
    PROBE_DURATION = "hapax_probe_duration_seconds", Kind::Histogram(SECONDS), Some(Unit::Seconds),
        [label::COLLECTION], "Time to read all bands of one document.";
    VERIFY_DURATION = "hapax_verify_duration_seconds", Kind::Histogram(SECONDS), Some(Unit::Seconds),
        [label::COLLECTION], "Time to compare one document with all its candidates.";
    EXACT_COMPARED = "hapax_exact_compared", Kind::Histogram(CANDIDATES), None, [label::COLLECTION],
        "Documents whose shingles one lookup with exact verification compared.";
    EXACT_READ_BYTES = "hapax_exact_read_bytes_total", Kind::Counter, None, [label::COLLECTION],
        "Bytes of shingles or texts that exact verification read from disk.";
    BUCKET_DOCUMENTS = "hapax_bucket_documents", Kind::Histogram(BUCKET_SIZES), None, [label::COLLECTION],
        "Documents in the fullest bucket that one lookup met.";
    BUCKET_DOCUMENTS_LARGEST = "hapax_bucket_documents_largest", Kind::Gauge, None, [label::COLLECTION],
        "Documents in the largest bucket of the index.";
    BUCKET_DOCUMENTS_P50 = "hapax_bucket_documents_p50", Kind::Gauge, None, [label::COLLECTION],
        "The median, over documents, of the documents in the fullest bucket that a document is in.";
    BUCKET_DOCUMENTS_P99 = "hapax_bucket_documents_p99", Kind::Gauge, None, [label::COLLECTION],
        "The same as hapax_bucket_documents_p50, for 99 % of the documents.";
    BUCKETS_OVER_CAP = "hapax_buckets_over_cap", Kind::Gauge, None, [label::COLLECTION],
        "Buckets with more postings than limits.bucket_read_max, so that a lookup reads a part of them.";
    LOOKUPS_BOUNDED = "hapax_lookups_bounded_total", Kind::Counter, None, [label::COLLECTION, label::BOUND],
        "Lookups that did not look at everything, by the bound that kept them from it.";
    CANARY_DOCUMENTS = "hapax_canary_documents_total", Kind::Counter, None, [label::COLLECTION],
        "Stored documents that were looked up by each of their bands to see whether they are found.";
    CANARY_LOST = "hapax_canary_lost_postings_total", Kind::Counter, None, [label::COLLECTION],
        "Postings that these looks did not find, counted each time; 0 unless the index is broken.";
    CANARY_LOST_IN_BAND = "hapax_canary_lost_postings_by_band_total", Kind::Counter, None,
        [label::COLLECTION, label::BAND], "The same by band. A band without a lost posting has no series.";
    CANARY_LOOKUPS = "hapax_canary_lookups_total", Kind::Counter, None,
        [label::COLLECTION, label::SIMILARITY, label::SOURCE],
        "Near-duplicates of stored documents that the canary looked up, by similarity and source.";
    CANARY_FOUND = "hapax_canary_found_total", Kind::Counter, None,
        [label::COLLECTION, label::SIMILARITY, label::SOURCE], "Those that found the document they were made of.";
    CANARY_RECALL = "hapax_canary_recall_ratio", Kind::Gauge, None, [label::COLLECTION, label::SIMILARITY],
        "The share that found it, in the last rounds; NaN for similarities that are not looked up.";
    CANARY_RECALL_LOW = "hapax_canary_recall_low_ratio", Kind::Gauge, None, [label::COLLECTION, label::SIMILARITY],
        "The lower end of its 95 % interval.";
    CANARY_RECALL_HIGH = "hapax_canary_recall_high_ratio", Kind::Gauge, None, [label::COLLECTION, label::SIMILARITY],
        "The upper end of its 95 % interval.";
    CANARY_RECALL_EXPECTED = "hapax_canary_recall_expected_ratio", Kind::Gauge, None,
        [label::COLLECTION, label::SIMILARITY], "The share that theory expects, with no limit in the way.";
    GOLDEN_PAIRS = "hapax_golden_pairs", Kind::Gauge, None, [label::COLLECTION, label::KIND],
        "Pairs of the golden set, by their label.";
    GOLDEN_RECALL = "hapax_golden_recall_ratio", Kind::Gauge, None, [label::COLLECTION],
        "Share of the golden set's duplicates that a check would report; NaN if there are none.";
    GOLDEN_PRECISION = "hapax_golden_precision_ratio", Kind::Gauge, None, [label::COLLECTION],
        "Share of the reported pairs of the golden set that are duplicates; NaN if none is reported.";
    GOLDEN_RECALL_BY_SIMILARITY = "hapax_golden_recall_by_similarity_ratio", Kind::Gauge, None,
        [label::COLLECTION, label::SIMILARITY], "The recall, by the exact similarity of the pairs.";
    GOLDEN_ERROR = "hapax_golden_estimate_error", Kind::Gauge, None, [label::COLLECTION, label::SIMILARITY],
        "Mean distance between the estimates of the golden set and the exact similarities, by exact similarity.";
    GOLDEN_EVALUATED = "hapax_golden_evaluated_timestamp_seconds", Kind::Gauge, Some(Unit::Seconds),
        [label::COLLECTION], "When the golden set was last evaluated, in seconds since 1970; 0 before the first time.";
    DOCUMENTS = "hapax_documents", Kind::Gauge, None, [label::COLLECTION],
        "Documents stored and indexed.";
    INDEX_BYTES = "hapax_index_bytes", Kind::Gauge, Some(Unit::Bytes), [label::COLLECTION, label::PART],
        "Memory held by the index.";
    ID_CACHE = "hapax_id_cache_lookups_total", Kind::Counter, None, [label::COLLECTION, label::RESULT],
        "Ids in verdicts that were in the cache of ids (hit), or were read from the disk (miss).";
    MEMORY_BUDGET = "hapax_memory_budget_bytes", Kind::Gauge, Some(Unit::Bytes), [],
        "Memory that the index may take: limits.memory_max_bytes, or if that is 0, that of the machine or container.";
    MEMORY_USED = "hapax_memory_used_bytes", Kind::Gauge, Some(Unit::Bytes), [],
        "Memory that the stored documents of all open collections take in the index.";
    MEMORY_USED_RATIO = "hapax_memory_budget_used_ratio", Kind::Gauge, None, [],
        "hapax_memory_used_bytes as a share of hapax_memory_budget_bytes.";
    MEMORY_REFUSED = "hapax_memory_refused_total", Kind::Counter, None, [label::COLLECTION],
        "Insertions refused because the memory budget was reached.";
    MEMORY_MAX = "hapax_memory_max_bytes", Kind::Gauge, Some(Unit::Bytes), [],
        "The most anonymous memory that the process should take: memory.max_bytes.";
    MEMORY_ANONYMOUS = "hapax_memory_anonymous_bytes", Kind::Gauge, Some(Unit::Bytes), [],
        "Anonymous memory of the process, in memory and in swap.";
    MEMORY_SHORT = "hapax_memory_short", Kind::Gauge, None, [],
        "1 while the process has reached memory.max_bytes, so that work that takes much memory is refused.";
    MEMORY_SHORT_REFUSED = "hapax_memory_short_refused_total", Kind::Counter, None, [label::KIND],
        "Documents not stored and large bodies not read because the process had reached memory.max_bytes.";
    DECISION_DURATION = "hapax_decision_duration_seconds", Kind::Histogram(SECONDS), Some(Unit::Seconds),
        [label::COLLECTION], "How long a write holds the decision lock of its collection.";
    COMMIT_DURATION = "hapax_commit_duration_seconds", Kind::Histogram(SECONDS), Some(Unit::Seconds),
        [label::COLLECTION], "Time of one transaction, fsync included.";
    COMMIT_DOCUMENTS = "hapax_commit_documents", Kind::Histogram(COMMIT_SIZES), None, [label::COLLECTION],
        "Operations in one transaction.";
    COMMIT_FAILURES = "hapax_commit_failures_total", Kind::Counter, None, [label::COLLECTION],
        "Transactions that failed.";
    COMMIT_QUEUE_DEPTH = "hapax_commit_queue_depth", Kind::Gauge, None, [label::COLLECTION],
        "Decisions waiting for the disk.";
    COMMIT_QUEUE_MAX = "hapax_commit_queue_max", Kind::Gauge, None, [label::COLLECTION],
        "The most decisions that may wait for the disk.";
    EXPIRED_DOCUMENTS = "hapax_expired_documents_total", Kind::Counter, None, [label::COLLECTION],
        "Documents deleted because they had not been seen for the collection's time to live.";
    TOUCHED_DOCUMENTS = "hapax_touched_documents_total", Kind::Counter, None, [label::COLLECTION],
        "Times that a stored document was seen again, which postpones its expiry.";
    EXPIRY_LAG = "hapax_expiry_lag_seconds", Kind::Gauge, Some(Unit::Seconds), [label::COLLECTION],
        "How late expiry is: the longest delay that the last two rounds of expiry found; 0 if there was none.";
    COMMIT_PAYLOAD_BYTES = "hapax_commit_payload_bytes", Kind::Gauge, Some(Unit::Bytes), [label::COLLECTION],
        "Bytes of shingles and texts of documents that wait for the disk.";
    COMMIT_PAYLOAD_BYTES_MAX = "hapax_commit_payload_max_bytes", Kind::Gauge, Some(Unit::Bytes), [label::COLLECTION],
        "The most bytes of shingles and texts that may wait for the disk.";
    LOG_BYTES = "hapax_log_bytes", Kind::Gauge, Some(Unit::Bytes), [label::COLLECTION],
        "Size of the write-ahead log on disk; it grows while a backup copies the collection.";
    BACKUPS = "hapax_backups_total", Kind::Counter, None, [label::RESULT],
        "Backups that ended, by result.";
    BACKUP_PROGRESS = "hapax_backup_progress_ratio", Kind::Gauge, None, [],
        "Share of the latest backup that is copied and checked, 0 to 1; 0 if it failed or was cancelled.";
    BACKUP_COPIED_BYTES = "hapax_backup_copied_bytes_total", Kind::Counter, None, [],
        "Bytes of collections copied by backups.";
    BACKUP_LAST_SUCCESS = "hapax_backup_last_success_timestamp_seconds", Kind::Gauge, Some(Unit::Seconds), [],
        "When the latest backup in backup.dir was made, in seconds since 1970; 0 if there is none.";
    SCRUB_RECORDS = "hapax_scrub_records_total", Kind::Counter, None, [label::COLLECTION],
        "Stored documents read again and checked in the background.";
    SCRUB_ERRORS = "hapax_scrub_errors_total", Kind::Counter, None, [label::COLLECTION],
        "Damaged rows found by reading stored documents again, counted each time.";
    SCRUB_PROGRESS = "hapax_scrub_progress_ratio", Kind::Gauge, None, [label::COLLECTION],
        "Share of the collection that the present pass of the scrub has read, 0 to 1; 1 between two passes.";
    SCRUB_COMPLETED = "hapax_scrub_last_complete_timestamp_seconds", Kind::Gauge, Some(Unit::Seconds),
        [label::COLLECTION],
        "When the scrub last reached the end of the collection, in seconds since 1970; 0 if it never did.";
    DATA_FREE = "hapax_data_free_bytes", Kind::Gauge, Some(Unit::Bytes), [],
        "Free space on the disk of the data directory.";
    DISK_RESERVE = "hapax_disk_reserve_bytes", Kind::Gauge, Some(Unit::Bytes), [],
        "Room on the disk that is kept for deletes; 0 while the disk is full and the room is in use.";
    DATA_WRITABLE = "hapax_data_writable", Kind::Gauge, None, [],
        "1 if the disk accepts documents; 0 if it refuses them, for example because it is full, while reads continue.";
    LOG_LINES_LEFT_OUT = "hapax_log_lines_left_out_total", Kind::Counter, None, [],
        "Log lines left out because the same line, or many like it, had been written a few seconds before.";
    AUDIT_LINES = "hapax_audit_lines_total", Kind::Counter, None, [],
        "Lines written to the audit log.";
    AUDIT_DROPPED = "hapax_audit_dropped_total", Kind::Counter, None, [],
        "Lines of the audit log that were dropped, because too many waited for its disk.";
    AUDIT_ERRORS = "hapax_audit_errors_total", Kind::Counter, None, [],
        "Attempts to write to the audit log that failed; its lines wait for the next attempt.";
    AUDIT_BYTES = "hapax_audit_bytes", Kind::Gauge, Some(Unit::Bytes), [],
        "Size of all files of the audit log; 0 if there is none.";
    AUDIT_QUEUE_BYTES = "hapax_audit_queue_bytes", Kind::Gauge, Some(Unit::Bytes), [],
        "Lines of the audit log that wait for the disk.";
    COLLECTION_DAMAGED = "hapax_collection_damaged", Kind::Gauge, None, [label::COLLECTION],
        "1 for a collection that is not served because its file is damaged.";
    COLLECTION_OPEN = "hapax_collection_open", Kind::Gauge, None, [label::COLLECTION],
        "1 for a collection that is open; 0 while it is being opened, or if it is damaged or could not be opened.";
    COLLECTION_INFO = "hapax_collection_info", Kind::Gauge, None,
        [label::COLLECTION, label::SPEC, label::BANDS, label::ROWS, label::VERIFY],
        "Always 1; the settings of the collection are in the labels.";
    COLLECTION_BOOT_PROGRESS = "hapax_collection_boot_progress_ratio", Kind::Gauge, None, [label::COLLECTION],
        "Share of opening the collection at the start that is done, 0 to 1.";
    BOOT_PROGRESS = "hapax_boot_progress_ratio", Kind::Gauge, None, [],
        "Share of opening all collections that is done, by bytes, 0 to 1.";
    BUILD_INFO = "hapax_build_info", Kind::Gauge, None, [label::VERSION],
        "Always 1; the version is in the label.";
}

/// Describes every metric to the installed recorder.
pub fn describe_all() {
    for metric in ALL {
        let (name, unit, help) = (metric.name, metric.unit.unwrap_or(Unit::Count), metric.help);
        match metric.kind {
            Kind::Counter => {
                metrics::describe_counter!(name, unit, help);
                // A counter is there from the start, at 0, so that an alert on its rate sees the first event.
                if metric.labels.is_empty() {
                    metrics::counter!(name).increment(0);
                }
            }
            Kind::Gauge => metrics::describe_gauge!(name, unit, help),
            Kind::Histogram(_) => metrics::describe_histogram!(name, unit, help),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_their_kind_and_unit() {
        for metric in ALL {
            assert!(metric.name.starts_with("hapax_"), "{}", metric.name);
            assert_eq!(metric.name.ends_with("_total"), metric.kind == Kind::Counter, "{}", metric.name);
            let unit_suffix = match metric.unit {
                Some(Unit::Seconds) => "_seconds",
                Some(Unit::Bytes) => "_bytes",
                _ => "",
            };
            // A count of bytes is `..._bytes_total`, as Prometheus recommends.
            let name = metric.name.strip_suffix("_total").unwrap_or(metric.name);
            assert!(name.ends_with(unit_suffix), "{}", metric.name);
            assert!(metric.help.ends_with('.'), "{}", metric.name);
        }
    }

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<_> = ALL.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn buckets_ascend() {
        for metric in ALL {
            if let Kind::Histogram(buckets) = metric.kind {
                assert!(buckets.is_sorted_by(|a, b| a < b), "{}", metric.name);
            }
        }
    }
}
