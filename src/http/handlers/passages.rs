//! A part of the handler that compares: the texts of both sides, and the passages that both have.

use hapax_core::{Spec, TextSpec};

use super::pages::ENVELOPE_BYTES;
use crate::collections::{Collection, CollectionError, Comparand};
use crate::cpu::WhenFull;
use crate::http::answer::{AnswerRoom, scarce};
use crate::http::dto::compare::PassagesBody;
use crate::http::error::Problem;
use crate::http::state::AppState;
use crate::types::{Content, Keep, StoredText};

/// The longest text whose passages are found, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// The most memory that a byte of text takes while passages are found. Each word takes a hash, a place and an entry of a
/// table. With the white space after it, a word has at least two bytes.
const MEMORY_PER_TEXT_BYTE: usize = 24;

/// Returns the texts of both sides; `None` if a side has none.
pub(super) async fn texts(
    collection: &Collection,
    [a, b]: [&Comparand; 2],
    when_full: WhenFull,
) -> Result<Option<[String; 2]>, Problem> {
    let Some(a) = text(collection, a, "a", when_full).await? else { return Ok(None) };
    let Some(b) = text(collection, b, "b", when_full).await? else { return Ok(None) };
    Ok(Some([a, b]))
}

async fn text(
    collection: &Collection,
    side: &Comparand,
    field: &'static str,
    when_full: WhenFull,
) -> Result<Option<String>, Problem> {
    match side {
        Comparand::Content(Content::Text(text)) => check_length(text.len(), field).map(|()| Some(text.clone())),
        Comparand::Content(Content::Html(html)) => {
            let page = collection.extract(html.clone(), None, when_full).await?;
            check_length(page.text.len(), field).map(|()| Some(page.text))
        }
        Comparand::Content(Content::Set(_) | Content::Signature { .. }) => Ok(None),
        Comparand::Id(_) if collection.settings().keep != Keep::Text => Ok(None),
        // Each byte of a text takes at most six bytes of JSON.
        Comparand::Id(id) => match collection.document_with_text(id, 6 * TEXT_BYTES_MAX).await? {
            Some((_, StoredText::Whole(text))) => check_length(text.len(), field).map(|()| Some(text)),
            Some((_, StoredText::Absent)) => Ok(None),
            Some((_, StoredText::TooLong { bytes })) => check_length(bytes, field).map(|()| None),
            None => Err(CollectionError::NoSuchDocument { id: id.clone() }.into()),
        },
    }
}

/// Refuses a text that is too long.
fn check_length(bytes: usize, field: &'static str) -> Result<(), Problem> {
    if bytes <= TEXT_BYTES_MAX {
        return Ok(());
    }
    let detail = format!(
        "has a text of {bytes} bytes; passages are found in texts of at most {TEXT_BYTES_MAX} bytes. Without \
         `with=passages`, longer texts can be compared"
    );
    Err(Problem::invalid(field, detail))
}

/// Returns how much memory the search for passages takes, in bytes.
pub(super) fn bytes_to_find(texts: &[String; 2]) -> usize {
    MEMORY_PER_TEXT_BYTE * texts.iter().map(String::len).sum::<usize>()
}

/// Finds the passages, and reserves memory for an answer with them.
pub(super) async fn find(
    state: &AppState,
    collection: &Collection,
    texts: [String; 2],
) -> Result<(PassagesBody, AnswerRoom), Problem> {
    let bytes = texts.iter().map(String::len).sum();
    let spec = match collection.settings().spec {
        Spec::Text(spec) => spec,
        // Such a collection has no texts, but a request may have two.
        Spec::External { .. } => TextSpec::default(),
    };
    let work = move || PassagesBody::find(&spec, texts);
    let found = state.cpu().place(WhenFull::Wait).await?.run_uncut(bytes, work).await?;
    let bytes = ENVELOPE_BYTES + found.json_bytes();
    let mut room = state.answer_room(2 * bytes)?;
    if bytes > room.json_bytes_max() {
        return Err(scarce());
    }
    room.is_made(bytes);
    Ok((found, room))
}
