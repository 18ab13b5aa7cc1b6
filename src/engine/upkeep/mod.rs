//! Work in the background: deletes expired documents, removes documents that were deleted by label, merges collections,
//! writes statistics, reads records again to find damage, changes settings, watches the disk, and measures lookups and
//! buckets for the metrics.

mod canary;
mod clock;
mod disk_watch;
mod drift;
mod expiry;
mod golden;
mod merges;
mod rebanding;
mod removals;
mod rounds;
mod scrub;
mod statistics;
mod survey;
mod targets;
mod threads;

pub(crate) use expiry::Expiry;
pub(crate) use merges::Merges;
pub(crate) use rebanding::Rebanding;
pub(crate) use removals::Removals;
pub(crate) use statistics::write as write_statistics;
pub(crate) use targets::Target;
pub(crate) use threads::{Background, UpkeepParts};
