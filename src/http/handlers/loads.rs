//! The handler that makes a collection from a file of ready signatures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;

use crate::http::body;
use crate::http::dto::load::LoadedBody;
use crate::http::error::Problem;
use crate::http::media_type::expect;
use crate::http::notes::Notes;
use crate::http::request::{OpenCollections, PathName};
use crate::http::state::AppState;

/// The interval at which a load postpones the deadline of its request while the collection is built.
const TURN: Duration = Duration::from_secs(1);
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
    body::spooled(&parts.headers, body, file, state.limits(), state.budget(), notes.deadline()).await?;
    notes.turn().take()?;
    // If the client leaves, this future is dropped, and that sets the flag.
    let stop = Arc::new(StopFlag::default());
    let _left = Stopping(Arc::clone(&stop));
    let mut loading = std::pin::pin!(collections.load(place, move || stop.0.load(Ordering::Relaxed)));
    let (collection, loaded) = loop {
        tokio::select! {
            biased;
            done = &mut loading => break done?,
            () = tokio::time::sleep(TURN) => notes.deadline().put_off(),
        }
    };
    Ok((StatusCode::CREATED, Json(LoadedBody::new(collection.describe(), loaded))))
}

#[derive(Default)]
struct StopFlag(AtomicBool);

/// Sets the flag when it is dropped.
struct Stopping(Arc<StopFlag>);

impl Drop for Stopping {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}
