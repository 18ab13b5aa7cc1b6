//! The collections in a data directory of this machine: opens, creates, lists, drops and backs them up.

mod backups;
mod cells;
mod data_dir;
mod faults;
mod folder;
mod known;
mod latest_backup;
mod load_place;
mod opener;
mod registry;

pub(super) use data_dir::DataDir;
pub use load_place::LoadPlace;
