//! A decision that may not be on disk yet.

use tokio::sync::oneshot;

use crate::types::{Seq, Verdict};
use crate::verdicts::{CollectionError, Result};

/// An answer, good once everything it rests on is on disk.
pub struct Ticket<T> {
    value: T,
    at: Seq,
    durable: Option<oneshot::Receiver<Result<()>>>,
}

impl<T> Ticket<T> {
    /// Everything it rests on is on disk.
    pub(super) fn ready(value: T, at: Seq) -> Self {
        Self { value, at, durable: None }
    }

    /// It waits for the disk.
    pub(super) fn waiting(value: T, at: Seq, durable: oneshot::Receiver<Result<()>>) -> Self {
        Self { value, at, durable: Some(durable) }
    }

    /// The place in the commit order that was the last given out when this was decided; a change's own place.
    pub fn at(&self) -> Seq {
        self.at
    }

    /// The answer, not yet to be given.
    pub(crate) fn value(&self) -> &T {
        &self.value
    }

    /// The answer's most bytes in JSON.
    pub fn json_bytes(&self) -> usize
    where
        T: std::borrow::Borrow<Verdict>,
    {
        self.value.borrow().bytes()
    }

    /// The answer, to be changed before it is given.
    pub(crate) fn value_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// Returns once everything the answer rests on is on disk.
    pub async fn wait(self) -> Result<T> {
        if let Some(durable) = self.durable {
            durable.await.unwrap_or_else(|_| Err(CollectionError::closed()))?;
        }
        Ok(self.value)
    }
}
