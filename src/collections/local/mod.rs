//! The collections of a data directory of this machine: opened, made, listed, dropped, backed up.

mod backups;
mod opening;
mod registry;

pub(super) use registry::Registry;
