//! Where documents are, as the rest of the service sees it: a number that only the index can read.

/// Where a document is in the index. Opaque: it means something to [`Index`](super::Index) only, and is reused after
/// the document is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub(super) u32);

/// Where a walk over all places begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk(u32);

impl Walk {
    /// At the first place.
    pub fn start() -> Self {
        Self(0)
    }

    pub fn after(place: Place) -> Self {
        Self(place.0 + 1)
    }

    /// The places from here to the end of those in use so far.
    pub(super) fn places(self, used: u32) -> impl Iterator<Item = Place> + use<> {
        (self.0..used).map(Place)
    }
}
