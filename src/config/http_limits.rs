//! The HTTP limits of the section `[server]`. Their defaults are only in `config/default.toml`. This file must never
//! know how a limit is enforced.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::error::ConfigError;
use super::ranges::{count, impossible, milliseconds, optional, within};
use super::raw::{RawLimits, RawServer};

/// The limits of the HTTP layer. A request over a size limit is answered with 413. A request over a limit on
/// concurrency is answered with 503.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// The longest body, after decompression. Bulk requests and streamed texts have their own limits.
    pub body_bytes_max: usize,
    /// Each time a client sends this many bytes, it gets one more second to send its body.
    pub body_bytes_per_second_min: u64,
    /// The longest streamed text, after decompression.
    pub text_body_bytes_max: u64,
    /// Each time a client sends this many bytes, it gets one more second to send its streamed text.
    pub text_bytes_per_second_min: u64,
    /// The longest body of a bulk request, after decompression. `?duplex=true` removes this limit.
    pub bulk_body_bytes_max: u64,
    /// The longest file of signatures that is loaded.
    pub load_body_bytes_max: u64,
    /// The largest number of lines of a bulk request, including blank ones. `?duplex=true` removes this limit.
    pub bulk_lines_max: u64,
    /// The longest line of a bulk request. The answer to a longer line is an error line.
    pub bulk_line_bytes_max: usize,
    /// The number of bytes of unsent answers that a bulk request may keep in memory before it stops reading its body.
    pub bulk_answer_buffer_bytes_max: usize,
    /// How long unsent answers may fill this memory before the stream is ended.
    pub bulk_stall_timeout: Duration,
    /// How long a bulk request may send nothing before the stream is ended.
    pub bulk_idle_timeout: Duration,
    /// The number of decisions of one bulk request that may wait for the disk at once.
    pub bulk_open_max: usize,
    /// The largest number of bulk requests at once.
    pub bulk_requests_max: usize,
    /// The largest number of streamed texts at once.
    pub text_streams_max: usize,
    /// The largest number of documents or ids in one batch request.
    pub batch_documents_max: usize,
    /// The largest number of requests that are worked on at once, except probes and metrics. A request counts from the
    /// end of its body to the beginning of its answer. Each piece of work of a bulk request or a streamed text counts
    /// like a request.
    pub requests_concurrent_max: usize,
    /// The largest number of requests about the server or whole collections that are worked on at once.
    pub admin_requests_max: usize,
    /// How long a request may wait for a thread while the server is overloaded. Zero: no limit.
    pub queue_delay_max: Duration,
    /// How long a batch may have to wait for its turn. Zero: no limit.
    pub batch_delay_max: Duration,
    /// The maximum number of bytes that the bodies of all requests together take in memory.
    pub bodies_bytes_max: usize,
    /// The longest answer, in bytes of JSON. For a bulk answer, this is the longest line.
    pub answer_bytes_max: usize,
    /// The maximum number of bytes that the answers to all requests together take in memory. Bulk requests get half of
    /// it.
    pub answers_bytes_max: usize,
    /// The time limit for the head of a request, from the opening of the connection or from the first byte of the head.
    pub header_timeout: Duration,
    /// How long a connection may stay open without a request.
    pub keep_alive_timeout: Duration,
    /// How long the server waits for the next bytes of a body, and then for the answer to be made. This limit does not
    /// apply to bulk requests.
    pub request_timeout: Duration,
    /// Each time a client reads this many bytes of an answer, it gets one more second to read the rest.
    pub answer_bytes_per_second_min: u64,
    /// How long a client may read nothing of its answer before the answer is dropped. On HTTP/1.1 its connection is
    /// then closed.
    pub write_timeout: Duration,
    /// The time that open requests have to end after a signal.
    pub drain_timeout: Duration,
    /// How long a connection without a request stays open after a signal.
    pub drain_idle: Duration,
    /// How long a request waits for its collection to be opened at the start.
    pub start_wait: Duration,
    /// The largest number of documents with the same label `source` that a collection takes in a second.
    pub source_documents_per_second: Option<u64>,
    /// The largest number of connections at once. If all are in use, the connection that has been idle the longest is
    /// closed for a new one.
    pub connections_max: usize,
}

impl HttpLimits {
    /// Checks every limit, and the limits that depend on each other.
    pub(super) fn check(raw: &RawServer, of_all: &RawLimits) -> Result<Self, ConfigError> {
        const KIB: u64 = 1 << 10;
        const MIB: u64 = 1 << 20;
        const GIB: u64 = 1 << 30;
        const TIB: u64 = 1 << 40;
        const TIMES: RangeInclusive<u64> = 100..=3_600_000;
        // Checks the value of a key with the function `$check`.
        macro_rules! limit {
            ($check:ident $key:ident, $range:expr) => {
                $check(concat!("server.", stringify!($key)), raw.$key, $range)?
            };
        }
        let of_source = ("limits.source_documents_per_second", of_all.source_documents_per_second);
        let limits = Self {
            source_documents_per_second: optional(of_source.0, of_source.1, 1..=1_000_000_000)?,
            connections_max: limit!(count connections_max, 1..=1_000_000),
            requests_concurrent_max: limit!(count requests_concurrent_max, 1..=100_000),
            admin_requests_max: limit!(count admin_requests_max, 1..=100_000),
            queue_delay_max: limit!(milliseconds queue_delay_max_ms, 0..=60_000),
            batch_delay_max: limit!(milliseconds batch_delay_max_ms, 0..=60_000),
            bodies_bytes_max: limit!(count bodies_bytes_max, MIB..=TIB),
            body_bytes_max: limit!(count body_bytes_max, KIB..=GIB),
            body_bytes_per_second_min: limit!(within body_bytes_per_second_min, 1..=GIB),
            text_body_bytes_max: limit!(within text_body_bytes_max, KIB..=TIB),
            text_bytes_per_second_min: limit!(within text_bytes_per_second_min, 1..=GIB),
            text_streams_max: limit!(count text_streams_max, 1..=100_000),
            batch_documents_max: limit!(count batch_documents_max, 1..=100_000),
            bulk_requests_max: limit!(count bulk_requests_max, 1..=100_000),
            bulk_body_bytes_max: limit!(within bulk_body_bytes_max, KIB..=TIB),
            load_body_bytes_max: limit!(within load_body_bytes_max, KIB..=1024 * TIB),
            bulk_lines_max: limit!(within bulk_lines_max, 1..=100_000_000),
            bulk_line_bytes_max: limit!(count bulk_line_bytes_max, KIB..=GIB),
            bulk_open_max: limit!(count bulk_open_max, 1..=100_000),
            bulk_answer_buffer_bytes_max: limit!(count bulk_answer_buffer_bytes_max, 64 * KIB..=GIB),
            bulk_stall_timeout: limit!(milliseconds bulk_stall_timeout_ms, TIMES),
            bulk_idle_timeout: limit!(milliseconds bulk_idle_timeout_ms, TIMES),
            answer_bytes_max: limit!(count answer_bytes_max, 64 * KIB..=GIB),
            answer_bytes_per_second_min: limit!(within answer_bytes_per_second_min, 1..=GIB),
            answers_bytes_max: limit!(count answers_bytes_max, MIB..=TIB),
            header_timeout: limit!(milliseconds header_timeout_ms, TIMES),
            keep_alive_timeout: limit!(milliseconds keep_alive_timeout_ms, TIMES),
            request_timeout: limit!(milliseconds request_timeout_ms, TIMES),
            write_timeout: limit!(milliseconds write_timeout_ms, TIMES),
            drain_timeout: limit!(milliseconds drain_timeout_ms, 0..=3_600_000),
            drain_idle: limit!(milliseconds drain_idle_ms, 0..=3_600_000),
            start_wait: limit!(milliseconds start_wait_ms, 0..=3_600_000),
        };
        limits.fit_together()?;
        Ok(limits)
    }

    fn fit_together(&self) -> Result<(), ConfigError> {
        if self.bulk_line_bytes_max as u64 > self.bulk_body_bytes_max {
            let allowed = format!("must be at most server.bulk_body_bytes_max, which is {}", self.bulk_body_bytes_max);
            return Err(impossible("server.bulk_line_bytes_max", self.bulk_line_bytes_max, allowed));
        }
        if self.answers_bytes_max / 4 < self.answer_bytes_max {
            let allowed =
                format!("must be at least four times server.answer_bytes_max, which is {}", self.answer_bytes_max);
            return Err(impossible("server.answers_bytes_max", self.answers_bytes_max, allowed));
        }
        // There must be room for a request and for its text. A line that takes all the room would wait for more room
        // forever.
        let largest = self.body_bytes_max.max(self.bulk_line_bytes_max);
        if self.bodies_bytes_max < 2 * largest {
            let allowed = format!(
                "must be at least twice server.body_bytes_max and twice server.bulk_line_bytes_max, the larger of \
                 which is {largest}"
            );
            return Err(impossible("server.bodies_bytes_max", self.bodies_bytes_max, allowed));
        }
        Ok(())
    }
}
