//! The collections in a data directory of this machine: opens, creates, lists, drops and backs them up.

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
