//! The body of a request that looks at one document but does not store it.

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::request::Parts;
use bytes::Bytes;

use super::announced::{Announced, Form};
use super::parsing::{after_parsing, parse};
use super::reading::{notes, read};
use crate::collections::{
    AskedCollections, AskedTextSigner, Collection, CollectionError, PrepareOptions, Prepared, Purpose, TextSigner,
};
use crate::cpu::{CpuPool, WhenFull};
use crate::http::body::{self, LONG_BYTES_MIN, Room, Slice, Slices, Whole};
use crate::http::dto::document::{self, BYTE_ORDER_MARK, DocumentInput, Invalid};
use crate::http::error::Problem;
use crate::http::notes::{Notes, caller_of};
use crate::http::query::Query;
use crate::http::quota::Quota;
use crate::http::state::AppState;
use crate::http::stream_place::StreamPlace;
use crate::types::{Content, DocId, PayloadDigest};

/// One document to check or sign: JSON, or a raw text of any length with its id in the query.
pub struct Subject {
    pub id: Option<DocId>,
    pub payload_digest: Option<PayloadDigest>,
    pub query: Query,
    pub(crate) content: SubjectContent,
}

/// The content of the document.
pub(crate) enum SubjectContent {
    Whole {
        content: Content,
        /// Whether the work on the content waits if the pool is full.
        when_full: WhenFull,
        /// The memory reserved for the content.
        room: Room,
    },
    /// A raw text that is still arriving.
    Streamed(Box<StreamedText>),
}

/// A raw text that is too long to be read whole before the work begins.
pub(crate) struct StreamedText {
    first: Slice,
    rest: Slices,
    invalid: Invalid,
    place: StreamPlace,
    notes: Notes,
    /// The limit on the text's length if it must be read whole.
    whole_bytes_max: usize,
    cpu: CpuPool,
}

impl FromRequest<AppState> for Subject {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let Announced { form, id, capture, invalid, query } = Announced::of(&mut parts, state).await?;
        let quota = Quota::of(&parts.extensions);
        if let Form::Text = form {
            // In a box, so that requests with JSON do not take memory for this future.
            let content = Box::pin(raw_text(&parts, body, invalid, state, &quota)).await?;
            return Ok(Self { id, payload_digest: capture.digest, query, content });
        }
        let Whole { bytes, room } = read(&parts, body, form.raw(invalid), state).await?;
        quota.take_documents(1)?;
        let len = bytes.len();
        let caller = caller_of(&parts.extensions).clone();
        let read = move || form.document(bytes, (id, capture), invalid, &caller);
        let DocumentInput { id, content, attached } = parse(state.cpu(), WhenFull::Refuse, len, read).await?;
        let content = SubjectContent::Whole { content, when_full: after_parsing(len), room };
        Ok(Self { id, payload_digest: attached.capture.digest, query, content })
    }
}

/// Reads the first part of a raw text, or the whole text if it is short.
async fn raw_text(
    parts: &Parts,
    body: Body,
    invalid: Invalid,
    state: &AppState,
    quota: &Quota,
) -> Result<SubjectContent, Problem> {
    let notes = notes(parts);
    let arriving = quota.arriving();
    let (limits, cpu) = (state.limits(), state.cpu());
    let mut rest = Slices::new(&parts.headers, body, limits, state.budget(), notes.clone(), arriving, cpu)?;
    let first = rest.next().await?;
    rest.begin()?;
    quota.take_documents(1)?;
    match first {
        // A short text is signed at once on this thread, as is a short text in JSON.
        Slice::Last(bytes) if bytes.len() <= LONG_BYTES_MIN => {
            notes.turn().take()?;
            let content = document::from_raw(None, bytes.into(), invalid)?.content;
            Ok(SubjectContent::Whole { content, when_full: WhenFull::Refuse, room: rest.into_room() })
        }
        first => {
            // A request with a longer text may last for hours, and must not hold a place that other requests need.
            let place = state.text_stream_place()?;
            let (whole_bytes_max, cpu) = (state.limits().body_bytes_max, state.cpu().clone());
            Ok(SubjectContent::Streamed(Box::new(StreamedText {
                first,
                rest,
                invalid,
                place,
                notes: notes.clone(),
                whole_bytes_max,
                cpu,
            })))
        }
    }
}

impl SubjectContent {
    /// Prepares the content for a lookup, with its `ranks` if requested, and then gives back its memory. A text whose
    /// shingles will be compared is read whole first, because the shingles may take as much memory as the text.
    pub(crate) async fn prepare(
        self,
        collection: &Collection,
        purpose: Purpose,
        ranks: bool,
    ) -> Result<Prepared, Problem> {
        match self {
            Self::Whole { content, when_full, mut room } => {
                body::fit_content(&mut room, &content, collection, purpose)?;
                Ok(collection.prepare_with(content, PrepareOptions { when_full, ranks, purpose }).await?)
            }
            Self::Streamed(text) => Box::pin(text.prepare(collection, purpose, ranks)).await,
        }
    }

    /// Prepares the content for a lookup in several collections.
    pub(crate) async fn prepare_for_all(self, asked: &AskedCollections) -> Result<Vec<Prepared>, Problem> {
        let purpose = Purpose::Check;
        match self {
            Self::Whole { content, when_full, mut room } => {
                body::fit_asked_content(&mut room, &content, asked, purpose)?;
                Ok(asked.prepare(content, PrepareOptions { when_full, ranks: false, purpose }).await?)
            }
            Self::Streamed(text) => Box::pin(text.prepare_for_all(asked)).await,
        }
    }
}

/// A text in memory: that of the document, or the one that was extracted from its page.
pub(in crate::http) struct SubjectText {
    pub text: String,
    /// Whether the work on the text waits if the pool is full.
    pub when_full: WhenFull,
    /// The memory reserved for the text.
    pub room: Room,
    /// Held while the text is worked on, if it was long.
    pub place: Option<StreamPlace>,
}

impl SubjectContent {
    /// Reads the whole text of the document. Refuses a document that has no text.
    pub(in crate::http) async fn text(self, collection: &Collection) -> Result<SubjectText, Problem> {
        let (content, when_full, mut room, place) = match self {
            Self::Whole { content, when_full, room } => (content, when_full, room, None),
            Self::Streamed(text) => {
                let WholeText { content, when_full, room, place } = Box::pin(text.whole()).await?;
                (content, when_full, room, Some(place))
            }
        };
        let text = match content {
            Content::Text(text) => text,
            Content::Html(html) => {
                room.fit(3 * html.markup.len())?;
                collection.extract(html, None, when_full).await?.text
            }
            Content::Set(_) => return Err(Problem::invalid("set", "has no words; send `text` or `html`")),
            Content::Signature { .. } => {
                return Err(Problem::invalid("signature", "has no words; send `text` or `html`"));
            }
        };
        Ok(SubjectText { text, when_full, room, place })
    }
}

impl StreamedText {
    async fn prepare(self, collection: &Collection, purpose: Purpose, ranks: bool) -> Result<Prepared, Problem> {
        if purpose == Purpose::Check && collection.compares_shingles() {
            let mut text = self.whole().await?;
            body::fit_content(&mut text.room, &text.content, collection, purpose)?;
            let options = PrepareOptions { when_full: text.when_full, ranks, purpose };
            return Ok(collection.prepare_with(text.content, options).await?);
        }
        let options = PrepareOptions { when_full: WhenFull::Refuse, ranks, purpose };
        let signer = collection.text_signer(self.invalid.into(), options)?;
        self.signed(signer).await
    }

    async fn prepare_for_all(self, asked: &AskedCollections) -> Result<Vec<Prepared>, Problem> {
        let purpose = Purpose::Check;
        if asked.compares_shingles() {
            let mut text = self.whole().await?;
            body::fit_asked_content(&mut text.room, &text.content, asked, purpose)?;
            let options = PrepareOptions { when_full: text.when_full, ranks: false, purpose };
            return Ok(asked.prepare(text.content, options).await?);
        }
        let options = PrepareOptions { when_full: WhenFull::Refuse, ranks: false, purpose };
        let signer = asked.text_signer(self.invalid.into(), options)?;
        self.signed(signer).await
    }

    /// Reads the rest of the text.
    async fn whole(self) -> Result<WholeText, Problem> {
        let Self { first, rest, invalid, place, notes, whole_bytes_max, cpu } = self;
        let Whole { bytes, mut room } = rest.whole(first, whole_bytes_max).await?;
        notes.turn().take()?;
        let (len, read) = (bytes.len(), move || document::from_raw(None, bytes.into(), invalid));
        room.fit(body::text_bytes(len, invalid))?;
        let content = parse(&cpu, WhenFull::Refuse, len, read).await?.content;
        Ok(WholeText { content, when_full: after_parsing(len), room, place })
    }

    /// Signs the text while it arrives.
    async fn signed<S: Signer>(self, mut signer: S) -> Result<S::Signed, Problem> {
        let Self { first, mut rest, place: _place, notes, .. } = self;
        let turn = notes.turn();
        let mut slice = first.without_prefix(BYTE_ORDER_MARK.as_bytes());
        let mut piece = turn.begin()?;
        loop {
            match slice {
                Slice::Full(bytes) => signer = signer.push(bytes).await?,
                Slice::Last(bytes) => {
                    turn.keep(piece);
                    return Ok(signer.finish(bytes).await?);
                }
            }
            // The request gives its place back while it waits for the client.
            drop(piece);
            slice = rest.next().await?;
            piece = turn.piece().await;
        }
    }
}

/// A raw text that had to be read whole.
struct WholeText {
    content: Content,
    when_full: WhenFull,
    room: Room,
    /// Held while the text is worked on.
    place: StreamPlace,
}

/// Signs a text in pieces, for one collection or for several.
trait Signer: Sized {
    type Signed;

    fn push(self, piece: Bytes) -> impl Future<Output = Result<Self, CollectionError>> + Send;
    fn finish(self, piece: Bytes) -> impl Future<Output = Result<Self::Signed, CollectionError>> + Send;
}

impl Signer for TextSigner {
    type Signed = Prepared;

    fn push(self, piece: Bytes) -> impl Future<Output = Result<Self, CollectionError>> + Send {
        Self::push(self, piece)
    }

    fn finish(self, piece: Bytes) -> impl Future<Output = Result<Prepared, CollectionError>> + Send {
        Self::finish(self, piece)
    }
}

impl Signer for AskedTextSigner {
    type Signed = Vec<Prepared>;

    fn push(self, piece: Bytes) -> impl Future<Output = Result<Self, CollectionError>> + Send {
        Self::push(self, piece)
    }

    fn finish(self, piece: Bytes) -> impl Future<Output = Result<Vec<Prepared>, CollectionError>> + Send {
        Self::finish(self, piece)
    }
}
