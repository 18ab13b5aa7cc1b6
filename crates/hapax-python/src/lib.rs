//! The core of hapax as the Python module `pyhapax._native`.
//!
//! ```text
//! list, Arrow ─ texts ─ jobs ─ batch ─▶ signatures, content hashes, shingle counts, as Arrow and as buffers
//!                               └ near ─▶ verdicts
//!                                   └ saved ─▶ rows of a file, and back
//! ```
//!
//! This crate turns Python's objects into the core's and back, and runs the core on several threads while other threads
//! can run Python. Only `boundary` handles memory of other libraries. A panic becomes a Python exception.

mod arguments;
mod boundary;
mod column;
mod documents;
mod index;
mod judged;
mod keys;
mod near;
mod rank_sketch;
mod rows;
mod saved;
mod signature;
mod signed_batch;
mod signer;
mod spec;
mod texts;
mod threads;
mod tuning;

use pyo3::prelude::*;

/// The native part of pyhapax. Import from `pyhapax` instead.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::column::Column;
    #[pymodule_export]
    use crate::index::Index;
    #[pymodule_export]
    use crate::judged::{Match, Verdict};
    #[pymodule_export]
    use crate::rank_sketch::{RankSketch, smallest_areas};
    #[pymodule_export]
    use crate::saved::{append_rows, index_rows, restore_index};
    #[pymodule_export]
    use crate::signature::{Signature, restore_signature};
    #[pymodule_export]
    use crate::signed_batch::Batch;
    #[pymodule_export]
    use crate::signer::{Signer, restore_signer};
    #[pymodule_export]
    use crate::tuning::{Tuning, tune};

    /// The version of this package, which is the version of the server.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
