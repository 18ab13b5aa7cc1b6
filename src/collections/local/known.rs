//! The list of the collections that a data directory should contain. With it, hapax notices if a file vanished while no
//! server was running. If the list cannot be read or written, a lost file may go unnoticed. Nothing else depends on the
//! list.

use std::path::Path;

use parking_lot::Mutex;

use crate::engine::meters;
use crate::store::Inventory;
use crate::telemetry::names::{self, label};
use crate::types::CollectionName;

#[derive(Default)]
pub(super) struct Known {
    /// Absent if documents are not kept after the process ends, or if the list could not be used at the start.
    inventory: Mutex<Option<Inventory>>,
}

impl Known {
    /// Reads the list, and logs the collections that are missing.
    pub(super) fn read(data_dir: &Path, present: &[CollectionName]) -> Self {
        Self { inventory: Mutex::new(missed(data_dir, present)) }
    }

    pub(super) fn add(&self, name: &CollectionName) {
        if let Some(inventory) = &mut *self.inventory.lock() {
            warn_unlisted(inventory.add(name));
        }
    }

    /// Removes a collection that is going to be dropped.
    pub(super) fn remove(&self, name: &CollectionName) {
        if let Some(inventory) = &mut *self.inventory.lock() {
            warn_unlisted(inventory.remove(name));
        }
    }

    /// Returns the collections whose files vanished while no server was running.
    pub(super) fn missing(&self) -> Vec<CollectionName> {
        self.inventory.lock().iter().flat_map(Inventory::missing).cloned().collect()
    }

    /// Forgets a collection whose file vanished. False: no missing collection has this name.
    pub(super) fn forget_missing(&self, name: &CollectionName) -> bool {
        let mut inventory = self.inventory.lock();
        let Some(inventory) = inventory.as_mut().filter(|inventory| inventory.missing().contains(name)) else {
            return false;
        };
        warn_unlisted(inventory.remove(name));
        meters::forget(name);
        true
    }

    /// Reports missing collections in the same way as damaged ones, so that an alert fires.
    pub(super) fn observe(&self) {
        for name in self.missing() {
            metrics::gauge!(names::COLLECTION_DAMAGED, label::COLLECTION => name.to_string()).set(1.0);
            metrics::gauge!(names::COLLECTION_OPEN, label::COLLECTION => name.to_string()).set(0.0);
        }
    }
}

fn missed(data_dir: &Path, present: &[CollectionName]) -> Option<Inventory> {
    let inventory = match Inventory::open(data_dir, present) {
        Ok(inventory) => inventory,
        Err(error) => {
            tracing::warn!(%error, "cannot use the list of collections; missing files will not be reported");
            return None;
        }
    };
    let default = CollectionName::default_collection();
    // The data directory of an earlier version has no list, but it always had this collection.
    let used = inventory.missing().contains(&default) || !present.is_empty();
    if used && !present.contains(&default) {
        tracing::error!(
            collection = %default,
            "the file of this collection is gone, and an EMPTY one replaces it; if that is not intended, stop the \
             server and restore a backup"
        );
    }
    for name in inventory.missing().iter().filter(|name| **name != default) {
        meters::admit(name);
        tracing::error!(
            collection = %name,
            "the file of this collection is gone, but it was not dropped; restore a backup, or accept the loss with \
             DELETE"
        );
    }
    Some(inventory)
}

fn warn_unlisted(noted: std::io::Result<()>) {
    if let Err(error) = noted {
        tracing::warn!(%error, "cannot write the list of collections; missing files may not be reported");
    }
}
