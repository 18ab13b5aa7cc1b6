//! A decision that is not durable yet, or has not even been made.

use std::borrow::Borrow;

use futures::future::BoxFuture;

use super::Result;
use crate::engine::Ticket;
use crate::types::{LookupTimes, Verdict};

/// An answer that is on its way. It is returned when everything that it depends on is durable.
pub struct Pending<T>(PendingKind<T>);

enum PendingKind<T> {
    Local(Ticket<T>),
    /// The decision is durable already.
    Durable(T),
    /// The decision is made in its turn. If this is dropped before, it is not made.
    InTurn {
        decision: BoxFuture<'static, Result<T>>,
        /// The largest possible size of the answer as JSON, in bytes.
        json_bytes_max: usize,
    },
}

impl<T> Pending<T> {
    pub(super) fn durable(answer: T) -> Self {
        Self(PendingKind::Durable(answer))
    }

    pub(super) fn in_turn(decision: BoxFuture<'static, Result<T>>, json_bytes_max: usize) -> Self {
        Self(PendingKind::InTurn { decision, json_bytes_max })
    }

    /// Waits until everything that the answer depends on is durable. An error means that the decision was undone or may
    /// have been undone.
    pub async fn wait(self) -> Result<T> {
        match self.0 {
            PendingKind::Local(ticket) => ticket.wait().await,
            PendingKind::Durable(answer) => Ok(answer),
            PendingKind::InTurn { decision, .. } => decision.await,
        }
    }

    /// Returns the largest possible size of the answer as JSON, in bytes.
    pub fn json_bytes(&self) -> usize
    where
        T: Borrow<Verdict>,
    {
        match &self.0 {
            PendingKind::Local(ticket) => ticket.json_bytes(),
            PendingKind::Durable(answer) => answer.borrow().bytes(),
            PendingKind::InTurn { json_bytes_max, .. } => *json_bytes_max,
        }
    }

    /// Returns the times of the lookup that the answer is based on.
    pub fn lookup_times(&self) -> LookupTimes
    where
        T: Borrow<Verdict>,
    {
        match &self.0 {
            PendingKind::Local(ticket) => ticket.value().borrow().times,
            PendingKind::Durable(answer) => answer.borrow().times,
            PendingKind::InTurn { .. } => LookupTimes::default(),
        }
    }

    /// Returns the place of the decision in the commit order, for audits and tests that replay answers. It is the
    /// number of the change. If the decision changed nothing, it is the number of the last change before the decision.
    pub fn decided_at(&self) -> u64 {
        match &self.0 {
            PendingKind::Local(ticket) => ticket.at().0,
            // A Redis cluster has no common order of commits.
            PendingKind::Durable(_) | PendingKind::InTurn { .. } => 0,
        }
    }
}

impl<T> From<Ticket<T>> for Pending<T> {
    fn from(ticket: Ticket<T>) -> Self {
        Self(PendingKind::Local(ticket))
    }
}
