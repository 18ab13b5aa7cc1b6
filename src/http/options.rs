//! The query parameters for the work on one document, as far as the key allows them.

use super::caller::Caller;
use super::dto::document::Invalid;
use super::dto::page::with_page;
use super::error::Problem;
use super::query::Query;
use crate::collections::{CheckOptions, InsertOptions};
use crate::keys::Scope;
use crate::types::{Metadata, OnDuplicate, OnExisting, PageFacts};

/// The most matches in one verdict.
const MATCHES_MAX: usize = 1000;
const MATCHES_DEFAULT: usize = 10;

/// The options of an insert.
#[derive(Clone, Copy, Debug)]
pub(super) struct InsertAsked {
    pub(super) options: InsertOptions,
    /// Whether the title, address and language of a page are added to its metadata.
    page_metadata: bool,
}

impl InsertAsked {
    /// Returns the metadata to store: the one that was sent, with the facts of the page if the client asked for that.
    pub(super) fn metadata(
        self,
        sent: Option<Metadata>,
        page: Option<&PageFacts>,
    ) -> Result<Option<Metadata>, Problem> {
        match page.filter(|_| self.page_metadata) {
            Some(page) => with_page(sent.as_ref(), page).map(Some),
            None => Ok(sent),
        }
    }
}

/// Reads the options of a check.
pub(super) fn check_options(query: &Query, caller: &Caller) -> Result<CheckOptions, Problem> {
    let with_metadata = with_metadata(query, caller)?;
    let explain = explain(query, caller)?;
    Ok(CheckOptions { threshold: query.threshold()?, limit: limit(query)?, with_metadata, explain })
}

/// Reads the options of an insert.
pub(super) fn insert_options(query: &Query, caller: &Caller) -> Result<InsertAsked, Problem> {
    let on_duplicate = [("skip", OnDuplicate::Skip), ("link", OnDuplicate::Link), ("store", OnDuplicate::Store)];
    let on_existing =
        [("conflict", OnExisting::Conflict), ("replace", OnExisting::Replace), ("keep", OnExisting::Keep)];
    let on_existing = query.choice("on_existing", &on_existing)?;
    if on_existing == OnExisting::Replace {
        caller.require_for(Scope::Delete, "on_existing=replace")?;
    }
    let options = InsertOptions {
        on_duplicate: query.choice("on_duplicate", &on_duplicate)?,
        on_existing,
        limit: limit(query)?,
        with_metadata: with_metadata(query, caller)?,
        explain: explain(query, caller)?,
    };
    Ok(InsertAsked { options, page_metadata: query.flag("page_metadata")? })
}

fn limit(query: &Query) -> Result<usize, Problem> {
    query.integer("limit", MATCHES_DEFAULT, 1..=MATCHES_MAX)
}

fn with_metadata(query: &Query, caller: &Caller) -> Result<bool, Problem> {
    let with = query.choice("with", &[("none", false), ("metadata", true)])?;
    if with {
        caller.require_for(Scope::Read, "with=metadata")?;
    }
    Ok(with)
}

/// Reads `?explain=`.
fn explain(query: &Query, caller: &Caller) -> Result<bool, Problem> {
    let explain = query.flag("explain")?;
    if explain {
        caller.require_for(Scope::Explain, "explain=true")?;
    }
    Ok(explain)
}

/// Reads `?invalid=`.
pub(super) fn invalid(query: &Query) -> Result<Invalid, Problem> {
    query.choice("invalid", &[("refuse", Invalid::Refuse), ("replace", Invalid::Replace)])
}
