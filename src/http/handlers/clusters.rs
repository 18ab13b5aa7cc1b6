//! Clusters, page by page.

use axum::extract::State;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::pages::{ENVELOPE_BYTES, PAGE_DEFAULT, PAGE_MAX};
use crate::collections::ClusterMember;
use crate::http::answer::Answer;
use crate::http::dto::cluster::ClusterBody;
use crate::http::error::{Code, Problem};
use crate::http::query::Query;
use crate::http::request::Target;
use crate::http::state::AppState;
use crate::types::{ClusterPlace, Seq};

/// `GET …/clusters`: the cluster of `?id=`, or all that have more than one document.
pub async fn read(
    State(state): State<AppState>,
    Target(collection): Target,
    query: Query,
) -> Result<Answer<ClusterBody>, Problem> {
    let limit = query.integer("limit", PAGE_DEFAULT, 1..=PAGE_MAX)?;
    let after = query.get("cursor").map(from_cursor).transpose()?;
    let mut room = state.answer_room(limit * ClusterMember::BYTES_MAX)?;
    let Some(id) = query.id()? else {
        let mut page = collection.clusters(after.unwrap_or_default(), limit).await?;
        page.fit(room.json_bytes_max());
        room.is_made(ENVELOPE_BYTES + page.members.iter().map(ClusterMember::bytes).sum::<usize>());
        let next_cursor = page.next.map(to_cursor);
        return Ok(Answer::new(ClusterBody::all(page, next_cursor), room));
    };
    let page = collection.cluster(id, after, limit).await?;
    let mut page = page.ok_or_else(|| Problem::new(Code::DocumentNotFound, "the id is not stored here"))?;
    page.fit(room.json_bytes_max());
    let next_cursor = page.next.map(to_cursor);
    room.is_made(2 * ENVELOPE_BYTES + page.members.iter().map(ClusterMember::bytes).sum::<usize>());
    Ok(Answer::new(ClusterBody::one(page, next_cursor), room))
}

/// As with pages of documents, in a form nobody is tempted to count with.
fn to_cursor(place: ClusterPlace) -> String {
    let [cluster, seq] = [place.cluster, place.seq].map(|seq| seq.0.to_be_bytes());
    URL_SAFE_NO_PAD.encode([cluster, seq].concat())
}

fn from_cursor(text: &str) -> Result<ClusterPlace, Problem> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    let place = bytes
        .map(u128::from_be_bytes)
        .map(|both| ClusterPlace { cluster: Seq((both >> 64) as u64), seq: Seq(both as u64) });
    place.ok_or_else(|| Problem::invalid("cursor", "is not one that a page gave"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_come_back() {
        for (cluster, seq) in [(0, 0), (7, u64::MAX), (u64::MAX, 1)] {
            let place = ClusterPlace { cluster: Seq(cluster), seq: Seq(seq) };
            assert_eq!(from_cursor(&to_cursor(place)).unwrap(), place);
        }
        for text in ["", "AAAAAAAAAAA", "!!!!!!!!!!!!!!!!!!!!!!"] {
            assert!(from_cursor(text).is_err());
        }
    }
}
