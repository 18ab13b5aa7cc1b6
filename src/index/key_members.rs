//! The places of one key in a shard: a few, or a list.

use smallvec::SmallVec;

use super::place::Place;
use super::place_list::PlaceList;
use crate::types::Seq;

/// The maximum number of places of one key that are separate entries of a shard.
pub(super) const INLINE_MAX: usize = 8;

/// The places of one key.
pub(super) enum KeyMembers<'a> {
    Inline(SmallVec<[Place; INLINE_MAX]>),
    List(&'a PlaceList),
}

impl KeyMembers<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Inline(places) => places.len(),
            Self::List(places) => places.len(),
        }
    }

    /// Returns the places one after the other.
    pub(super) fn iter(&self) -> impl Iterator<Item = Place> {
        let (inline, list) = match self {
            Self::Inline(places) => (&places[..], None),
            Self::List(places) => (&[][..], Some(places.iter())),
        };
        inline.iter().copied().chain(list.into_iter().flatten())
    }

    /// Returns whether a place is one of these places. `order` is the order of the list.
    pub(super) fn has(&self, place: Place, order: impl Fn(Place) -> Seq) -> bool {
        match self {
            Self::Inline(places) => places.contains(&place),
            Self::List(places) => places.from(order(place), order).next() == Some(place),
        }
    }

    /// Adds up to `max` places to `places`, spread evenly. Returns how many were left out.
    pub(super) fn spread(&self, max: usize, places: &mut Vec<Place>) -> u64 {
        match self {
            Self::Inline(inline) => {
                places.extend(inline.iter().take(max));
                inline.len().saturating_sub(max) as u64
            }
            Self::List(list) => list.spread(max, (0, 1), |_| true, places),
        }
    }
}
