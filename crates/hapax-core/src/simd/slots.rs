//! The slots of a sketch, and the batches of numbers that the loops run over.

/// The slots of a sketch that no shingle has reached, one bit each, for the largest sketch.
pub(crate) type SlotSet = [u64; SLOTS_MAX / 64];

/// The largest number of slots of a sketch.
pub(crate) const SLOTS_MAX: usize = 1024;

/// The number of values that are processed together.
pub(crate) const BATCH: usize = 512;

/// The value of a slot that no shingle has reached: greater than every rank.
pub(crate) const EMPTY: u64 = u64::MAX;
