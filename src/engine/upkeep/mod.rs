//! Work in the background: deletes expired documents, removes those that were deleted by label, reads records again to find damage, changes settings, watches the
//! disk.

mod canary;
mod disk_watch;
mod drift;
mod expiry;
mod golden;
mod label_deletions;
mod rebanding;
mod rounds;
mod scrub;
mod survey;
mod targets;
mod threads;

pub(crate) use expiry::Expiry;
pub(crate) use label_deletions::LabelDeletions;
pub(crate) use rebanding::Rebanding;
pub(crate) use targets::Target;
pub(crate) use threads::{Background, UpkeepParts};
