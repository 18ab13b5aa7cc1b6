//! The handler of lookups by containment.

use axum::extract::State;

use crate::collections::Overlaps;
use crate::http::answer::Answer;
use crate::http::dto::overlaps::OverlapsBody;
use crate::http::error::Problem;
use crate::http::options;
use crate::http::request::{Subject, SubjectText, Target};
use crate::http::state::AppState;
use crate::types::IndexKind;

/// The memory that the lookup takes for each byte of the text: for the hashes and the places of its words and n-grams. A
/// word takes at least two bytes, and up to 48 bytes in the lists that are in memory at once.
const LOOKUP_BYTES: usize = 24;

/// `POST …/overlaps`
pub async fn overlaps(
    State(state): State<AppState>,
    Target(collection): Target,
    subject: Subject,
) -> Result<Answer<OverlapsBody>, Problem> {
    collection.require(IndexKind::Containment)?;
    let options = options::overlap_options(&subject.query)?;
    let SubjectText { text, when_full, mut room, place: _place } = subject.content.text(&collection).await?;
    room.fit(text.len() * (1 + LOOKUP_BYTES))?;
    let mut answer_room = state.answer_room(Overlaps::bytes_max(options.limit))?;
    let overlaps = collection.overlaps(text, options, when_full).await?.fitting(answer_room.json_bytes_max());
    answer_room.is_made(overlaps.bytes());
    Ok(Answer::new(overlaps.into(), answer_room))
}
