//! The log line of a request that changed a collection or a backup: what was done, and with which key.

use axum::extract::Request;
use axum::http::Method;

use super::caller::Caller;
use super::requires::Requires;
use super::routes::Route;
use crate::keys::Scope;
use crate::types::CollectionName;

pub(super) struct AdminAction {
    caller: Caller,
    route: &'static Route,
    collection: Option<CollectionName>,
}

impl AdminAction {
    /// Returns the action of a request; `None` if it changes nothing that only administrators may change.
    pub(super) fn of(route: &'static Route, request: &Request) -> Option<Self> {
        let of_admins = matches!(route.requires, Requires::Scope(Scope::Admin) | Requires::ScopeForAll(Scope::Admin));
        if !of_admins || route.method == Method::GET {
            return None;
        }
        let caller = Caller::of(request.extensions()).clone();
        Some(Self { caller, route, collection: collection(request.uri().path()) })
    }

    pub(super) fn log(&self) {
        tracing::info!(
            target: "hapax::audit",
            key = self.caller.name(),
            method = self.route.method.as_str(),
            route = self.route.path,
            collection = self.collection.as_ref().map(CollectionName::as_str),
            "admin action"
        );
    }
}

/// Returns the collection in a path such as `/v1/collections/{collection}`. A percent-encoded name is decoded.
fn collection(path: &str) -> Option<CollectionName> {
    let name = path.strip_prefix("/v1/collections/")?;
    let name = percent_decoded(name)?;
    CollectionName::new(&name).ok()
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut decoded = parts.next()?.to_owned();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        decoded.push(char::from(u8::from_str_radix(digits, 16).ok()?));
        decoded.push_str(rest);
    }
    Some(decoded)
}
