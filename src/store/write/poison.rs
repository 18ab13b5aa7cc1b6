//! The failure after which a file accepts no further writes.

use std::sync::{Arc, OnceLock};

use crate::store::error::StoreError;

/// The first failure after which nothing may be written; shared by the writer and the checkpointer.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Poison(Arc<OnceLock<String>>);

impl Poison {
    pub(super) fn reason(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    /// Notes the failure if it is unclear afterwards what is on disk. Only the first failure is kept.
    pub(in crate::store) fn note(&self, error: &StoreError) {
        if error.is_uncertain() {
            self.0.get_or_init(|| error.chain());
        }
    }
}
