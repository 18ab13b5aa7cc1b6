//! The table of routes -> a router, behind the one layer through which all requests pass.

use axum::Router;
use axum::extract::Request;

use super::console;
use super::error::{Code, Problem};
use super::front::Front;
use super::required_scopes::OPEN_PATHS;
use super::routes::{ROUTES, Route};
use super::served::Served;
use super::state::AppState;

/// Builds a router of all [`ROUTES`].
pub fn router(state: AppState) -> Router {
    let console_is_on = state.console_is_on();
    let pages = if console_is_on { &console::PATHS[..] } else { &[] };
    let pages = pages.iter().copied().chain([console::ROOT]);
    let add_pages = |router| console::add_to(router, console_is_on);
    behind_front(state, |_| true, pages, add_pages, "no such path; /openapi.yaml lists all paths", false)
}

/// Builds a router of probes and metrics only.
pub(super) fn probe_router(state: AppState) -> Router {
    let probes = |route: &Route| OPEN_PATHS.contains(&route.path) || route.path == "/metrics";
    // The answer for other paths reveals nothing, so it needs no key.
    behind_front(
        state,
        probes,
        [].into_iter(),
        |router| router,
        "this address (`server.admin_listen`) serves only /livez, /readyz and /metrics",
        true,
    )
}

fn behind_front(
    state: AppState,
    chosen: impl Fn(&Route) -> bool,
    pages: impl Iterator<Item = &'static str>,
    add_pages: impl FnOnce(Router<AppState>) -> Router<AppState>,
    no_route: &'static str,
    others_are_open: bool,
) -> Router {
    let routes: Vec<&'static Route> = ROUTES.iter().filter(|route| chosen(route)).collect();
    let mut router = Router::new();
    for route in &routes {
        router = router.route(route.path, (route.handler)());
    }
    add_pages(router)
        .method_not_allowed_fallback(async |_: Request| {
            Problem::new(Code::MethodNotAllowed, "the Allow header lists the methods of this path")
        })
        .fallback(async move |_: Request| Problem::new(Code::RouteNotFound, no_route))
        .layer(Front::new(&state, Served::new(routes.into_iter(), pages), others_are_open))
        .with_state(state)
}
