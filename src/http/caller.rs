//! The sender of a request: its rights, and when they end. The key of the request decides both.
//! `authentication.rs` makes a caller for each request that it accepts. Knows nothing of routes and bodies.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::error::{Code, Problem};
use crate::keys::{Key, KeyLimits, Scope, Scores};
use crate::types::CollectionName;

/// The sender of a request. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Caller {
    /// `None`: the server requires no key, and everyone may do everything.
    key: Option<Arc<Key>>,
}

impl Caller {
    /// Returns a caller that may do everything, for a server that requires no key.
    pub fn anyone() -> Self {
        Self { key: None }
    }

    pub(super) fn with(key: Arc<Key>) -> Self {
        Self { key: Some(key) }
    }

    /// Returns the name of the caller's key; `None` if the server requires no key.
    pub fn name(&self) -> Option<&str> {
        self.key.as_deref().map(Key::name)
    }

    /// Returns the caller's key; `None` if the server requires no key.
    pub fn key(&self) -> Option<&Key> {
        self.key.as_deref()
    }

    pub fn may(&self, scope: Scope) -> bool {
        self.key.as_ref().is_none_or(|key| key.may(scope))
    }

    /// Returns 403 if the caller does not have the scope.
    pub fn require(&self, scope: Scope) -> Result<(), Problem> {
        self.require_for(scope, "this request")
    }

    /// Returns 403 if the caller does not have the scope that `what` needs.
    pub fn require_for(&self, scope: Scope, what: &str) -> Result<(), Problem> {
        match &self.key {
            Some(key) if !key.may(scope) => {
                let (name, scopes) = (key.name(), key.scopes());
                let detail =
                    format!("{what} needs a key with the scope `{scope}`; the key `{name}` has only: {scopes}");
                Err(Problem::new(Code::Forbidden, detail))
            }
            _ => Ok(()),
        }
    }

    /// Returns 403 if the caller has none of these scopes.
    pub(super) fn require_one(&self, scopes: &[Scope]) -> Result<(), Problem> {
        if scopes.iter().any(|scope| self.may(*scope)) { Ok(()) } else { self.require(scopes[0]) }
    }

    pub fn may_use(&self, collection: &CollectionName) -> bool {
        self.key.as_ref().is_none_or(|key| key.may_use(collection))
    }

    /// Returns 403 if the caller may not use the collection. The answer does not tell whether the collection exists.
    pub fn require_use(&self, collection: &CollectionName) -> Result<(), Problem> {
        match &self.key {
            Some(key) if !key.may_use(collection) => {
                let detail = format!("the key `{}` is not for the collection `{collection}`", key.name());
                Err(Problem::new(Code::Forbidden, detail))
            }
            _ => Ok(()),
        }
    }

    /// Returns 403 if the caller's key is limited to some collections.
    pub(super) fn require_all_collections(&self) -> Result<(), Problem> {
        match &self.key {
            Some(key) if key.collections().is_some() => {
                let detail = format!(
                    "this request concerns all collections, but the key `{}` is for some of them only",
                    key.name()
                );
                Err(Problem::new(Code::Forbidden, detail))
            }
            _ => Ok(()),
        }
    }

    /// Returns 403 if the caller's key sees only verdicts, because the answer to `what` tells more.
    pub fn require_all_scores(&self, what: &str) -> Result<(), Problem> {
        match &self.key {
            Some(key) if key.scores() == Scores::Verdict => {
                let name = key.name();
                let detail = format!(
                    "{what} needs a key that sees more than verdicts; the key `{name}` has `scores = \"verdict\"`"
                );
                Err(Problem::new(Code::Forbidden, detail))
            }
            _ => Ok(()),
        }
    }

    /// Returns the limits of the caller's key; `None` if it has no key.
    pub fn limits(&self) -> Option<&KeyLimits> {
        self.key.as_deref().map(Key::limits)
    }

    pub fn scores(&self) -> Scores {
        self.key.as_deref().map_or(Scores::Full, Key::scores)
    }

    /// Returns a token that is cancelled once the key is revoked, has expired, or has lost a right. `None` if the
    /// caller has no key.
    pub fn revoked(&self) -> Option<&CancellationToken> {
        self.key.as_deref().map(Key::revoked)
    }

    /// Returns the reason why the caller's open requests end; `None` while its key is valid.
    pub(super) fn ended(&self) -> Option<Problem> {
        self.revoked().filter(|revoked| revoked.is_cancelled()).map(|_| revoked_meanwhile())
    }

    /// Waits until the caller's key is no longer valid, and returns the reason why its open requests end.
    pub(super) async fn end(&self) -> Problem {
        match self.revoked() {
            Some(revoked) => revoked.cancelled().await,
            None => std::future::pending().await,
        }
        revoked_meanwhile()
    }
}

fn revoked_meanwhile() -> Problem {
    let detail = "the API key was revoked, has expired or has lost a right since the request began; writes may have been \
                  made before that";
    Problem::new(Code::Unauthorized, detail)
}
