//! Probes, metrics, and what this server is.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderName};
use serde::Serialize;

use crate::http::error::{Code, CollectionProgress, Problem};
use crate::http::gate;
use crate::http::state::AppState;
use crate::types::CollectionName;

/// The description of this API, as served and as tested.
pub const OPENAPI: &str = include_str!("../../../openapi.yaml");

type Text<T> = ([(HeaderName, &'static str); 1], T);

/// Whether the process is well.
#[derive(Serialize)]
pub struct Health {
    status: &'static str,
    /// Collections that are known to be damaged and are not served.
    #[serde(skip_serializing_if = "Option::is_none")]
    damaged: Option<usize>,
    /// Collections that could not be opened for another reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    unopened: Option<usize>,
    /// Collections whose files vanished while no server ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<usize>,
    /// Whether the disk takes writes; if it does not, reads go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    writable: Option<bool>,
}

#[derive(Serialize)]
pub struct Version {
    name: &'static str,
    version: &'static str,
    api: &'static str,
}

/// `GET /livez`: the process answers.
pub async fn livez() -> Json<Health> {
    Json(Health { status: "alive", damaged: None, unopened: None, missing: None, writable: None })
}

/// `GET /readyz`: every collection is open, and the server is not on its way out. One that is damaged does not change
/// that: the others are served, and no other machine has its documents.
pub async fn readyz(State(state): State<AppState>, request: Request) -> Result<Json<Health>, Problem> {
    if state.draining().is_cancelled() {
        return Err(Problem::new(Code::ShuttingDown, "open requests are being finished"));
    }
    let collections = state.boot().ready().map_err(|mut problem| {
        // Probes show no key and come under any name, and the collections' names are not for all.
        if gate::admits(&state, &request) {
            let pending = state.boot().opening().pending().into_iter();
            let progress = |(name, progress)| CollectionProgress { name: CollectionName::to_string(&name), progress };
            problem.collections = pending.map(progress).collect();
        }
        problem
    })?;
    let some = |count: usize| Some(count).filter(|&count| count > 0);
    Ok(Json(Health {
        status: "ready",
        damaged: some(collections.damaged().len()),
        unopened: some(collections.unopened().len()),
        missing: some(collections.missing().len()),
        writable: Some(collections.is_writable()),
    }))
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
