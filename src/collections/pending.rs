//! A decision that is not durable yet.

use std::borrow::Borrow;

use super::Result;
use crate::engine::Ticket;
use crate::types::{LookupTimes, Verdict};

/// An answer that is decided. It is returned when everything that it depends on is durable.
pub struct Pending<T>(PendingKind<T>);

enum PendingKind<T> {
    Local(Ticket<T>),
}

impl<T> Pending<T> {
    /// Waits until everything that the answer depends on is durable. An error means that it is not, and that the
    /// decision was undone or may have been.
    pub async fn wait(self) -> Result<T> {
        match self.0 {
            PendingKind::Local(ticket) => ticket.wait().await,
        }
    }

    /// Returns the most bytes that the answer takes as JSON.
    pub fn json_bytes(&self) -> usize
    where
        T: Borrow<Verdict>,
    {
        match &self.0 {
            PendingKind::Local(ticket) => ticket.json_bytes(),
        }
    }

    /// Returns how long the lookup took that it rests on.
    pub fn lookup_times(&self) -> LookupTimes
    where
        T: Borrow<Verdict>,
    {
        match &self.0 {
            PendingKind::Local(ticket) => ticket.value().borrow().times,
        }
    }

    /// Returns the place of the decision in the order, for audits and tests that replay answers. It is the number of
    /// the change, or of the last change before it if the answer changed nothing.
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
