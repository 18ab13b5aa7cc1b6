//! The collections in a Redis or Valkey Cluster, for commands that work beside the servers.

use super::{CollectionsConfig, Description, Reconciled, RedisSettings, Result, Told};
use crate::cpu::CpuPool;
use crate::redis::RedisStore;
use crate::types::CollectionName;

/// The collections of a cluster. Nothing is done in the background.
pub struct ClusterCollections(RedisStore);

impl ClusterCollections {
    /// Connects to the cluster.
    pub async fn connect(config: CollectionsConfig, redis: RedisSettings, cpu: CpuPool) -> Result<Self> {
        RedisStore::attach(config, redis, cpu).await.map(Self)
    }

    /// Returns the descriptions of all collections, by name.
    pub async fn list(&self) -> Result<Vec<Description>> {
        self.0.list().await
    }

    /// Adds the postings and ids that the documents of a collection have lost, removes those that lead to no document, and
    /// finds documents that are stored twice. Reads no more than `rate` records a second.
    pub async fn reconcile(
        &self,
        name: &CollectionName,
        rate: u64,
        tell: impl FnMut(Told<'_>) + Send,
    ) -> Result<Reconciled> {
        self.0.reconcile(name, rate, tell).await
    }
}
