//! The facts about each open collection that the background threads remember from one round to the next.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use crate::engine::lookup::Lookup;
use crate::types::CollectionName;

/// An open collection.
pub(crate) struct Target {
    pub name: CollectionName,
    /// Holds the index and the records of the collection.
    pub lookup: Arc<Lookup>,
}

/// A state for each open collection.
pub(super) struct States<S>(HashMap<CollectionName, (Weak<Lookup>, S)>);

impl<S> Default for States<S> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<S> States<S> {
    /// Makes the states of new collections, and drops those of collections that are no longer open. Collections are
    /// compared by identity: another collection of the same name may have been created in the meantime, with metric
    /// series of its own.
    pub(super) fn keep(&mut self, open: &[Target], make: impl Fn(&Target) -> S) {
        let lookups: HashMap<&CollectionName, *const Lookup> =
            open.iter().map(|target| (&target.name, Arc::as_ptr(&target.lookup))).collect();
        self.0.retain(|name, (of, _)| lookups.get(name).is_some_and(|lookup| *lookup == of.as_ptr()));
        for target in open {
            let new = || (Arc::downgrade(&target.lookup), make(target));
            self.0.entry(target.name.clone()).or_insert_with(new);
        }
    }

    /// Returns the state of a collection that was among those of [`keep`](Self::keep).
    pub(super) fn of(&mut self, target: &Target) -> &mut S {
        &mut self.0.get_mut(&target.name).expect("every open collection has a state").1
    }
}
