//! The JSON of requests and answers, one file for each kind. Handlers write no JSON by hand. Nothing here decides
//! anything. `text` writes the members of an object faster than serde does.

pub mod audit;
pub mod backup;
pub mod buckets;
pub mod capture;
pub mod cluster;
pub mod collection;
pub mod collection_verdict;
pub mod compare;
pub mod document;
pub mod explanation;
pub mod golden;
pub mod job;
pub mod key;
pub mod list;
pub mod load;
pub mod overlaps;
pub mod page;
pub mod statistics;
pub mod summary;
pub mod tune;
pub mod verdict;

mod signed_text;
mod text;
mod values;
