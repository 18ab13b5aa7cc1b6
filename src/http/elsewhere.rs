//! Reports, in the log and in a metric, the collections that could not be asked about an inserted document. The client
//! sees status 200 all the same.

use crate::collections::Elsewhere;
use crate::telemetry::names;

/// Notes the collections that failed.
pub(super) fn not_asked(elsewhere: &Elsewhere) {
    for (collection, error) in elsewhere.failures() {
        metrics::counter!(names::HTTP_ELSEWHERE_FAILURES).increment(1);
        tracing::warn!(%collection, %error, "a collection could not be asked about an inserted document");
    }
}
