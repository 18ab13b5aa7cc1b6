//! The progress of opening the collections at the start, in total and for each, for `/readyz` and
//! `hapax_boot_progress_ratio`.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::types::CollectionName;

/// The progress of opening the collections. The code that opens them updates it, and probes read it.
#[derive(Debug, Default)]
pub struct Opening {
    parts: Mutex<BTreeMap<CollectionName, Part>>,
}

/// The progress of one collection.
#[derive(Debug)]
struct Part {
    /// The bytes of the collection's file and log. The time to open the collection is roughly proportional to them.
    bytes: u64,
    share: f64,
    over: bool,
}

impl Opening {
    /// Adds collections that are going to be opened, with their sizes in bytes.
    pub fn expect(&self, sizes: impl IntoIterator<Item = (CollectionName, u64)>) {
        let part = |bytes| Part { bytes, share: 0.0, over: false };
        self.parts.lock().extend(sizes.into_iter().map(|(name, bytes)| (name, part(bytes))));
    }

    /// Sets the completed part of a collection, 0 to 1.
    pub fn set(&self, name: &CollectionName, share: f64) {
        if let Some(part) = self.parts.lock().get_mut(name) {
            part.share = share;
        }
    }

    /// Notes that a collection is open or will not be opened.
    pub fn end(&self, name: &CollectionName) {
        if let Some(part) = self.parts.lock().get_mut(name) {
            (part.share, part.over) = (1.0, true);
        }
    }

    /// Returns the completed part of all collections, by bytes, 0 to 1. It is 0 while there is nothing to open.
    pub fn share(&self) -> f64 {
        let parts = self.parts.lock();
        let weight = |part: &Part| part.bytes.max(1) as f64;
        let total: f64 = parts.values().map(weight).sum();
        let done: f64 = parts.values().map(|part| weight(part) * part.share).sum();
        if total > 0.0 { done / total } else { 0.0 }
    }

    /// Returns the collections that are not open yet, and the completed part of each.
    pub fn pending(&self) -> Vec<(CollectionName, f64)> {
        let parts = self.parts.lock();
        parts.iter().filter(|(_, part)| !part.over).map(|(name, part)| (name.clone(), part.share)).collect()
    }

    /// Returns the completed part of a collection, or `None` if there is nothing left to do.
    pub fn share_of(&self, name: &CollectionName) -> Option<f64> {
        self.parts.lock().get(name).filter(|part| !part.over).map(|part| part.share)
    }

    /// Returns the smallest collection that is not open yet.
    pub(super) fn next(&self) -> Option<CollectionName> {
        let parts = self.parts.lock();
        let pending = parts.iter().filter(|(_, part)| !part.over);
        pending.min_by_key(|(_, part)| part.bytes).map(|(name, _)| name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> CollectionName {
        CollectionName::new(text).unwrap()
    }

    #[test]
    fn progress_is_weighed_by_bytes_and_ends_at_one() {
        let opening = Opening::default();
        assert_eq!(opening.share(), 0.0);
        opening.expect([(name("a"), 300), (name("b"), 100), (name("empty"), 0)]);
        assert_eq!(opening.next(), Some(name("empty")));
        opening.set(&name("a"), 0.5);
        assert!((opening.share() - 150.0 / 401.0).abs() < 1e-9);
        assert_eq!(opening.pending().len(), 3);
        opening.end(&name("empty"));
        opening.end(&name("b"));
        assert_eq!(opening.pending(), [(name("a"), 0.5)]);
        opening.end(&name("a"));
        assert_eq!((opening.share(), opening.next()), (1.0, None));
    }
}
