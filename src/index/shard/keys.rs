//! `Keys`: the facts about a place that a table gets from its owner.

use crate::index::place::Place;
use crate::types::Seq;

/// Computes the key of a place for a table.
pub(in crate::index) trait Keys {
    /// Returns the key. All of its 64 bits vary.
    fn key(&self, place: Place) -> u64;
    /// Returns the order of places with the same key: old ones first. No two places have the same order.
    fn order(&self, place: Place) -> Seq;
    /// Prefetches the data that [`Self::key`] reads.
    fn prefetch(&self, place: Place);
}
