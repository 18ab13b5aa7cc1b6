//! The handler for clusters, page by page.

use axum::extract::State;

use super::pages::{ENVELOPE_BYTES, PAGE_DEFAULT, PAGE_MAX};
use crate::collections::{ClusterMember, CollectionError, Cursor};
use crate::http::answer::Answer;
use crate::http::dto::cluster::{ClusterBody, LargestBody};
use crate::http::error::Problem;
use crate::http::query::Query;
use crate::http::quota::Quota;
use crate::http::request::Target;
use crate::http::state::AppState;

/// `GET …/clusters`: the cluster of `?id=`, or all clusters of more than one document.
pub async fn read(
    State(state): State<AppState>,
    Target(collection): Target,
    query: Query,
    quota: Quota,
) -> Result<Answer<ClusterBody>, Problem> {
    quota.take_documents(1)?;
    let limit = query.integer("limit", PAGE_DEFAULT, 1..=PAGE_MAX)?;
    let after = query.get("cursor").map(Cursor::parse).transpose()?;
    let mut room = state.answer_room(limit * ClusterMember::BYTES_MAX)?;
    let Some(id) = query.id()? else {
        let mut page = collection.clusters(after, limit).await?;
        page.fit(room.json_bytes_max());
        room.is_made(ENVELOPE_BYTES + page.members.iter().map(ClusterMember::bytes).sum::<usize>());
        quota.charge_rest(page.members.len() as u64);
        let next_cursor = page.next.as_ref().map(Cursor::to_string);
        return Ok(Answer::new(ClusterBody::all(page, next_cursor), room));
    };
    let page = collection.cluster(id.clone(), after, limit).await?;
    let mut page = page.ok_or(CollectionError::NoSuchDocument { id })?;
    page.fit(room.json_bytes_max());
    quota.charge_rest(page.members.len() as u64);
    let next_cursor = page.next.as_ref().map(Cursor::to_string);
    room.is_made(2 * ENVELOPE_BYTES + page.members.iter().map(ClusterMember::bytes).sum::<usize>());
    Ok(Answer::new(ClusterBody::one(page, next_cursor), room))
}

/// `GET …/clusters/largest`
pub async fn largest(
    State(state): State<AppState>,
    Target(collection): Target,
    query: Query,
    quota: Quota,
) -> Result<Answer<LargestBody>, Problem> {
    quota.take_documents(1)?;
    let limit = query.integer("limit", PAGE_DEFAULT, 1..=PAGE_MAX)?;
    let after = query.get("cursor").map(Cursor::parse).transpose()?;
    let mut room = state.answer_room(limit * LargestBody::CLUSTER_BYTES_MAX)?;
    let page = LargestBody::new(collection.largest_clusters(after, limit).await?);
    quota.charge_rest(page.count() as u64);
    room.is_made(ENVELOPE_BYTES + page.bytes());
    Ok(Answer::new(page, room))
}
