//! A decision that is not durable yet.

use std::borrow::Borrow;

use super::Result;
use crate::engine::Ticket;
use crate::types::{LookupTimes, Verdict};

/// An answer whose decision is made. It is returned when everything that it depends on is durable.
pub struct Pending<T>(PendingKind<T>);

enum PendingKind<T> {
    Local(Ticket<T>),
}

impl<T> Pending<T> {
    /// Waits until everything that the answer depends on is durable. An error means that the decision was undone or may
    /// have been undone.
    pub async fn wait(self) -> Result<T> {
        match self.0 {
            PendingKind::Local(ticket) => ticket.wait().await,
        }
    }

    /// Returns the largest possible size of the answer as JSON, in bytes.
    pub fn json_bytes(&self) -> usize
    where
        T: Borrow<Verdict>,
    {
        match &self.0 {
            PendingKind::Local(ticket) => ticket.json_bytes(),
        }
    }

    /// Returns the times of the lookup that the answer is based on.
    pub fn lookup_times(&self) -> LookupTimes
    where
        T: Borrow<Verdict>,
    {
        match &self.0 {
            PendingKind::Local(ticket) => ticket.value().borrow().times,
        }
    }

    /// Returns the place of the decision in the commit order, for audits and tests that replay answers. It is the
    /// number of the change. If the decision changed nothing, it is the number of the last change before the decision.
    pub fn decided_at(&self) -> u64 {
        match &self.0 {
            PendingKind::Local(ticket) => ticket.at().0,
        }
    }
}

impl<T> From<Ticket<T>> for Pending<T> {
    fn from(ticket: Ticket<T>) -> Self {
        Self(PendingKind::Local(ticket))
    }
}
