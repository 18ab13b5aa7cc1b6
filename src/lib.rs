//! hapax: near-duplicate lookup as a service.
#![allow(missing_docs)]
pub mod collection;
pub mod index;
pub mod http;
pub mod telemetry;
pub mod types;
