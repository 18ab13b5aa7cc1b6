//! Handlers for probes, metrics, the version and the API description.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderName};
use serde::Serialize;

use crate::http::authentication;
use crate::http::error::{Code, CollectionProgress, Problem};
use crate::http::state::AppState;
use crate::types::CollectionName;

/// The OpenAPI description that is served and tested.
pub const OPENAPI: &str = include_str!("../../../openapi.yaml");

type Text<T> = ([(HeaderName, &'static str); 1], T);

/// The answer of the probes.
#[derive(Serialize)]
pub struct Health {
    status: &'static str,
    /// The number of collections that are damaged and therefore not served.
    #[serde(skip_serializing_if = "Option::is_none")]
    damaged: Option<usize>,
    /// The number of collections that could not be opened for another reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    unopened: Option<usize>,
    /// The number of collections whose files disappeared while no server ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<usize>,
    /// Whether the disk accepts writes. Reads work in any case.
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

/// `GET /readyz`: every collection is open, and the server is not shutting down. A damaged collection does not make the
/// server unready: the server still serves the other collections, and no other machine has their documents.
pub async fn readyz(State(state): State<AppState>, request: Request) -> Result<Json<Health>, Problem> {
    if state.draining().is_cancelled() {
        return Err(Problem::new(Code::ShuttingDown, "the server is shutting down and finishes open requests"));
    }
    let caller = authentication::admitted(&state, &request);
    let collections = state.boot().ready().map_err(|mut problem| {
        // A probe may come without a key and with any host name, so its answer must not reveal the names of
        // collections.
        if let Some(caller) = caller {
            let pending = state.boot().opening().pending().into_iter().filter(|(name, _)| caller.may_use(name));
            let progress = |(name, progress)| CollectionProgress { name: CollectionName::to_string(&name), progress };
            problem.collections = pending.map(progress).collect();
        }
        problem
    })?;
    // A probe without a key counts all collections. A key that is limited to some collections counts only those.
    let counts = |name: &CollectionName| caller.is_none_or(|caller| caller.may_use(name));
    let some = |count: usize| Some(count).filter(|&count| count > 0);
    Ok(Json(Health {
        status: "ready",
        damaged: some(collections.damaged().iter().filter(|(name, _)| counts(name)).count()),
        unopened: some(collections.unopened().iter().filter(|(name, _)| counts(name)).count()),
        missing: some(collections.missing().iter().filter(|name| counts(name)).count()),
        writable: Some(collections.is_writable()),
    }))
}

/// `GET /metrics`: metrics in the text format of Prometheus.
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
