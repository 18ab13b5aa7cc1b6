//! How far the collections are with being opened at start, as a whole and one by one, for `/readyz` and
//! `hapax_boot_progress_ratio`.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::types::CollectionName;

/// How far the collections are with being opened. Written by what opens them, read by probes.
#[derive(Debug, Default)]
pub struct Opening {
    parts: Mutex<BTreeMap<CollectionName, Part>>,
}

/// One collection of an [`Opening`].
#[derive(Debug)]
struct Part {
    /// Of its file and its log: what opening it takes is about proportional to that.
    bytes: u64,
    share: f64,
    over: bool,
}

impl Opening {
    /// Notes what is to be opened, with its size in bytes.
    pub fn expect(&self, sizes: impl IntoIterator<Item = (CollectionName, u64)>) {
        let part = |bytes| Part { bytes, share: 0.0, over: false };
        self.parts.lock().extend(sizes.into_iter().map(|(name, bytes)| (name, part(bytes))));
    }

    /// How much of one is done, 0 to 1.
    pub fn set(&self, name: &CollectionName, share: f64) {
        if let Some(part) = self.parts.lock().get_mut(name) {
            part.share = share;
        }
    }

    /// It is open, or will not be.
    pub fn end(&self, name: &CollectionName) {
        if let Some(part) = self.parts.lock().get_mut(name) {
            (part.share, part.over) = (1.0, true);
        }
    }

    /// How much of all is done, by bytes, 0 to 1; 0 as long as nothing is expected.
    pub fn share(&self) -> f64 {
        let parts = self.parts.lock();
        let weight = |part: &Part| part.bytes.max(1) as f64;
        let total: f64 = parts.values().map(weight).sum();
        let done: f64 = parts.values().map(|part| weight(part) * part.share).sum();
        if total > 0.0 { done / total } else { 0.0 }
    }

    /// Those that are not open yet, and how much of each is done.
    pub fn pending(&self) -> Vec<(CollectionName, f64)> {
        let parts = self.parts.lock();
        parts.iter().filter(|(_, part)| !part.over).map(|(name, part)| (name.clone(), part.share)).collect()
    }

    /// How much of one is done; `None` where nothing is left to do.
    pub(super) fn share_of(&self, name: &CollectionName) -> Option<f64> {
        self.parts.lock().get(name).filter(|part| !part.over).map(|part| part.share)
    }

    /// The smallest that is not open yet.
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
