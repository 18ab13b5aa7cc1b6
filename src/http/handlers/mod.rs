//! One function per route: it extracts the parameters, calls the floor below and shapes the answer. No logic of its
//! own.

pub mod backups;
pub mod batch;
pub mod bulk;
pub mod clusters;
pub mod collections;
pub mod documents;
pub mod golden;
pub mod jobs;
pub mod ops;
mod pages;
mod several;
pub mod tools;
mod verdict_answer;

pub use ops::OPENAPI;
