//! The rights that a route requires of the key of a request.

use super::caller::Caller;
use super::console;
use super::error::Problem;
use crate::keys::Scope;

/// Paths that never require a key, because orchestrators have none.
pub(super) const OPEN_PATHS: [&str; 2] = ["/livez", "/readyz"];

/// Whether the answer to this path needs no key.
pub(super) fn is_open(path: &str) -> bool {
    OPEN_PATHS.contains(&path) || console::is_page(path)
}

/// The rights that a route requires of the key of a request. Each route in the table of routes names the rights that it
/// requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requires {
    /// No key.
    Nothing,
    /// Any valid key.
    Key,
    /// A key with this scope.
    Scope(Scope),
    /// A key with this scope that is not limited to some collections.
    ScopeForAll(Scope),
    /// A key with one of these scopes.
    OneOf(&'static [Scope]),
    /// A key with the scope of the request's operation. Only the request itself names the operation.
    Operation,
}

/// The scopes of operations on many documents.
pub(super) const OPERATIONS: [Scope; 3] = [Scope::Check, Scope::Insert, Scope::Delete];

impl Requires {
    /// Returns 403 if the caller's key allows no request to this route, whatever the request contains.
    pub(super) fn check(self, caller: &Caller) -> Result<(), Problem> {
        match self {
            Self::Nothing | Self::Key => Ok(()),
            Self::Scope(scope) => caller.require(scope),
            Self::ScopeForAll(scope) => caller.require(scope).and_then(|()| caller.require_all_collections()),
            Self::OneOf(scopes) => caller.require_one(scopes),
            Self::Operation => caller.require_one(&OPERATIONS),
        }
    }

    /// Returns scopes, one of which a request needs. The list is empty if any key is enough, or if no key is needed.
    pub fn scopes(self) -> Vec<Scope> {
        match self {
            Self::Nothing | Self::Key => Vec::new(),
            Self::Scope(scope) | Self::ScopeForAll(scope) => vec![scope],
            Self::OneOf(scopes) => scopes.to_vec(),
            Self::Operation => OPERATIONS.to_vec(),
        }
    }
}
