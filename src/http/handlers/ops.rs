//! Probes, metrics, and what this server is.

use axum::Json;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use serde::Serialize;

use crate::http::error::{Code, Problem};
use crate::http::state::AppState;

/// The description of this API, as served and as tested.
pub const OPENAPI: &str = include_str!("../../../openapi.yaml");

type Text<T> = ([(HeaderName, &'static str); 1], T);

/// Whether the process is well.
#[derive(Serialize)]
pub struct Status {
    status: &'static str,
    /// Collections that are known to be damaged and are not served.
    #[serde(skip_serializing_if = "Option::is_none")]
    damaged: Option<usize>,
}

/// What is running.
#[derive(Serialize)]
pub struct Version {
    name: &'static str,
    version: &'static str,
    api: &'static str,
}

/// `GET /livez`: the process answers.
pub async fn livez() -> Json<Status> {
    Json(Status { status: "alive", damaged: None })
}

/// `GET /readyz`: the collections are open, and the server is not on its way out. One that is damaged does not change
/// that: the others are served, and no other machine has its documents.
pub async fn readyz(State(state): State<AppState>) -> Result<Json<Status>, Problem> {
    if state.draining().is_cancelled() {
        return Err(Problem::new(Code::ShuttingDown, "open requests are being finished"));
    }
    let damaged = state.boot().collections()?.damaged().len();
    Ok(Json(Status { status: "ready", damaged: Some(damaged).filter(|&damaged| damaged > 0) }))
}

/// `GET /metrics`: Prometheus' text format.
pub async fn metrics(State(state): State<AppState>) -> Text<String> {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], state.metrics())
}

/// `GET /openapi.yaml`
pub async fn openapi() -> Text<&'static str> {
    ([(CONTENT_TYPE, "application/yaml")], OPENAPI)
}

/// `GET /v1/version`
pub async fn version() -> Json<Version> {
    Json(Version { name: "hapax", version: env!("CARGO_PKG_VERSION"), api: "v1" })
}
