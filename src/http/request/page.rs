//! The page in a request to extract a page's text.

use axum::extract::{FromRequest, Request};

use super::announced::Announced;
use super::parsing::{after_parsing, parse};
use super::reading::read;
use crate::cpu::WhenFull;
use crate::http::body::{Room, Whole};
use crate::http::error::Problem;
use crate::http::notes::caller_of;
use crate::http::quota::Quota;
use crate::http::state::AppState;
use crate::types::{Content, Extract, Html};

/// A page: raw, or the field `html` of a JSON document.
pub struct PageInput {
    pub html: Html,
    /// The text to extract; `None`: the text that the collection extracts.
    pub extract: Option<Extract>,
    /// Whether the work on the page waits if the pool is full.
    pub when_full: WhenFull,
    /// The memory reserved for the page; given back when the request is over.
    pub(crate) room: Room,
}

impl FromRequest<AppState> for PageInput {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let Announced { form, id, capture, invalid, query } = Announced::of(&mut parts, state).await?;
        let extract = match query.get("extract") {
            Some(_) => Some(query.choice("extract", &Extract::ALL.map(|extract| (extract.as_str(), extract)))?),
            None => None,
        };
        let caller = caller_of(&parts.extensions).clone();
        let Whole { bytes, mut room } = read(&parts, body, form.raw(invalid), state).await?;
        Quota::of(&parts.extensions).take_documents(1)?;
        let len = bytes.len();
        let read = move || form.document(bytes, (id, capture), invalid, &caller);
        let document = parse(state.cpu(), WhenFull::Refuse, len, read).await?;
        let Content::Html(html) = document.content else {
            return Err(Problem::invalid("html", "is required; text is extracted only from pages"));
        };
        // Memory for the page, for its text in the order of the page, and for the part of the text that is kept.
        room.fit(3 * html.markup.len())?;
        Ok(Self { html, extract, when_full: after_parsing(len), room })
    }
}
