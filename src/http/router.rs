//! The table of routes -> a router, behind the one layer through which all requests pass.

use axum::Router;
use axum::extract::Request;

use super::error::{Code, Problem};
use super::front::Front;
use super::required_scopes::OPEN_PATHS;
use super::routes::{ROUTES, Route};
use super::served::Served;
use super::state::AppState;

/// Builds a router of all [`ROUTES`].
pub fn router(state: AppState) -> Router {
    behind_front(state, |_| true, "no such path; /openapi.yaml lists all paths", false)
}

/// Builds a router of probes and metrics only.
pub(super) fn probe_router(state: AppState) -> Router {
    let probes = |route: &Route| OPEN_PATHS.contains(&route.path) || route.path == "/metrics";
    // The answer for other paths reveals nothing, so it needs no key.
    behind_front(state, probes, "this address (`server.admin_listen`) serves only /livez, /readyz and /metrics", true)
}

fn behind_front(
    state: AppState,
    chosen: impl Fn(&Route) -> bool,
    no_route: &'static str,
    others_are_open: bool,
) -> Router {
    let routes: Vec<&'static Route> = ROUTES.iter().filter(|route| chosen(route)).collect();
    let mut router = Router::new();
    for route in &routes {
        router = router.route(route.path, (route.handler)());
    }
    router
        .method_not_allowed_fallback(async |_: Request| {
            Problem::new(Code::MethodNotAllowed, "the Allow header lists the methods of this path")
        })
        .fallback(async move |_: Request| Problem::new(Code::RouteNotFound, no_route))
        .layer(Front::new(&state, Served::new(routes.into_iter()), others_are_open))
        .with_state(state)
}
