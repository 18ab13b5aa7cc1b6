//! The routes that a router serves, with the metrics of each route. Both are found by the path that the router has
//! matched. The handles of metrics are looked up once, because a lookup takes longer than a change of the metric. Knows
//! nothing of requests' contents.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use metrics::{Counter, Gauge, Histogram};

use super::routes::Route;
use crate::telemetry::names::{self, label};

/// The route label of requests that match no route, or that were refused before their route was looked up.
pub(super) const UNMATCHED: &str = "unmatched";

/// The methods that have their own label. All other methods share the last label.
const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "other"];
/// The statuses whose counters are stored. Other counters are looked up each time.
const STATUSES: [u16; 18] = [200, 201, 202, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 429, 500, 501, 503, 507];

/// All paths of a router.
pub(super) struct Served {
    by_path: HashMap<&'static str, ServedPath>,
    unmatched: ServedPath,
}

/// A path, its routes, and its metrics.
pub(super) struct ServedPath {
    path: &'static str,
    routes: Vec<&'static Route>,
    meters: [OnceLock<Arc<Meters>>; METHODS.len()],
}

/// The metrics of a path and a method.
pub(super) struct Meters {
    path: &'static str,
    method: &'static str,
    in_flight: Gauge,
    duration: Histogram,
    statuses: [OnceLock<Counter>; STATUSES.len()],
}

impl Served {
    /// `pages` are the paths of pages, which are not routes of the API.
    pub(super) fn new(routes: impl Iterator<Item = &'static Route>, pages: impl Iterator<Item = &'static str>) -> Self {
        let mut by_path: HashMap<_, ServedPath> = pages.map(|path| (path, ServedPath::new(path))).collect();
        for route in routes {
            by_path.entry(route.path).or_insert_with(|| ServedPath::new(route.path)).routes.push(route);
            // Registered from the start, so that an alert sees the first answer with status 500.
            counter(route.path, route.method.as_str(), "500").increment(0);
        }
        Self { by_path, unmatched: ServedPath::new(UNMATCHED) }
    }

    /// Returns the path that the router has matched.
    pub(super) fn path(&self, matched: Option<&str>) -> &ServedPath {
        matched.and_then(|path| self.by_path.get(path)).unwrap_or(&self.unmatched)
    }
}

impl ServedPath {
    pub(super) fn new(path: &'static str) -> Self {
        Self { path, routes: Vec::new(), meters: Default::default() }
    }

    pub(super) fn path(&self) -> &'static str {
        self.path
    }

    /// Returns the route of a method. HEAD is answered by the route of GET.
    pub(super) fn route(&self, method: &Method) -> Option<&'static Route> {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        self.routes.iter().copied().find(|route| route.method == *method)
    }

    pub(super) fn meters(&self, method: &Method) -> &Arc<Meters> {
        let place = METHODS.iter().position(|known| *known == method.as_str()).unwrap_or(METHODS.len() - 1);
        self.meters[place].get_or_init(|| Arc::new(Meters::new(self.path, METHODS[place])))
    }
}

impl Meters {
    fn new(path: &'static str, method: &'static str) -> Self {
        let duration = metrics::histogram!(names::HTTP_REQUEST_DURATION, label::ROUTE => path, label::METHOD => method);
        let in_flight = metrics::gauge!(names::HTTP_REQUESTS_IN_FLIGHT);
        Self { path, method, in_flight, duration, statuses: Default::default() }
    }

    /// The gauge of all requests that are being answered.
    pub(super) fn in_flight(&self) -> &Gauge {
        &self.in_flight
    }

    pub(super) fn method(&self) -> &'static str {
        self.method
    }

    pub(super) fn count(&self, status: StatusCode) {
        let counter = || counter(self.path, self.method, status.as_str());
        match STATUSES.iter().position(|&kept| kept == status.as_u16()) {
            Some(place) => self.statuses[place].get_or_init(counter).increment(1),
            None => counter().increment(1),
        }
    }

    pub(super) fn took(&self, time: Duration) {
        self.duration.record(time.as_secs_f64());
    }
}

fn counter(route: &'static str, method: &'static str, status: &str) -> Counter {
    let status = status.to_owned();
    metrics::counter!(names::HTTP_REQUESTS, label::ROUTE => route, label::METHOD => method, label::STATUS => status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::routes::ROUTES;

    #[test]
    fn every_route_is_found_by_its_path_and_method() {
        let served = Served::new(ROUTES.iter(), [].into_iter());
        for route in ROUTES {
            let path = served.path(Some(route.path));
            assert!(std::ptr::eq(path.route(&route.method).unwrap(), route), "{}", route.path);
            assert_eq!(path.path(), route.path);
        }
        assert!(served.path(Some("/livez")).route(&Method::HEAD).is_some());
        assert!(served.path(Some("/livez")).route(&Method::POST).is_none());
        assert_eq!(served.path(None).path(), UNMATCHED);
    }

    #[test]
    fn invented_methods_share_a_label() {
        let served = Served::new(ROUTES.iter(), [].into_iter());
        let label = |method: &[u8]| served.path(None).meters(&Method::from_bytes(method).unwrap()).method();
        assert_eq!((label(b"BREW"), label(b"PATCH")), ("other", "PATCH"));
    }

    #[test]
    fn every_status_of_a_route_has_a_counter() {
        for route in ROUTES {
            assert!(route.statuses.iter().all(|status| STATUSES.contains(status)), "{}", route.path);
        }
    }
}
