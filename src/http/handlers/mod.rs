//! One function per route: it extracts the parameters, calls the modules below and builds the answer. Handlers have no
//! logic of their own.

pub mod audit;
pub mod backups;
pub mod batch;
pub mod bulk;
pub mod clusters;
pub mod collections;
pub mod dedup;
pub mod documents;
pub mod golden;
pub mod jobs;
pub mod keys;
pub mod loads;
pub mod ops;
pub mod overlaps;
mod pages;
mod passages;
mod several;
pub mod tools;
mod verdict_answer;

pub use ops::OPENAPI;
