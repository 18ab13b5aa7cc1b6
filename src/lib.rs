//! hapax: near-duplicate lookup as a service.
#![allow(missing_docs)]
pub mod types;
pub mod telemetry;
pub mod collection;
pub mod config;
