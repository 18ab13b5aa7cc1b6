//! The decisions of one request -> lines of the audit log. Only decisions are logged: there is no line for a document
//! that is refused. A line has the whole verdict, even if the key of the request sees only a part of it. Without an
//! audit log nothing is done here.

use std::sync::Arc;

use futures::future::{Either, FutureExt};
use hapax_core::{ContentHash, Fingerprint};
use jiff::Timestamp;
use tokio::runtime::Handle;

use super::caller::Caller;
use super::state::AppState;
use crate::audit::{AuditLog, Decided, Decision};
use crate::collections::{AskedCollections, Collection, CollectionError, Pending};
use crate::telemetry::request::current_id;
use crate::types::{DocId, LabelDeletion, Merge, Verdict};

/// The facts that the lines of one request have in common; empty without an audit log. Cheap to clone.
#[derive(Clone)]
pub(super) struct Audited(Option<Arc<Common>>);

/// The same facts for a request that asks several collections: one entry for each collection, in their order. Cheap to
/// clone.
#[derive(Clone)]
pub(super) struct AuditedChecks(Arc<[Audited]>);

struct Common {
    log: Arc<AuditLog>,
    caller: Caller,
    collection: Collection,
    request_id: String,
    spec: Fingerprint,
    /// The runtime that the request runs on.
    runtime: Handle,
}

impl Audited {
    /// Returns the facts of the request that the current task answers.
    pub(super) fn of(state: &AppState, caller: &Caller, collection: &Collection) -> Self {
        Self(state.audit().map(|log| {
            Arc::new(Common {
                log: Arc::clone(log),
                caller: caller.clone(),
                collection: collection.clone(),
                request_id: current_id().unwrap_or_default(),
                // Computed once: a stream has many documents, and a spec never changes.
                spec: collection.settings().spec.fingerprint(),
                runtime: Handle::current(),
            })
        }))
    }

    /// The same as [`of`](Self::of), for a request that only checks: empty if checks are not logged.
    pub(super) fn of_check(state: &AppState, caller: &Caller, collection: &Collection) -> Self {
        let has_checks = state.audit().is_some_and(|log| log.has_checks());
        if has_checks { Self::of(state, caller, collection) } else { Self(None) }
    }

    /// Logs a check, if checks are logged.
    pub(super) fn checked(&self, verdict: &Verdict, content: Option<ContentHash>) {
        if let Some(common) = self.0.as_ref().filter(|common| common.log.has_checks()) {
            common.record(Timestamp::now(), content, Decided::Checked(verdict));
        }
    }

    /// Waits until an insertion is durable, and logs it. It is logged even if the client leaves after the decision.
    pub(super) fn inserted(
        &self,
        ticket: Pending<Verdict>,
        content: Option<ContentHash>,
    ) -> impl Future<Output = Result<Verdict, CollectionError>> + Send + use<> {
        self.answer(ticket, move |common, at, verdict| common.record(at, content, Decided::Inserted(verdict)))
    }

    /// Waits until a deletion is durable, and logs it. It is logged even if the client leaves after the decision.
    pub(super) fn deleted(
        &self,
        ticket: Pending<bool>,
        id: &DocId,
    ) -> impl Future<Output = Result<bool, CollectionError>> + Send + use<> {
        let id = id.clone();
        self.answer(ticket, move |common, at, &was_there| {
            common.record(at, None, Decided::Deleted { id: &id, was_there });
        })
    }

    /// Does the same as [`deleted`](Self::deleted) for a deletion by label.
    pub(super) fn label_deleted(
        &self,
        ticket: Pending<LabelDeletion>,
    ) -> impl Future<Output = Result<LabelDeletion, CollectionError>> + Send + use<> {
        self.answer(ticket, |common, at, deletion| common.record(at, None, Decided::LabelDeleted(deletion)))
    }

    /// Does the same as [`deleted`](Self::deleted) for the beginning of a merge.
    pub(super) fn merge_begun(
        &self,
        ticket: Pending<Merge>,
    ) -> impl Future<Output = Result<Merge, CollectionError>> + Send + use<> {
        self.answer(ticket, |common, at, merge| common.record(at, None, Decided::MergeBegun(merge)))
    }

    fn answer<T, L>(
        &self,
        ticket: Pending<T>,
        log: L,
    ) -> impl Future<Output = Result<T, CollectionError>> + Send + use<T, L>
    where
        T: Send + 'static,
        L: FnOnce(&Common, Timestamp, &T) + Send + 'static,
    {
        let Some(common) = &self.0 else { return Either::Left(ticket.wait()) };
        let (this, open, at) = (Arc::clone(common), common.log.open(), Timestamp::now());
        // The decision is already made, so a separate task logs it, even if the client leaves. The task does not run on
        // the threads of bulk requests, because those threads end before the log does.
        let task = common.runtime.spawn(async move {
            let answer = ticket.wait().await?;
            log(&this, at, &answer);
            drop(open);
            Ok(answer)
        });
        Either::Right(task.map(|ended| ended.unwrap_or_else(|_| Err(CollectionError::closed()))))
    }
}

impl AuditedChecks {
    pub(super) fn of(state: &AppState, caller: &Caller, asked: &AskedCollections) -> Self {
        let all = std::iter::once(asked.own()).chain(asked.others());
        Self(all.map(|collection| Audited::of_check(state, caller, collection)).collect())
    }

    /// Logs the check of one of the collections, if checks are logged.
    pub(super) fn checked(&self, at: usize, verdict: &Verdict, content: Option<ContentHash>) {
        self.0[at].checked(verdict, content);
    }
}

impl Common {
    fn record(&self, at: Timestamp, content: Option<ContentHash>, decided: Decided<'_>) {
        self.log.record(&Decision {
            at,
            request_id: &self.request_id,
            key: self.caller.name(),
            collection: self.collection.name(),
            content,
            spec: self.spec,
            banding: self.collection.settings().banding,
            decided,
        });
    }
}
