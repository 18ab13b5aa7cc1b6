//! A request's handle on the share of its client, for the code that reads bodies and works on documents.
//! If the client has no limits and no key name, the handle does nothing.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;

use super::limit_names::Limit;
use super::share::Share;
use crate::http::error::Problem;

/// The longest sleep of a slowed stream. After each sleep, the stream reads the limits again, because they may have
/// changed.
const NAP_MAX: Duration = Duration::from_secs(1);

/// The share of the request's client, attached to the request.
#[derive(Clone, Default)]
pub struct Quota(Option<Arc<Share>>);

impl Quota {
    pub(crate) fn new(share: Arc<Share>) -> Self {
        Self(Some(share))
    }

    /// Returns the quota attached to a request.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// Counts documents against the client's limit before the work on them begins. Returns 429 if the limit is reached.
    /// Counts either all of the documents or none.
    pub(crate) fn take_documents(&self, documents: usize) -> Result<(), Problem> {
        self.0.as_ref().map_or(Ok(()), |share| share.take(Limit::Documents, documents as u64))
    }

    /// Counts documents of work that has already begun.
    pub(crate) fn charge_documents(&self, documents: usize) {
        self.charge(Limit::Documents, documents as u64);
    }

    /// Counts the documents of work that has already begun, except the one that was counted before the work.
    pub(crate) fn charge_rest(&self, documents: u64) {
        self.charge(Limit::Documents, documents.saturating_sub(1));
    }

    /// Counts bytes of a stream that has already begun.
    pub(crate) fn charge_bytes(&self, bytes: usize) {
        self.charge(Limit::Bytes, bytes as u64);
    }

    fn charge(&self, limit: Limit, units: u64) {
        if let Some(share) = &self.0 {
            share.charge(limit, units);
        }
    }

    /// Waits until a stream may begin another document.
    pub(crate) async fn documents_due(&self) {
        self.due(Limit::Documents, || {}).await;
    }

    /// Waits until a stream may read more bytes.
    pub(crate) async fn bytes_due(&self) {
        self.due(Limit::Bytes, || {}).await;
    }

    async fn due(&self, limit: Limit, mut waiting: impl FnMut()) {
        let Some(share) = &self.0 else { return };
        let mut wait = share.wait(limit);
        if !wait.is_zero() {
            share.slowed();
        }
        while !wait.is_zero() {
            waiting();
            tokio::time::sleep(wait.min(NAP_MAX)).await;
            wait = share.wait(limit);
        }
    }

    /// Begins counting the bytes of a body.
    pub(crate) fn arriving(&self) -> Arriving {
        Arriving { quota: self.clone(), bytes: 0 }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Quota {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}

/// The bytes of a body that has partly arrived. They count even if the body is given up.
pub(crate) struct Arriving {
    quota: Quota,
    bytes: u64,
}

impl Arriving {
    pub(crate) fn arrived(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Takes the bytes before any work on them; 429 if the limit is reached.
    pub(crate) fn take(&mut self) -> Result<(), Problem> {
        let bytes = std::mem::take(&mut self.bytes);
        self.quota.0.as_ref().map_or(Ok(()), |share| share.take(Limit::Bytes, bytes))
    }

    /// Counts the bytes so far, and waits until more bytes may be read. Calls `waiting` before each sleep.
    pub(crate) async fn more_due(&mut self, waiting: impl FnMut()) {
        self.quota.charge(Limit::Bytes, std::mem::take(&mut self.bytes));
        self.quota.due(Limit::Bytes, waiting).await;
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.quota.charge(Limit::Bytes, self.bytes);
        }
    }
}
