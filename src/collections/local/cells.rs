//! Which collections are open, or about to be: a cell for each, filled once, by what opens, makes or drops the collection
//! first. Whatever needs a collection's file to itself goes through its cell.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::engine::LocalCollection;
use crate::types::CollectionName;

/// `None`: it was dropped.
pub(super) type Cell = Arc<OnceCell<Option<Arc<LocalCollection>>>>;

#[derive(Default)]
pub(super) struct Cells {
    cells: Arc<Mutex<HashMap<CollectionName, Cell>>>,
}

impl Cells {
    /// A collection's cell, made where there is none.
    pub(super) fn of(&self, name: &CollectionName) -> Cell {
        Arc::clone(self.cells.lock().entry(name.clone()).or_default())
    }

    /// As [`of`](Self::of), unless there is no cell and no such collection either, as `exists` tells.
    pub(super) fn of_existing(&self, name: &CollectionName, exists: impl FnOnce() -> bool) -> Option<Cell> {
        let mut cells = self.cells.lock();
        match cells.get(name) {
            Some(cell) => Some(Arc::clone(cell)),
            None => exists().then(|| Arc::clone(cells.entry(name.clone()).or_default())),
        }
    }

    pub(super) fn fill(&self, name: CollectionName, collection: Arc<LocalCollection>) {
        self.cells.lock().insert(name, Arc::new(OnceCell::new_with(Some(Some(collection)))));
    }

    /// It is no more, or was never made.
    pub(super) fn forget(&self, name: &CollectionName) {
        self.cells.lock().remove(name);
    }

    /// Every collection that is open.
    pub(super) fn open(&self) -> Vec<Arc<LocalCollection>> {
        open(&self.cells.lock())
    }

    /// Gives every collection that is open, each time it is called, as long as the cells are there.
    pub(super) fn watch(&self) -> impl Fn() -> Option<Vec<Arc<LocalCollection>>> + Clone + Send + use<> {
        let cells = Arc::downgrade(&self.cells);
        move || cells.upgrade().map(|cells| open(&cells.lock()))
    }
}

fn open(cells: &HashMap<CollectionName, Cell>) -> Vec<Arc<LocalCollection>> {
    cells.values().filter_map(|cell| cell.get().cloned().flatten()).collect()
}
