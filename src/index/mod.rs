//! Signatures in memory and the band index over them.
//! In: packed signatures with their `seq`. Out: slots that share a band with a query, and what stands in a slot.
//! Knows nothing of ids' text, of storage, or of who may see what: callers compare `seq` themselves.

mod ahead;
mod arena;
mod bands;
mod bucket_sizes;
mod chunks;
mod comparison;
mod equals;
mod ids;
mod pool;
mod sync;
mod table;

#[cfg(all(test, hapax_loom))]
mod models;
#[cfg(all(test, not(hapax_loom)))]
mod tests;

pub use arena::{Arena, Entry, SLOTS_MAX, Seen};
pub use bands::{BandIndex, Bucket, Hit, Probe};
pub use bucket_sizes::BucketSizes;
pub use comparison::Comparison;
pub use ids::IdIndex;
