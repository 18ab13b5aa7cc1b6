//! The service over HTTP. Requests come in, answers go out; everything between is a call to the floor below.
//! Knows nothing of files or hashing.

pub mod access;
pub mod auth;
pub mod bulk;
pub mod deadline;
pub mod dto;
pub mod error;
pub mod extract;
pub mod handlers;
pub mod json;
pub mod layers;
pub mod lines;
pub mod query;
pub mod routes;
pub mod state;
pub mod work;

mod body;
mod leftover;
mod serve;
mod turn;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{from_fn, from_fn_with_state};
use tower::util::option_layer;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;

pub use access::Access;
pub use handlers::ops::OPENAPI;
pub use routes::{ROUTES, Route};
pub use serve::serve;
pub use state::{ApiKey, AppState, Boot, HttpLimits, Wiring};

use error::{Code, Problem};

/// Every route of [`ROUTES`], within its layers.
pub fn router(state: AppState) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        let admit = from_fn_with_state((state.clone(), route), layers::admit);
        router = router.route(route.path, (route.handler)().route_layer(admit));
    }
    // Added last runs first.
    router
        .fallback(async |_: Request| Problem::new(Code::RouteNotFound, "see /openapi.yaml for the paths there are"))
        .method_not_allowed_fallback(async |_: Request| {
            Problem::new(Code::MethodNotAllowed, "the Allow header names the methods there are")
        })
        .layer(from_fn_with_state(state.clone(), auth::check))
        // Outside of the key: a preflight has none, and a page has to see that a key is asked for.
        .layer(option_layer(state.access().cors()))
        .layer(from_fn_with_state(state.clone(), access::check))
        .layer(CatchPanicLayer::custom(layers::panicked))
        .layer(CompressionLayer::new().gzip(true).zstd(true))
        .layer(from_fn(layers::observe))
        .with_state(state)
}
