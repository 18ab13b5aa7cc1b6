//! The collections in a Redis or Valkey Cluster, for commands that work beside the servers.

use super::{CollectionError, CollectionsConfig, Result};
use crate::cpu::CpuPool;

pub use crate::redis::{KeptTwice, Reconciled, RedisStore, Told};

/// Connects to the cluster of this configuration.
pub async fn attach(config: CollectionsConfig, cpu: CpuPool) -> Result<RedisStore> {
    let settings = config.redis.clone().ok_or_else(|| {
        let detail = "the configuration names no cluster; set data.store = \"redis\" and [redis]";
        CollectionError::Store(detail.into())
    })?;
    RedisStore::attach(config, settings, cpu).await
}
