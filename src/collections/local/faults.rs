//! Collections that are not served, and why: either their files are damaged, or something else prevented the server
//! from opening them.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::engine::meters;
use crate::telemetry::names::{self, label};
use crate::types::CollectionName;
use crate::verdicts::{CollectionError, Result};

/// The collections that are known to have a fault.
#[derive(Default)]
pub(in crate::collections) struct Faults {
    /// The damaged collections. Their files are not opened again: a file does not repair itself, and reading all of it
    /// takes long.
    damaged: Mutex<BTreeMap<CollectionName, CollectionError>>,
    /// The collections that could not be opened for another reason. The next request for one of them tries to open it
    /// again.
    unopened: Mutex<BTreeMap<CollectionName, CollectionError>>,
}

impl Faults {
    /// Notes a damaged collection. From now on, requests for it fail with this error, until it is dropped or the
    /// process restarts.
    pub(super) fn note_damage(&self, name: &CollectionName, error: &CollectionError) {
        tracing::error!(
            collection = %name, %error,
            "a collection is damaged and is not served; run `hapax verify` for details"
        );
        meters::admit(name);
        self.damaged.lock().insert(name.clone(), error.clone());
    }

    /// Notes that a collection could not be opened.
    pub(super) fn note_unopened(&self, name: &CollectionName, error: CollectionError) {
        tracing::error!(
            collection = %name, %error,
            "cannot open a collection; the next request for it tries again"
        );
        self.unopened.lock().insert(name.clone(), error);
    }

    /// Returns an error if the collection is damaged.
    pub(super) fn refuse_damaged(&self, name: &CollectionName) -> Result<()> {
        self.damaged.lock().get(name).map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Forgets the fault of a collection that has since been opened or dropped.
    pub(super) fn forget_unopened(&self, name: &CollectionName) {
        self.unopened.lock().remove(name);
    }

    pub(super) fn forget_damage(&self, name: &CollectionName) {
        self.damaged.lock().remove(name);
    }

    /// Returns the damaged collections, with their errors.
    pub(in crate::collections) fn damaged(&self) -> Vec<(CollectionName, CollectionError)> {
        self.damaged.lock().iter().map(|(name, error)| (name.clone(), error.clone())).collect()
    }

    /// Returns the collections that could not be opened for another reason than damage, with their errors.
    pub(in crate::collections) fn unopened(&self) -> Vec<(CollectionName, CollectionError)> {
        self.unopened.lock().iter().map(|(name, error)| (name.clone(), error.clone())).collect()
    }

    pub(super) fn observe(&self) {
        for name in self.damaged.lock().keys() {
            metrics::gauge!(names::COLLECTION_DAMAGED, label::COLLECTION => name.to_string()).set(1.0);
            metrics::gauge!(names::COLLECTION_OPEN, label::COLLECTION => name.to_string()).set(0.0);
        }
        for name in self.unopened.lock().keys() {
            metrics::gauge!(names::COLLECTION_OPEN, label::COLLECTION => name.to_string()).set(0.0);
        }
    }
}
