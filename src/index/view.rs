//! The documents that a lookup may see, according to the commit order.

use super::arena::{Arena, Occupant};
use super::place::Place;
use crate::types::Seq;

/// Marks a document in doubt. It is stored instead of the position in the commit order at which a document is removed.
/// No change has this position, because the order ends before it.
pub(super) const DOUBTFUL: Seq = Seq(u64::MAX >> 1);

/// The state of the commit order that a lookup sees.
#[derive(Clone, Copy, Debug)]
pub enum View {
    /// Everything on disk up to this position: for checks.
    Durable(Seq),
    /// Everything that has been decided, whether or not it is on disk: for writes.
    Decided,
}

impl View {
    /// Returns whether a document exists in this view.
    pub fn sees(self, occupant: &Occupant) -> bool {
        match self {
            Self::Durable(_) if occupant.removed == DOUBTFUL => false,
            Self::Durable(durable) => {
                occupant.seq <= durable && (occupant.removed == Seq(0) || occupant.removed > durable)
            }
            Self::Decided => occupant.removed == Seq(0),
        }
    }

    /// Returns the document that was read at a place as this view shows it: a promoted link is an ordinary document.
    #[inline]
    pub(super) fn shown(self, arena: &Arena, place: Place, read: Occupant) -> Occupant {
        Occupant { linked: read.linked && !self.is_promoted(arena, place, read.seq), ..read }
    }

    #[cold]
    fn is_promoted(self, arena: &Arena, place: Place, link: Seq) -> bool {
        match (arena.promoted_at(place), self) {
            (Some(_), Self::Decided) => true,
            (Some(at), Self::Durable(durable)) => at <= durable,
            // All readers from before the promotion may have finished meanwhile. The arena then marks it as an ordinary
            // document.
            (None, _) => arena.peek(place).is_some_and(|now| now.seq == link && !now.linked),
        }
    }

    /// Returns whether a document that has postings may be found in this view. `shown` is the document as the view
    /// shows it. A link has postings only after its promotion has been decided.
    pub(super) fn finds(self, shown: &Occupant) -> bool {
        self.sees(shown) && !(shown.linked && matches!(self, Self::Durable(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pending_delete_hides_from_deciders_and_not_yet_from_checks() {
        let occupant = Occupant { seq: Seq(3), removed: Seq(7), content: 0, linked: false };
        assert!(!View::Decided.sees(&occupant));
        assert!(View::Durable(Seq(6)).sees(&occupant));
        assert!(!View::Durable(Seq(7)).sees(&occupant));
        assert!(!View::Durable(Seq(2)).sees(&occupant));
    }
}
