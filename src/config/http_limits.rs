//! The limits of HTTP, all that section `[server]` has of them. Their defaults are in `config/default.toml` alone.
//! Must never know: how a limit is kept.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::error::ConfigError;
use super::ranges::{count, impossible, milliseconds, within};
use super::raw::RawServer;

/// Bounds of the HTTP floor. Passing a size is 413, passing a number of things at once is 503.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Longest body, after decompression; bulk and streamed texts have their own.
    pub body_bytes_max: usize,
    /// Bytes of a body that earn its client a second to send more.
    pub body_bytes_per_second_min: u64,
    /// Longest streamed text, after decompression.
    pub text_body_bytes_max: u64,
    /// Bytes of a streamed text that earn its client a second to send more.
    pub text_bytes_per_second_min: u64,
    /// Longest bulk body, after decompression; `?duplex=true` lifts it.
    pub bulk_body_bytes_max: u64,
    /// Most lines of a bulk request, blank ones included; `?duplex=true` lifts it.
    pub bulk_lines_max: u64,
    /// Longest line; longer ones get an error line of their own.
    pub bulk_line_bytes_max: usize,
    /// Answers a bulk request may hold back before it stops reading.
    pub bulk_answer_buffer_bytes_max: usize,
    /// How long full answers may stand unread before the stream is ended.
    pub bulk_stall_timeout: Duration,
    /// How long a bulk request may send nothing before the stream is ended.
    pub bulk_idle_timeout: Duration,
    /// Decisions of one bulk request that may wait for the disk.
    pub bulk_open_max: usize,
    /// Bulk requests at once.
    pub bulk_requests_max: usize,
    /// Streamed texts at once.
    pub text_streams_max: usize,
    /// Documents or ids of one batch request.
    pub batch_documents_max: usize,
    /// Requests being worked on at once, probes and metrics apart. One whose body is still arriving is not yet, one whose
    /// answer is being sent no longer is; bulk requests and streamed texts are for each piece of work.
    pub requests_concurrent_max: usize,
    /// Bytes of request bodies in memory, over all requests.
    pub bodies_bytes_max: usize,
    /// Longest answer, in bytes of JSON; of bulk, longest line.
    pub answer_bytes_max: usize,
    /// Bytes of answers in memory, over all requests: half of it for those of bulk requests.
    pub answers_bytes_max: usize,
    /// From the connection's opening, or the head's first byte, to the end of a request's head.
    pub header_timeout: Duration,
    /// How long a connection may stay open without a request.
    pub keep_alive_timeout: Duration,
    /// The longest that a client may keep us waiting for more of a body at a stretch, and again for the answer to be
    /// made. Bulk is free of it.
    pub request_timeout: Duration,
    /// Bytes of an answer that earn its client a second to take more.
    pub answer_bytes_per_second_min: u64,
    /// How long a client may leave an answer untaken before the answer is given up; on HTTP/1.1 its connection is closed.
    pub write_timeout: Duration,
    /// For open requests to end after a signal.
    pub drain_timeout: Duration,
    /// Connections at once; when all are taken, the one without a request for longest makes room for the next.
    pub connections_max: usize,
}

impl HttpLimits {
    /// Checks every limit, and those that depend on each other.
    pub(super) fn check(raw: &RawServer) -> Result<Self, ConfigError> {
        const KIB: u64 = 1 << 10;
        const MIB: u64 = 1 << 20;
        const GIB: u64 = 1 << 30;
        const TIB: u64 = 1 << 40;
        const TIMES: RangeInclusive<u64> = 100..=3_600_000;
        // The value of a key, checked by the function of that name.
        macro_rules! limit {
            ($check:ident $key:ident, $range:expr) => {
                $check(concat!("server.", stringify!($key)), raw.$key, $range)?
            };
        }
        let limits = Self {
            connections_max: limit!(count connections_max, 1..=1_000_000),
            requests_concurrent_max: limit!(count requests_concurrent_max, 1..=100_000),
            bodies_bytes_max: limit!(count bodies_bytes_max, MIB..=TIB),
            body_bytes_max: limit!(count body_bytes_max, KIB..=GIB),
            body_bytes_per_second_min: limit!(within body_bytes_per_second_min, 1..=GIB),
            text_body_bytes_max: limit!(within text_body_bytes_max, KIB..=TIB),
            text_bytes_per_second_min: limit!(within text_bytes_per_second_min, 1..=GIB),
            text_streams_max: limit!(count text_streams_max, 1..=100_000),
            batch_documents_max: limit!(count batch_documents_max, 1..=100_000),
            bulk_requests_max: limit!(count bulk_requests_max, 1..=100_000),
            bulk_body_bytes_max: limit!(within bulk_body_bytes_max, KIB..=TIB),
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
        // Itself and its text; a line that takes all the room would wait for more of it.
        let largest = self.body_bytes_max.max(self.bulk_line_bytes_max);
        if self.bodies_bytes_max < 2 * largest {
            let allowed = format!(
                "must be at least twice server.body_bytes_max and twice server.bulk_line_bytes_max, the larger of which is {largest}"
            );
            return Err(impossible("server.bodies_bytes_max", self.bodies_bytes_max, allowed));
        }
        Ok(())
    }
}
