//! Documents, one after another -> what became of each, in the same order. Batch and bulk are this.
//! Documents are parsed and signed ahead, side by side; decided strictly in their order, so that each sees those
//! before it; and answered once they are on disk. Knows nothing of lines or of answers' shapes.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{Stream, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use super::answer::LineRoom;
use super::body::Room;
use super::dto::document::{self, DocumentInput, Invalid};
use super::error::Problem;
use super::extract::parse;
use super::json::Object;
use super::query::Query;
use super::turn;
use crate::collections::{
    CheckOptions, Collection, ID_JSON_BYTES_MAX, InsertOptions, PrepareOptions, Prepared, Purpose,
};
use crate::cpu::{CpuPool, WhenFull};
use crate::types::{DocId, Metadata, OnDuplicate, OnExisting, Verdict};

/// Most matches in one verdict.
pub const MATCHES_MAX: usize = 1000;
const MATCHES_DEFAULT: usize = 10;

/// What to do with each document.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// Look it up.
    Check(CheckOptions),
    /// Look it up and store it.
    Insert(InsertOptions),
    /// Delete it by its id.
    Delete,
}

impl Op {
    /// The operation called `name`, with what the query says about it.
    pub fn new(name: &str, query: &Query) -> Result<Self, Problem> {
        let (op, of_others): (_, &[&str]) = match name {
            "check" => (Self::Check(check_options(query)?), &["on_duplicate", "on_existing"]),
            "insert" => (Self::Insert(insert_options(query)?), &["threshold"]),
            "delete" => (Self::Delete, &["threshold", "limit", "with", "on_duplicate", "on_existing", "invalid"]),
            _ => return Err(Problem::invalid("op", "must be one of check, insert, delete")),
        };
        match of_others.iter().find(|other| query.get(other).is_some()) {
            Some(other) => Err(Problem::invalid(*other, format!("has no meaning for {name}"))),
            None => Ok(op),
        }
    }
}

impl Op {
    /// What is made of a text of so many bytes beside it, at the most.
    pub(super) fn shingle_bytes(&self, collection: &Collection, text_bytes: usize) -> usize {
        match self {
            Self::Check(_) => collection.shingle_bytes(Purpose::Check, text_bytes),
            Self::Insert(_) => collection.shingle_bytes(Purpose::Insert, text_bytes),
            Self::Delete => 0,
        }
    }
}

/// What a query says about a check.
pub fn check_options(query: &Query) -> Result<CheckOptions, Problem> {
    Ok(CheckOptions { threshold: query.threshold()?, limit: limit(query)?, with_metadata: with_metadata(query)? })
}

/// What a query says about an insert.
pub fn insert_options(query: &Query) -> Result<InsertOptions, Problem> {
    let on_duplicate = [("skip", OnDuplicate::Skip), ("link", OnDuplicate::Link), ("store", OnDuplicate::Store)];
    let on_existing =
        [("conflict", OnExisting::Conflict), ("replace", OnExisting::Replace), ("keep", OnExisting::Keep)];
    Ok(InsertOptions {
        on_duplicate: query.choice("on_duplicate", &on_duplicate)?,
        on_existing: query.choice("on_existing", &on_existing)?,
        limit: limit(query)?,
        with_metadata: with_metadata(query)?,
    })
}

fn limit(query: &Query) -> Result<usize, Problem> {
    query.integer("limit", MATCHES_DEFAULT, 1..=MATCHES_MAX)
}

fn with_metadata(query: &Query) -> Result<bool, Problem> {
    query.choice("with", &[("none", false), ("metadata", true)])
}

/// A document to be worked on. `T` comes back with its answer.
pub struct Input<T> {
    /// Line number, place in a batch …
    pub tag: T,
    /// Its JSON, or why there is none.
    pub json: Result<Bytes, Problem>,
    /// The room its text takes, given back when it is decided.
    pub(super) room: Option<Room>,
    /// Most bytes of its answer.
    pub answer_bytes_max: usize,
    /// The room its answer takes, if it has some of its own.
    pub(super) answer: Option<LineRoom>,
}

/// What became of a document.
pub enum Answer {
    /// Checked or inserted.
    Verdict(Verdict),
    /// Deleted, or not there.
    Deleted {
        /// Its id.
        id: DocId,
        /// Whether there was something to delete.
        was_there: bool,
    },
    /// Neither.
    Failed {
        /// Its id, where it has one.
        id: Option<DocId>,
        /// Why.
        problem: Problem,
    },
}

/// How documents are worked on.
#[derive(Clone)]
pub struct Work {
    /// Where they live.
    pub collection: Collection,
    /// Where long documents are parsed; they are signed on the collection's.
    pub cpu: CpuPool,
    /// What is done.
    pub op: Op,
    /// What to do with ill-formed texts.
    pub invalid: Invalid,
    /// Decisions that may wait for the disk.
    pub open_max: usize,
    /// If set, what all answers together may yet take, in bytes of JSON. Those of earlier documents go first.
    pub answers_left: Option<Arc<AtomicUsize>>,
    /// If set, each document takes one of these places while it is worked on: the request itself has none.
    pub places: Option<Arc<Semaphore>>,
}

/// A document that is ready for its turn.
struct Next<T> {
    tag: T,
    ready: Ready,
    room: Option<Room>,
    answer_bytes_max: usize,
    answer: Option<LineRoom>,
}

/// A document that needs nothing more than its turn.
enum Ready {
    Done(Answer),
    Insert(DocId, Option<Metadata>, Prepared, InsertOptions),
    Delete(DocId),
}

/// What a document's JSON asks for.
enum Parsed {
    Check(DocumentInput, CheckOptions),
    Insert(DocId, DocumentInput, InsertOptions),
    Delete(DocId),
    Faulty(Option<DocId>, Problem),
}

impl Parsed {
    fn new(json: &[u8], op: Op, invalid: Invalid) -> Self {
        let text = match std::str::from_utf8(json) {
            Ok(text) => text,
            Err(error) => {
                let detail = format!("is not UTF-8 at byte {}", error.valid_up_to());
                return Self::Faulty(None, Problem::invalid("body", detail));
            }
        };
        let parsed = match op {
            Op::Check(options) => document::from_json(text, invalid).map(|document| Self::Check(document, options)),
            Op::Insert(options) => document::from_json(text, invalid)
                .and_then(|document| Ok(Self::Insert(document.required_id()?, document, options))),
            Op::Delete => id_alone(text).map(Self::Delete),
        };
        parsed.unwrap_or_else(|problem| Self::Faulty(id_of(text), problem))
    }
}

/// Lines wait for a processor: nothing reads on while they do, so the client is held back instead of refused.
fn in_turn(purpose: Purpose) -> PrepareOptions {
    PrepareOptions { when_full: WhenFull::Wait, ranks: false, purpose }
}

impl Work {
    /// The answers, in the order of the inputs.
    pub fn answers<T: Send + 'static>(
        self,
        inputs: impl Stream<Item = Input<T>> + Send,
    ) -> impl Stream<Item = (T, Answer, Option<LineRoom>)> + Send {
        let (open_max, ahead) = (self.open_max, ahead());
        let preparing = self.clone();
        let ready = inputs.map(move |input| preparing.clone().spawn_prepare(input)).buffered(ahead);
        let decided = ready.then(move |Next { tag, ready, room, answer_bytes_max, mut answer }| {
            let work = self.clone();
            async move {
                let Decided { json_bytes, waiting } = work.decide_in_turn(ready, room, answer_bytes_max).await;
                answer.iter_mut().for_each(|room| room.is_made(json_bytes));
                (tag, waiting, answer)
            }
        });
        let answered =
            |(tag, waiting, room): (T, BoxFuture<'static, Answer>, _)| waiting.map(move |answer| (tag, answer, room));
        decided.map(answered).buffered(open_max)
    }

    /// What may yet be answered: this much, and no more than earlier documents have left.
    fn bytes_left(&self, bytes_max: usize) -> usize {
        self.answers_left.as_ref().map_or(bytes_max, |left| left.load(Ordering::Relaxed).min(bytes_max))
    }

    /// Decides a document, in its turn, and counts its answer.
    async fn decide_in_turn(self, ready: Ready, room: Option<Room>, answer_bytes_max: usize) -> Decided {
        let (left, bytes_max) = (self.answers_left.clone(), self.bytes_left(answer_bytes_max));
        let decided = match ready {
            Ready::Done(mut answer) => {
                if let Answer::Verdict(verdict) = &mut answer {
                    verdict.fit(bytes_max);
                }
                Decided::now(answer)
            }
            ready => self.spawn_decide(ready, room, bytes_max).await,
        };
        if let Some(left) = left {
            // One document after another comes here, so nothing is lost between the two.
            left.store(left.load(Ordering::Relaxed).saturating_sub(decided.json_bytes), Ordering::Relaxed);
        }
        decided
    }

    /// In a task of its own: while the client reads nothing this is not polled, and a decision that made no progress would
    /// keep its id and its places in the queues from others.
    async fn spawn_decide(self, ready: Ready, room: Option<Room>, bytes_max: usize) -> Decided {
        let decide = async move {
            let (_place, _room) = (self.place().await, room);
            self.decide(ready, bytes_max).await
        };
        let task = AbortOnDropHandle::new(tokio::spawn(decide.in_current_span()));
        task.await.unwrap_or_else(|error| {
            Decided::now(Answer::Failed { id: None, problem: Problem::internal(&error.to_string()) })
        })
    }

    /// A place for one document's work.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        match &self.places {
            Some(places) => Some(turn::piece(places).await),
            None => None,
        }
    }

    fn spawn_prepare<T: Send + 'static>(self, input: Input<T>) -> impl Future<Output = Next<T>> + Send {
        let Input { tag, json, room, answer_bytes_max, answer } = input;
        let task = async move {
            let ready = match json {
                Ok(json) => {
                    let _place = self.place().await;
                    self.prepare(json, answer_bytes_max).await
                }
                Err(problem) => failed(None, problem),
            };
            // What is kept of a long document is as long: until it is decided, it counts as the document does. An answer
            // waits for its turn, and for the client to read, without.
            let room = room.filter(|_| !matches!(ready, Ready::Done(_)));
            (ready, room)
        };
        let task = AbortOnDropHandle::new(tokio::spawn(task.in_current_span()));
        async move {
            // A panic over one document spoils that document only.
            let spoilt = |error: tokio::task::JoinError| (failed(None, Problem::internal(&error.to_string())), None);
            let (ready, room) = task.await.unwrap_or_else(spoilt);
            Next { tag, ready, room, answer_bytes_max, answer }
        }
    }

    async fn prepare(&self, json: Bytes, answer_bytes_max: usize) -> Ready {
        let (op, invalid) = (self.op, self.invalid);
        let parsed = parse(&self.cpu, WhenFull::Wait, json.len(), move || Ok(Parsed::new(&json, op, invalid))).await;
        match parsed {
            Ok(Parsed::Check(DocumentInput { id, content, .. }, options)) => {
                let checked = async {
                    let prepared = self.collection.prepare_with(content, in_turn(Purpose::Check)).await?;
                    let bytes_max = self.bytes_left(answer_bytes_max);
                    self.collection.check_within(id.clone(), prepared, options, bytes_max).await
                };
                match checked.await {
                    Ok(verdict) => Ready::Done(Answer::Verdict(verdict)),
                    Err(error) => failed(id, error.into()),
                }
            }
            Ok(Parsed::Insert(id, DocumentInput { content, metadata, .. }, options)) => {
                match self.collection.prepare_with(content, in_turn(Purpose::Insert)).await {
                    Ok(prepared) => Ready::Insert(id, metadata, prepared, options),
                    Err(error) => failed(Some(id), error.into()),
                }
            }
            Ok(Parsed::Delete(id)) => Ready::Delete(id),
            Ok(Parsed::Faulty(id, problem)) => failed(id, problem),
            Err(problem) => failed(None, problem),
        }
    }

    async fn decide(self, ready: Ready, bytes_max: usize) -> Decided {
        match ready {
            Ready::Done(answer) => Decided::now(answer),
            Ready::Insert(id, metadata, prepared, options) => {
                let decided = self.collection.insert_within(id.clone(), metadata, prepared, options, bytes_max).await;
                match decided {
                    Ok(ticket) => Decided {
                        json_bytes: ticket.json_bytes(),
                        waiting: Box::pin(async move {
                            match ticket.wait().await {
                                Ok(verdict) => Answer::Verdict(verdict),
                                Err(error) => Answer::Failed { id: Some(id), problem: error.into() },
                            }
                        }),
                    },
                    Err(error) => Decided::now(Answer::Failed { id: Some(id), problem: error.into() }),
                }
            }
            Ready::Delete(id) => match self.collection.delete(id.clone()).await {
                Ok(ticket) => Decided {
                    json_bytes: deleted_bytes(&id),
                    waiting: Box::pin(async move {
                        match ticket.wait().await {
                            Ok(was_there) => Answer::Deleted { id, was_there },
                            Err(error) => Answer::Failed { id: Some(id), problem: error.into() },
                        }
                    }),
                },
                Err(error) => Decided::now(Answer::Failed { id: Some(id), problem: error.into() }),
            },
        }
    }
}

/// What became of a document, once it is on disk.
struct Decided {
    /// Most bytes of the answer in JSON.
    json_bytes: usize,
    waiting: BoxFuture<'static, Answer>,
}

impl Decided {
    fn now(answer: Answer) -> Self {
        Self { json_bytes: answer.json_bytes(), waiting: Box::pin(futures::future::ready(answer)) }
    }
}

impl Answer {
    fn json_bytes(&self) -> usize {
        match self {
            Self::Verdict(verdict) => verdict.bytes(),
            Self::Deleted { id, .. } => deleted_bytes(id),
            Self::Failed { id, problem } => id.as_ref().map_or(0, DocId::json_bytes) + problem.json_bytes(),
        }
    }
}

fn deleted_bytes(id: &DocId) -> usize {
    64 + id.json_bytes()
}

/// Documents that are worked on at once: enough that no core is idle while the one in front is long.
pub fn ahead() -> usize {
    2 * std::thread::available_parallelism().map_or(2, usize::from)
}

impl Op {
    /// Most bytes of the JSON of one answer.
    pub fn answer_bytes_max(&self) -> usize {
        match self {
            Self::Check(CheckOptions { limit, with_metadata, .. })
            | Self::Insert(InsertOptions { limit, with_metadata, .. }) => Verdict::bytes_max(*limit, *with_metadata),
            Self::Delete => 64 + ID_JSON_BYTES_MAX,
        }
    }
}

fn failed(id: Option<DocId>, problem: Problem) -> Ready {
    Ready::Done(Answer::Failed { id, problem })
}

fn id_alone(text: &str) -> Result<DocId, Problem> {
    let mut object = Object::parse(text)?;
    let id = object.string("id")?.ok_or_else(|| Problem::invalid("id", "is needed"))?;
    object.finish()?;
    Ok(DocId::new(id)?)
}

/// The id of a faulty document, where it can be told.
fn id_of(text: &str) -> Option<DocId> {
    DocId::new(Object::parse(text).ok()?.string("id").ok()??).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(raw: &str) -> Query {
        Query::parse(raw, &["threshold", "limit", "with", "on_duplicate", "on_existing", "invalid"]).unwrap()
    }

    #[test]
    fn options_of_another_operation_are_refused() {
        assert!(Op::new("check", &query("threshold=0.5&limit=1000&with=metadata")).is_ok());
        assert!(Op::new("insert", &query("on_duplicate=store&on_existing=replace")).is_ok());
        for (op, raw) in [("insert", "threshold=0.5"), ("check", "on_existing=keep"), ("delete", "limit=1"), ("x", "")]
        {
            assert!(Op::new(op, &query(raw)).is_err(), "{op} {raw}");
        }
    }

    #[test]
    fn a_faulty_document_still_tells_its_id() {
        assert_eq!(id_of(r#"{"id":"a","nonsense":1}"#).unwrap().as_str(), "a");
        assert_eq!(id_of(r#"{"id":5}"#), None);
        assert_eq!(id_of("{"), None);
    }
}
