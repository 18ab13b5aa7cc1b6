//! One table of all metrics: name, type, unit, labels, buckets, meaning, and what to do when the metric changes.
//! `buckets.rs` has the bounds of the buckets.
//! In: nothing. Out: constants for the code that measures, descriptions for the recorder, and the tables of
//! docs/metrics.md. It must not know which code sets a metric, or when.
//!
//! Each metric is declared once, in the same section as in docs/metrics.md. After a change here, write that page with
//! `HAPAX_RECORD=1 cargo test --locked --test it reference_pages`.
//!
//! Renaming a metric breaks dashboards. Names are part of the interface, like routes.

use metrics::Unit;

use super::buckets::{AGES, BUCKET_SIZES, CANDIDATES, COMMIT_SIZES, RATIOS, SECONDS, SHINGLES, SIMILARITIES};

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
    /// The thing that the metric counts or measures, in Markdown. [`Metric::help`] returns the same without Markdown.
    pub meaning: &'static str,
    /// The advice if the metric changes.
    pub act: &'static str,
}

/// Label names.
pub mod label {
    /// The route template, such as `/v1/collections/{collection}/check`; never the path itself.
    pub const ROUTE: &str = "route";
    pub const METHOD: &str = "method";
    /// The HTTP status, three digits.
    pub const STATUS: &str = "status";
    pub const COLLECTION: &str = "collection";
    /// For bulk lines: `verdict`, `deleted`, `error`, `fatal` or `summary`. For work refused because memory is short:
    /// `document` or `body`. For pairs of a golden set: `duplicate` or `different`. For a Redis Cluster: a kind of
    /// pipeline, of conflict, or of change of a primary.
    pub const KIND: &str = "kind";
    /// `check` or `insert`.
    pub const OP: &str = "op";
    /// A verdict, as in the API.
    pub const VERDICT: &str = "verdict";
    /// For a candidate: `match` or `below_threshold`. For a backup: `done`, `cancelled` or `failed`. For an id: `hit`
    /// or `miss`.
    pub const RESULT: &str = "result";
    /// A sketch, as in the spec, such as `fss256x8`.
    pub const SKETCH: &str = "sketch";
    /// `postings`, `signatures`, `ids`, `labels`, `clusters`, `seen_times` or `id_cache`.
    pub const PART: &str = "part";
    /// `single`, `bulk` or `admin`.
    pub const CLASS: &str = "class";
    /// The reason why something was refused or closed.
    pub const REASON: &str = "reason";
    /// The name of an API key, as in the keys file.
    pub const KEY: &str = "key";
    /// The limit of a key that was reached, as in the keys file.
    pub const LIMIT: &str = "limit";
    /// Labels whose values clients or operators choose. Their series appear and disappear: `recorder.rs` keeps a series
    /// only while the value of such a label is admitted.
    pub const PASSING: [&str; 4] = [COLLECTION, SKETCH, KEY, NODE];
    /// The version of hapax.
    pub const VERSION: &str = "version";
    /// The fingerprint of a collection's spec.
    pub const SPEC: &str = "spec";
    /// The reason why a lookup left something out.
    pub const BOUND: &str = "bound";
    /// `text` or `slots`.
    pub const SOURCE: &str = "source";
    /// A class of documents by their number of shingles, such as `50-199`.
    pub const SHINGLES: &str = "shingles";
    /// A similarity, such as `0.85`, or a range, such as `0.80-0.85`.
    pub const SIMILARITY: &str = "similarity";
    /// The number of a band, from 0.
    pub const BAND: &str = "band";
    /// The number of bands of a collection. [`ROWS`] is the number of rows in each band.
    pub const BANDS: &str = "bands";
    pub const ROWS: &str = "rows";
    /// `estimate`, `borderline` or `exact`.
    pub const VERIFY: &str = "verify";
    /// `article`, `visible` or `given_up`.
    pub const EXTRACTED: &str = "extracted";
    /// The address of a node of a Redis Cluster.
    pub const NODE: &str = "node";
}

/// Values of labels that are not words of the API.
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
    /// [`super::label::KIND`]: a pair of a golden set that is labelled as duplicates.
    pub const PAIR_DUPLICATE: &str = "duplicate";
    pub const PAIR_DIFFERENT: &str = "different";
    /// [`super::label::BOUND`]: `limits.bucket_read_max`.
    pub const BOUND_BUCKET: &str = "bucket";
    /// [`super::label::BOUND`]: `limits.candidates_max`.
    pub const BOUND_CANDIDATES: &str = "candidates";
    /// [`super::label::BOUND`]: `limits.exact_reads_max` or `limits.exact_bytes_max`.
    pub const BOUND_EXACT_READS: &str = "exact_reads";
    /// [`super::label::BOUND`]: after a failed commit, it is unknown whether a document is stored.
    pub const BOUND_DOUBT: &str = "doubt";
    /// [`super::label::EXTRACTED`]: the main text of a page.
    pub const EXTRACTED_ARTICLE: &str = "article";
    /// [`super::label::EXTRACTED`]: all visible text, as requested.
    pub const EXTRACTED_VISIBLE: &str = "visible";
    /// [`super::label::EXTRACTED`]: all visible text, because no main text was found.
    pub const EXTRACTED_GIVEN_UP: &str = "given_up";
    /// [`super::label::OP`]: a lookup that never writes.
    pub const OP_CHECK: &str = "check";
    /// [`super::label::REASON`]: 401 for a request without a key.
    pub const REFUSED_NO_KEY: &str = "no_key";
    /// [`super::label::REASON`]: 401 for a request with a key that the server does not accept.
    pub const REFUSED_WRONG_KEY: &str = "wrong_key";
    /// [`super::label::REASON`]: 401 for a request with a key that was valid once.
    pub const REFUSED_EXPIRED_KEY: &str = "expired_key";
    /// [`super::label::REASON`]: 403 for a request that its key does not allow.
    pub const REFUSED_FORBIDDEN: &str = "forbidden";
    /// [`super::label::REASON`]: 403 for a `Host` that is not this server's.
    pub const REFUSED_FOREIGN_HOST: &str = "foreign_host";
    /// [`super::label::REASON`]: 403 for a page of another site.
    pub const REFUSED_FOREIGN_PAGE: &str = "foreign_page";
    /// [`super::label::REASON`]: 429, because an address has reached one of its limits and has no valid key.
    pub const REFUSED_ADDRESS_LIMIT: &str = "address_limit";
    /// [`super::label::REASON`]: no request within `server.keep_alive_timeout_ms`.
    pub const CLOSED_IDLE: &str = "idle";
    /// [`super::label::REASON`]: no complete request head within `server.header_timeout_ms`.
    pub const CLOSED_NO_REQUEST: &str = "no_request";
    /// [`super::label::REASON`]: all places were taken, and this connection had had no request for the longest time.
    pub const CLOSED_FOR_ROOM: &str = "room";
    /// [`super::label::REASON`]: an HTTP/2 client sent far more bytes than its requests have.
    pub const CLOSED_FLOOD: &str = "flood";
    /// [`super::label::REASON`]: a plain HTTP request on a TLS port.
    pub const HANDSHAKE_PLAIN_HTTP: &str = "plain_http";
    /// [`super::label::REASON`]: the client sent an alert, mostly because it does not trust the certificate.
    pub const HANDSHAKE_REFUSED: &str = "refused_by_client";
    /// [`super::label::REASON`]: the client's bytes are not TLS, or offer nothing that the server supports.
    pub const HANDSHAKE_INVALID: &str = "invalid";
    /// [`super::label::REASON`]: the client closed the connection during the handshake.
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
    /// [`super::label::PART`]: ids that are in memory, so that answers can name documents without reading the disk.
    pub const PART_ID_CACHE: &str = "id_cache";
    /// [`super::label::PART`]: the labels of documents.
    pub const PART_LABELS: &str = "labels";
    /// [`super::label::PART`]: the last-seen times, if documents expire.
    pub const PART_SEEN_TIMES: &str = "seen_times";
    /// [`super::label::PART`]: the n-grams of items, in a containment collection.
    pub const PART_NGRAMS: &str = "ngrams";
    /// [`super::label::PART`]: the cluster of each document.
    pub const PART_CLUSTERS: &str = "clusters";
    /// [`super::label::REASON`]: another node has the slot.
    pub const SENT_AGAIN_MOVED: &str = "moved";
    /// [`super::label::REASON`]: the slot is moving, and another node has the key already.
    pub const SENT_AGAIN_ASK: &str = "ask";
    /// [`super::label::REASON`]: the node did not know a script.
    pub const SENT_AGAIN_NO_SCRIPT: &str = "no_script";
    /// [`super::label::REASON`]: the node was not ready, or the connection broke.
    pub const SENT_AGAIN_NOT_READY: &str = "not_ready";
    /// [`super::label::KIND`]: a document that its server has not finished within the lease.
    pub const LEFT_PENDING: &str = "pending";
    /// [`super::label::KIND`]: a stored document that was not sealed.
    pub const LEFT_UNSEALED: &str = "unsealed";
    /// [`super::label::KIND`]: a document that was not stored.
    pub const LEFT_ABORTED: &str = "aborted";
    /// [`super::label::KIND`]: a deleted document.
    pub const LEFT_DELETED: &str = "deleted";
    /// [`super::label::KIND`]: a document that another one has replaced, or was to replace.
    pub const LEFT_SUPERSEDED: &str = "superseded";
    /// [`super::label::KIND`]: an expired document.
    pub const LEFT_EXPIRED: &str = "expired";
    /// [`super::label::KIND`]: a posting or an id that leads to no document.
    pub const LEFT_DANGLING: &str = "dangling";
    /// [`super::label::KIND`]: a record that has no document.
    pub const LEFT_BARE: &str = "bare";
    /// [`super::label::KIND`]: a pipeline without a `WAIT`.
    pub const PIPELINE_PLAIN: &str = "plain";
    /// [`super::label::KIND`]: a pipeline that ends with a `WAIT` for replicas.
    pub const PIPELINE_WAIT: &str = "wait";
    /// [`super::label::KIND`]: another node is primary.
    pub const CHANGED_FAILOVER: &str = "failover";
    /// [`super::label::KIND`]: the primary has restarted.
    pub const CHANGED_RESTART: &str = "restart";
    /// [`super::label::KIND`]: the same process has a new replication id.
    pub const CHANGED_OTHER: &str = "other";
    /// [`super::label::KIND`]: an operation waits for a document that another one is inserting.
    pub const CONFLICT_WAIT: &str = "wait";
    /// [`super::label::KIND`]: the token of a younger document is replaced, so that it must read its bands again.
    pub const CONFLICT_WOUND: &str = "wound";
    /// [`super::label::KIND`]: a document is aborted whose server has not finished it.
    pub const CONFLICT_ABORT: &str = "abort";
}

/// Declares one constant for each metric, and lists the metrics in [`SECTIONS`], so that every name has a description.
macro_rules! metrics_table {
    ($($section:literal => {$(
        $constant:ident = $name:literal, $kind:expr, $unit:expr, [$($label:expr),*], $meaning:literal, $act:literal;
    )*})*) => {
        $($(#[doc = $meaning] pub const $constant: &str = $name;)*)*
        /// The metrics by section of docs/metrics.md. A section is the name in the marker of its table, and the metrics
        /// in the order of the rows.
        pub const SECTIONS: &[(&str, &[Metric])] = &[$(($section, &[
            $(Metric {
                name: $name, kind: $kind, unit: $unit, labels: &[$($label),*], meaning: $meaning, act: $act,
            },)*
        ]),)*];
    };
}

metrics_table! {
    "duplicates" => {
    VERDICTS = "hapax_verdicts_total", Kind::Counter, None, [label::COLLECTION, label::OP, label::VERDICT],
        "Verdicts on documents. `op` is `check` or `insert`; `verdict` is `unique`, `near_duplicate`, \
         `exact_duplicate` or `empty`.",
        "If the share of duplicates jumps, look at the documents that clients send: a template or a repeated import \
         may be the cause.";
    DOCUMENTS = "hapax_documents", Kind::Gauge, None, [label::COLLECTION],
        "Documents that are stored now.",
        "If it only grows, set a `ttl` or delete documents. If it falls without deletes, look at \
         `hapax_expired_documents_total`.";
    DOCUMENT_SHINGLES = "hapax_document_shingles", Kind::Histogram(SHINGLES), None, [label::COLLECTION],
        "The number of shingles of each document that got a verdict, counting repeats. Documents whose number of \
         shingles is not known, because they were sent as signatures, are left out.",
        "If it falls, clients send shorter texts, and the similarity of short texts is less certain.";
    MATCH_SIMILARITY = "hapax_match_similarity", Kind::Histogram(SIMILARITIES), None, [label::COLLECTION],
        "Similarity of the best match, for each verdict that has a match.",
        "If the median comes near the threshold, check the [threshold](threshold.md).";
    MATCH_AGE = "hapax_match_age_seconds", Kind::Histogram(AGES), Some(Unit::Seconds), [label::COLLECTION],
        "How long ago the content of the best match was first stored.",
        "If matches are always young, a shorter `ttl` saves memory. If matches are as old as the `ttl`, a longer `ttl` \
         finds more matches.";
    INCOMPLETE_VERDICTS = "hapax_incomplete_verdicts_total", Kind::Counter, None, [label::COLLECTION],
        "Verdicts with `\"complete\": false`: a limit may have hidden a match.",
        "See `hapax_lookups_bounded_total` for the limit that was reached.";
    EXPIRED_DOCUMENTS = "hapax_expired_documents_total", Kind::Counter, None, [label::COLLECTION],
        "Documents that were deleted because they were not seen within the collection's `ttl`.",
        "Nothing. It grows only if the collection has a `ttl`.";
    TOUCHED_DOCUMENTS = "hapax_touched_documents_total", Kind::Counter, None, [label::COLLECTION],
        "How often stored documents were seen again. Each time, the expiry of the document is postponed.",
        "Nothing; it shows how often clients send documents that are already stored.";
    EXPIRY_LAG = "hapax_expiry_lag_seconds", Kind::Gauge, Some(Unit::Seconds), [label::COLLECTION],
        "How late expiry is: for how long the most overdue document of the last two rounds was overdue.",
        "If it grows, deletes are slower than expiry needs: look at `hapax_commit_duration_seconds`.";
    }
    "speed" => {
    HTTP_REQUESTS = "hapax_http_requests_total", Kind::Counter, None, [label::ROUTE, label::METHOD, label::STATUS],
        "Requests that were answered. `route` is a template such as `/v1/collections/{collection}/check`.",
        "If the share of 5xx grows, read the log. If the share of 4xx grows, ask the owners of the clients.";
    HTTP_REQUEST_DURATION = "hapax_http_request_duration_seconds", Kind::Histogram(SECONDS), Some(Unit::Seconds),
        [label::ROUTE, label::METHOD],
        "Time from the headers of a request to the end of its answer.",
        "If it grows, find the slow stage among the metrics below.";
    HTTP_REQUESTS_IN_FLIGHT = "hapax_http_requests_in_flight", Kind::Gauge, None, [],
        "Requests that are being answered now.",
        "If it grows and the rate of requests does not, requests take longer: look at their duration.";
    SIGN_DURATION = "hapax_sign_duration_seconds", Kind::Histogram(SECONDS), Some(Unit::Seconds), [label::SKETCH],
        "Time to make the signature of one document from its text.",
        "If it grows, texts got longer, or the processors are busy.";
    EXTRACT_DURATION = "hapax_extract_duration_seconds", Kind::Histogram(SECONDS), Some(Unit::Seconds), [],
        "Time to extract the text of one page. The wait for a thread is not counted.",
        "If it grows, pages got longer, or the processors are busy.";
    PAGES = "hapax_pages_total", Kind::Counter, None, [label::EXTRACTED],
        "HTML pages whose text was extracted. `given_up` means that no main text was found, so all visible text was \
         compared.",
        "If the share of `given_up` grows, look at such pages with `POST …/extract`: their menus may decide the \
         verdict.";
    PAGE_BYTES = "hapax_page_bytes_total", Kind::Counter, Some(Unit::Bytes), [],
        "Bytes of the pages whose text was extracted, after decoding.",
        "Nothing; divide it by `hapax_pages_total` to see how long the pages are on average.";
    PROBE_DURATION = "hapax_probe_duration_seconds", Kind::Histogram(SECONDS), Some(Unit::Seconds),
        [label::COLLECTION],
        "Time to read the buckets of one document in all bands.",
        "If it grows, look for large buckets: `hapax_bucket_documents_p99`.";
    VERIFY_DURATION = "hapax_verify_duration_seconds", Kind::Histogram(SECONDS), Some(Unit::Seconds),
        [label::COLLECTION],
        "Time to compare one document with all its candidates.",
        "If it grows, look at `hapax_check_candidates`.";
    DECISION_DURATION = "hapax_decision_duration_seconds", Kind::Histogram(SECONDS), Some(Unit::Seconds),
        [label::COLLECTION],
        "How long a write holds the decision lock. Other writes of the collection wait meanwhile.",
        "If it grows, writes wait for each other: spread the writes over several collections, or look for large \
         buckets.";
    COMMIT_DURATION = "hapax_commit_duration_seconds", Kind::Histogram(SECONDS), Some(Unit::Seconds),
        [label::COLLECTION],
        "Time of one transaction, fsync included.",
        "If it grows, the disk is slow or shared.";
    COMMIT_DOCUMENTS = "hapax_commit_documents", Kind::Histogram(COMMIT_SIZES), None, [label::COLLECTION],
        "Writes in one transaction.",
        "If it is near 1 under load, clients write one after another: let more of them write at once, or send bulk \
         requests.";
    CPU_QUEUE_WAIT = "hapax_cpu_queue_wait_seconds", Kind::Histogram(SECONDS), Some(Unit::Seconds), [],
        "Time that a long job waited for a place in the queue and then for a processor.",
        "If it grows, the processors are busy: send fewer large requests, or use more processors.";
    }
    "index" => {
    CHECK_CANDIDATES = "hapax_check_candidates", Kind::Histogram(CANDIDATES), None, [label::COLLECTION],
        "Distinct documents that the bands proposed in one lookup.",
        "If it grows, many documents look alike: use longer shingles or more rows in a band.";
    VERIFIED_CANDIDATES = "hapax_verified_candidates_total", Kind::Counter, None, [label::COLLECTION, label::RESULT],
        "Candidates that were compared. `result` is `match` or `below_threshold`.",
        "If most are `below_threshold`, use more rows in a band.";
    BUCKET_DOCUMENTS = "hapax_bucket_documents", Kind::Histogram(BUCKET_SIZES), None, [label::COLLECTION],
        "Documents in the fullest of the buckets that one lookup read.",
        "If it grows, see the fullest buckets.";
    BUCKET_DOCUMENTS_LARGEST = "hapax_bucket_documents_largest", Kind::Gauge, None, [label::COLLECTION],
        "Documents in the largest bucket of the index.",
        "If it nears `limits.bucket_read_max`, see the fullest buckets.";
    BUCKET_DOCUMENTS_P50 = "hapax_bucket_documents_p50", Kind::Gauge, None, [label::COLLECTION],
        "The number of documents in a document's fullest bucket: the median over a sample of the documents. Links are \
         in no bucket.",
        "If it grows, many documents look alike: use longer shingles.";
    BUCKET_DOCUMENTS_P99 = "hapax_bucket_documents_p99", Kind::Gauge, None, [label::COLLECTION],
        "The number of documents in a document's fullest bucket: the 99th percentile over the same sample.",
        "If it grows, some documents look alike: see the fullest buckets.";
    BUCKETS_OVER_CAP = "hapax_buckets_over_cap", Kind::Gauge, None, [label::COLLECTION],
        "Buckets with more postings than `limits.bucket_read_max`. A lookup reads only a part of such a bucket.",
        "If it is above 0, see the fullest buckets, or raise `limits.bucket_read_max`.";
    LOOKUPS_BOUNDED = "hapax_lookups_bounded_total", Kind::Counter, None, [label::COLLECTION, label::BOUND],
        "Lookups that left something out, so that their verdicts are incomplete. `bound` is the reason: `bucket` (a \
         bucket has more postings than `limits.bucket_read_max`), `candidates` (`limits.candidates_max` was reached), \
         `exact_reads` (`limits.exact_reads_max` or `limits.exact_bytes_max` was reached) or `doubt` (after a failed \
         commit, it is not known whether a document is stored).",
        "For `bucket`, see the fullest buckets. For `candidates` and `exact_reads`, raise the named limit. For \
         `doubt`, repair the disk and restart.";
    CANARY_DOCUMENTS = "hapax_canary_documents_total", Kind::Counter, None, [label::COLLECTION],
        "Stored documents that the survey looked up by each of their bands, to see whether they are found.",
        "If it does not grow in a collection with documents, read the log.";
    CANARY_LOST = "hapax_canary_lost_postings_total", Kind::Counter, None, [label::COLLECTION],
        "Postings that the survey did not find, counted each time. It is above 0 only if the index is broken.",
        "If it grows, restart the server, because the start builds the index again. Then report it.";
    CANARY_LOST_IN_BAND = "hapax_canary_lost_postings_by_band_total", Kind::Counter, None,
        [label::COLLECTION, label::BAND],
        "Postings that the survey did not find, by band. A band without a lost posting has no series.",
        "As for `hapax_canary_lost_postings_total`; name the band in the report.";
    CANARY_LOOKUPS = "hapax_canary_lookups_total", Kind::Counter, None,
        [label::COLLECTION, label::SIMILARITY, label::SOURCE],
        "Near-duplicates of stored documents that the canary looked up. `source` is `text` if shingles of a stored \
         text were replaced. It is `slots` if no text is stored, so that slots of the stored signature were replaced.",
        "If it does not grow in a collection with documents, read the log.";
    CANARY_FOUND = "hapax_canary_found_total", Kind::Counter, None,
        [label::COLLECTION, label::SIMILARITY, label::SOURCE],
        "Lookups of the canary that found the original: the stored document that the near-duplicate was made from.",
        "Look at `hapax_canary_recall_ratio`.";
    CANARY_RECALL = "hapax_canary_recall_ratio", Kind::Gauge, None, [label::COLLECTION, label::SIMILARITY],
        "Share of the canary's lookups that found the original, in the last rounds. NaN for similarities up to the \
         threshold, because these are not looked up.",
        "If it is below `hapax_canary_recall_expected_ratio`, see [the runbook](runbook.md#hapaxcanaryrecalllow).";
    CANARY_RECALL_LOW = "hapax_canary_recall_low_ratio", Kind::Gauge, None, [label::COLLECTION, label::SIMILARITY],
        "The lower end of the 95 % interval of `hapax_canary_recall_ratio`.",
        "If it is far below the ratio, there have been few lookups: wait for more rounds.";
    CANARY_RECALL_HIGH = "hapax_canary_recall_high_ratio", Kind::Gauge, None, [label::COLLECTION, label::SIMILARITY],
        "The upper end of the 95 % interval of `hapax_canary_recall_ratio`.",
        "If it is below 0.95, see [the runbook](runbook.md#hapaxcanaryrecalllow).";
    CANARY_RECALL_EXPECTED = "hapax_canary_recall_expected_ratio", Kind::Gauge, None,
        [label::COLLECTION, label::SIMILARITY],
        "The share that theory predicts for this banding if no limit hides a document.",
        "It changes only with the settings. If it is too low, choose [another banding](threshold.md#bands-and-rows).";
    DRIFT_OBSERVED = "hapax_drift_candidates_observed", Kind::Gauge, None, [label::COLLECTION, label::SHINGLES],
        "The mean number of other documents that the bands propose for a stored document, over a sample. `shingles` is \
         the class of the document by its number of shingles. NaN if the sample has no document of the class.",
        "Compare it with `hapax_drift_candidates_expected`.";
    DRIFT_EXPECTED = "hapax_drift_candidates_expected", Kind::Gauge, None, [label::COLLECTION, label::SHINGLES],
        "The same mean, as the S-curve predicts it from the similarities of the sampled documents to each other.",
        "If it grows, the collection has more documents, or its documents are more alike: use more rows in a band.";
    DRIFT_GAP = "hapax_drift_candidates_gap", Kind::Gauge, None, [label::COLLECTION, label::SHINGLES],
        "`hapax_drift_candidates_observed` minus `hapax_drift_candidates_expected`.",
        "If it grows, documents share whole passages: look at [the fullest buckets](http-api.md#the-fullest-buckets), \
         and remove boilerplate from your texts.";
    DRIFT_SIMILARITY_OBSERVED = "hapax_drift_similarity_observed_ratio", Kind::Gauge, None,
        [label::COLLECTION, label::SHINGLES],
        "Mean similarity of a stored document of the class `shingles` to the other documents that the bands propose \
         for it. NaN if the bands propose none.",
        "Compare it with `hapax_drift_similarity_expected_ratio`.";
    DRIFT_SIMILARITY_EXPECTED = "hapax_drift_similarity_expected_ratio", Kind::Gauge, None,
        [label::COLLECTION, label::SHINGLES],
        "The same similarity for the candidates that the S-curve predicts from the similarities of the sampled \
         documents to each other.",
        "If it falls, lookups spend their time on documents that are not alike: use more rows in a band.";
    DRIFT_SIMILARITY_GAP = "hapax_drift_similarity_gap", Kind::Gauge, None, [label::COLLECTION, label::SHINGLES],
        "`hapax_drift_similarity_observed_ratio` minus `hapax_drift_similarity_expected_ratio`.",
        "If it falls below 0, candidates share only single passages: look at \
         [the fullest buckets](http-api.md#the-fullest-buckets). If it is above 0, there are near-duplicates that the \
         sample does not contain.";
    BACKGROUND_SIMILARITY = "hapax_background_similarity_ratio", Kind::Gauge, None,
        [label::COLLECTION, label::SHINGLES],
        "Mean similarity of a stored document of the class `shingles` to the other documents of the sample.",
        "Use it as the value of `hapax tune --s-bg`. If it rises, lookups have more unrelated candidates.";
    GOLDEN_PAIRS = "hapax_golden_pairs", Kind::Gauge, None, [label::COLLECTION, label::KIND],
        "Pairs of the [golden set](golden.md): `duplicate` and `different`.",
        "It changes only when a set is stored or deleted.";
    GOLDEN_RECALL = "hapax_golden_recall_ratio", Kind::Gauge, None, [label::COLLECTION],
        "Share of the golden set's duplicates that a check would report; NaN if the set has no duplicates.",
        "If it falls, see [the runbook](runbook.md#hapaxgoldenrecalllow).";
    GOLDEN_PRECISION = "hapax_golden_precision_ratio", Kind::Gauge, None, [label::COLLECTION],
        "Share of the reported pairs of the golden set that are labelled as duplicates; NaN if no pair is reported.",
        "If it falls, read the pairs that [the report](golden.md#read-the-report) names.";
    GOLDEN_RECALL_BY_SIMILARITY = "hapax_golden_recall_by_similarity_ratio", Kind::Gauge, None,
        [label::COLLECTION, label::SIMILARITY],
        "The recall of the pairs whose exact similarity is in the range `similarity`, such as `0.80-0.85`.",
        "If only the recall in the range at the threshold falls, use [borderline verification](exact.md#borderline).";
    GOLDEN_ERROR = "hapax_golden_estimate_error", Kind::Gauge, None, [label::COLLECTION, label::SIMILARITY],
        "Mean distance between the estimate and the exact similarity, for the golden set's pairs in the range \
         `similarity`.",
        "It changes only if the golden set changes: the estimate for two texts is always the same.";
    GOLDEN_EVALUATED = "hapax_golden_evaluated_timestamp_seconds", Kind::Gauge, Some(Unit::Seconds),
        [label::COLLECTION], "When the golden set was last evaluated, in seconds since 1970.",
        "If it is more than a few minutes old, read the log: the set may be damaged.";
    EXACT_COMPARED = "hapax_exact_compared", Kind::Histogram(CANDIDATES), None, [label::COLLECTION],
        "Documents whose shingles one lookup compared, in collections that compare shingles.",
        "If it grows, lookups read more from disk: use more rows in a band.";
    EXACT_READ_BYTES = "hapax_exact_read_bytes_total", Kind::Counter, None, [label::COLLECTION],
        "Bytes of shingles or texts that exact verification read from disk.",
        "If it grows faster than lookups, look at `hapax_exact_compared`.";
    OPH_EMPTY_SLOTS = "hapax_oph_empty_slots_ratio", Kind::Histogram(RATIOS), None, [label::SKETCH],
        "Share of slots that no shingle reached, with an `oph` sketch.",
        "If it is high, texts are too short for the sketch: use `fss`.";
    }
    "overload" => {
    HTTP_SHED = "hapax_http_shed_total", Kind::Counter, None, [label::CLASS],
        "Requests refused with 503 before any work was done for them: `single` (checks, insertions, batches, pages), \
         `bulk`, `admin` (collections, loads, jobs, backups, version).",
        "See [Overload](overload.md).";
    HTTP_QUEUE_WAIT = "hapax_http_queue_wait_seconds", Kind::Histogram(SECONDS), Some(Unit::Seconds), [],
        "How long a request about documents waited for a thread. The limit is `server.queue_delay_max_ms`.",
        "If it nears the limit, requests will soon be refused: send fewer requests, or use more processors.";
    HTTP_CONNECTIONS = "hapax_http_connections", Kind::Gauge, None, [],
        "Open connections.",
        "If it nears `hapax_http_connections_max`, look for clients that do not reuse connections.";
    HTTP_CONNECTIONS_MAX = "hapax_http_connections_max", Kind::Gauge, None, [],
        "The maximum number of open connections: `server.connections_max`, or fewer if file descriptors are scarce.",
        "If it is lower than the setting, raise the limit on file descriptors.";
    HTTP_CONNECTIONS_CLOSED = "hapax_http_connections_closed_total", Kind::Counter, None, [label::REASON],
        "Connections that the server closed: `idle` (no request for too long), `no_request` (no complete headers in \
         time), `room` (to make room for another client), `flood` (an HTTP/2 client sent far more than its requests \
         have).",
        "If `room` grows, raise `server.connections_max`; if `no_request` grows, look for clients that open \
         connections and send nothing.";
    HTTP_STREAMS_REFUSED = "hapax_http_streams_refused_total", Kind::Counter, None, [],
        "HTTP/2 requests refused with REFUSED_STREAM, because too many requests were open on connections with several \
         open requests.",
        "If it grows, a client sends too much at once over one connection.";
    HTTP_BUFFERED_BYTES = "hapax_http_buffered_bytes", Kind::Gauge, Some(Unit::Bytes), [],
        "Memory that request bodies take. The limit is `server.bodies_bytes_max`.",
        "If it is at the limit, clients send slowly, or send much at once: raise `server.bodies_bytes_max`.";
    HTTP_ANSWER_BYTES = "hapax_http_answer_bytes", Kind::Gauge, Some(Unit::Bytes), [],
        "Memory that answers take. The limit is `server.answers_bytes_max`.",
        "If it is at the limit, clients read slowly: raise `server.answers_bytes_max`.";
    HTTP_TEXT_STREAMS = "hapax_http_text_streams", Kind::Gauge, None, [],
        "Texts that are being streamed now. The limit is `server.text_streams_max`.",
        "If it is at the limit, raise `server.text_streams_max`.";
    HTTP_BULK_REQUESTS = "hapax_http_bulk_requests", Kind::Gauge, None, [],
        "Bulk requests that are open now. The limit is `server.bulk_requests_max`.",
        "If it is at the limit, raise `server.bulk_requests_max`.";
    HTTP_BULK_LINES = "hapax_http_bulk_lines_total", Kind::Counter, None, [label::KIND],
        "Lines of bulk answers: `verdict`, `deleted`, `error`, `fatal`, `summary`.",
        "If `error` or `fatal` grows, read these lines of the answers.";
    HTTP_ANSWERS_CUT = "hapax_http_answers_cut_total", Kind::Counter, None, [],
        "Verdicts that were shortened because of `server.answer_bytes_max`, or because memory for answers was scarce.",
        "If it grows, request fewer matches, or raise `server.answer_bytes_max`.";
    HTTP_ELSEWHERE_FAILURES = "hapax_http_elsewhere_failures_total", Kind::Counter, None, [],
        "Lookups in other collections (`?collections=`) that failed after a document was inserted. The answer still \
         has status 200, and contains the error.",
        "If it grows, look for `could not be asked` in the log: these lines name the collections and the errors.";
    HTTP_ANSWERS_GIVEN_UP = "hapax_http_answers_given_up_total", Kind::Counter, None, [],
        "Answers that were dropped because the client did not read them.",
        "If it grows, clients do not read their answers: look at the time limits of the clients.";
    CPU_REFUSED = "hapax_cpu_refused_total", Kind::Counter, None, [],
        "Pieces of long work that were refused with 503, because the queue was full or they would have waited too long \
         (`cpu.queue_delay_max_ms`).",
        "See [Overload](overload.md).";
    CPU_QUEUE_DEPTH = "hapax_cpu_queue_depth", Kind::Gauge, None, [],
        "Pieces of long work that wait for a processor. Those of bulk and batch requests are not counted.",
        "If it nears `hapax_cpu_queue_max`, the processors are too few for the work.";
    CPU_QUEUE_MAX = "hapax_cpu_queue_max", Kind::Gauge, None, [],
        "The most pieces of long work that may wait for a processor.",
        "Nothing; compare `hapax_cpu_queue_depth` with it.";
    COMMIT_QUEUE_DEPTH = "hapax_commit_queue_depth", Kind::Gauge, None, [label::COLLECTION],
        "Writes that wait for the disk.",
        "If it nears `hapax_commit_queue_max`, the disk is too slow for the writes.";
    COMMIT_QUEUE_MAX = "hapax_commit_queue_max", Kind::Gauge, None, [label::COLLECTION],
        "The most writes that may wait for the disk.",
        "Nothing; compare `hapax_commit_queue_depth` with it.";
    COMMIT_PAYLOAD_BYTES = "hapax_commit_payload_bytes", Kind::Gauge, Some(Unit::Bytes), [label::COLLECTION],
        "Bytes of the shingles and texts of writes that wait for the disk.",
        "If it nears `hapax_commit_payload_max_bytes`, the disk is too slow for the writes.";
    COMMIT_PAYLOAD_BYTES_MAX = "hapax_commit_payload_max_bytes", Kind::Gauge, Some(Unit::Bytes), [label::COLLECTION],
        "The most bytes of shingles and texts that may wait for the disk.",
        "Nothing; compare `hapax_commit_payload_bytes` with it.";
    }
    "memory" => {
    INDEX_BYTES = "hapax_index_bytes", Kind::Gauge, Some(Unit::Bytes), [label::COLLECTION, label::PART],
        "Memory of the index. `part` is `postings`, `signatures`, `ids`, `clusters`, `seen_times`, `labels`, `ngrams` or \
         `id_cache`. `ngrams` is for the items of a collection that is searched [by \
         containment](contamination.md#over-http). `id_cache` is for the ids that are kept in memory, so that answers can \
         name documents without a read of the disk.",
        "If it grows faster than the documents, see [Memory](memory.md).";
    LABELS = "hapax_labels", Kind::Gauge, None, [label::COLLECTION],
        "The number of different labels of the documents.",
        "If it nears `hapax_labels_max`, use fewer labels, or raise `limits.labels_max`.";
    LABELS_MAX = "hapax_labels_max", Kind::Gauge, None, [label::COLLECTION],
        "`limits.labels_max`. If there are as many labels, documents with another label get 507.",
        "Nothing; compare `hapax_labels` with it.";
    LABEL_DELETIONS_LEFT = "hapax_label_deletions_left", Kind::Gauge, None, [label::COLLECTION],
        "Documents that were deleted by label and are still on disk.",
        "If it stays above 0, look for `could not remove documents that were deleted by label` in the log.";
    ID_CACHE = "hapax_id_cache_lookups_total", Kind::Counter, None, [label::COLLECTION, label::RESULT],
        "Ids in verdicts that were in the cache of ids (`hit`) or were read from the disk (`miss`). Ids of the newest \
         1,024 documents, and ids that are read together with metadata or a capture, are not counted.",
        "If `miss` grows, answers read ids from the disk: raise `memory.id_cache_bytes_max`.";
    MEMORY_USED = "hapax_memory_used_bytes", Kind::Gauge, Some(Unit::Bytes), [],
        "Memory that documents take in the indexes of all open collections.",
        "If it nears the budget, delete documents or raise the budget.";
    MEMORY_BUDGET = "hapax_memory_budget_bytes", Kind::Gauge, Some(Unit::Bytes), [],
        "`limits.memory_max_bytes`, set or derived; if that is 0, the memory of the machine or the container.",
        "If it falls, the machine or the container has less memory.";
    MEMORY_USED_RATIO = "hapax_memory_budget_used_ratio", Kind::Gauge, None, [],
        "`hapax_memory_used_bytes` divided by `hapax_memory_budget_bytes`.",
        "Before it reaches 1, delete documents, set a `ttl`, or raise `limits.memory_max_bytes`.";
    MEMORY_REFUSED = "hapax_memory_refused_total", Kind::Counter, None, [label::COLLECTION],
        "Documents that were not stored because there was no memory for them (507).",
        "Delete documents, or raise `limits.memory_max_bytes`.";
    SOURCE_DOCUMENTS_REFUSED = "hapax_source_documents_refused_total", Kind::Counter, None, [label::COLLECTION],
        "Documents that were not stored because their source has reached `limits.source_documents_max` (507).",
        "Delete documents of the source, or raise `limits.source_documents_max`.";
    SOURCE_RATE_REFUSED = "hapax_source_rate_refused_total", Kind::Counter, None, [],
        "Documents that were refused because their source sent too many in a second (429).",
        "Slow the source down, or raise `limits.source_documents_per_second`.";
    SOURCE_RATE_SLOWED = "hapax_source_rate_slowed_total", Kind::Counter, None, [],
        "Documents of bulk requests that had to wait because of the rate limit of their source.",
        "Slow the source down, or raise `limits.source_documents_per_second`.";
    MEMORY_MAX = "hapax_memory_max_bytes", Kind::Gauge, Some(Unit::Bytes), [],
        "`memory.max_bytes`, set or derived: the most anonymous memory of the process.",
        "If it falls, the machine or the container has less memory.";
    MEMORY_ANONYMOUS = "hapax_memory_anonymous_bytes", Kind::Gauge, Some(Unit::Bytes), [],
        "Anonymous memory of the process, in memory and in swap. It is measured five times a second.",
        "If it nears `hapax_memory_max_bytes`, see [Memory](memory.md).";
    MEMORY_SHORT = "hapax_memory_short", Kind::Gauge, None, [],
        "1 while the process has reached `memory.max_bytes`. Documents are then not stored (507), and bodies of more \
         than 256 KiB are not read (503).",
        "Give the process more memory, or store fewer documents.";
    MEMORY_SHORT_REFUSED = "hapax_memory_short_refused_total", Kind::Counter, None, [label::KIND],
        "Documents and bodies refused because the process had reached `memory.max_bytes`: `document` (not stored) or \
         `body` (not read).",
        "Give the process more memory, or store fewer documents.";
    DATA_FREE = "hapax_data_free_bytes", Kind::Gauge, Some(Unit::Bytes), [],
        "Free space on the disk of the data directory.",
        "Make room before it reaches 0.";
    DATA_WRITABLE = "hapax_data_writable", Kind::Gauge, None, [],
        "0 while the disk refuses documents. Reads still work.",
        "See [A full disk](running.md#a-full-disk).";
    DISK_RESERVE = "hapax_disk_reserve_bytes", Kind::Gauge, Some(Unit::Bytes), [],
        "Room on the disk that is reserved for deletes (`data.reserve_bytes`). It is 0 while the reserve is in use.",
        "If it is 0, make room on the disk.";
    LOG_BYTES = "hapax_log_bytes", Kind::Gauge, Some(Unit::Bytes), [label::COLLECTION],
        "Size of the write-ahead log. It grows while a backup copies the collection.",
        "If it grows while no backup runs, read the log.";
    }
    "safety" => {
    COMMIT_FAILURES = "hapax_commit_failures_total", Kind::Counter, None, [label::COLLECTION],
        "Transactions that the disk refused.",
        "Read the log for the error of the disk, repair the disk, and restart.";
    COLLECTION_DAMAGED = "hapax_collection_damaged", Kind::Gauge, None, [label::COLLECTION],
        "1 for a collection that is not served because its file is damaged or missing.",
        "See [Backups](backups.md#damage).";
    COLLECTION_OPEN = "hapax_collection_open", Kind::Gauge, None, [label::COLLECTION],
        "1 for a collection that is open; 0 while it is being opened, or if it is damaged or could not be opened.",
        "If it stays 0 after the start, read the log.";
    COLLECTION_INFO = "hapax_collection_info", Kind::Gauge, None,
        [label::COLLECTION, label::SPEC, label::BANDS, label::ROWS, label::VERIFY],
        "Always 1. The settings of the collection are in the labels; `spec` is the fingerprint of its spec.",
        "Nothing. To see the settings with other metrics, join this metric with them.";
    EXTRACTOR_BEHIND = "hapax_extractor_versions_behind", Kind::Gauge, None, [label::COLLECTION],
        "How many versions newer the extractor is than the one that the collection was created with.",
        "If it is not 0, old pages may not be found if they are sent again under other ids. To find them, fill a new \
         collection with the pages.";
    COLLECTION_BOOT_PROGRESS = "hapax_collection_boot_progress_ratio", Kind::Gauge, None, [label::COLLECTION],
        "Progress of opening the collection at the start, from 0 to 1.",
        "If it does not grow during the start, look at the disk.";
    BOOT_PROGRESS = "hapax_boot_progress_ratio", Kind::Gauge, None, [],
        "Progress of opening all collections at the start, weighted by bytes, from 0 to 1.",
        "If it does not grow during the start, look at the disk.";
    SCRUB_RECORDS = "hapax_scrub_records_total", Kind::Counter, None, [label::COLLECTION],
        "Stored documents that were read again in the background.",
        "If it does not grow, read the log.";
    SCRUB_ERRORS = "hapax_scrub_errors_total", Kind::Counter, None, [label::COLLECTION],
        "Damaged rows that were found when stored documents were read again, counted each time. It should stay at 0.",
        "See [Backups](backups.md#damage).";
    SCRUB_PROGRESS = "hapax_scrub_progress_ratio", Kind::Gauge, None, [label::COLLECTION],
        "How much of the collection the current pass has read; 1 between passes.",
        "Nothing.";
    SCRUB_COMPLETED = "hapax_scrub_last_complete_timestamp_seconds", Kind::Gauge, Some(Unit::Seconds),
        [label::COLLECTION],
        "When the last complete pass ended; 0 if there was none.",
        "If it is weeks old, the scrub is too slow for the collection.";
    BACKUPS = "hapax_backups_total", Kind::Counter, None, [label::RESULT],
        "Backups that ended: `done`, `cancelled`, `failed`.",
        "If `failed` grows, read the log.";
    BACKUP_LAST_SUCCESS = "hapax_backup_last_success_timestamp_seconds", Kind::Gauge, Some(Unit::Seconds), [],
        "When the latest backup in `backup.dir` was made; 0 if there is none.",
        "If it is too old, find out why backups stopped: [Backups](backups.md).";
    BACKUP_PROGRESS = "hapax_backup_progress_ratio", Kind::Gauge, None, [],
        "Progress of the latest backup, from 0 to 1; 0 if it failed or was cancelled.",
        "If it stays at one value between 0 and 1, look at the disk of the backups.";
    BACKUP_COPIED_BYTES = "hapax_backup_copied_bytes_total", Kind::Counter, None, [],
        "Bytes copied by backups.",
        "Nothing; it shows how fast a backup is.";
    }
    "refused" => {
    HTTP_REFUSED = "hapax_http_refused_total", Kind::Counter, None, [label::REASON],
        "Requests refused because of their key, host or origin: `no_key`, `wrong_key`, `expired_key` (401), \
         `forbidden` (403: the key does not allow the request), `foreign_host`, `foreign_page` (403), `address_limit` \
         (429).",
        "If `wrong_key` or `no_key` grows, look for the addresses in the log. If `expired_key` grows, make new \
         [keys](keys.md).";
    KEY_REQUESTS = "hapax_key_requests_total", Kind::Counter, None, [label::KEY],
        "Requests that were accepted. `key` is the name of the API key.",
        "If it grows for one key only, ask the key's owner, or set a [limit](rate-limits.md).";
    KEY_BYTES = "hapax_key_bytes_total", Kind::Counter, Some(Unit::Bytes), [label::KEY],
        "Bytes of request bodies, after decompression. `key` is the name of the API key.",
        "If it grows for one key only, ask the key's owner, or set a [limit](rate-limits.md).";
    KEY_DOCUMENTS = "hapax_key_documents_total", Kind::Counter, None, [label::KEY],
        "Documents and ids in requests. `key` is the name of the API key.",
        "If it grows for one key only, ask the key's owner, or set a [limit](rate-limits.md).";
    KEY_REFUSED = "hapax_key_refused_total", Kind::Counter, None, [label::KEY, label::LIMIT],
        "Requests that were answered with 429 because a [limit](rate-limits.md) of their key was reached.",
        "Ask the key's owner to send less, or raise the limit.";
    KEY_SLOWED = "hapax_key_slowed_total", Kind::Counter, None, [label::KEY],
        "How often a bulk request or a streamed text waited because of a limit of its key.",
        "Ask the key's owner to send less, or raise the limit.";
    KEYS_VALID = "hapax_keys_valid", Kind::Gauge, None, [],
        "Keys that are accepted now; 0 if the server requires no key.",
        "If it falls without a reason, look at the keys file.";
    KEYS_NEXT_EXPIRY = "hapax_keys_next_expiry_timestamp_seconds", Kind::Gauge, Some(Unit::Seconds), [],
        "The time at which the next name will have no valid key left, because all its keys have expired. NaN if there \
         is no such name.",
        "Add another key with that name before this time. The log has the name.";
    KEYS_FILE_BAD = "hapax_keys_file_bad", Kind::Gauge, None, [],
        "1 while the [keys file](keys.md) is missing or cannot be used. The last good keys stay valid.",
        "Correct the keys file. The log says what is wrong with it.";
    KEYS_FILE_ERRORS = "hapax_keys_file_errors_total", Kind::Counter, None, [],
        "Checks of the keys file that found it missing or unusable. There is one check each second.",
        "Correct the keys file. The log says what is wrong with it.";
    AUDIT_LINES = "hapax_audit_lines_total", Kind::Counter, None, [],
        "Lines written to the [audit log](audit.md).",
        "If it does not grow while documents are written, look at `hapax_audit_errors_total`.";
    AUDIT_DROPPED = "hapax_audit_dropped_total", Kind::Counter, None, [],
        "Lines of the audit log that were dropped, because too many waited for its disk. It should stay at 0.",
        "The disk of the audit log is too slow or full: see [Audit log](audit.md).";
    AUDIT_ERRORS = "hapax_audit_errors_total", Kind::Counter, None, [],
        "Failed attempts to write to the audit log. The lines wait for the next attempt.",
        "Read the log for the error, and make room on the disk of the audit log.";
    AUDIT_BYTES = "hapax_audit_bytes", Kind::Gauge, Some(Unit::Bytes), [],
        "Size of all files of the audit log; 0 if there is none.",
        "If it nears its limit, the oldest file will soon be removed: copy that file if you need it.";
    AUDIT_QUEUE_BYTES = "hapax_audit_queue_bytes", Kind::Gauge, Some(Unit::Bytes), [],
        "Bytes of the lines of the audit log that wait for the disk.",
        "If it grows, the disk of the audit log is too slow.";
    LOG_LINES_LEFT_OUT = "hapax_log_lines_left_out_total", Kind::Counter, None, [],
        "Log lines that were left out because they repeat, or because one place in the source logged too many lines.",
        "If it grows, something happens many times: read the log.";
    BUILD_INFO = "hapax_build_info", Kind::Gauge, None, [label::VERSION],
        "Always 1. The version is in the label.",
        "After an upgrade, all servers should show the same version.";
    TLS_HANDSHAKES_FAILED = "hapax_tls_handshakes_failed_total", Kind::Counter, None, [label::REASON],
        "TLS handshakes that failed: `refused_by_client` (usually because the client does not trust the certificate), \
         `plain_http` (no TLS at all), `invalid`, `closed`.",
        "If `refused_by_client` grows, clients do not trust the certificate: see [TLS](tls.md).";
    TLS_CERTIFICATE_EXPIRY = "hapax_tls_certificate_expiry_timestamp_seconds", Kind::Gauge, Some(Unit::Seconds), [],
        "When the TLS certificate in use expires. The metric exists only if there is a certificate.",
        "Renew the certificate before this time.";
    TLS_RELOAD_ERRORS = "hapax_tls_reload_errors_total", Kind::Counter, None, [],
        "Checks of the TLS files that found them unusable. There is one check each second. A single failure is not \
         counted. The last certificate stays in use.",
        "Correct the TLS files. The log says what is wrong with them.";
    }
    "redis" => {
    REDIS_ROUND_TRIPS = "hapax_redis_round_trips_total", Kind::Counter, None, [],
        "Round trips to the cluster. The requests that are sent to several nodes at once are one round trip.",
        "If it grows faster than the requests, see `hapax_redis_sent_again_total` and `hapax_redis_conflicts_total`.";
    REDIS_PIPELINES = "hapax_redis_pipelines_total", Kind::Counter, None, [label::NODE],
        "Pipelines that were sent to the node. Requests that are sent to a node at the same time share a pipeline.",
        "Compare the nodes: a node with far fewer pipelines is a replica, has fewer slots, or cannot be reached.";
    REDIS_COMMANDS = "hapax_redis_commands_total", Kind::Counter, None, [label::NODE],
        "Commands that were sent to the node, with each `WAIT` and each `SCRIPT LOAD`.",
        "If one node gets far more than the others, see whether it has more slots.";
    REDIS_PIPELINE_SECONDS = "hapax_redis_pipeline_duration_seconds", Kind::Histogram(SECONDS), Some(Unit::Seconds),
        [label::NODE, label::KIND],
        "Time from the sending of a pipeline to its last answer. `kind` is `wait` if it ends with a `WAIT` for \
         replicas, and `plain` otherwise. A pipeline that is not answered in time counts with `redis.timeout_ms`. \
         Pipelines whose connection breaks are left out.",
        "If `plain` grows, the node or the network to it is slow: see `SLOWLOG GET` of the node. If only `wait` grows, \
         its replicas are slow, or the network between the nodes.";
    REDIS_SENT_AGAIN = "hapax_redis_sent_again_total", Kind::Counter, None, [label::NODE, label::REASON],
        "Requests to the node that were sent again. `reason` is `moved` (another node has the slot), `ask` (the slot is \
         moving, and another node has the key already), `no_script` (the node did not know a script) or `not_ready` (the \
         node was not ready, or the connection broke).",
        "If `not_ready` grows, read the log, and see `CLUSTER INFO` of the node. `moved` and `ask` grow while slots \
         move, and after a failover. If they do not stop, see [the runbook](runbook.md#hapaxredisredirects).";
    REDIS_MEMORY_USED = "hapax_redis_memory_used_bytes", Kind::Gauge, Some(Unit::Bytes), [label::NODE],
        "`used_memory` of the primary. It is read each `redis.check_interval_s`.",
        "If it nears `hapax_redis_memory_max_bytes`, see [the runbook](runbook.md#hapaxredismemory).";
    REDIS_MEMORY_MAX = "hapax_redis_memory_max_bytes", Kind::Gauge, Some(Unit::Bytes), [label::NODE],
        "`maxmemory` of the primary; 0 if it has no limit.",
        "If it is 0, set `maxmemory` on each node: otherwise the system may kill a node that takes too much memory.";
    REDIS_REPLICATION_IDS_CHANGED = "hapax_redis_replication_ids_changed_total", Kind::Counter, None, [label::KIND],
        "Changes of the replication id of a primary (`master_replid`). `kind` is `failover` (another node is primary), \
         `restart` (the node has restarted) or `other` (the same process has a new id: it had no replica for \
         `repl-backlog-ttl`, or it was a replica meanwhile).",
        "The log names the node. See [the runbook](runbook.md#hapaxredisprimarychanged).";
    REDIS_SHORT_ACKNOWLEDGEMENTS = "hapax_redis_short_acknowledgements_total", Kind::Counter, None, [],
        "Round trips with a write that fewer than `redis.acks` replicas had in time. The write is sent again.",
        "If it grows, a replica is missing or slow: see `INFO replication` of the primaries.";
    REDIS_UNFIT = "hapax_redis_unfit", Kind::Gauge, None, [],
        "1 while writes are refused, because the cluster does not meet the [requirements](redis.md#requirements).",
        "The log names the node, the setting and the remedy.";
    REDIS_POSTINGS_PER_GROUP = "hapax_redis_postings_per_group", Kind::Gauge, None, [label::COLLECTION],
        "Documents of the collection, divided by the number of groups of each band: the mean number of postings in a \
         hash.",
        "If it nears 400, see [the runbook](runbook.md#hapaxredisgroupslarge). If it stays below 10 after all documents \
         are stored, each document takes several times the memory: next time, create the collection with a lower \
         `redis.documents_expected`.";
    REDIS_WALKED = "hapax_redis_walked_records_total", Kind::Counter, None, [],
        "Document numbers that this server has looked at to find what killed servers have left. One server at a time walks \
         through a collection.",
        "If it grows on no server, the cluster does not answer: read the log.";
    REDIS_LEFTOVERS = "hapax_redis_leftovers_total", Kind::Counter, None, [label::KIND],
        "Records, postings and ids that the walk has settled. `kind` is `pending` (a server has not finished the insert within the lease), \
         `unsealed`, `aborted`, `deleted`, `superseded` (replaced), `expired`, `bare` (it had no document any more), or `dangling` (a posting or an id that led to no document).",
        "If `pending` grows, servers were killed, or requests to the cluster fail.";
    REDIS_CONFLICTS = "hapax_redis_conflicts_total", Kind::Counter, None, [label::KIND],
        "Conflicts with another operation, which is inserting a similar document, or one with the same id. `kind` is \
         `wait` (this operation waited), `wound` (it made the other one read its bands again) or `abort` (it aborted \
         the other one, whose server has not finished it within the lease).",
        "If `abort` grows, servers were killed, or are very slow. If `wait` grows, clients send the same documents at \
         the same time.";
    }
}

/// Every metric of hapax itself. Those named `process_*` come from a library.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    SECTIONS.iter().flat_map(|(_, metrics)| metrics.iter())
}

impl Metric {
    /// The line `# HELP`: the meaning of the metric without Markdown.
    pub fn help(&self) -> String {
        let mut help = String::with_capacity(self.meaning.len());
        let mut rest = self.meaning;
        // A link `[words](target)` is replaced by its words.
        while let Some((before, link)) = rest.split_once('[') {
            let Some((words, after)) = link.split_once("](") else { break };
            let Some((_, after)) = after.split_once(')') else { break };
            help += before;
            help += words;
            rest = after;
        }
        help += rest;
        help.replace('`', "")
    }

    /// The row of the metric in its table of docs/metrics.md.
    pub fn row(&self) -> String {
        let kind = match self.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        let labels: Vec<String> = self.labels.iter().map(|label| format!("`{label}`")).collect();
        format!("| `{}` | {kind} | {} | {} | {} |", self.name, labels.join(", "), self.meaning, self.act)
            .replace("|  |", "| |")
    }
}

/// Describes every metric to the installed recorder.
pub fn describe_all() {
    for metric in all() {
        let (name, unit, help) = (metric.name, metric.unit.unwrap_or(Unit::Count), metric.help());
        match metric.kind {
            Kind::Counter => {
                metrics::describe_counter!(name, unit, help);
                // A counter is present from the start, with the value 0, so that an alert on its rate notices the first
                // event.
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
        for metric in all() {
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
            assert!(metric.meaning.ends_with('.') && metric.act.ends_with('.'), "{}", metric.name);
            assert!(!metric.help().contains(['`', '[']), "{}", metric.name);
        }
    }

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<_> = all().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all().count());
    }

    #[test]
    fn buckets_ascend() {
        for metric in all() {
            if let Kind::Histogram(buckets) = metric.kind {
                assert!(buckets.is_sorted_by(|a, b| a < b), "{}", metric.name);
            }
        }
    }
}
