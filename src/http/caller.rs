//! The sender of a request, as far as its key tells: what it may do, and until when.
//! The gate makes one for each request that it lets in. Knows nothing of routes and bodies.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::error::{Code, Problem};
use crate::keys::{Key, KeyLimits, Scope, Scores};
use crate::types::CollectionName;

/// The sender of a request. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Caller {
    /// `None`: the server asks for no key, and everyone may do everything.
    key: Option<Arc<Key>>,
}

impl Caller {
    /// Returns a caller that may do everything: if no key is asked for.
    pub fn anyone() -> Self {
        Self { key: None }
    }

    pub(super) fn with(key: Arc<Key>) -> Self {
        Self { key: Some(key) }
    }

    /// The name of its key; `None` if the server asks for none.
    pub fn name(&self) -> Option<&str> {
        self.key.as_deref().map(Key::name)
    }

    pub fn may(&self, scope: Scope) -> bool {
        self.key.as_ref().is_none_or(|key| key.may(scope))
    }

    /// Returns 403 unless it has the scope.
    pub fn require(&self, scope: Scope) -> Result<(), Problem> {
        self.require_for(scope, "this request")
    }

    /// Returns 403 unless it has the scope, which `what` needs.
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

    /// Returns 403 unless it has one of these scopes.
    pub(super) fn require_one(&self, scopes: &[Scope]) -> Result<(), Problem> {
        if scopes.iter().any(|scope| self.may(*scope)) { Ok(()) } else { self.require(scopes[0]) }
    }

    pub fn may_use(&self, collection: &CollectionName) -> bool {
        self.key.as_ref().is_none_or(|key| key.may_use(collection))
    }

    /// Returns 403 unless it may use the collection. The answer does not tell whether there is one.
    pub fn require_use(&self, collection: &CollectionName) -> Result<(), Problem> {
        match &self.key {
            Some(key) if !key.may_use(collection) => {
                let detail = format!("the key `{}` is not for the collection `{collection}`", key.name());
                Err(Problem::new(Code::Forbidden, detail))
            }
            _ => Ok(()),
        }
    }

    /// Returns 403 if its key is limited to some collections.
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

    /// Returns 403 if its key sees only verdicts: the answer to `what` tells more.
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

    /// How much work its key may cause; `None` if it has no key.
    pub fn limits(&self) -> Option<&KeyLimits> {
        self.key.as_deref().map(Key::limits)
    }

    pub fn scores(&self) -> Scores {
        self.key.as_deref().map_or(Scores::Full, Key::scores)
    }

    /// Cancelled once its key is revoked, has expired, or has lost a right. `None`: it has no key that could be.
    pub fn revoked(&self) -> Option<&CancellationToken> {
        self.key.as_deref().map(Key::revoked)
    }

    /// Returns the reason why its open requests end; `None` while its key is valid.
    pub(super) fn ended(&self) -> Option<Problem> {
        self.revoked().filter(|revoked| revoked.is_cancelled()).map(|_| revoked_meanwhile())
    }

    /// Waits until its key is no longer valid, and returns the reason why its open requests end.
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
