//! The format of the keys in a cluster. The first server writes it. A server with another format does not start.

use super::call::call;
use super::cluster::Cluster;
use crate::verdicts::{CollectionError, Result};

/// The format of the keys and values that this version reads and writes.
const FORMAT: &str = "4";
/// This version reads what the version before has written.
const BEFORE: &str = "3";

/// Returns an error if the keys with this prefix have another format.
pub(super) async fn check_format(cluster: &Cluster, prefix: &str) -> Result<()> {
    let key = format!("{prefix}:format").into_bytes();
    let text = |value| redis::from_redis_value::<Option<String>>(value).unwrap_or_default();
    // A node that is full refuses a SET, even if it would change nothing.
    let mut found = text(call(cluster, &key, redis::cmd("GET").arg(&key).take()).await?);
    if found.is_none() {
        let set = redis::cmd("SET").arg(&key).arg(FORMAT).arg("NX").arg("GET").take();
        found = text(call(cluster, &key, set).await?);
    }
    if found.as_deref() == Some(BEFORE) {
        // Servers of the version before do not start any more: they could not read new records. A node that is full refuses
        // this. Then the next start does it.
        let set = redis::cmd("SET").arg(&key).arg(FORMAT).take();
        match call(cluster, &key, set).await {
            Ok(_) => tracing::info!(from = BEFORE, to = FORMAT, "upgraded the format of the keys in the Redis cluster"),
            Err(error) => tracing::warn!(%error, "the format of the keys in the Redis cluster is not upgraded yet"),
        }
        return Ok(());
    }
    match found {
        Some(found) if found != FORMAT => Err(CollectionError::Store(format!(
            "the keys of the Redis cluster that begin with {prefix} (redis.prefix) have format {found:?}, and this \
             version of hapax uses {FORMAT:?}; set another redis.prefix, or use the version of hapax that wrote them"
        ))),
        _ => Ok(()),
    }
}
