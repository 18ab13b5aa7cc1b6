//! The documents of a corpus, one after another -> which of them are kept, and of which kept document each of the others
//! is a duplicate. The decisions are those of a collection that gets the same documents in the same order with
//! `on_duplicate=skip`. Or: the connected components of a corpus. Everything is in memory, and nothing is stored. Knows
//! nothing of files and ids, and not how the decisions are used.

mod components;
mod dedup;
mod known;
mod signer;

pub use components::{Components, Link};
pub use dedup::{Decided, Decision, Deduplicator, Duplicate};
pub use known::Matching;
pub use signer::{CorpusSigner, SignedDocument};
