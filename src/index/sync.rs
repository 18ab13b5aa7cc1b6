//! The atomics that this folder uses: the ones of the standard library or, under `--cfg hapax_loom`, the ones of
//! `loom`, which tries every order of loads and stores.

pub(super) use std::sync::OnceLock;
#[cfg(not(hapax_loom))]
pub(super) use std::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(hapax_loom)]
pub(super) use loom::sync::atomic::{AtomicU64, Ordering, fence};

/// Returns `cells` cells, all 0.
#[cfg(not(hapax_loom))]
pub(super) fn zeroed(cells: usize) -> Box<[AtomicU64]> {
    bytemuck::allocation::zeroed_slice_box(cells)
}

/// Returns `cells` cells, all 0.
#[cfg(hapax_loom)]
pub(super) fn zeroed(cells: usize) -> Box<[AtomicU64]> {
    (0..cells).map(|_| AtomicU64::new(0)).collect()
}
