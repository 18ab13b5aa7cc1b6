//! The query parameters for the work on one document, as far as the key allows them.

use super::caller::Caller;
use super::dto::document::{Extra, Invalid};
use super::dto::page::with_page;
use super::error::Problem;
use super::query::Query;
use crate::collections::{CheckOptions, InsertOptions};
use crate::keys::Scope;
use crate::types::{Metadata, OnDuplicate, OnExisting, PageFacts};

/// The most matches in one verdict.
const MATCHES_MAX: usize = 1000;
const MATCHES_DEFAULT: usize = 10;

// The first value of each is the default.
const ON_DUPLICATE: [(&str, OnDuplicate); 3] =
    [("skip", OnDuplicate::Skip), ("link", OnDuplicate::Link), ("store", OnDuplicate::Store)];
const ON_EXISTING: [(&str, OnExisting); 3] =
    [("conflict", OnExisting::Conflict), ("replace", OnExisting::Replace), ("keep", OnExisting::Keep)];
const WITH: [(&str, bool); 2] = [("none", false), ("metadata", true)];
const INVALID: [(&str, Invalid); 2] = [("refuse", Invalid::Refuse), ("replace", Invalid::Replace)];

/// Returns whether a parameter of a check or an insert is absent or has its default value. Both mean the same, and
/// generated clients send every default.
pub(super) fn is_default(query: &Query, name: &str) -> bool {
    let Some(value) = query.get(name) else { return true };
    match name {
        "limit" => limit(query).is_ok_and(|limit| limit == MATCHES_DEFAULT),
        "with" => value == WITH[0].0,
        "on_duplicate" => value == ON_DUPLICATE[0].0,
        "on_existing" => value == ON_EXISTING[0].0,
        "invalid" => value == INVALID[0].0,
        "explain" | "page_metadata" => value == "false",
        _ => false,
    }
}

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
    let on_existing = query.choice("on_existing", &ON_EXISTING)?;
    if on_existing == OnExisting::Replace {
        caller.require_for(Scope::Delete, "on_existing=replace")?;
    }
    let options = InsertOptions {
        on_duplicate: query.choice("on_duplicate", &ON_DUPLICATE)?,
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
    let with = query.choice("with", &WITH)?;
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
    query.choice("invalid", &INVALID)
}

/// Reads `?extra=`.
pub(super) fn extra(query: &Query) -> Result<Extra, Problem> {
    query.choice("extra", &[("refuse", Extra::Refuse), ("ignore", Extra::Ignore)])
}
