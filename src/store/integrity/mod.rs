//! Whether a file still holds what was written: at boot, in the background, offline; and what can be saved of one that
//! does not.

mod cluster_index;
pub(in crate::store) mod inspection;
pub(in crate::store) mod repair;
pub(in crate::store) mod scan;
pub(in crate::store) mod scrub;
mod walk;
