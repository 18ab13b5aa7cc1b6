//! The command line: one file or folder for each command. Input: arguments and the environment. Output: data on stdout,
//! messages and progress bars on stderr, and an exit status.

mod arguments;
pub mod audit;
mod audit_compare;
mod audit_table;
pub mod backup;
pub mod bulk;
pub mod check;
pub mod client;
mod cluster;
pub mod collection;
pub mod copy;
pub mod dedup;
pub mod descriptors;
mod duration;
mod exit;
pub mod export;
mod export_parquet;
mod files;
pub mod health;
pub mod import;
mod in_use;
pub mod keys;
mod line_file;
pub mod load;
mod output;
mod placed;
pub mod plot;
mod plural;
mod progress;
pub mod reconcile;
pub mod restore;
mod retry;
mod secure;
pub mod serve;
mod service;
mod signals;
mod socket_activation;
mod sockets;
mod summary;
mod trust;
pub mod tune;
mod usual;
pub mod verify;

pub use arguments::run;
pub use exit::ExitStatus;
