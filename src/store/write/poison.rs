//! The failure after which nobody writes to a file any more.

use std::sync::{Arc, OnceLock};

use crate::store::error::StoreError;

/// The first failure after which nobody may write, shared by writer and checkpointer.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Poison(Arc<OnceLock<String>>);

impl Poison {
    pub(super) fn reason(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    /// Notes the failure if it leaves the disk's content uncertain. The first one stays.
    pub(in crate::store) fn note(&self, error: &StoreError) {
        if error.is_uncertain() {
            self.0.get_or_init(|| error.chain());
        }
    }
}
