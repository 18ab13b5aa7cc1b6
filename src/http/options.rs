//! The query parameters for the work on one document.

use super::dto::document::Invalid;
use super::error::Problem;
use super::query::Query;
use crate::collections::{CheckOptions, InsertOptions};
use crate::types::{OnDuplicate, OnExisting};

/// The most matches in one verdict.
const MATCHES_MAX: usize = 1000;
const MATCHES_DEFAULT: usize = 10;

/// Reads the options of a check.
pub(super) fn check_options(query: &Query) -> Result<CheckOptions, Problem> {
    Ok(CheckOptions { threshold: query.threshold()?, limit: limit(query)?, with_metadata: with_metadata(query)? })
}

/// Reads the options of an insert.
pub(super) fn insert_options(query: &Query) -> Result<InsertOptions, Problem> {
    let on_duplicate = [("skip", OnDuplicate::Skip), ("link", OnDuplicate::Link), ("store", OnDuplicate::Store)];
    let on_existing =
        [("conflict", OnExisting::Conflict), ("replace", OnExisting::Replace), ("keep", OnExisting::Keep)];
    Ok(InsertOptions {
        on_duplicate: query.choice("on_duplicate", &on_duplicate)?,
        on_existing: query.choice("on_existing", &on_existing)?,
        limit: limit(query)?,
        with_metadata: with_metadata(query)?,
    })
}

fn limit(query: &Query) -> Result<usize, Problem> {
    query.integer("limit", MATCHES_DEFAULT, 1..=MATCHES_MAX)
}

fn with_metadata(query: &Query) -> Result<bool, Problem> {
    query.choice("with", &[("none", false), ("metadata", true)])
}

/// Reads `?invalid=`.
pub(super) fn invalid(query: &Query) -> Result<Invalid, Problem> {
    query.choice("invalid", &[("refuse", Invalid::Refuse), ("replace", Invalid::Replace)])
}
