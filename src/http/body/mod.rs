//! A request's body -> bytes, decompressed and counted.
//! Knows nothing of their meaning, except how much memory they take.

mod budget;
mod decoded;
mod footprint;
mod long;
mod patience;
mod slices;
mod spooled;
mod whole;

pub(super) use budget::{Budget, Room, Window};
pub(super) use decoded::{ZSTD_WINDOW_BYTES, announced, broken, decoded, piece, window_bytes};
pub(super) use footprint::{fit_asked_content, fit_content, json_bytes, text_bytes};
pub(super) use long::LONG_BYTES_MIN;
pub(super) use patience::Patience;
pub(super) use slices::{Slice, Slices};
pub(super) use spooled::spooled;
pub(super) use whole::{Whole, whole};
