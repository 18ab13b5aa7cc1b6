//! The collections that are open or being opened. Each has a cell, which is filled once: by the first caller that
//! opens, creates or drops the collection. Code that needs exclusive use of a collection's file runs as the
//! initialisation of its cell.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::engine::LocalCollection;
use crate::types::CollectionName;

/// `None` means that the collection was dropped.
pub(super) type Cell = Arc<OnceCell<Option<Arc<LocalCollection>>>>;

#[derive(Default)]
pub(super) struct Cells {
    cells: Arc<Mutex<HashMap<CollectionName, Cell>>>,
}

impl Cells {
    /// Returns the cell of a collection, and creates it if there is none.
    pub(super) fn of(&self, name: &CollectionName) -> Cell {
        Arc::clone(self.cells.lock().entry(name.clone()).or_default())
    }

    /// Does the same as [`of`](Self::of), but returns `None` if there is no cell and `exists` returns false.
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

    /// Removes the cell of a collection that was dropped or could not be created.
    pub(super) fn forget(&self, name: &CollectionName) {
        self.cells.lock().remove(name);
    }

    /// Returns every open collection.
    pub(super) fn open(&self) -> Vec<Arc<LocalCollection>> {
        open(&self.cells.lock())
    }

    /// Returns a function that lists every open collection. The function returns `None` after the cells were dropped.
    pub(super) fn watch(&self) -> impl Fn() -> Option<Vec<Arc<LocalCollection>>> + Clone + Send + use<> {
        let cells = Arc::downgrade(&self.cells);
        move || cells.upgrade().map(|cells| open(&cells.lock()))
    }
}

fn open(cells: &HashMap<CollectionName, Cell>) -> Vec<Arc<LocalCollection>> {
    cells.values().filter_map(|cell| cell.get().cloned().flatten()).collect()
}
