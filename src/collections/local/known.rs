//! The list of the collections that a data directory should hold, so that a file that vanished while no server ran is
//! missed.
//! If the list cannot be read or written, something may go unnoticed; nothing else depends on it.

use std::path::Path;

use parking_lot::Mutex;

use crate::store::Inventory;
use crate::types::CollectionName;

#[derive(Default)]
pub(super) struct Known {
    /// Absent if nothing is kept, or if it cannot be read or written.
    inventory: Mutex<Option<Inventory>>,
}

impl Known {
    /// Reads the list, and logs what is missing.
    pub(super) fn read(data_dir: &Path, present: &[CollectionName]) -> Self {
        Self { inventory: Mutex::new(missed(data_dir, present)) }
    }

    pub(super) fn add(&self, name: &CollectionName) {
        if let Some(inventory) = &mut *self.inventory.lock() {
            warn_unlisted(inventory.add(name));
        }
    }

    /// It is to be dropped.
    pub(super) fn remove(&self, name: &CollectionName) {
        if let Some(inventory) = &mut *self.inventory.lock() {
            warn_unlisted(inventory.remove(name));
        }
    }

    /// Collections whose files vanished while no server ran.
    pub(super) fn missing(&self) -> Vec<CollectionName> {
        self.inventory.lock().iter().flat_map(Inventory::missing).cloned().collect()
    }

    /// Forgets one whose file vanished. False: there is none of this name.
    pub(super) fn forget_missing(&self, name: &CollectionName) -> bool {
        let mut inventory = self.inventory.lock();
        let Some(inventory) = inventory.as_mut().filter(|inventory| inventory.missing().contains(name)) else {
            return false;
        };
        warn_unlisted(inventory.remove(name));
        true
    }
}

fn missed(data_dir: &Path, present: &[CollectionName]) -> Option<Inventory> {
    let inventory = match Inventory::open(data_dir, present) {
        Ok(inventory) => inventory,
        Err(error) => {
            tracing::warn!(%error, "the list of collections is of no use; a file that vanishes would not be missed");
            return None;
        }
    };
    let default = CollectionName::default_collection();
    // A directory of an earlier version has no list, but always had this one.
    let used = inventory.missing().contains(&default) || !present.is_empty();
    if used && !present.contains(&default) {
        tracing::error!(
            collection = %default,
            "the file of this collection is gone, and an EMPTY one takes its place; if this is not intended, stop the \
             server and restore a backup"
        );
    }
    for name in inventory.missing().iter().filter(|name| **name != default) {
        tracing::error!(
            collection = %name,
            "the file of this collection is gone, though it was not dropped; restore a backup, or forget it with DELETE"
        );
    }
    Some(inventory)
}

fn warn_unlisted(noted: std::io::Result<()>) {
    if let Err(error) = noted {
        tracing::warn!(%error, "the list of collections could not be written; a file that vanishes may not be missed");
    }
}
