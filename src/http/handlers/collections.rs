//! Handlers that create, list, describe, change and drop collections.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use crate::collections::HotBucket;
use crate::http::answer::Answer;
use crate::http::caller::Caller;
use crate::http::dto::buckets::BucketList;
use crate::http::dto::collection::{self, CollectionList, DamagedBody, DescriptionBody, Dropped};
use crate::http::error::Problem;
use crate::http::query::Query;
use crate::http::request::{JsonText, OpenCollections, PathName, Target};
use crate::http::state::AppState;

const BUCKETS_DEFAULT: usize = 10;
const BUCKETS_MAX: usize = 100;

/// `GET /v1/collections`: the collections that the key may use.
pub async fn list(
    caller: Caller,
    OpenCollections(collections): OpenCollections,
) -> Result<Json<CollectionList>, Problem> {
    let (mut descriptions, mut damaged) = collections.list().await?;
    descriptions.retain(|description| caller.may_use(&description.name));
    damaged.retain(|(name, _)| caller.may_use(name));
    descriptions.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Json(CollectionList {
        collections: descriptions.into_iter().map(DescriptionBody::from).collect(),
        damaged: damaged.into_iter().map(DamagedBody::from).collect(),
    }))
}

/// `GET /v1/collections/{collection}`
pub async fn describe(Target(collection): Target) -> Json<DescriptionBody> {
    Json(collection.describe().into())
}

/// `PUT /v1/collections/{collection}`: 201 if it is created, 200 if it exists with equal settings.
pub async fn create(
    State(state): State<AppState>,
    OpenCollections(collections): OpenCollections,
    PathName(name): PathName,
    body: JsonText,
) -> Result<(StatusCode, Json<DescriptionBody>), Problem> {
    let of = state.clone();
    let read = move |text: &str| collection::settings(text, of.default_settings(), of.secret_fingerprint());
    let settings = body.parse(&state, read).await?;
    let (collection, made) = collections.create(name, settings).await?;
    let status = if made { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(collection.describe().into())))
}

/// `PATCH /v1/collections/{collection}`
pub async fn update(
    State(state): State<AppState>,
    Target(collection): Target,
    body: JsonText,
) -> Result<Json<DescriptionBody>, Problem> {
    let shape = collection.settings().spec.shape();
    let changes = body.parse(&state, move |text| collection::changes(text, shape)).await?;
    Ok(Json(collection.update(changes).await?.into()))
}

/// `GET /v1/collections/{collection}/buckets`
pub async fn buckets(
    State(state): State<AppState>,
    Target(collection): Target,
    query: Query,
) -> Result<Answer<BucketList>, Problem> {
    let limit = query.integer("limit", BUCKETS_DEFAULT, 1..=BUCKETS_MAX)?;
    let room = state.answer_room(limit * HotBucket::BYTES_MAX)?;
    let buckets = collection.buckets(limit).await?;
    Ok(Answer::new(BucketList::new(buckets, room.json_bytes_max()), room))
}

/// `DELETE /v1/collections/{collection}?confirm={collection}`
pub async fn remove(
    OpenCollections(collections): OpenCollections,
    PathName(name): PathName,
    query: Query,
) -> Result<Json<Dropped>, Problem> {
    if query.get("confirm") != Some(name.as_str()) {
        return Err(Problem::invalid("confirm", "must be the collection's name, because this drops all its documents"));
    }
    collections.remove(&name).await?;
    Ok(Json(Dropped { dropped: name.as_str().to_owned() }))
}
