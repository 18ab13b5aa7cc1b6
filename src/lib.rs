//! hapax: near-duplicate lookup as a service.
#![allow(missing_docs)]
pub mod collection;
pub mod store;
pub mod types;
