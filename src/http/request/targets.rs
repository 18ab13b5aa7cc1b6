//! The collections of a request: the collection of the path, and the other collections in `?collections=`.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::path::{OpenCollections, Target};
use crate::collections::{AskedCollections, Collection};
use crate::http::error::Problem;
use crate::http::notes::caller_of;
use crate::http::query::Query;
use crate::http::quota::Quota;
use crate::http::refusals::Reason;
use crate::http::state::AppState;
use crate::types::IndexKind;

/// The collections of a request. For the other collections, the answer is 422 if the list is not valid, 403 if the key
/// may not use one of them, and 404 if one does not exist.
pub struct Targets {
    /// The collection of the path.
    pub own: Collection,
    pub others: Others,
}

/// The other collections that a request asks.
pub struct Others(Option<Box<Named>>);

struct Named {
    collections: Vec<Collection>,
    quota: Quota,
}

impl Others {
    /// Returns all collections that the request asks, `own` first; `None` if it asks no others. The lookups of
    /// `documents` documents in the other collections count as documents too. This cannot lead to a refusal: the
    /// request was accepted when the documents themselves were counted.
    pub(crate) fn asked(self, own: &Collection, documents: usize) -> Option<AskedCollections> {
        let Named { collections, quota } = *self.0?;
        quota.charge_documents(documents * collections.len());
        Some(AskedCollections::new(own.clone(), collections))
    }
}

impl FromRequestParts<AppState> for Targets {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let Target(own) = Target::from_request_parts(parts, state).await?;
        // The parameters are only read here: the handler, or the extractor of the body, takes them later.
        let others = match parts.extensions.get::<Query>().and_then(|query| query.get("collections")) {
            Some(listed) => Some(Box::new(named(listed, &own, parts, state).await?)),
            None => None,
        };
        Ok(Self { own, others: Others(others) })
    }
}

async fn named(listed: &str, own: &Collection, parts: &Parts, state: &AppState) -> Result<Named, Problem> {
    let names = AskedCollections::names(listed, own.name())?;
    // Checked before any collection is looked up, so that the answer does not tell which of the forbidden collections
    // exist.
    let caller = caller_of(&parts.extensions);
    if let Some(problem) = names.iter().find_map(|name| caller.require_use(name).err()) {
        state.refusals().note(&parts.extensions, Reason::Forbidden);
        return Err(problem);
    }
    let OpenCollections(open) = OpenCollections::of(state)?;
    let mut collections = Vec::with_capacity(names.len());
    for name in &names {
        let collection = open.get(name).await?;
        collection.require(IndexKind::Similarity)?;
        collections.push(collection);
    }
    own.require(IndexKind::Similarity)?;
    Ok(Named { collections, quota: Quota::of(&parts.extensions) })
}
