//! The handler that makes a collection from a file of precomputed signatures.

use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use tokio_util::sync::CancellationToken;

use crate::http::body;
use crate::http::dto::load::LoadedBody;
use crate::http::error::Problem;
use crate::http::media_type::expect;
use crate::http::notes::Notes;
use crate::http::request::{OpenCollections, PathName};
use crate::http::state::AppState;

/// The interval at which a load postpones the deadline of its request while the collection is built.
const POSTPONE_EVERY: Duration = Duration::from_secs(1);
const PARQUET: [&str; 2] = ["application/vnd.apache.parquet", "application/octet-stream"];

/// `POST …/load`: makes a new collection from a Parquet file.
pub async fn load(
    State(state): State<AppState>,
    OpenCollections(collections): OpenCollections,
    PathName(name): PathName,
    request: Request,
) -> Result<(StatusCode, Json<LoadedBody>), Problem> {
    let (parts, body) = request.into_parts();
    expect(&parts.headers, &PARQUET)?;
    let notes = Notes::of(&parts.extensions).expect("the layer around all routes has attached them").clone();
    let place = collections.begin_load(name).await?;
    let file = place.file().map_err(|error| Problem::internal(&format!("a file of a load: {error}")))?;
    let room = || place.admit().map_err(Problem::from);
    body::spooled(&parts.headers, body, (file, room), state.limits(), state.budget(), notes.deadline()).await?;
    notes.turn().take()?;
    // If the client leaves, this future is dropped, and that stops the load.
    let stop = CancellationToken::new();
    let _left = stop.clone().drop_guard();
    let mut loading = std::pin::pin!(collections.load(place, move || stop.is_cancelled()));
    let (collection, loaded) = loop {
        tokio::select! {
            biased;
            done = &mut loading => break done?,
            () = tokio::time::sleep(POSTPONE_EVERY) => notes.deadline().put_off(),
        }
    };
    Ok((StatusCode::CREATED, Json(LoadedBody::new(collection.describe(), loaded))))
}
