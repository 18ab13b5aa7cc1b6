//! Helpers that several tests share.

pub mod authority;
pub mod client;
pub mod clock;
pub mod command;
pub mod description;
#[cfg(target_os = "linux")]
pub mod disk;
pub mod documents;
pub mod http2;
pub mod jsonl;
pub mod library;
pub mod local;
pub mod metrics;
pub mod orders;
pub mod prometheus;
pub mod redis;
pub mod server;
pub mod signatures;
pub mod sources;
pub mod until;
