//! Reports, in the log and in a metric, the collections that could not be asked about an inserted document. The client
//! still gets status 200.

use crate::collections::Elsewhere;
use crate::telemetry::names;

/// Reports the collections that failed.
pub(super) fn not_asked(elsewhere: &Elsewhere) {
    for (collection, error) in elsewhere.failures() {
        metrics::counter!(names::HTTP_ELSEWHERE_FAILURES).increment(1);
        tracing::warn!(%collection, %error, "a collection could not be asked about an inserted document");
    }
}
