//! The table of routes. The router is built from it and parameters are checked against it. A test compares it with
//! `openapi.yaml`. There is no other list of routes.

use axum::http::Method;
use axum::routing::{MethodRouter, delete, get, patch, post, put};

use super::admission::Class;
use super::handlers::{
    audit, backups, batch, bulk, clusters, collections, dedup, documents, golden, jobs, keys, loads, ops, overlaps,
    tools,
};
use super::required_scopes::Requires::{self, Key, Nothing, OneOf, Operation, Scope, ScopeForAll};
use super::state::AppState;
use crate::keys::Scope::{Admin, Check, Delete, Insert, Keys, Load, Metrics, Read, Sign};

/// One method on one path.
pub struct Route {
    /// `GET` also answers `HEAD`.
    pub method: Method,
    /// The path, in the form that axum and OpenAPI share.
    pub path: &'static str,
    /// The query parameters. All others are refused.
    pub query: &'static [&'static str],
    /// The rights that the route requires of a request's key.
    pub requires: Requires,
    /// All statuses with which the route may answer.
    pub statuses: &'static [u16],
    /// Whether an answer begins before its request has ended.
    pub streams: bool,
    /// Whether the route is exempt from the limit on concurrent requests.
    pub unbounded: bool,
    /// Whether a key that sees only verdicts may use the route.
    pub coarse: bool,
    pub(super) handler: fn() -> MethodRouter<AppState>,
}

impl Route {
    /// The class of requests to this route.
    pub(super) fn class(&self) -> Class {
        match self {
            Self { unbounded: true, .. } => Class::Probe,
            Self { streams: true, .. } => Class::Bulk,
            // Keys that may only check can use these routes, so their requests must not take the places of administrators.
            Self { path: "/v1/dedup" | "/v1/tune", .. } => Class::Single,
            // A load makes a collection, which takes minutes.
            Self { path: "/v1/collections/{collection}/load", .. } => Class::Admin,
            Self { path, .. } if path.starts_with("/v1/collections/{collection}/") => Class::Single,
            _ => Class::Admin,
        }
    }
}

/// A route that does not stream.
macro_rules! route {
    ($method:ident $path:literal $requires:expr, ?[$($query:literal),*] -> [$($status:literal),*] $handler:expr) => {
        Route {
            method: Method::$method,
            path: $path,
            query: &[$($query),*],
            requires: $requires,
            statuses: &[$($status),*],
            streams: false,
            unbounded: false,
            coarse: false,
            handler: || $handler,
        }
    };
}

/// All routes.
#[rustfmt::skip]
pub static ROUTES: &[Route] = &[
    Route { coarse: true, ..route!(POST "/v1/collections/{collection}/check" Scope(Check), ?["id", "scope", "payload_digest", "threshold", "limit", "with", "invalid", "explain", "collections"]
        -> [200, 400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 501, 503] post(documents::check)) },
    Route { coarse: true, ..route!(POST "/v1/collections/{collection}/documents" Scope(Insert), ?["id", "label", "date", "payload_digest", "on_duplicate", "on_existing", "limit", "with", "page_metadata", "invalid", "explain", "collections"]
        -> [200, 400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 501, 503, 507] post(documents::insert)) },
    route!(GET "/v1/collections/{collection}/documents" Scope(Read), ?["id", "label", "with", "limit", "cursor"]
        -> [200, 401, 403, 404, 409, 422, 429, 500, 501, 503] get(documents::read)),
    Route { coarse: true, ..route!(DELETE "/v1/collections/{collection}/documents" Scope(Delete), ?["id", "label"]
        -> [200, 202, 401, 403, 404, 409, 422, 429, 500, 501, 503, 507] delete(documents::delete)) },
    route!(POST "/v1/collections/{collection}/documents/get" Scope(Read), ?[]
        -> [200, 400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503] post(documents::get_many)),
    Route { coarse: true, ..route!(POST "/v1/collections/{collection}/documents/delete" Scope(Delete), ?[]
        -> [200, 400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503, 507] post(documents::delete_many)) },
    route!(GET "/v1/collections/{collection}/clusters" Scope(Read), ?["id", "limit", "cursor"]
        -> [200, 401, 403, 404, 409, 422, 429, 500, 501, 503] get(clusters::read)),
    route!(GET "/v1/collections/{collection}/clusters/largest" Scope(Read), ?["limit", "cursor"]
        -> [200, 401, 403, 404, 409, 422, 429, 500, 501, 503] get(clusters::largest)),
    Route { coarse: true, ..route!(POST "/v1/collections/{collection}/batch" Operation, ?["scope", "label", "threshold", "limit", "with", "on_duplicate", "on_existing", "page_metadata", "invalid", "collections"]
        -> [200, 400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503] post(batch::batch)) },
    Route { streams: true, coarse: true, ..route!(POST "/v1/collections/{collection}/bulk" Operation,
        ?["op", "scope", "label", "threshold", "limit", "with", "on_duplicate", "on_existing", "page_metadata", "invalid", "extra", "duplex", "collections"]
        -> [200, 401, 403, 404, 409, 413, 415, 422, 429, 500, 503] post(bulk::bulk)) },
    route!(POST "/v1/collections/{collection}/compare" Scope(Check), ?["with"]
        -> [200, 400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 501, 503] post(tools::compare)),
    route!(POST "/v1/collections/{collection}/overlaps" Scope(Check), ?["id", "invalid", "limit", "min_containment"]
        -> [200, 400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 501, 503] post(overlaps::overlaps)),
    route!(POST "/v1/collections/{collection}/sign" Scope(Sign), ?["id", "invalid", "ranks"]
        -> [200, 400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503] post(tools::sign)),
    route!(POST "/v1/collections/{collection}/extract" Scope(Check), ?["invalid", "extract"]
        -> [200, 400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503] post(tools::extract)),
    route!(GET "/v1/collections" Key, ?[] -> [200, 401, 403, 422, 429, 500, 503] get(collections::list)),
    route!(GET "/v1/collections/{collection}" Key, ?[] -> [200, 401, 403, 404, 409, 422, 429, 500, 503] get(collections::describe)),
    route!(PUT "/v1/collections/{collection}" Scope(Admin), ?[]
        -> [200, 201, 400, 401, 403, 408, 409, 413, 415, 422, 429, 500, 501, 503, 507] put(collections::create)),
    route!(POST "/v1/collections/{collection}/load" Scope(Load), ?[]
        -> [201, 400, 401, 403, 408, 409, 413, 415, 422, 429, 500, 501, 503, 507] post(loads::load)),
    route!(PATCH "/v1/collections/{collection}" Scope(Admin), ?[]
        -> [200, 400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 501, 503, 507] patch(collections::update)),
    route!(DELETE "/v1/collections/{collection}" Scope(Admin), ?["confirm"]
        -> [200, 401, 403, 404, 422, 429, 500, 503] delete(collections::remove)),
    route!(GET "/v1/collections/{collection}/buckets" Scope(Read), ?["limit"]
        -> [200, 401, 403, 404, 409, 422, 429, 500, 503] get(collections::buckets)),
    route!(GET "/v1/collections/{collection}/labels" Scope(Read), ?["name", "limit", "cursor"]
        -> [200, 401, 403, 404, 409, 422, 429, 500, 501, 503] get(documents::labels)),
    route!(GET "/v1/collections/{collection}/statistics" Scope(Read), ?["name", "limit", "cursor"]
        -> [200, 401, 403, 404, 409, 422, 429, 500, 501, 503] get(documents::statistics)),
    route!(POST "/v1/collections/{collection}/merge" Scope(Insert), ?[]
        -> [202, 400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 501, 503, 507] post(jobs::merge)),
    route!(GET "/v1/collections/{collection}/golden" Scope(Read), ?[]
        -> [200, 401, 403, 404, 409, 422, 429, 500, 501, 503] get(golden::read)),
    route!(PUT "/v1/collections/{collection}/golden" Scope(Admin), ?[]
        -> [200, 400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 501, 503, 507] put(golden::put)),
    route!(DELETE "/v1/collections/{collection}/golden" Scope(Admin), ?[]
        -> [200, 401, 403, 404, 409, 422, 429, 500, 501, 503, 507] delete(golden::remove)),
    route!(GET "/v1/jobs" OneOf(&[Read, Delete]), ?["collection", "state", "limit"]
        -> [200, 401, 403, 404, 409, 422, 429, 500, 501, 503] get(jobs::list)),
    route!(GET "/v1/jobs/{job}/reports" Scope(Read), ?["limit", "cursor"]
        -> [200, 401, 403, 404, 409, 422, 429, 500, 501, 503] get(jobs::reports)),
    route!(DELETE "/v1/jobs/{job}" Scope(Insert), ?[]
        -> [200, 401, 403, 404, 409, 422, 429, 500, 501, 503] delete(jobs::stop)),
    route!(GET "/v1/jobs/{job}" OneOf(&[Read, Delete]), ?[]
        -> [200, 401, 403, 404, 409, 422, 429, 500, 501, 503] get(jobs::read)),
    route!(POST "/v1/backups" ScopeForAll(Admin), ?[] -> [202, 400, 401, 403, 408, 409, 413, 415, 422, 429, 500, 501, 503] post(backups::start)),
    route!(GET "/v1/backups" ScopeForAll(Admin), ?[] -> [200, 401, 403, 422, 429, 500, 503] get(backups::read)),
    route!(DELETE "/v1/backups" ScopeForAll(Admin), ?[] -> [200, 401, 403, 422, 429, 500, 503] delete(backups::cancel)),
    route!(POST "/v1/dedup" Scope(Check), ?["invalid", "extra"]
        -> [200, 400, 401, 403, 408, 413, 415, 422, 429, 500, 503] post(dedup::dedup)),
    route!(POST "/v1/tune" Scope(Check), ?[] -> [200, 400, 401, 403, 408, 413, 415, 422, 429, 500, 503] post(tools::tune)),
    Route { coarse: true, ..route!(GET "/v1/access" Key, ?[] -> [200, 401, 403, 422, 429, 500, 503] get(keys::access)) },
    route!(GET "/v1/keys" ScopeForAll(Keys), ?[] -> [200, 401, 403, 422, 429, 500, 503] get(keys::list)),
    route!(POST "/v1/keys" ScopeForAll(Keys), ?[] -> [201, 400, 401, 403, 408, 409, 413, 415, 422, 429, 500, 503] post(keys::add)),
    route!(DELETE "/v1/keys/{key}" ScopeForAll(Keys), ?[] -> [200, 401, 403, 404, 409, 422, 429, 500, 503] delete(keys::revoke)),
    route!(GET "/v1/audit" ScopeForAll(Admin),
        ?["collection", "id", "matched", "key", "verdict", "op", "request_id", "since", "until", "limit", "cursor"]
        -> [200, 401, 403, 422, 429, 500, 503] get(audit::search)),
    route!(GET "/v1/version" Key, ?[] -> [200, 401, 403, 422, 429, 500, 503] get(ops::version)),
    Route { unbounded: true, ..route!(GET "/livez" Nothing, ?[] -> [200, 422, 500] get(ops::livez)) },
    Route { unbounded: true, ..route!(GET "/readyz" Nothing, ?[] -> [200, 422, 500, 503] get(ops::readyz)) },
    Route { unbounded: true, ..route!(GET "/metrics" ScopeForAll(Metrics), ?[] -> [200, 401, 403, 422, 429, 500] get(ops::metrics)) },
    route!(GET "/openapi.yaml" Key, ?[] -> [200, 401, 403, 422, 429, 500, 503] get(ops::openapi)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_has_the_class_of_its_work() {
        let of = |class| ROUTES.iter().filter(move |route| route.class() == class).map(|route| route.path);
        assert!(of(Class::Bulk).eq(["/v1/collections/{collection}/bulk"]));
        assert!(of(Class::Probe).eq(["/livez", "/readyz", "/metrics"]));
        let others = ["/v1/dedup", "/v1/tune"];
        let is_single = |path: &str| path.starts_with("/v1/collections/{collection}/") || others.contains(&path);
        assert!(of(Class::Single).all(is_single));
        assert!(of(Class::Admin).any(|path| path == "/v1/collections/{collection}"));
    }
}
