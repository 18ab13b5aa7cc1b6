//! The collection in a request's path. The request is refused if the key may not use that collection (`caller.rs`).

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;

use crate::collections::{Collection, Collections};
use crate::http::error::Problem;
use crate::http::notes::caller_of;
use crate::http::refusals::Reason;
use crate::http::state::AppState;
use crate::types::CollectionName;

/// All collections. The answer is 503 until they are known.
pub struct OpenCollections(pub Collections);

impl OpenCollections {
    pub(super) fn of(state: &AppState) -> Result<Self, Problem> {
        state.boot().collections().map(|collections| Self(collections.clone()))
    }
}

impl FromRequestParts<AppState> for OpenCollections {
    type Rejection = Problem;

    async fn from_request_parts(_parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        Self::of(state)
    }
}

/// The collection's name in the path; 422 if the name is not valid, 403 if the key may not use the collection.
pub struct PathName(pub CollectionName);

impl FromRequestParts<AppState> for PathName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let name = match plain_name(parts.uri.path()) {
            Some(name) => CollectionName::new(name)?,
            None => encoded_name(parts, state).await?,
        };
        // Every handler gets the name and the collection from here, so this check is enough.
        if let Err(problem) = caller_of(&parts.extensions).require_use(&name) {
            state.refusals().note(&parts.extensions, Reason::Forbidden);
            return Err(problem);
        }
        Ok(Self(name))
    }
}

/// Returns the name in a path, if it needs no decoding.
fn plain_name(path: &str) -> Option<&str> {
    let name = path.strip_prefix("/v1/collections/")?.split('/').next()?;
    (!name.contains('%')).then_some(name)
}

async fn encoded_name(parts: &mut Parts, state: &AppState) -> Result<CollectionName, Problem> {
    let params = RawPathParams::from_request_parts(parts, state)
        .await
        .map_err(|_| Problem::invalid("collection", "is not valid UTF-8 after percent-decoding"))?;
    let name = params.iter().find(|(name, _)| *name == "collection").map_or("", |(_, value)| value);
    Ok(CollectionName::new(name)?)
}

/// The collection that the path names; 404 if it does not exist.
pub struct Target(pub Collection);

impl FromRequestParts<AppState> for Target {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let OpenCollections(collections) = OpenCollections::from_request_parts(parts, state).await?;
        let PathName(name) = PathName::from_request_parts(parts, state).await?;
        Ok(Self(collections.get(&name).await?))
    }
}
