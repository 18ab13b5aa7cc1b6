//! The shapes on the wire, one file each: JSON -> words of the service, and back.
//! No handler writes JSON by hand, and nothing here does any work.

pub mod backup;
pub mod buckets;
pub mod cluster;
pub mod collection;
pub mod compare;
pub mod document;
pub mod summary;
pub mod tune;
pub mod verdict;

mod values;

pub use values::ratio;
