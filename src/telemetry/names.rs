//! Every metric's name. Labels never carry ids, texts or keys.

/// Requests answered, by `route`, `method` and `status`.
pub const HTTP_REQUESTS_TOTAL: &str = "hapax_http_requests_total";
/// Time from a request's head to the end of its answer, by `route` and `method`.
pub const HTTP_REQUEST_DURATION_SECONDS: &str = "hapax_http_request_duration_seconds";
/// Requests being worked on, bulk streams included.
pub const HTTP_REQUESTS_IN_FLIGHT: &str = "hapax_http_requests_in_flight";
/// Open connections.
pub const HTTP_CONNECTIONS: &str = "hapax_http_connections";
/// Bytes of request bodies and bulk answers held in memory.
pub const HTTP_BUFFERED_BYTES: &str = "hapax_http_buffered_bytes";
/// Lines of bulk requests answered, by `kind`.
pub const HTTP_BULK_LINES_TOTAL: &str = "hapax_http_bulk_lines_total";
