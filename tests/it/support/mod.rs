//! What the tests share.

pub mod client;
pub mod description;
pub mod library;
pub mod local;
pub mod server;
