//! The lanes of one node.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::address::NodeAddress;
use super::config::ClusterConfig;
use super::counts::Counts;
use super::dial::Dial;
use super::error::ClusterError;
use super::lane::{Lane, Reply};
use super::request::Asks;

/// Connections for requests that wait for replicas. They are more, because a `WAIT` stops all commands behind it.
const WAITING_LANES: usize = 2;
const PLAIN_LANES: usize = 1;

/// A node of the cluster. Its lanes connect when they are first used.
#[derive(Debug)]
pub(super) struct Node {
    dial: Arc<Dial>,
    waiting: Vec<Lane>,
    plain: Vec<Lane>,
    turn: AtomicUsize,
}

impl Node {
    pub(super) fn new(address: NodeAddress, config: Arc<ClusterConfig>) -> Self {
        let dial = Arc::new(Dial::new(address, config));
        let lanes = |count, waits| (0..count).map(|_| Lane::start(dial.clone(), waits)).collect();
        let (waiting, plain) = (lanes(WAITING_LANES, true), lanes(PLAIN_LANES, false));
        Self { dial, waiting, plain, turn: AtomicUsize::new(0) }
    }

    pub(super) fn address(&self) -> &NodeAddress {
        self.dial.node()
    }

    pub(super) fn counts(&self) -> &Counts {
        self.dial.counts()
    }

    /// Returns whether the last attempt to connect has failed.
    pub(super) fn is_failing(&self) -> bool {
        self.dial.is_failing()
    }

    /// Returns the error for an answer that did not arrive in time.
    pub(super) fn timed_out(&self) -> ClusterError {
        self.dial.timed_out()
    }

    /// Sends requests. Either all of them wait for replicas, or none.
    pub(super) fn submit(
        &self,
        waits: bool,
        asks: Asks,
        deadline: Instant,
    ) -> Result<oneshot::Receiver<Reply>, ClusterError> {
        let lanes = if waits { &self.waiting } else { &self.plain };
        let lane = &lanes[self.turn.fetch_add(1, Ordering::Relaxed) % lanes.len()];
        lane.submit(asks, deadline).ok_or_else(|| ClusterError::QueueFull { node: self.address().clone() })
    }
}
