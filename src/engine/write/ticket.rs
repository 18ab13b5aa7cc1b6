//! A decision that may not be on disk yet.

use tokio::sync::oneshot;

use crate::types::{Seq, Verdict};
use crate::verdicts::{CollectionError, Result};

/// An answer that may be given once all the data that it depends on is on disk.
pub struct Ticket<T> {
    value: T,
    at: Seq,
    durable: Option<oneshot::Receiver<Result<()>>>,
}

impl<T> Ticket<T> {
    /// Makes a ticket for an answer that can be given now.
    pub(super) fn ready(value: T, at: Seq) -> Self {
        Self { value, at, durable: None }
    }

    /// Makes a ticket that waits for the disk.
    pub(super) fn waiting(value: T, at: Seq, durable: oneshot::Receiver<Result<()>>) -> Self {
        Self { value, at, durable: Some(durable) }
    }

    /// Returns the last position in the commit order that was assigned when the decision was made. For a change, this
    /// is the position of the change itself.
    pub fn at(&self) -> Seq {
        self.at
    }

    /// Returns the answer, which must not be given to a client yet.
    pub(crate) fn value(&self) -> &T {
        &self.value
    }

    /// Returns an upper bound on the size of the answer as JSON, in bytes.
    pub fn json_bytes(&self) -> usize
    where
        T: std::borrow::Borrow<Verdict>,
    {
        self.value.borrow().bytes()
    }

    /// Returns the answer, to change it before it is given to a client.
    pub(crate) fn value_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// Waits until all the data that the answer depends on is on disk, and returns the answer.
    pub async fn wait(self) -> Result<T> {
        if let Some(durable) = self.durable {
            durable.await.unwrap_or_else(|_| Err(CollectionError::closed()))?;
        }
        Ok(self.value)
    }
}
