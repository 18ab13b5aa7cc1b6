//! Checks whether a file still contains the data that was written: at boot, in the background and offline. Saves the
//! intact documents of a damaged file.

pub(in crate::store) mod inspection;
pub(in crate::store) mod repair;
pub(in crate::store) mod scan;
pub(in crate::store) mod scrub;
mod walk;
