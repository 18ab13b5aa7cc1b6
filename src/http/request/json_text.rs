//! A JSON body.

use axum::extract::{FromRequest, Request};

use super::parsing::{after_parsing, into_utf8, parse};
use super::reading::read;
use crate::cpu::WhenFull;
use crate::http::body::{Room, Whole};
use crate::http::error::Problem;
use crate::http::media_type::expect;
use crate::http::state::AppState;

/// A JSON body that is valid UTF-8 and has not been parsed yet.
pub struct JsonText {
    text: String,
    when_full: WhenFull,
    /// The memory reserved for the text; given back when the request is over.
    room: Room,
}

impl FromRequest<AppState> for JsonText {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        expect(&parts.headers, &["application/json", "application/merge-patch+json"])?;
        let Whole { bytes, room } = read(&parts, body, None, state).await?;
        let len = bytes.len();
        let text = parse(state.cpu(), WhenFull::Refuse, len, move || into_utf8(bytes)).await?;
        Ok(Self { text, when_full: after_parsing(len), room })
    }
}

/// The body of a batch. It is not read if the batch would wait too long for its turn.
pub struct BatchText(pub JsonText);

impl FromRequest<AppState> for BatchText {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        state.admission().batches().admit()?;
        JsonText::from_request(request, state).await.map(Self)
    }
}

impl JsonText {
    /// Whether the work on the body waits if the pool is full.
    pub(crate) fn when_full(&self) -> WhenFull {
        self.when_full
    }

    /// Returns the text, whether work on it waits if the pool is full, and the memory reserved for it.
    pub(crate) fn into_parts(self) -> (String, WhenFull, Room) {
        (self.text, self.when_full, self.room)
    }

    /// Parses the text with `read`, and gives its memory back. A long text is parsed off the async threads.
    pub(crate) async fn parse<T: Send + 'static>(
        self,
        state: &AppState,
        read: impl FnOnce(&str) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let Self { text, when_full, room: _room } = self;
        parse(state.cpu(), when_full, text.len(), move || read(&text)).await
    }
}
