//! The hot loops, once for each kind of vector instructions. All unsafe code of this crate is in this folder, behind
//! safe functions. The instructions are detected once, at run time. The portable form of each loop is its
//! specification: the tests of this folder, `tests/simd.rs` and the fuzz targets check that every other form gives the
//! same results.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod batches;
mod blocks;
pub(crate) mod lanes;
mod level;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
mod prefetch;
mod slots;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use batches::{hash_short, mix_and_select, untouched};
pub(crate) use blocks::{Block, Bytes, Scan};
pub use level::Simd;
pub use prefetch::prefetch;
pub(crate) use slots::{BATCH, EMPTY, SLOTS_MAX, SlotSet};
