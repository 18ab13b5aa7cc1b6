//! What stands in a data directory: one process at a time, the collections' files by their names, and the list of those
//! that should be there. Must never know what is in a collection's file.

pub(in crate::store) mod files;
mod inventory;
pub mod lock;

pub use self::inventory::Inventory;
