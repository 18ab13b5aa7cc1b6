//! A request's parts -> what handlers ask for.
//! Every refusal is a [`Problem`]; axum's own extractors, whose rejections are plain text, are not used on bodies.

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;

use super::body::{self, Room, Slice, Slices, Whole};
use super::deadline::Deadline;
use super::dto::document::{self, BYTE_ORDER_MARK, DocumentInput, Invalid};
use super::error::{Code, Problem};
use super::query::Query;
use super::state::{AppState, Place};
use super::turn::Turn;
use crate::collections::{Collection, Collections, PrepareOptions, Prepared, Purpose};
use crate::cpu::{CpuPool, WhenFull};
use crate::types::{CollectionName, Content, DocId};

/// Texts up to this many bytes are parsed where they are; longer ones off the async threads.
const INLINE_BYTES_MAX: usize = 64 * 1024;

/// A raw text up to this many bytes is taken whole, like one in JSON: it is signed at once, without changing threads.
const STREAMED_BYTES_MIN: usize = 16 * 1024;

/// All collections, or 503 while they are being opened.
pub struct Open(pub Collections);

impl FromRequestParts<AppState> for Open {
    type Rejection = Problem;

    async fn from_request_parts(_parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        state.boot().collections().map(|collections| Self(collections.clone()))
    }
}

/// The collection's name in the path, or 422.
pub struct Name(pub CollectionName);

impl FromRequestParts<AppState> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let params = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::invalid("collection", "is not UTF-8 after percent-decoding"))?;
        let name = params.iter().find(|(name, _)| *name == "collection").map_or("", |(_, value)| value);
        Ok(Self(CollectionName::new(name)?))
    }
}

/// The collection named in the path, or 404.
pub struct Target(pub Collection);

impl FromRequestParts<AppState> for Target {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let Open(collections) = Open::from_request_parts(parts, state).await?;
        let Name(name) = Name::from_request_parts(parts, state).await?;
        Ok(Self(collections.get(&name).await?))
    }
}

impl FromRequestParts<AppState> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &AppState) -> Result<Self, Problem> {
        // The route's own layer has parsed it, or the request would not be here.
        Ok(parts.extensions.remove::<Self>().unwrap_or_default())
    }
}

/// What a Content-Type says, without its parameters, and its charset.
struct MediaType {
    essence: String,
    charset: Option<String>,
}

impl MediaType {
    fn of(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(CONTENT_TYPE)?.to_str().ok()?;
        let mut parts = text.split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            let named = name.trim().eq_ignore_ascii_case("charset");
            named.then(|| value.trim().trim_matches('"').to_ascii_lowercase())
        });
        Some(Self { essence, charset })
    }

    fn utf8(&self) -> bool {
        self.charset.as_deref().is_none_or(|charset| matches!(charset, "utf-8" | "utf8"))
    }
}

/// 415 unless the body is announced as one of `essences`, in UTF-8.
fn expect(headers: &HeaderMap, essences: &[&str]) -> Result<MediaType, Problem> {
    let wanted = essences[0];
    let Some(media) = MediaType::of(headers) else {
        return Err(Problem::new(Code::UnsupportedMediaType, format!("there is no Content-Type; send {wanted}")));
    };
    if media.essence == "text/html" || media.essence == "application/xhtml+xml" {
        return Err(html());
    }
    if !essences.contains(&media.essence.as_str()) {
        let detail = format!("the Content-Type is not one of {}", essences.join(", "));
        return Err(Problem::new(Code::UnsupportedMediaType, detail));
    }
    if !media.utf8() {
        return Err(Problem::new(Code::UnsupportedMediaType, "the charset must be utf-8"));
    }
    Ok(media)
}

/// HTML is not taken.
pub fn html() -> Problem {
    Problem::new(Code::UnsupportedMediaType, "HTML is not accepted; send its main text as `text` or text/plain")
}

/// 415 unless the body is announced as lines of JSON.
pub fn expect_lines(headers: &HeaderMap) -> Result<(), Problem> {
    expect(headers, &["application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines"])
        .map(drop)
}

/// What the route's own layer has put into a request.
fn own<T: Clone + Send + Sync + 'static>(parts: &Parts) -> T {
    parts.extensions.get::<T>().expect("the route's own layer has set it").clone()
}

/// Waits for the body, and then takes the request's place.
async fn read(parts: &Parts, body: Body, raw: Option<Invalid>, state: &AppState) -> Result<Whole, Problem> {
    let mut whole = body::whole(&parts.headers, body, state.limits(), state.budget(), &own::<Deadline>(parts)).await?;
    own::<Turn>(parts).take()?;
    // What it is parsed into is there beside it.
    let bytes = match raw {
        Some(invalid) => body::text_bytes(whole.bytes.len(), invalid),
        None => body::json_bytes(&whole.bytes).await,
    };
    whole.room.fit(bytes)?;
    Ok(whole)
}

/// The text of a JSON body.
pub fn utf8(bytes: Vec<u8>) -> Result<String, Problem> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        Problem::invalid("body", format!("is not UTF-8 at byte {}", error.utf8_error().valid_up_to()))
    })?;
    if text.starts_with('\u{FEFF}') {
        text.drain(..'\u{FEFF}'.len_utf8());
    }
    Ok(text)
}

/// Runs `work` on a text of `bytes` bytes, off the async threads where that takes long.
pub async fn parse<T: Send + 'static>(
    cpu: &CpuPool,
    when_full: WhenFull,
    bytes: usize,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    if bytes <= INLINE_BYTES_MAX {
        return work();
    }
    cpu.place(when_full).await?.run_uncut(bytes, work).await
}

/// For what follows the parsing of `bytes` bytes: where that took a place already, refusing it would throw work away.
fn after_parsing(bytes: usize) -> WhenFull {
    if bytes <= INLINE_BYTES_MAX { WhenFull::Refuse } else { WhenFull::Wait }
}

/// A JSON body: UTF-8, not yet parsed.
pub struct JsonText {
    /// The text.
    pub text: String,
    /// For the work on it.
    pub when_full: WhenFull,
    /// The room it takes; given back when the request is over.
    pub(super) room: Room,
}

impl FromRequest<AppState> for JsonText {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        expect(&parts.headers, &["application/json", "application/merge-patch+json"])?;
        let Whole { bytes, room } = read(&parts, body, None, state).await?;
        let len = bytes.len();
        let text = parse(state.cpu(), WhenFull::Refuse, len, move || utf8(bytes)).await?;
        Ok(Self { text, when_full: after_parsing(len), room })
    }
}

impl JsonText {
    /// What `read` makes of the text, off the async threads if it is long; and the room that it took.
    pub(super) async fn parse<T: Send + 'static>(
        self,
        state: &AppState,
        read: impl FnOnce(&str) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let Self { text, when_full, room: _room } = self;
        parse(state.cpu(), when_full, text.len(), move || read(&text)).await
    }
}

/// One document: JSON, or a raw text whose id is in the query.
pub struct DocumentBody {
    /// The document.
    pub document: DocumentInput,
    /// The request's parameters.
    pub query: Query,
    /// For the work on it.
    pub when_full: WhenFull,
    /// The room its text takes; given back when the request is over.
    pub(super) room: Room,
}

/// What a request says of its document before the body.
struct Announced {
    /// A raw text, as against JSON.
    raw: bool,
    id: Option<DocId>,
    invalid: Invalid,
    query: Query,
}

impl Announced {
    async fn of(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let query = Query::from_request_parts(parts, state).await?;
        let media = expect(&parts.headers, &["application/json", "text/plain"])?;
        let id = query.id()?;
        let invalid = invalid(&query)?;
        let raw = media.essence == "text/plain";
        if !raw && id.is_some() {
            return Err(Problem::invalid("id", "belongs into the JSON document; in the query it names a raw text"));
        }
        Ok(Self { raw, id, invalid, query })
    }
}

impl FromRequest<AppState> for DocumentBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let Announced { raw, id, invalid, query } = Announced::of(&mut parts, state).await?;
        let Whole { bytes, room } = read(&parts, body, raw.then_some(invalid), state).await?;
        let len = bytes.len();
        let document = parse(state.cpu(), WhenFull::Refuse, len, move || match raw {
            true => document::from_raw(id, bytes, invalid),
            false => document::from_json(&utf8(bytes)?, invalid),
        })
        .await?;
        Ok(Self { document, query, when_full: after_parsing(len), room })
    }
}

/// One document to look at and not to keep: JSON, or a raw text of any length, whose id is in the query.
pub struct Subject {
    /// Its id, where given.
    pub id: Option<DocId>,
    /// The request's parameters.
    pub query: Query,
    /// What it says.
    pub(super) content: SubjectContent,
}

/// What a document says that will not be kept.
pub(super) enum SubjectContent {
    /// All of it.
    Whole {
        content: Content,
        /// For the work on it.
        when_full: WhenFull,
        /// The room it takes.
        room: Room,
    },
    /// A raw text that is still arriving.
    Streamed(StreamedText),
}

/// A raw text that is too long to wait for.
pub(super) struct StreamedText {
    first: Slice,
    rest: Slices,
    invalid: Invalid,
    place: Place,
    turn: Turn,
    /// Its most bytes where it has to be taken whole.
    whole_bytes_max: usize,
    cpu: CpuPool,
}

impl FromRequest<AppState> for Subject {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let Announced { raw, id, invalid, query } = Announced::of(&mut parts, state).await?;
        if raw {
            let (deadline, turn) = (own::<Deadline>(&parts), own::<Turn>(&parts));
            let mut rest = Slices::new(&parts.headers, body, state.limits(), state.budget(), deadline)?;
            let content = match rest.next().await? {
                Slice::Last(bytes) if bytes.len() <= STREAMED_BYTES_MIN => {
                    turn.take()?;
                    let content = document::from_raw(None, bytes.into(), invalid)?.content;
                    SubjectContent::Whole { content, when_full: WhenFull::Refuse, room: rest.into_room() }
                }
                first => {
                    // Such a request may be there for hours, and must not take every place that others need.
                    let place = state.text_stream_place();
                    let place =
                        place.ok_or_else(|| Problem::new(Code::Overloaded, "too many texts are streaming in"))?;
                    let (whole_bytes_max, cpu) = (state.limits().body_bytes_max, state.cpu().clone());
                    SubjectContent::Streamed(StreamedText { first, rest, invalid, place, turn, whole_bytes_max, cpu })
                }
            };
            return Ok(Self { id, query, content });
        }
        let Whole { bytes, room } = read(&parts, body, None, state).await?;
        let len = bytes.len();
        let read = move || document::from_json(&utf8(bytes)?, invalid);
        let DocumentInput { id, content, .. } = parse(state.cpu(), WhenFull::Refuse, len, read).await?;
        Ok(Self { id, query, content: SubjectContent::Whole { content, when_full: after_parsing(len), room } })
    }
}

impl SubjectContent {
    /// Makes it ready to be judged, with its `ranks` where asked for; the room it takes is given back with that.
    /// A text whose shingles are to be compared is taken whole first: they may take as much memory.
    pub(super) async fn prepare(
        self,
        collection: &Collection,
        purpose: Purpose,
        ranks: bool,
    ) -> Result<Prepared, Problem> {
        let StreamedText { first, mut rest, invalid, place: _place, turn, whole_bytes_max, cpu } = match self {
            Self::Whole { content, when_full, mut room } => {
                room.fit_content(&content, collection, purpose)?;
                return Ok(collection.prepare_with(content, PrepareOptions { when_full, ranks, purpose }).await?);
            }
            Self::Streamed(text) => text,
        };
        if purpose == Purpose::Check && collection.compares_shingles() {
            let Whole { bytes, mut room } = rest.whole(first, whole_bytes_max).await?;
            turn.take()?;
            let (len, read) = (bytes.len(), move || document::from_raw(None, bytes, invalid));
            room.fit(body::text_bytes(len, invalid))?;
            let content = parse(&cpu, WhenFull::Refuse, len, read).await?.content;
            room.fit_content(&content, collection, purpose)?;
            let options = PrepareOptions { when_full: after_parsing(len), ranks, purpose };
            return Ok(collection.prepare_with(content, options).await?);
        }
        let options = PrepareOptions { when_full: WhenFull::Refuse, ranks, purpose };
        let mut signer = collection.text_signer(invalid.into(), options)?;
        let mut slice = first.without_prefix(BYTE_ORDER_MARK);
        let mut piece = turn.begin()?;
        loop {
            match slice {
                Slice::Full(bytes) => signer = signer.push(bytes).await?,
                Slice::Last(bytes) => {
                    turn.keep(piece);
                    return Ok(signer.finish(bytes).await?);
                }
            }
            // The client is waited for without a place.
            drop(piece);
            slice = rest.next().await?;
            piece = turn.piece().await;
        }
    }
}

/// What `?invalid=` asks for.
pub fn invalid(query: &Query) -> Result<Invalid, Problem> {
    query.choice("invalid", &[("refuse", Invalid::Refuse), ("replace", Invalid::Replace)])
}
