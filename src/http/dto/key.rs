//! Keys as JSON. No answer has the text of a key, except the one that makes it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::http::caller::Caller;
use crate::http::error::Problem;
use crate::http::json::Object;
use crate::keys::{Key, KeyLimits, NewKey, Pattern, Scopes};

/// Parses the body of `POST /v1/keys`. The fields are those of a key in the keys file.
pub fn new_key(text: &str) -> Result<NewKey, Problem> {
    let mut object = Object::parse(text)?;
    let name = object.string("name")?.ok_or_else(|| Problem::invalid("name", "is required"))?;
    let scopes: Vec<String> = object.take("scopes", "a list of scopes")?.unwrap_or_default();
    let collections: Option<Vec<String>> = object.take("collections", "a list of names of collections")?;
    let (expires, scores) = (object.string("expires")?, object.string("scores")?);
    let limits = object.object("limits")?.map(limits).transpose()?.unwrap_or_default();
    object.finish()?;
    if collections.as_ref().is_some_and(Vec::is_empty) {
        return Err(Problem::invalid("collections", "must not be empty; leave it out to allow all collections"));
    }
    let new = NewKey { name, scopes, collections: collections.unwrap_or_default(), expires, scores, limits };
    new.check().map_err(|(field, detail)| Problem::invalid(field, detail))?;
    Ok(new)
}

fn limits(mut object: Object<'_>) -> Result<KeyLimits, Problem> {
    let mut limit = |name| object.take::<u64>(name, "a whole number").map_err(|problem| problem.within("limits"));
    let limits = KeyLimits {
        requests_per_second: limit("requests_per_second")?,
        bytes_per_second: limit("bytes_per_second")?,
        documents_per_second: limit("documents_per_second")?,
        requests_in_flight: limit("requests_in_flight")?,
    };
    object.finish().map_err(|problem| problem.within("limits"))?;
    Ok(limits)
}

/// All keys of the file.
#[derive(Debug, Serialize)]
pub struct KeyList {
    pub keys: Vec<KeyBody>,
}

/// A new key, with its text.
#[derive(Debug, Serialize)]
pub struct AddedKey {
    /// The text that the client sends. It is stored nowhere.
    pub text: String,
    #[serde(flatten)]
    pub key: KeyBody,
}

/// The answer of `DELETE /v1/keys/{key}`.
#[derive(Debug, Serialize)]
pub struct Revoked {
    pub revoked: usize,
}

/// What a key may do.
#[derive(Debug, Serialize)]
pub struct KeyBody {
    name: String,
    id: String,
    scopes: Vec<&'static str>,
    /// Absent if the key is for all collections.
    #[serde(skip_serializing_if = "Option::is_none")]
    collections: Option<Vec<String>>,
    scores: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    limits: BTreeMap<&'static str, u64>,
}

impl From<&Key> for KeyBody {
    fn from(key: &Key) -> Self {
        Self {
            name: key.name().to_owned(),
            id: key.id().to_owned(),
            scopes: key.scopes().words().collect(),
            collections: key.collections().map(|all| all.iter().map(Pattern::to_string).collect()),
            scores: key.scores().as_str(),
            created: key.created().map(|at| at.to_string()),
            expires: key.expires().map(|at| at.to_string()),
            limits: key.limits().named().collect(),
        }
    }
}

/// The answer of `GET /v1/access`.
#[derive(Debug, Serialize)]
pub struct AccessBody {
    /// Whether the server requires a key.
    required: bool,
    /// What the request may do.
    scopes: Vec<&'static str>,
    /// The key of the request. Absent if the server requires no key.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<KeyBody>,
}

impl AccessBody {
    pub fn of(caller: &Caller) -> Self {
        let scopes = caller.key().map_or_else(Scopes::all, Key::scopes);
        Self {
            required: caller.key().is_some(),
            scopes: scopes.words().collect(),
            key: caller.key().map(KeyBody::from),
        }
    }
}
