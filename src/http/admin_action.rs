//! The log line of a request that changed a collection, a backup or a key. It names the route and the key of the request.

use axum::extract::Request;
use axum::http::{Method, StatusCode};

use super::caller::Caller;
use super::notes::caller_of;
use super::query;
use super::required_scopes::Requires;
use super::routes::Route;
use crate::keys::Scope;
use crate::telemetry::AUDIT;
use crate::types::CollectionName;

/// An action that has begun. It is logged when this value is dropped, even if the client leaves before the answer. A
/// refused action is not logged.
pub(super) struct AdminAction {
    caller: Caller,
    route: &'static Route,
    collection: Option<CollectionName>,
    /// `None`: the client left before the answer. The action may be done all the same.
    status: Option<StatusCode>,
}

impl AdminAction {
    /// Returns the action of a request; `None` if the request changes none of these.
    pub(super) fn of(route: &'static Route, request: &Request) -> Option<Self> {
        // A load requires the scope `load` instead of `admin`. It is logged too, because it makes a collection.
        let of_admins = matches!(
            route.requires,
            Requires::Scope(Scope::Admin | Scope::Load) | Requires::ScopeForAll(Scope::Admin | Scope::Keys)
        );
        if !of_admins || route.method == Method::GET {
            return None;
        }
        let caller = caller_of(request.extensions()).clone();
        Some(Self { caller, route, collection: query::collection(request.uri().path()), status: None })
    }

    /// The action was answered.
    pub(super) fn answered(mut self, status: StatusCode) {
        self.status = Some(status);
    }
}

impl Drop for AdminAction {
    fn drop(&mut self) {
        // An action that ends with a server error is logged, because part of it may have been done.
        if self.status.is_some_and(|status| status.is_client_error()) {
            return;
        }
        tracing::info!(
            target: AUDIT,
            key = self.caller.name(),
            method = self.route.method.as_str(),
            route = self.route.path,
            collection = self.collection.as_ref().map(CollectionName::as_str),
            status = self.status.map(|status| status.as_u16()),
            "admin action"
        );
    }
}
