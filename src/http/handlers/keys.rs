//! Handlers for the keys of clients. The server notices a change of the keys file by itself, within two seconds.

use std::path::PathBuf;

use axum::Json;
use axum::extract::{RawPathParams, State};
use axum::http::StatusCode;

use crate::cpu::WhenFull;
use crate::http::caller::Caller;
use crate::http::dto::key::{AccessBody, AddedKey, KeyBody, KeyList, Revoked, new_key};
use crate::http::error::{Code, Problem};
use crate::http::request::JsonText;
use crate::http::state::AppState;
use crate::keys::{self, Key, KeysError, KeysFile};

/// `GET /v1/access`: what the key of the request may do.
pub async fn access(caller: Caller) -> Json<AccessBody> {
    Json(AccessBody::of(&caller))
}

/// `GET /v1/keys`: the keys of the file, also expired ones.
pub async fn list(State(state): State<AppState>) -> Result<Json<KeyList>, Problem> {
    let keys = in_file(&state, |path| Ok(KeysFile::read(&path)?.keys().iter().map(KeyBody::from).collect())).await?;
    Ok(Json(KeyList { keys }))
}

/// `POST /v1/keys`: 201 once the key is in the file.
pub async fn add(State(state): State<AppState>, body: JsonText) -> Result<(StatusCode, Json<AddedKey>), Problem> {
    let new = body.parse(&state, new_key).await?;
    let added = in_file(&state, move |path| {
        let (id, text) = keys::add(&path, &new)?;
        let file = KeysFile::read(&path)?;
        let key = file.keys().iter().find(|key| key.id() == id).map(KeyBody::from);
        Ok(AddedKey { text, key: key.ok_or(KeysError::NoSuchKey(id))? })
    });
    Ok((StatusCode::CREATED, Json(added.await?)))
}

/// `DELETE /v1/keys/{key}`: revokes the key with this id. A request cannot revoke its own key: after a mistake, nobody
/// might be able to add a key.
pub async fn revoke(
    State(state): State<AppState>,
    caller: Caller,
    params: RawPathParams,
) -> Result<Json<Revoked>, Problem> {
    let id = params.iter().find(|(name, _)| *name == "key").map_or_else(String::new, |(_, id)| id.to_owned());
    if caller.key().is_some_and(|own| own.id() == id) {
        let detail = format!(
            "this request was sent with the key `{id}`; revoke it with another key, or with `hapax keys revoke`"
        );
        return Err(Problem::new(Code::OwnKey, detail));
    }
    let revoked = in_file(&state, move |path| {
        // `revoke` also takes names, of which two keys may have the same.
        let has_id = |key: &Key| key.id() == id;
        match KeysFile::read(&path)?.keys().iter().any(has_id) {
            true => Ok(keys::revoke(&path, &id)?.len()),
            false => Err(KeysError::NoSuchKey(id).into()),
        }
    });
    Ok(Json(Revoked { revoked: revoked.await? }))
}

/// Works on the keys file, off the async threads.
async fn in_file<T: Send + 'static>(
    state: &AppState,
    work: impl FnOnce(PathBuf) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let Some(path) = state.keys().file().map(ToOwned::to_owned) else {
        let detail = "keys are listed, added and revoked in a keys file; set `auth.keys_file`, and make the first key with \
                      `hapax keys add`";
        return Err(Problem::new(Code::KeysOff, detail));
    };
    state.cpu().place(WhenFull::Refuse).await?.run(move || work(path)).await?
}
