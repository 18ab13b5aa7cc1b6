//! What the tests share.

pub mod library;
pub mod server;
