//! The documents of a corpus, one after another -> which of them are kept, and of which kept document each of the others
//! is a duplicate (`dedup.rs`); or the connected components of a corpus (`components.rs`); or all pairs of similar
//! documents (`pairs.rs`). The decisions are those of a collection that gets the same documents in the same order with
//! `on_duplicate=skip`. Everything is in memory, and nothing is stored. Knows nothing of files and ids, and not how the
//! results are used.

mod components;
mod dedup;
mod entered;
mod known;
mod pairs;
mod signer;

pub use components::{Components, Link};
pub use dedup::{Decided, Decision, Deduplicator, Duplicate};
pub use known::{Matching, SearchLimits};
pub use pairs::{PairFinder, Similar, SimilarTo, Sought};
pub use signer::{CorpusSigner, SignedDocument};
