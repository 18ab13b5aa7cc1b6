//! Handlers for the keys of clients. The server notices a change of the keys file by itself, within two seconds.

use std::path::Path;

use axum::Json;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, State};
use axum::http::StatusCode;

use crate::http::caller::Caller;
use crate::http::dto::key::{AccessBody, AddedKey, KeyBody, KeyList, Revoked, new_key};
use crate::http::error::{Code, Problem};
use crate::http::request::JsonText;
use crate::http::state::AppState;
use crate::keys::{self, IfMissing, KeysFile};
use crate::telemetry::AUDIT;

/// `GET /v1/access`: what the key of the request may do.
pub async fn access(caller: Caller) -> Json<AccessBody> {
    Json(AccessBody::of(&caller))
}

/// `GET /v1/keys`: the keys of the file, also expired ones.
pub async fn list(State(state): State<AppState>) -> Result<Json<KeyList>, Problem> {
    let keys = in_file(&state, |path| Ok(KeysFile::read(path)?.keys().iter().map(KeyBody::from).collect())).await?;
    Ok(Json(KeyList { keys }))
}

/// `POST /v1/keys`: 201 once the key is in the file.
pub async fn add(
    State(state): State<AppState>,
    caller: Caller,
    body: JsonText,
) -> Result<(StatusCode, Json<AddedKey>), Problem> {
    let new = body.parse(&state, new_key).await?;
    let added = in_file(&state, move |path| {
        let (key, text) = keys::add(path, &new, IfMissing::Refuse)?;
        let (by, name, id, scopes) = (caller.name(), key.name(), key.id(), key.scopes());
        tracing::info!(target: AUDIT, key = by, added = name, id, %scopes, "a key was added");
        Ok(AddedKey { text, key: (&key).into() })
    });
    Ok((StatusCode::CREATED, Json(added.await?)))
}

/// `DELETE /v1/keys/{key}`: revokes the key with this id. A request cannot revoke its own key: otherwise a mistake could
/// leave no key that can add keys.
pub async fn revoke(
    State(state): State<AppState>,
    caller: Caller,
    params: Result<RawPathParams, RawPathParamsRejection>,
) -> Result<Json<Revoked>, Problem> {
    let params = params.map_err(|_| Problem::invalid("key", "is not valid UTF-8 after percent-decoding"))?;
    let id = params.iter().find(|(name, _)| *name == "key").map_or_else(String::new, |(_, id)| id.to_owned());
    if caller.key().is_some_and(|own| own.id() == id) {
        let detail = "this request was sent with this key; revoke it with another key, or with `hapax keys revoke`";
        return Err(Problem::new(Code::OwnKey, detail));
    }
    let revoked = in_file(&state, move |path| {
        let revoked = keys::revoke_id(path, &id)?;
        tracing::info!(target: AUDIT, key = caller.name(), revoked, id, "a key was revoked");
        Ok(1)
    });
    Ok(Json(Revoked { revoked: revoked.await? }))
}

/// Works on the keys file, on a thread that may wait for the disk and for other programs. One request after another does
/// so. The work ends even if the client leaves.
async fn in_file<T: Send + 'static>(
    state: &AppState,
    work: impl FnOnce(&Path) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let Some(path) = state.keys().file().map(ToOwned::to_owned) else {
        let detail = "keys are listed, added and revoked in a keys file; set `auth.keys_file`, and make the first key with \
                      `hapax keys add`";
        return Err(Problem::new(Code::KeysOff, detail));
    };
    let turn = state.admission().keys_turn().await;
    let work = move || {
        let _turn = turn;
        work(&path)
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| Problem::internal(&error.to_string()))?
}
