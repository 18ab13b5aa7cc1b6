//! One function per route: extract, ask the floor below, shape the answer. No logic of their own.

pub mod backups;
pub mod batch;
pub mod bulk;
pub mod clusters;
pub mod collections;
pub mod documents;
pub mod ops;
mod pages;
pub mod tools;

pub use ops::OPENAPI;
