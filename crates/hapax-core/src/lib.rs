//! Text to MinHash signature, bands, verification and tuning: the pure core of hapax.
//!
//! ```text
//! text ─ normalise ─ tokens ─ shingle ─ sketch ─ band ─▶ band keys
//!        canonical   words    64-bit    k slots  └ verify ─▶ estimate, exact
//! ```
//!
//! Data flows one way. The output is frozen by a [`Spec`] and pinned by known-answer vectors, so no toolchain or
//! dependency can change it. This crate must never know of files, clocks, sockets, threads or any other part of hapax.

#![warn(missing_docs)]

mod band;
mod characters;
mod hash;
mod hex;
mod located;
mod mix;
pub mod normalise;
mod pipeline;
mod shingle;
mod shingle_set;
mod simd;
pub mod sketch;
mod spec;
mod stages;
mod tokens;
pub mod tuning;
mod unicode;
pub mod verify;

pub use band::{BandKey, Banding, BandingError};
pub use hash::{ContentHash, SecretKey};
pub use located::{TokenLocator, TokenPlace};
pub use mix::{SplitMix64, fmix64};
pub use normalise::{IllFormed, NotUtf8};
pub use pipeline::{Collect, Collected, Pipeline, SignScratch, Signed, Signer};
pub use shingle::{window_hash, window_hashes};
pub use shingle_set::ShingleSet;
pub use simd::{Simd, prefetch};
pub use sketch::Ranks;
pub use spec::{Digits, Fingerprint, Fold, Marks, Shingling, SignatureShape, SketchKind, Spec, SpecError, TextSpec};
pub use stages::Stages;
pub use tokens::TOKEN_BYTES_MAX;
