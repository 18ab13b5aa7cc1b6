//! Looks at the cluster again and again while the server runs. While the cluster is not fit, writes are refused.

use std::sync::Arc;

use parking_lot::Mutex;

use super::cluster::Cluster;
use super::fitness::Look;
use super::primaries::Primaries;
use crate::telemetry::names::{self, label, value};
use crate::verdicts::{CollectionError, RedisSettings, Result};

/// Lets writes through, unless the cluster was not fit when it was looked at last.
#[derive(Debug, Default)]
pub(super) struct Gate {
    problem: Mutex<Option<String>>,
}

impl Gate {
    /// Returns an error while writes are refused.
    pub(super) fn check(&self) -> Result<()> {
        match &*self.problem.lock() {
            None => Ok(()),
            Some(problem) => {
                let detail = format!("{problem}; writes are refused until this is corrected");
                Err(CollectionError::StoreUnavailable { detail, uncertain: false })
            }
        }
    }

    /// Opens or closes. The log says so once. `found` is a problem, and `is_silent` says that a node did not answer.
    fn note(&self, found: Option<String>, is_silent: bool) {
        if found.is_none() && is_silent {
            // The node that did not answer may be the one that was not fit.
            return;
        }
        let mut problem = self.problem.lock();
        match &found {
            Some(found) if problem.as_ref() != Some(found) => {
                tracing::error!(problem = found, "the Redis cluster is not fit, so writes are refused");
            }
            None if problem.is_some() => tracing::info!("the Redis cluster is fit again, so writes are accepted"),
            _ => {}
        }
        metrics::gauge!(names::REDIS_UNFIT).set(f64::from(u8::from(found.is_some())));
        *problem = found;
    }
}

/// Looks at all primaries after each `redis.check_interval_s`. Never ends. `primaries` are those of the start.
pub(super) async fn watch(cluster: Cluster, settings: RedisSettings, gate: Arc<Gate>, mut primaries: Primaries) {
    metrics::gauge!(names::REDIS_UNFIT).set(0.0);
    // They exist from the start, so that an alert on their rate notices the first event.
    for kind in [value::CONFLICT_WAIT, value::CONFLICT_WOUND, value::CONFLICT_ABORT] {
        metrics::counter!(names::REDIS_CONFLICTS, label::KIND => kind).increment(0);
    }
    loop {
        tokio::time::sleep(settings.check_interval).await;
        let look = Look::at(cluster.primaries(), &cluster, &settings).await;
        primaries.note(look.infos(), look.silent().is_none());
        // A primary may have become a replica, and a node may have left the cluster, without a request that notices it.
        cluster.look_for_changes();
        gate.note(look.problem().cloned(), look.silent().is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::LogLines;

    #[test]
    fn each_change_is_logged_once_and_a_silent_node_changes_nothing() {
        let lines = LogLines::default();
        let made = lines.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || made.clone()).finish();
        let _subscribed = tracing::subscriber::set_default(subscriber);

        let gate = Gate::default();
        for (found, is_silent, is_open) in [
            (None, false, true),
            (None, true, true),
            (Some("eviction"), false, false),
            (Some("eviction"), true, false),
            (None, true, false),
            (None, false, true),
            (None, false, true),
        ] {
            gate.note(found.map(str::to_owned), is_silent);
            assert_eq!(gate.check().is_ok(), is_open);
        }
        let text = lines.text();
        let counts = ["is not fit", "fit again"].map(|words| text.matches(words).count());
        assert_eq!(counts, [1, 1], "{text}");
    }
}
