//! What goes on beside requests: documents that expire are deleted, records are read again, settings change, the disk is
//! watched.

mod disk_watch;
mod expiry;
mod rebanding;
mod rounds;
mod scrub;
mod threads;

pub(crate) use expiry::Expiry;
pub(crate) use rebanding::Rebanding;
pub(crate) use scrub::ScrubTarget;
pub(crate) use threads::{Background, UpkeepParts};
