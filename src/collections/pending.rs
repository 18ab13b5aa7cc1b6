//! A decision on its way to being durable.

use std::borrow::Borrow;

use super::Result;
use crate::engine::Ticket;
use crate::types::Verdict;

/// An answer that is decided, and is given once everything it rests on is durable.
pub struct Pending<T>(PendingKind<T>);

enum PendingKind<T> {
    Local(Ticket<T>),
}

impl<T> Pending<T> {
    /// Returns once everything the answer rests on is durable. An error: it is not, and the decision is undone, or may be.
    pub async fn wait(self) -> Result<T> {
        match self.0 {
            PendingKind::Local(ticket) => ticket.wait().await,
        }
    }

    /// The answer's most bytes in JSON.
    pub fn json_bytes(&self) -> usize
    where
        T: Borrow<Verdict>,
    {
        match &self.0 {
            PendingKind::Local(ticket) => ticket.json_bytes(),
        }
    }

    /// When this was decided, as a number for audits and tests, which replay answers in the order of their decisions: a
    /// change's own number, and for an answer that changed nothing the number of the last change before it.
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
