//! The part of bulk and batch requests that asks several collections about each document (`?collections=`).

use crate::collections::{
    AskedCollections, CheckOptions, CollectionError, Elsewhere, JointVerdict, PrepareOptions, Prepared,
};
use crate::http::audited::AuditedChecks;
use crate::http::caller::Caller;
use crate::http::elsewhere::not_asked;
use crate::http::state::AppState;
use crate::types::{Content, DocId, Verdict};

/// All collections of a request that asks several.
#[derive(Clone)]
pub(super) struct Several {
    asked: AskedCollections,
    checks: AuditedChecks,
}

impl Several {
    pub(super) fn new(state: &AppState, caller: &Caller, asked: AskedCollections) -> Self {
        Self { checks: AuditedChecks::of(state, caller, &asked), asked }
    }

    pub(super) fn asked(&self) -> &AskedCollections {
        &self.asked
    }

    /// Looks a document up in all collections of the request.
    pub(super) async fn check(
        &self,
        id: Option<DocId>,
        content: Content,
        prepare: PrepareOptions,
        options: CheckOptions,
        bytes_max: usize,
    ) -> Result<JointVerdict, CollectionError> {
        let mut prepared = self.asked.prepare(content, prepare).await?;
        let page = prepared[0].take_page();
        let bytes_max = bytes_max.saturating_sub(page.as_ref().map_or(0, |page| page.json_bytes()));
        let said = |at, verdict: &Verdict, content| self.checks.checked(at, verdict, content);
        let mut joint = self.asked.check(id, prepared, options, bytes_max, said).await?;
        joint.verdict_mut().page = page;
        Ok(joint)
    }

    /// Prepares a document to be inserted: for the collection of the path, and for the others.
    pub(super) async fn prepare(
        &self,
        content: Content,
        prepare: PrepareOptions,
    ) -> Result<(Prepared, Vec<Prepared>), CollectionError> {
        let mut prepared = self.asked.prepare(content, prepare).await?;
        let others = prepared.split_off(1);
        Ok((prepared.remove(0), others))
    }

    /// Looks a document up in the other collections.
    pub(super) async fn elsewhere(
        &self,
        prepared: Vec<Prepared>,
        options: CheckOptions,
        bytes_max: usize,
    ) -> Elsewhere {
        let said = |at, verdict: &Verdict, content| self.checks.checked(at + 1, verdict, content);
        self.asked.elsewhere(prepared, options, bytes_max, said).await
    }

    /// Adds the verdicts of the other collections to the verdict on an insertion.
    pub(super) fn inserted(&self, verdict: Verdict, elsewhere: Elsewhere) -> JointVerdict {
        not_asked(&elsewhere);
        self.asked.inserted(verdict, elsewhere)
    }
}
