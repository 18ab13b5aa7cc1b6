//! Turns content into the data that a decision needs: signature, content hash, shingles. This is the CPU work of a
//! request, and it is done before any lock is taken. It knows no index, no store and no setting that can change.

mod grams;
mod kept;
mod near;
mod page_meters;
mod prepared;
mod preparer;
mod sign_meters;
mod signing;
mod text_signer;

pub(crate) use grams::{gram_size, unpacked_grams};
pub(crate) use kept::{Kept, is_packed_text, set_of, text_of, unpacked_bytes};
pub(crate) use near::{NearSource, Original};
pub(crate) use prepared::Made;
pub use prepared::{PrepareOptions, Prepared, Purpose};
pub(crate) use preparer::Preparer;
pub use signing::element_hashes;
pub(crate) use signing::is_of_nothing;
pub use text_signer::TextSigner;
