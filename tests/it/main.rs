//! The integration tests: one binary, files named after what they claim.

mod config;
