//! Collections on a Redis or Valkey Cluster. Several servers share them: the documents and their postings are in the
//! cluster, and `protocol/` decides which of several similar documents is stored. Experimental: see docs/redis.md.
//!
//! - `protocol` says which commands to send, and is checked by a model.
//! - `wire` writes these commands for Redis, with the keys of `keys`, the records of `record` and the postings of
//!   `postings`. `drive` sends them.
//! - `cluster` is the client of the cluster.
//! - `catalogue` is the list of the collections, and `entry` is the part of it that one collection follows. `dropping`
//!   removes the data of collections that were dropped.
//! - `start` connects to the cluster if it is fit: `fitness` looks at its nodes, `permissions` at the user, and `format`
//!   at the keys. `watch` looks again while the server runs, and `primaries` counts primaries that were replaced or
//!   have restarted.
//! - `filling` fills a new collection with documents that were stored elsewhere.
//! - `reconcile` adds and removes what a cluster has lost, by a command of the operator.
//! - `store` and `collection` are the operations that the facade calls.

mod asked;
mod buckets;
mod call;
mod catalogue;
mod cluster;
mod collection;
mod context;
mod counters;
mod dangling;
mod drive;
mod dropping;
mod entry;
mod failure;
mod fields;
mod filling;
mod first_verdict;
mod fitness;
mod format;
mod in_turn;
mod insertion;
mod keys;
mod line_order;
mod pages;
mod patience;
mod permissions;
mod postings;
mod primaries;
mod protocol;
mod reads;
mod reconcile;
mod record;
mod scripts;
mod size;
mod start;
mod store;
mod walker;
mod watch;
mod wire;

pub use collection::{AT_ONCE, RedisCollection};
pub use filling::{FillError, FilledDocument, FilledMatch, FilledVerdict, Filling};
pub use in_turn::{delete_in_turn, insert_in_turn};
pub use line_order::LineOrder;
pub use store::RedisStore;
