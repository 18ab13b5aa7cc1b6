//! The names of a document that outputs show: its id, and its place in a file.

use crate::input::Origin;
use crate::types::DocId;

/// The names of a document.
pub(in crate::cli) struct Named {
    pub origin: Origin,
    pub id: Option<DocId>,
}

impl Named {
    /// The id in the file, or the one that the document has without.
    pub(in crate::cli) fn id(&self) -> String {
        self.id.as_ref().map_or_else(|| self.origin.made_id(), ToString::to_string)
    }
}
