//! The collections of a data directory of this machine: opened, made, listed, dropped, backed up.

mod backups;
mod cells;
mod data_dir;
mod faults;
mod folder;
mod known;
mod latest_backup;
mod opener;
mod registry;

pub(super) use data_dir::DataDir;
