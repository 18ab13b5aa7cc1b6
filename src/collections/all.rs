//! All collections of a server, wherever they are stored. `http` and `cli` call the methods of [`Collections`]. Each
//! method is one `match` over the variants of the enum, and each variant is one way to store collections.

use std::sync::Arc;

use futures::future::{self, BoxFuture, FutureExt};
use tokio::runtime::Handle;

use super::collection::Collection;
use super::local::{DataDir, LoadPlace};
use super::opening::Opening;
use super::{BackupName, BackupStatus, CollectionError, CollectionsConfig, Description, Result, Settings};
use crate::cpu::CpuPool;
use crate::load::Loaded;
use crate::redis::RedisStore;
use crate::types::CollectionName;

/// The collections of a server. Cloning is cheap.
#[derive(Clone)]
pub enum Collections {
    /// The collections in a data directory of this machine.
    Local(Arc<DataDir>),
    /// The collections in a Redis or Valkey Cluster.
    Redis(Arc<RedisStore>),
}

impl Collections {
    /// Locks the data directory, and opens or creates `default`. Blocks the thread. The other collections are opened by
    /// [`open_rest`](Self::open_rest), or by the first request for each. Long contents are signed on `cpu`. `opening`
    /// receives the progress.
    pub fn open(config: CollectionsConfig, cpu: CpuPool, opening: Arc<Opening>) -> Result<Self> {
        match config.redis.clone() {
            None => DataDir::open(config, cpu, opening).map(|local| Self::Local(Arc::new(local))),
            Some(settings) => {
                let runtime = Handle::try_current().map_err(|_| {
                    let detail = "the documents are in a Redis cluster (`data.store`), so there are none in the data \
                                  directory; ask a running server with --server";
                    CollectionError::Store(detail.into())
                })?;
                let opened = runtime.block_on(RedisStore::open(config, settings, cpu));
                opened.map(|redis| Self::Redis(Arc::new(redis)))
            }
        }
    }

    /// Opens every collection that is not open yet. A collection that is damaged, or cannot be opened for another
    /// reason, is skipped, and the log says which collection it is and why. Until the future is done, a collection that
    /// is not open yet refuses requests with [`CollectionError::Opening`].
    pub fn open_rest(&self) -> BoxFuture<'static, ()> {
        match self {
            Self::Local(local) => local.registry().open_rest().boxed(),
            Self::Redis(_) => future::ready(()).boxed(),
        }
    }

    /// Returns a collection, and opens it if it is not open yet.
    pub async fn get(&self, name: &CollectionName) -> Result<Collection> {
        match self {
            Self::Local(local) => local.registry().get(name).await.map(Collection::Local),
            Self::Redis(redis) => redis.get(name).await.map(Collection::Redis),
        }
    }

    /// Returns the collections that are open.
    pub fn open_ones(&self) -> Vec<Collection> {
        match self {
            Self::Local(local) => local.registry().open_ones().into_iter().map(Collection::Local).collect(),
            Self::Redis(redis) => redis.open_ones().into_iter().map(Collection::Redis).collect(),
        }
    }

    /// Creates a collection. False: it already exists with equal settings.
    pub async fn create(&self, name: CollectionName, settings: Settings) -> Result<(Collection, bool)> {
        match self {
            Self::Local(local) => local
                .registry()
                .create(name, settings)
                .await
                .map(|(collection, made)| (Collection::Local(collection), made)),
            Self::Redis(redis) => {
                redis.create(name, settings).await.map(|(collection, made)| (Collection::Redis(collection), made))
            }
        }
    }

    /// Begins to load a new collection, if no other load is running. Write the bytes of the file of signatures to the
    /// file of the returned place, and then pass the place to [`load`](Self::load).
    pub async fn begin_load(&self, name: CollectionName) -> Result<LoadPlace> {
        match self {
            Self::Local(local) => local.registry().begin_load(name).await,
            Self::Redis(_) => Err(CollectionError::NotInThisStore { what: "loads" }),
        }
    }

    /// Makes a new collection from a file of precomputed signatures, whole or not at all. If `stop` returns true while
    /// rows are read, the load is cancelled.
    pub async fn load(
        &self,
        place: LoadPlace,
        stop: impl Fn() -> bool + Send + 'static,
    ) -> Result<(Collection, Loaded)> {
        match self {
            Self::Local(local) => {
                let (collection, loaded) = local.registry().load(place, stop).await?;
                Ok((Collection::Local(collection), loaded))
            }
            Self::Redis(_) => Err(CollectionError::NotInThisStore { what: "loads" }),
        }
    }

    /// Returns the descriptions of all collections, open or not, by name; and the damaged collections with their
    /// errors.
    pub async fn list(&self) -> Result<(Vec<Description>, Vec<(CollectionName, CollectionError)>)> {
        match self {
            Self::Local(local) => local.registry().list().await,
            Self::Redis(redis) => Ok((redis.list().await?, Vec::new())),
        }
    }

    /// Drops a collection and all its documents.
    pub async fn remove(&self, name: &CollectionName) -> Result<()> {
        match self {
            Self::Local(local) => local.registry().remove(name).await,
            Self::Redis(redis) => redis.remove(name).await,
        }
    }

    /// Returns the collections that are known to be damaged, with their errors.
    pub fn damaged(&self) -> Vec<(CollectionName, CollectionError)> {
        match self {
            Self::Local(local) => local.registry().faults().damaged(),
            Self::Redis(_) => Vec::new(),
        }
    }

    /// Returns the collections that could not be opened for another reason than damage, with their errors.
    pub fn unopened(&self) -> Vec<(CollectionName, CollectionError)> {
        match self {
            Self::Local(local) => local.registry().faults().unopened(),
            Self::Redis(_) => Vec::new(),
        }
    }

    /// Returns the collections whose files vanished while no server was running.
    pub fn missing(&self) -> Vec<CollectionName> {
        match self {
            Self::Local(local) => local.registry().missing(),
            Self::Redis(_) => Vec::new(),
        }
    }

    /// Whether writes are accepted, as far as that is known.
    pub fn is_writable(&self) -> bool {
        match self {
            Self::Local(local) => local.registry().is_writable(),
            Self::Redis(_) => true,
        }
    }

    /// Returns the number of documents in the open collections.
    pub fn documents(&self) -> u64 {
        match self {
            Self::Local(local) => local.registry().documents(),
            Self::Redis(redis) => redis.documents(),
        }
    }

    /// Sets the gauges of every open collection.
    pub fn observe(&self) {
        match self {
            Self::Local(local) => local.observe(),
            Self::Redis(redis) => redis.observe(),
        }
    }

    /// Begins a backup. [`backup_status`](Self::backup_status) returns its state. An error means that no backup was
    /// begun.
    ///
    /// With `keep`, the time is added to the name of the backup, and the oldest backups of the series are removed when
    /// the new one is finished.
    pub async fn start_backup(&self, name: BackupName, keep: Option<u32>) -> Result<BackupStatus> {
        match self {
            Self::Local(local) => local.backups().start(name, keep).await,
            Self::Redis(_) => Err(CollectionError::NotInThisStore { what: "backups" }),
        }
    }

    /// Returns the state of the latest backup of this process.
    pub fn backup_status(&self) -> Option<BackupStatus> {
        match self {
            Self::Local(local) => local.backups().status(),
            Self::Redis(_) => None,
        }
    }

    /// Cancels the running backup. False: no backup is running.
    pub fn cancel_backup(&self) -> bool {
        match self {
            Self::Local(local) => local.backups().cancel(),
            Self::Redis(_) => false,
        }
    }

    /// Waits until all accepted writes are durable. Blocks the thread. No write is accepted afterwards.
    pub fn close(&self) {
        match self {
            Self::Local(local) => local.close(),
            // Every write was acknowledged before its answer.
            Self::Redis(_) => {}
        }
    }
}
