//! Removes the data of dropped collections from the cluster, slowly, so that requests are not slowed down. Each server
//! does it: to remove a key twice does no harm, and if a server is killed, the others go on.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use redis::Value;

use super::call::call_script;
use super::catalogue::{Catalogue, Listed};
use super::cluster::{Call, Cluster, Request, Script};
use super::failure::Failure;
use super::keys::Keys;
use crate::verdicts::{CollectionError, Result};

/// The time between two looks for dropped collections.
const LOOK: Duration = Duration::from_secs(2);
/// How long after a drop the data is removed. Until then, all servers have read that it was dropped, and the insertions
/// that had begun have ended.
const GRACE: Duration = Duration::from_secs(10);
/// If a copy has not renewed its note for so long, it is dead, and its data is removed. It gives up sooner.
const COPY_DEAD: Duration = Duration::from_secs(30);
/// How many keys are removed at a time, and the pause after them.
const BATCH: usize = 256;
const PAUSE: Duration = Duration::from_millis(10);

/// Reads a counter, from a node whose replicas are up to date. It writes, so that a `WAIT` behind it counts.
static COUNTED: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua flags=allow-oom
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
return redis.call('INCRBY', KEYS[1], 0)",
    )
});

/// Removes the data of all collections that are dropped, until the task is aborted.
pub(super) async fn remove_dropped(cluster: Cluster, catalogue: Catalogue, prefix: String) {
    let remover = Remover { cluster, catalogue, prefix };
    // Since when this server knows of each.
    let mut known = HashMap::new();
    let mut copies = Copies::default();
    loop {
        tokio::time::sleep(LOOK).await;
        let Ok((dropped, noted)) = remover.catalogue.notes().await else { continue };
        copies.look(&remover.catalogue, noted).await;
        known.retain(|field, _| dropped.contains_key(field));
        for (field, text) in dropped {
            let since = known.entry(field.clone()).or_insert_with(Instant::now);
            if since.elapsed() < GRACE {
                continue;
            }
            // If it fails, it is tried again later.
            *since = Instant::now();
            match remover.remove(&field, &text).await {
                Ok(()) => tracing::info!(collection = field, "removed the data of a dropped collection"),
                Err(error) => tracing::warn!(
                    collection = field,
                    error = %error,
                    "the data of a dropped collection cannot be removed yet; trying again"
                ),
            }
        }
    }
}

/// The notes of copies, each with its value and since when it has this value.
#[derive(Default)]
struct Copies(HashMap<String, (String, Instant)>);

impl Copies {
    /// Notes that copies which have not renewed their notes are dropped.
    async fn look(&mut self, catalogue: &Catalogue, noted: HashMap<String, String>) {
        self.0.retain(|field, (text, _)| noted.get(field) == Some(text));
        for (field, text) in noted {
            let (_, since) = self.0.entry(field.clone()).or_insert_with(|| (text.clone(), Instant::now()));
            // If this fails, it is tried again at the next look.
            if since.elapsed() >= COPY_DEAD && matches!(catalogue.drop_copy(&field, &text).await, Ok(true)) {
                tracing::warn!(note = %field, "a copy has ended without a collection; its data is removed");
            }
        }
    }
}

struct Remover {
    cluster: Cluster,
    catalogue: Catalogue,
    prefix: String,
}

impl Remover {
    /// Removes all keys of a collection, and then the note that it was dropped. Does nothing if another server has
    /// removed the note.
    async fn remove(&self, field: &str, text: &str) -> Result<()> {
        let Listed { number, bands, documents_expected, .. } =
            serde_json::from_str(text).map_err(|error| CollectionError::Store(error.to_string()))?;
        // A failover may undo a drop of which replicas do not know yet.
        if !self.catalogue.confirm(field, text).await? {
            return Ok(());
        }
        let keys = Keys::new(&self.prefix, number, documents_expected);
        self.unlink(keys.all_groups(bands)).await?;
        let counted = call_script(&self.cluster, &keys.counter(), &COUNTED, &[]).await?;
        let count = if let Value::Int(count) = counted { u64::try_from(count).unwrap_or(0) } else { 0 };
        self.unlink(keys.records(count)).await?;
        self.unlink([keys.counter(), keys.documents(), keys.walker()].into_iter()).await?;
        self.catalogue.forget(field).await
    }

    /// Removes keys. Fails if too few replicas have removed them.
    async fn unlink(&self, mut keys: impl Iterator<Item = Vec<u8>>) -> Result<()> {
        let acks = self.cluster.acks();
        loop {
            let batch = keys.by_ref().take(BATCH).map(|key| {
                let unlink = redis::cmd("UNLINK").arg(&key).to_owned();
                Request { slot: Cluster::slot_of(&key), calls: vec![Call::plain(unlink)], waits: acks > 0 }
            });
            let batch: Vec<_> = batch.collect();
            if batch.is_empty() {
                return Ok(());
            }
            for response in self.cluster.run(batch).await {
                let response = response.map_err(|error| Failure::from(error).told(false))?;
                if response.acknowledged.is_some_and(|replicas| replicas < acks) {
                    return Err(Failure::TooFewReplicas { acks }.told(false));
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
