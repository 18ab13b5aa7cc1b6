//! Collections that are not served, and why: their files are damaged, or could not be opened for another reason.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::engine::meters;
use crate::telemetry::names::{self, label};
use crate::types::CollectionName;
use crate::verdicts::{CollectionError, Result};

/// The collections that are known to have one.
#[derive(Default)]
pub(in crate::collections) struct Faults {
    /// Each is looked at once: a file does not mend itself, and reading it through takes long.
    damaged: Mutex<BTreeMap<CollectionName, CollectionError>>,
    /// Each is tried again at the next request.
    unopened: Mutex<BTreeMap<CollectionName, CollectionError>>,
}

impl Faults {
    /// From here on the collection is refused with this error, until the process is restarted or it is dropped.
    pub(super) fn note_damage(&self, name: &CollectionName, error: &CollectionError) {
        tracing::error!(collection = %name, %error, "a collection is damaged and not served; `hapax verify` tells more");
        meters::admit(name);
        self.damaged.lock().insert(name.clone(), error.clone());
    }

    /// It could not be opened.
    pub(super) fn note_unopened(&self, name: &CollectionName, error: CollectionError) {
        tracing::error!(
            collection = %name, %error,
            "a collection could not be opened; the next request for it tries again"
        );
        self.unopened.lock().insert(name.clone(), error);
    }

    /// An error if it is damaged.
    pub(super) fn refuse_damaged(&self, name: &CollectionName) -> Result<()> {
        self.damaged.lock().get(name).map_or(Ok(()), |error| Err(error.clone()))
    }

    /// It could be opened after all, or is dropped.
    pub(super) fn forget_unopened(&self, name: &CollectionName) {
        self.unopened.lock().remove(name);
    }

    pub(super) fn forget_damage(&self, name: &CollectionName) {
        self.damaged.lock().remove(name);
    }

    /// Those that are damaged, and how that shows.
    pub(in crate::collections) fn damaged(&self) -> Vec<(CollectionName, CollectionError)> {
        self.damaged.lock().iter().map(|(name, error)| (name.clone(), error.clone())).collect()
    }

    /// Those that could not be opened for another reason, and why.
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
