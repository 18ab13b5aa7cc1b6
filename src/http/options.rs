//! Query parameters -> the options for the work on one document. Options that the key does not allow are refused.

use std::sync::Arc;

use super::caller::Caller;
use super::dto::document::{Extra, Invalid};
use super::dto::page::with_page;
use super::error::Problem;
use super::query::Query;
use crate::collections::{Attached, CheckOptions, InsertOptions, OverlapOptions};
use crate::keys;
use crate::types::{
    InvalidLabel, Label, Labels, OnDuplicate, OnExisting, PageFacts, PayloadDigest, SOURCE, Scope, ScopeTerm,
};

/// The most matches in one verdict.
const MATCHES_MAX: usize = 1000;
const MATCHES_DEFAULT: usize = 10;

// The first value of each list is the default.
const ON_DUPLICATE: [(&str, OnDuplicate); 3] =
    [("skip", OnDuplicate::Skip), ("link", OnDuplicate::Link), ("store", OnDuplicate::Store)];
const ON_EXISTING: [(&str, OnExisting); 3] =
    [("conflict", OnExisting::Conflict), ("replace", OnExisting::Replace), ("keep", OnExisting::Keep)];
const WITH: [(&str, bool); 2] = [("none", false), ("metadata", true)];
const INVALID: [(&str, Invalid); 2] = [("refuse", Invalid::Refuse), ("replace", Invalid::Replace)];

/// Returns whether a parameter of a check or an insert is absent or has its default value. Both mean the same, because
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
#[derive(Clone, Debug)]
pub(super) struct InsertAsked {
    options: InsertOptions,
    /// Labels for each document, in addition to the labels that the document itself has.
    labels: Arc<[Label]>,
    /// Whether the title, address and language of a page are added to its metadata.
    page_metadata: bool,
}

impl InsertAsked {
    /// Returns the options of the insertion itself.
    pub(super) fn options(&self) -> InsertOptions {
        self.options
    }

    /// Returns the options of the lookups in other collections.
    pub(super) fn elsewhere(&self, payload_digest: Option<PayloadDigest>) -> CheckOptions {
        let InsertOptions { limit, with_metadata, explain, .. } = self.options;
        CheckOptions { threshold: None, limit, with_metadata, explain, payload_digest, scope: None }
    }

    /// Returns the source of a document: its label `source`.
    pub(super) fn source<'a>(&'a self, sent: &'a Attached) -> Option<&'a str> {
        let of_request = self.labels.iter().find(|label| label.name() == SOURCE).map(Label::value);
        of_request.or_else(|| sent.labels.as_ref()?.get(SOURCE))
    }

    /// Returns the data to store with a content: the data that the client sent, the labels of the request, and the
    /// facts of the page if the client asked for them.
    pub(super) fn attached(&self, sent: Attached, page: Option<&PageFacts>) -> Result<Attached, Problem> {
        let Attached { metadata, labels, capture } = sent;
        let metadata = match page.filter(|_| self.page_metadata) {
            Some(page) => Some(with_page(metadata.as_ref(), page)?),
            None => metadata,
        };
        let labels = match &*self.labels {
            [] => labels,
            added => Some(joined(labels, added)?),
        };
        Ok(Attached { metadata, labels, capture })
    }
}

/// Reads the options of a check, except the digest of the document's payload.
pub(super) fn check_options(query: &Query, caller: &Caller) -> Result<CheckOptions, Problem> {
    let with_metadata = with_metadata(query, caller)?;
    let explain = explain(query, caller)?;
    let scope = scope(query, "scope", ScopeTerm::parse)?.map(Arc::new);
    let (threshold, limit) = (query.threshold()?, limit(query)?);
    Ok(CheckOptions { threshold, limit, with_metadata, explain, payload_digest: None, scope })
}

/// Reads the options of an insert.
pub(super) fn insert_options(query: &Query, caller: &Caller) -> Result<InsertAsked, Problem> {
    let on_existing = query.choice("on_existing", &ON_EXISTING)?;
    if on_existing == OnExisting::Replace {
        caller.require_for(keys::Scope::Delete, "on_existing=replace")?;
    }
    let options = InsertOptions {
        on_duplicate: query.choice("on_duplicate", &ON_DUPLICATE)?,
        on_existing,
        limit: limit(query)?,
        with_metadata: with_metadata(query, caller)?,
        explain: explain(query, caller)?,
        patient: false,
    };
    let labels = query.all("label").map(|text| Label::parse(text).map_err(|error| invalid_label("label", &error)));
    Ok(InsertAsked { options, labels: labels.collect::<Result<_, _>>()?, page_metadata: query.flag("page_metadata")? })
}

/// Reads a scope: each value of the parameter is one condition.
pub(super) fn scope(
    query: &Query,
    name: &'static str,
    term: impl Fn(&str) -> Result<ScopeTerm, InvalidLabel>,
) -> Result<Option<Scope>, Problem> {
    let terms = query.all(name).map(term).collect::<Result<Vec<_>, _>>();
    let scope = terms.and_then(Scope::new).map_err(|error| invalid_label(name, &error))?;
    Ok(Some(scope).filter(|scope| !scope.terms().is_empty()))
}

fn joined(sent: Option<Labels>, added: &[Label]) -> Result<Labels, Problem> {
    let sent = sent.iter().flat_map(Labels::iter).map(|(name, value)| Label::new(name, value));
    let all = sent.chain(added.iter().cloned().map(Ok)).collect::<Result<Vec<_>, _>>();
    let all = all.map(|mut all| {
        // A label may be both in the document and in the request. Such a label is stored once.
        all.sort_unstable();
        all.dedup();
        all
    });
    all.and_then(Labels::new).map_err(|error| invalid_label("label", &error))
}

fn invalid_label(field: &'static str, error: &InvalidLabel) -> Problem {
    Problem::invalid(field, error.to_string())
}

fn limit(query: &Query) -> Result<usize, Problem> {
    query.integer("limit", MATCHES_DEFAULT, 1..=MATCHES_MAX)
}

fn with_metadata(query: &Query, caller: &Caller) -> Result<bool, Problem> {
    let with = query.choice("with", &WITH)?;
    if with {
        caller.require_for(keys::Scope::Read, "with=metadata")?;
    }
    Ok(with)
}

/// Reads `?explain=`.
fn explain(query: &Query, caller: &Caller) -> Result<bool, Problem> {
    let explain = query.flag("explain")?;
    if explain {
        caller.require_for(keys::Scope::Explain, "explain=true")?;
    }
    Ok(explain)
}

/// Reads the options of a lookup by containment.
pub(super) fn overlap_options(query: &Query) -> Result<OverlapOptions, Problem> {
    let containment_min = query.number("min_containment", 0.0, 0.0..=1.0)?;
    Ok(OverlapOptions { containment_min, limit: limit(query)? })
}

/// Reads `?invalid=`.
pub(super) fn invalid(query: &Query) -> Result<Invalid, Problem> {
    query.choice("invalid", &INVALID)
}

/// Reads `?extra=`.
pub(super) fn extra(query: &Query) -> Result<Extra, Problem> {
    query.choice("extra", &[("refuse", Extra::Refuse), ("ignore", Extra::Ignore)])
}
