//! All collections of a server, wherever they are stored. `http` and `cli` call the methods of [`Collections`]. Each
//! method is one `match` over the variants of the enum, and each variant is one way to store collections.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};

use super::collection::Collection;
use super::local::{DataDir, LoadPlace};
use super::opening::Opening;
use super::{BackupName, BackupStatus, CollectionError, CollectionsConfig, Description, Result, Settings};
use crate::cpu::CpuPool;
use crate::load::Loaded;
use crate::types::CollectionName;

/// The collections of a server. Cloning is cheap.
#[derive(Clone)]
pub enum Collections {
    /// The collections in a data directory of this machine.
    Local(Arc<DataDir>),
}

impl Collections {
    /// Locks the data directory, and opens or creates `default`. Blocks the thread. The other collections are opened by
    /// [`open_rest`](Self::open_rest), or by the first request for each. Long contents are signed on `cpu`. `opening`
    /// receives the progress.
    pub fn open(config: CollectionsConfig, cpu: CpuPool, opening: Arc<Opening>) -> Result<Self> {
        DataDir::open(config, cpu, opening).map(|local| Self::Local(Arc::new(local)))
    }

    /// Opens every collection that is not open yet. A collection that is damaged, or cannot be opened for another
    /// reason, is skipped, and the log says which collection it is and why. Until the future is done, a collection that
    /// is not open yet refuses requests with [`CollectionError::Opening`].
    pub fn open_rest(&self) -> BoxFuture<'static, ()> {
        match self {
            Self::Local(local) => local.registry().open_rest().boxed(),
        }
    }

    /// Returns a collection, and opens it if it is not open yet.
    pub async fn get(&self, name: &CollectionName) -> Result<Collection> {
        match self {
            Self::Local(local) => local.registry().get(name).await.map(Collection::Local),
        }
    }

    /// Returns the collections that are open.
    pub fn open_ones(&self) -> Vec<Collection> {
        match self {
            Self::Local(local) => local.registry().open_ones().into_iter().map(Collection::Local).collect(),
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
        }
    }

    /// Begins to load a new collection, if no other load is running. Write the bytes of the file of signatures to the
    /// file of the returned place, and then pass the place to [`load`](Self::load).
    pub async fn begin_load(&self, name: CollectionName) -> Result<LoadPlace> {
        match self {
            Self::Local(local) => local.registry().begin_load(name).await,
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
        }
    }

    /// Returns the descriptions of all collections, open or not, by name; and the damaged collections with their
    /// errors.
    pub async fn list(&self) -> Result<(Vec<Description>, Vec<(CollectionName, CollectionError)>)> {
        match self {
            Self::Local(local) => local.registry().list().await,
        }
    }

    /// Drops a collection and all its documents.
    pub async fn remove(&self, name: &CollectionName) -> Result<()> {
        match self {
            Self::Local(local) => local.registry().remove(name).await,
        }
    }

    /// Returns the collections that are known to be damaged, with their errors.
    pub fn damaged(&self) -> Vec<(CollectionName, CollectionError)> {
        match self {
            Self::Local(local) => local.registry().faults().damaged(),
        }
    }

    /// Returns the collections that could not be opened for another reason than damage, with their errors.
    pub fn unopened(&self) -> Vec<(CollectionName, CollectionError)> {
        match self {
            Self::Local(local) => local.registry().faults().unopened(),
        }
    }

    /// Returns the collections whose files vanished while no server was running.
    pub fn missing(&self) -> Vec<CollectionName> {
        match self {
            Self::Local(local) => local.registry().missing(),
        }
    }

    /// Whether writes are accepted, as far as that is known.
    pub fn is_writable(&self) -> bool {
        match self {
            Self::Local(local) => local.registry().is_writable(),
        }
    }

    /// Returns the number of documents in the open collections.
    pub fn documents(&self) -> u64 {
        match self {
            Self::Local(local) => local.registry().documents(),
        }
    }

    /// Sets the gauges of every open collection.
    pub fn observe(&self) {
        match self {
            Self::Local(local) => local.observe(),
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
        }
    }

    /// Returns the state of the latest backup of this process.
    pub fn backup_status(&self) -> Option<BackupStatus> {
        match self {
            Self::Local(local) => local.backups().status(),
        }
    }

    /// Cancels the running backup. False: no backup is running.
    pub fn cancel_backup(&self) -> bool {
        match self {
            Self::Local(local) => local.backups().cancel(),
        }
    }

    /// Waits until all accepted writes are durable. Blocks the thread. No write is accepted afterwards.
    pub fn close(&self) {
        match self {
            Self::Local(local) => local.close(),
        }
    }
}
