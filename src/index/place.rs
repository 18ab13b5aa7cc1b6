//! The places of documents: numbers that only the index can interpret.

/// The place of a document in the index. Only [`Index`](super::Index) can interpret it. It is reused after the document
/// is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub(super) u32);

/// The start of a walk over all places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk(u32);

impl Walk {
    /// Starts at the first place.
    pub fn start() -> Self {
        Self(0)
    }

    pub fn after(place: Place) -> Self {
        Self(place.0 + 1)
    }

    /// Returns the places from here to the last one used so far.
    pub(super) fn places(self, used: u32) -> impl Iterator<Item = Place> + use<> {
        (self.0..used).map(Place)
    }
}
