//! The document that holds an id, for a write that has the id's latch. No other write changes it meanwhile, except for a
//! deletion by label, which takes no latches: it may take the document, or give it back if the disk refuses it.

use super::writes::Writes;
use crate::engine::lookup::Existing;
use crate::index::View;
use crate::types::DocId;
use crate::verdicts::Result;

/// The document that holds an id, if there is one.
pub(super) struct Holder {
    pub existing: Option<Existing>,
    /// How often decisions had been undone before it was looked for: one may have been a deletion by label.
    undone: u64,
}

impl Holder {
    /// Finds it. Reads the disk.
    pub(super) fn find(writes: &Writes, id: &DocId) -> Result<Self> {
        let undone = writes.undone();
        Ok(Self { existing: Existing::find(writes.lookup(), id, View::Decided)?, undone })
    }

    /// Returns whether it is still the one. If not, look for it again. The caller has the decision lock.
    pub(super) fn is_current(&self, writes: &Writes) -> bool {
        let is_there = |existing: &Existing| existing.is_there(writes.lookup());
        self.undone == writes.undone() && self.existing.as_ref().is_none_or(is_there)
    }
}
