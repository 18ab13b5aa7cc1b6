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
mod fullest;
mod ids;
mod pool;
mod rows;
mod seed;
mod slots;
mod sync;
mod table;

#[cfg(all(test, not(hapax_loom)))]
mod model_tests;
#[cfg(all(test, hapax_loom))]
mod models;
#[cfg(all(test, not(hapax_loom)))]
mod tests;

pub use arena::{Arena, Entry, SLOTS_MAX, Seen};
pub use bands::{BandIndex, GroupHit, Hit, Probe};
pub use bucket_sizes::BucketSizes;
pub use comparison::Comparison;
pub use equals::{Group, Members, Twin};
pub use fullest::Bucket;
pub use ids::IdIndex;
