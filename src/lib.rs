//! hapax: near-duplicate lookup as a service.
//! Modules in floor order: each imports only those above it.

pub mod types;
pub mod telemetry;
pub mod index;
pub mod store;
pub mod collection;
