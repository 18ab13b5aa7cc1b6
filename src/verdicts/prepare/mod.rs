//! Content -> what a decision needs of it: signature, content hash, shingles.
//! The processor's share of a request, done before any lock is taken. Knows no index, no store and no setting that can
//! change.

mod kept;
mod prepared;
mod preparer;
mod sign_meters;
mod signing;
mod text_signer;

pub(crate) use kept::{Kept, set_of, unpacked_bytes};
pub(crate) use prepared::Made;
pub use prepared::{PrepareOptions, Prepared, Purpose};
pub(crate) use preparer::Preparer;
pub use text_signer::TextSigner;
