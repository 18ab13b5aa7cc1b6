//! Handlers that start, read and cancel backups.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use crate::http::dto::backup::{self, BackupStatusBody, BackupsBody, Cancelled};
use crate::http::error::Problem;
use crate::http::request::{JsonText, OpenCollections};
use crate::http::state::AppState;

/// `POST /v1/backups`: 202 once the backup has started.
pub async fn start(
    State(state): State<AppState>,
    OpenCollections(collections): OpenCollections,
    body: JsonText,
) -> Result<(StatusCode, Json<BackupStatusBody>), Problem> {
    let (name, keep) = body.parse(&state, backup::name_and_keep).await?;
    let status = collections.start_backup(name, keep).await?;
    Ok((StatusCode::ACCEPTED, Json(status.into())))
}

/// `GET /v1/backups`: the latest backup of this process.
pub async fn read(OpenCollections(collections): OpenCollections) -> Json<BackupsBody> {
    Json(BackupsBody { latest: collections.backup_status().map(Into::into) })
}

/// `DELETE /v1/backups`: cancels the running backup.
pub async fn cancel(OpenCollections(collections): OpenCollections) -> Json<Cancelled> {
    Json(Cancelled { cancelled: collections.cancel_backup().into() })
}
