//! The slots of a sketch and the batches of numbers that the loops go over.

/// The slots of a sketch that nothing has reached, one bit each: as many as the largest sketch has.
pub(crate) type SlotSet = [u64; SLOTS_MAX / 64];

/// Most slots of a sketch.
pub(crate) const SLOTS_MAX: usize = 1024;

/// Numbers that are looked at together.
pub(crate) const BATCH: usize = 512;

/// What a slot holds that no shingle has reached: greater than every rank.
pub(crate) const EMPTY: u64 = u64::MAX;
