//! All collections of a server, whatever keeps them: the verbs that `http` and `cli` know.
//! Each verb is one match over the kinds.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};

use super::collection::Collection;
use super::local::DataDir;
use super::opening::Opening;
use super::{BackupName, BackupStatus, CollectionError, CollectionsConfig, Description, Result, Settings};
use crate::cpu::CpuPool;
use crate::types::CollectionName;

/// The collections of a server. Cheap to clone.
#[derive(Clone)]
pub enum Collections {
    /// Those of a data directory of this machine.
    Local(Arc<DataDir>),
}

impl Collections {
    /// Takes the data directory, and makes or opens `default`; blocking. The others are opened by
    /// [`open_rest`](Self::open_rest), or when they are asked for. Long contents will be signed on `cpu`; `opening` is
    /// told how far it is.
    pub fn open(config: CollectionsConfig, cpu: CpuPool, opening: Arc<Opening>) -> Result<Self> {
        DataDir::open(config, cpu, opening).map(|local| Self::Local(Arc::new(local)))
    }

    /// Opens every collection that is not open yet. What is damaged, or fails for another reason, is passed over: the log
    /// says which and why. From the call on, until the future is done, a collection that is not open yet refuses requests
    /// with [`CollectionError::Opening`].
    pub fn open_rest(&self) -> BoxFuture<'static, ()> {
        match self {
            Self::Local(local) => local.registry().open_rest().boxed(),
        }
    }

    /// A collection, opened if it is not yet.
    pub async fn get(&self, name: &CollectionName) -> Result<Collection> {
        match self {
            Self::Local(local) => local.registry().get(name).await.map(Collection::Local),
        }
    }

    /// Makes a collection. False: it was there with equal settings.
    pub async fn create(&self, name: CollectionName, settings: Settings) -> Result<(Collection, bool)> {
        match self {
            Self::Local(local) => local
                .registry()
                .create(name, settings)
                .await
                .map(|(collection, made)| (Collection::Local(collection), made)),
        }
    }

    /// Every collection by name, open or not, except those that are damaged; then those, and how that shows.
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

    /// Those known not to open because what is stored of them is damaged, and how that shows.
    pub fn damaged(&self) -> Vec<(CollectionName, CollectionError)> {
        match self {
            Self::Local(local) => local.registry().faults().damaged(),
        }
    }

    /// Those that could not be opened for another reason than damage, and why.
    pub fn unopened(&self) -> Vec<(CollectionName, CollectionError)> {
        match self {
            Self::Local(local) => local.registry().faults().unopened(),
        }
    }

    /// Those that vanished while no server ran.
    pub fn missing(&self) -> Vec<CollectionName> {
        match self {
            Self::Local(local) => local.registry().missing(),
        }
    }

    /// Whether writes are taken, as far as that is known.
    pub fn is_writable(&self) -> bool {
        match self {
            Self::Local(local) => local.registry().is_writable(),
        }
    }

    /// Documents in the collections that are open.
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

    /// Begins a backup; what becomes of it is asked for with [`backup_status`](Self::backup_status). An error means that
    /// nothing was begun.
    ///
    /// With `keep` its folder has a name of its own, and when it is whole the oldest of the series go.
    pub async fn start_backup(&self, name: BackupName, keep: Option<u32>) -> Result<BackupStatus> {
        match self {
            Self::Local(local) => local.backups().start(name, keep).await,
        }
    }

    /// The latest backup of this process.
    pub fn backup_status(&self) -> Option<BackupStatus> {
        match self {
            Self::Local(local) => local.backups().status(),
        }
    }

    /// Calls off the backup under way; false: there is none.
    pub fn cancel_backup(&self) -> bool {
        match self {
            Self::Local(local) => local.backups().cancel(),
        }
    }

    /// Waits until all that was taken is durable; blocking. No write is taken after.
    pub fn close(&self) {
        match self {
            Self::Local(local) => local.close(),
        }
    }
}
