//! The client of a Redis or Valkey Cluster. In: requests, each with commands on one key. Out: the answers, or an error
//! that names the node. It follows keys that move to other nodes, and it knows nothing of documents.
//!
//! - `run` sends requests, and sends them again if a node refers to another node or is not ready.
//! - `topology` knows which node has which slot, and asks the nodes for changes.
//! - `node`, `lane`, `dial` and `connection` are the connections: a node has several lanes, a lane has one connection.
//! - `packed` and `replies` are the bytes of commands and answers, and `judge` says what an answer means.
//! - `counts` has the metrics of a node.

mod address;
mod config;
mod connection;
mod counts;
mod dial;
mod error;
mod judge;
mod lane;
mod node;
mod packed;
mod replies;
mod request;
mod run;
mod slots;
#[cfg(test)]
mod tests;
mod topology;

pub(crate) use address::NodeAddress;
pub(crate) use config::ClusterConfig;
pub(crate) use error::ClusterError;
pub(crate) use packed::{Packed, put_decimal};
pub(crate) use request::{Call, Request, Response, Script};
pub(crate) use run::Cluster;
