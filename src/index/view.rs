//! What a lookup may see, by the commit order.

use super::arena::Occupant;
use crate::types::Seq;

/// Marks a document in doubt, instead of the place in the order where it is removed. No change has this place: the order
/// ends before it.
pub(super) const DOUBTFUL: Seq = Seq(u64::MAX >> 1);

/// From where in the commit order a lookup sees.
#[derive(Clone, Copy, Debug)]
pub enum View {
    /// What is on disk up to here: checks.
    Durable(Seq),
    /// All that has been decided: under the decision lock.
    Decided,
}

impl View {
    /// Whether a document is there in this view.
    pub fn sees(self, occupant: &Occupant) -> bool {
        match self {
            Self::Durable(_) if occupant.removed == DOUBTFUL => false,
            Self::Durable(durable) => {
                occupant.seq <= durable && (occupant.removed == Seq(0) || occupant.removed > durable)
            }
            Self::Decided => occupant.removed == Seq(0),
        }
    }

    /// Whether a document that has postings may be found in this view. A link has them only while it is being promoted,
    /// and that is not durable.
    pub(super) fn finds(self, occupant: &Occupant) -> bool {
        self.sees(occupant) && !(occupant.linked && matches!(self, Self::Durable(_)))
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
