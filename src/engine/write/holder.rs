//! The document that holds an id, for a write that has the id's latch. No other write changes the document meanwhile,
//! except a deletion by label, which takes no latches. Such a deletion may remove the document, and brings it back if
//! the disk refuses the deletion.

use super::writes::Writes;
use crate::engine::lookup::Existing;
use crate::index::View;
use crate::types::DocId;
use crate::verdicts::Result;

/// The document that holds an id, if there is one.
pub(super) struct Holder {
    pub existing: Option<Existing>,
    /// How often decisions had been undone before the document was looked for. One of these decisions may have been a
    /// deletion by label.
    undone: u64,
}

impl Holder {
    /// Finds the document. Reads the disk.
    pub(super) fn find(writes: &Writes, id: &DocId) -> Result<Self> {
        let undone = writes.undone();
        Ok(Self { existing: Existing::find(writes.lookup(), id, View::Decided)?, undone })
    }

    /// Returns whether this is still the document that holds the id. If not, look for the document again. The caller
    /// has the decision lock.
    pub(super) fn is_current(&self, writes: &Writes) -> bool {
        let is_there = |existing: &Existing| existing.is_there(writes.lookup());
        self.undone == writes.undone() && self.existing.as_ref().is_none_or(is_there)
    }
}
