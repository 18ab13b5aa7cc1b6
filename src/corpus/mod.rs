//! The documents of a corpus, one after another -> which of them are kept, and of which kept document each of the
//! others is a duplicate (`dedup.rs`); the connected components of a corpus (`components.rs`); all pairs of similar
//! documents (`pairs.rs`); the passages that two texts share (`passages.rs`); or the passages that earlier documents
//! have (`windows.rs`, `first_places.rs`, `spans.rs`). Which documents are similar is decided as in a collection that
//! gets the same documents in the same order with `on_duplicate=skip`. Everything is in memory, or on shelves that the
//! caller provides (`shelved.rs`): `batches.rs` says which documents need not be in memory at once, and `stored.rs`
//! makes bytes of them. Knows nothing of files and ids, and not how the results are used.

mod batches;
mod components;
mod dedup;
mod entered;
mod first_places;
mod forest;
mod known;
mod pairs;
mod passages;
mod shelved;
mod shelved_components;
mod signer;
mod spans;
mod stored;
mod windows;

pub use batches::{Batches, SharedBands};
pub use components::{Components, Link};
pub use dedup::{Decided, Decision, Deduplicator, Duplicate};
pub use first_places::{FirstPlace, FirstPlaces, found_by};
pub use known::{Matching, SearchLimits};
pub use pairs::{PairFinder, Similar, SimilarTo, Sought};
pub use passages::shared_passages;
pub use shelved::{Lists, Shelf, Shelved};
pub use shelved_components::ShelvedComponents;
pub use signer::{CorpusSigner, SignedDocument};
pub use spans::{Span, spans, without};
pub use stored::{read_signed, write_signed};
pub use windows::{Windower, Windows};
