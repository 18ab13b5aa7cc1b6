//! The table of routes -> a router inside its layers.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Response;
use tower::util::option_layer;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;

use super::admit::admit;
use super::client_address::look_behind_proxies;
use super::error::{Code, Problem};
use super::gate;
use super::limiting;
use super::observe;
use super::pace::PacedBody;
use super::requires::OPEN_PATHS;
use super::routes::{ROUTES, Route};
use super::state::AppState;

/// Builds a router of all [`ROUTES`].
pub fn router(state: AppState) -> Router {
    let others = async |_: Request| Problem::new(Code::RouteNotFound, "no such path; /openapi.yaml lists all paths");
    observed(guarded(routes(&state, |_| true).fallback(others), &state), state)
}

/// Builds a router of probes and metrics only.
pub(super) fn probe_router(state: AppState) -> Router {
    let probes = |route: &Route| OPEN_PATHS.contains(&route.path) || route.path == "/metrics";
    let others = async |_: Request| {
        let detail = "this address (`server.admin_listen`) serves only /livez, /readyz and /metrics";
        Problem::new(Code::RouteNotFound, detail)
    };
    // The answer for other paths reveals nothing, so it needs no key.
    observed(guarded(routes(&state, probes), &state).fallback(others), state)
}

fn routes(state: &AppState, chosen: impl Fn(&Route) -> bool) -> Router<AppState> {
    let mut router = Router::new();
    for route in ROUTES.iter().filter(|route| chosen(route)) {
        let admit = from_fn_with_state((state.clone(), route), admit);
        router = router.route(route.path, (route.handler)().route_layer(admit));
    }
    router.method_not_allowed_fallback(async |_: Request| {
        Problem::new(Code::MethodNotAllowed, "the Allow header lists the methods of this path")
    })
}

/// Adds the layers that decide which requests are accepted. The layer added last runs first.
fn guarded(router: Router<AppState>, state: &AppState) -> Router<AppState> {
    let proxies = !state.trusted_proxies().is_empty();
    let behind_proxies = proxies.then(|| from_fn_with_state(state.clone(), look_behind_proxies));
    router
        .layer(from_fn_with_state(state.clone(), limiting::hold))
        .layer(from_fn_with_state(state.clone(), gate::ask_key))
        // Runs before the key is checked: a preflight request has no key, and a page must see that one is required.
        .layer(option_layer(state.access().cors()))
        .layer(from_fn_with_state(state.clone(), gate::refuse_foreign))
        .layer(option_layer(behind_proxies))
}

/// Adds the layers that apply to every answer.
fn observed(router: Router<AppState>, state: AppState) -> Router {
    router
        .layer(CatchPanicLayer::custom(observe::panicked))
        .layer(map_response(async |answer: Response| answer.map(PacedBody::of)))
        .layer(CompressionLayer::new().gzip(true).zstd(true))
        .layer(map_response(async |answer: Response| answer.map(PacedBody::encoded)))
        .layer(from_fn_with_state(*state.limits(), observe::observe))
        .with_state(state)
}
