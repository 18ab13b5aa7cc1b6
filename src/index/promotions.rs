//! Links that become ordinary documents, each with its position in the commit order. A link is promoted if a deletion
//! makes it the representative of its cluster. A view from before that position must not find the link, and a later
//! view must find it. One bit in the arena cannot serve both views, so the positions are kept here until all earlier
//! readers have finished. Few links are promoted at the same time.

use std::collections::HashMap;

use parking_lot::RwLock;

use super::place::Place;
use crate::types::Seq;

/// Promoted links that the arena still marks as links.
#[derive(Default)]
pub(super) struct Promotions(RwLock<HashMap<Place, Seq>>);

impl Promotions {
    /// Returns the position in the commit order at which the link is promoted; `None` if it is not promoted, or if the
    /// arena already marks it as an ordinary document.
    pub(super) fn at(&self, link: Place) -> Option<Seq> {
        self.0.read().get(&link).copied()
    }

    pub(super) fn add(&self, link: Place, at: Seq) {
        let before = self.0.write().insert(link, at);
        debug_assert!(before.is_none(), "a link is promoted once");
    }

    pub(super) fn remove(&self, link: Place) {
        let mut all = self.0.write();
        all.remove(&link);
        if all.is_empty() {
            // A deletion by label may have promoted millions of links.
            all.shrink_to_fit();
        }
    }
}
