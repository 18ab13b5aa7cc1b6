//! One data directory with its collections and its backups.

use std::sync::Arc;

use super::backups::Backups;
use super::folder::Folder;
use super::known::Known;
use super::latest_backup::LatestBackup;
use super::opener::Opener;
use super::registry::Registry;
use crate::collections::opening::Opening;
use crate::cpu::CpuPool;
use crate::engine::boot::Common;
use crate::engine::disk::DataDisk;
use crate::engine::memory_budget::MemoryBudget;
use crate::engine::{Background, IdCache, PayloadBudget};
use crate::store;
use crate::types::CollectionName;
use crate::verdicts::{CollectionsConfig, Medium, Result};

/// The data directory. It must be closed before it is dropped.
pub struct DataDir {
    registry: Arc<Registry>,
    backups: Arc<Backups>,
}

impl DataDir {
    /// Locks the data directory, and opens or creates `default`. Blocks the thread. Long contents are signed on `cpu`.
    /// `opening` receives the progress.
    pub(in crate::collections) fn open(config: CollectionsConfig, cpu: CpuPool, opening: Arc<Opening>) -> Result<Self> {
        let CollectionsConfig { data_dir, lock_wait, collections_max, secret, default_settings, .. } = config;
        let CollectionsConfig { limits, memory, reserve_bytes, medium, backup, scrub, .. } = config;
        let folder = Folder::take(&data_dir, lock_wait, medium)?;
        let known = match medium {
            Medium::Disk => Known::read(&data_dir, &folder.names()?),
            Medium::Memory => Known::default(),
        };
        let ids = IdCache::new(memory.id_cache_bytes_max);
        let memory = Arc::new(MemoryBudget::new(memory.index_bytes_max, memory.process));
        let payloads = PayloadBudget::new(limits.commit_payload_bytes_max);
        let disk = match medium {
            Medium::Disk => DataDisk::new(&data_dir, reserve_bytes),
            Medium::Memory => DataDisk::new(&data_dir, 0),
        };
        let common = Common { secret, limits, cpu, memory, ids, payloads, medium, disk };
        let opener = Arc::new(Opener::new(common, folder, opening)?);
        let open = opener.cells().watch();
        let open = move || Some(open()?.iter().map(|collection| collection.upkeep_parts()).collect());
        // The background threads get only weak references to the collections. So these threads end once all collections
        // are dropped.
        let of_names = Arc::downgrade(&opener);
        let exists =
            move |name: &CollectionName| of_names.upgrade().is_none_or(|opener| opener.folder().path(name).exists());
        let background = Background::start(Arc::clone(&opener.common().disk), scrub, open, exists);
        let latest_backup = LatestBackup::new(backup.dir.as_deref().and_then(store::backup::latest));
        opener.open_default(default_settings.clone())?;
        known.add(&CollectionName::default_collection());
        let registry = Arc::new(Registry::new(opener, known, background, collections_max, default_settings));
        let backups = Arc::new(Backups::new(Arc::clone(&registry), backup, latest_backup));
        Ok(Self { registry, backups })
    }

    pub(in crate::collections) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub(in crate::collections) fn backups(&self) -> &Arc<Backups> {
        &self.backups
    }

    pub(in crate::collections) fn observe(&self) {
        self.registry.observe();
        self.backups.observe();
    }

    /// Waits until all accepted writes are on disk. Blocks the thread. Afterwards no write is accepted and no backup
    /// begins.
    pub(in crate::collections) fn close(&self) {
        self.backups.close();
        self.registry.close();
    }
}
