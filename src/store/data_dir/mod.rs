//! The data directory: its lock, the files of its collections, and the list of collections that it should have. This
//! module must not know the content of the files.

pub(in crate::store) mod files;
mod inventory;
pub mod lock;

pub use self::inventory::Inventory;
