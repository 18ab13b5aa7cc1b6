//! Documents, one after another -> what became of each, in the same order.
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

use super::operation::Operation;
use super::parsed::Parsed;
use crate::collections::{Collection, InsertOptions, PrepareOptions, Prepared, Purpose};
use crate::cpu::{CpuPool, WhenFull};
use crate::http::answer::LineRoom;
use crate::http::body::Room;
use crate::http::dto::document::{DocumentInput, Invalid};
use crate::http::error::Problem;
use crate::http::request::parse;
use crate::http::state::AppState;
use crate::http::turn;
use crate::types::{DocId, Metadata, Verdict};

/// A document to be worked on. `T` comes back with its answer.
pub(crate) struct Input<T> {
    /// Line number, place in a batch …
    pub(crate) tag: T,
    /// Its JSON, or why there is none.
    pub(crate) json: Result<Bytes, Problem>,
    /// The room its text takes, given back when it is decided.
    pub(crate) room: Option<Room>,
    /// Most bytes of its answer.
    pub(crate) answer_bytes_max: usize,
    /// The room its answer takes, if it has some of its own.
    pub(crate) answer: Option<LineRoom>,
}

/// What became of a document.
pub(crate) enum DocumentAnswer {
    Verdict(Verdict),
    /// Deleted, or not there.
    Deleted {
        id: DocId,
        /// Whether there was something to delete.
        was_there: bool,
    },
    Failed {
        /// Its id, where it has one.
        id: Option<DocId>,
        problem: Problem,
    },
}

/// How documents are worked on.
#[derive(Clone)]
pub(crate) struct DocumentWork {
    collection: Collection,
    /// Where long documents are parsed; they are signed on the collection's.
    cpu: CpuPool,
    op: Operation,
    /// What to do with ill-formed texts.
    invalid: Invalid,
    /// Decisions that may wait for the disk.
    open_max: usize,
    /// If set, what all answers together may yet take, in bytes of JSON. Those of earlier documents go first.
    answers_left: Option<Arc<AtomicUsize>>,
    /// If set, each document takes one of these places while it is worked on: the request itself has none.
    places: Option<Arc<Semaphore>>,
}

/// A document that is ready for its turn.
struct ReadyDocument<T> {
    tag: T,
    ready: Ready,
    room: Option<Room>,
    answer_bytes_max: usize,
    answer: Option<LineRoom>,
}

/// A document that needs nothing more than its turn.
enum Ready {
    Done(DocumentAnswer),
    Insert(DocId, Option<Metadata>, Prepared, InsertOptions),
    Delete(DocId),
}

/// Lines wait for a processor: nothing reads on while they do, so the client is held back instead of refused.
fn in_turn(purpose: Purpose) -> PrepareOptions {
    PrepareOptions { when_full: WhenFull::Wait, ranks: false, purpose }
}

impl DocumentWork {
    /// As the documents of a stream are worked on: each takes a place among the requests in work.
    pub(crate) fn of_stream(state: &AppState, collection: Collection, op: Operation, invalid: Invalid) -> Self {
        let (cpu, places) = (state.cpu().clone(), Some(state.requests().clone()));
        Self { collection, cpu, op, invalid, open_max: state.limits().bulk_open_max, answers_left: None, places }
    }

    /// As the documents of one request are worked on, which has its place. All answers together take at most
    /// `answers_bytes_max` bytes of JSON.
    pub(crate) fn of_request(
        state: &AppState,
        collection: Collection,
        op: Operation,
        invalid: Invalid,
        answers_bytes_max: usize,
    ) -> Self {
        let answers_left = Some(Arc::new(AtomicUsize::new(answers_bytes_max)));
        Self { answers_left, places: None, ..Self::of_stream(state, collection, op, invalid) }
    }

    pub(crate) fn collection(&self) -> &Collection {
        &self.collection
    }

    pub(crate) fn operation(&self) -> Operation {
        self.op
    }

    /// The answers, in the order of the inputs.
    pub(crate) fn answers<T: Send + 'static>(
        self,
        inputs: impl Stream<Item = Input<T>> + Send,
    ) -> impl Stream<Item = (T, DocumentAnswer, Option<LineRoom>)> + Send {
        let (open_max, ahead) = (self.open_max, ahead());
        let preparing = self.clone();
        let ready = inputs.map(move |input| preparing.clone().spawn_prepare(input)).buffered(ahead);
        let decided = ready.then(move |ReadyDocument { tag, ready, room, answer_bytes_max, mut answer }| {
            let work = self.clone();
            async move {
                let DecidedInTurn { json_bytes, waiting } = work.decide_in_turn(ready, room, answer_bytes_max).await;
                answer.iter_mut().for_each(|room| room.is_made(json_bytes));
                (tag, waiting, answer)
            }
        });
        let answered = |(tag, waiting, room): (T, BoxFuture<'static, DocumentAnswer>, _)| {
            waiting.map(move |answer| (tag, answer, room))
        };
        decided.map(answered).buffered(open_max)
    }

    /// What may yet be answered: this much, and no more than earlier documents have left.
    fn bytes_left(&self, bytes_max: usize) -> usize {
        self.answers_left.as_ref().map_or(bytes_max, |left| left.load(Ordering::Relaxed).min(bytes_max))
    }

    /// Decides a document, in its turn, and counts its answer.
    async fn decide_in_turn(self, ready: Ready, room: Option<Room>, answer_bytes_max: usize) -> DecidedInTurn {
        let (left, bytes_max) = (self.answers_left.clone(), self.bytes_left(answer_bytes_max));
        let decided = match ready {
            Ready::Done(mut answer) => {
                if let DocumentAnswer::Verdict(verdict) = &mut answer {
                    verdict.fit(bytes_max);
                }
                DecidedInTurn::now(answer)
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
    async fn spawn_decide(self, ready: Ready, room: Option<Room>, bytes_max: usize) -> DecidedInTurn {
        let decide = async move {
            let (_place, _room) = (self.place().await, room);
            self.decide(ready, bytes_max).await
        };
        let task = AbortOnDropHandle::new(tokio::spawn(decide.in_current_span()));
        task.await.unwrap_or_else(|error| {
            DecidedInTurn::now(DocumentAnswer::Failed { id: None, problem: Problem::internal(&error.to_string()) })
        })
    }

    /// A place for one document's work.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        match &self.places {
            Some(places) => Some(turn::piece(places).await),
            None => None,
        }
    }

    fn spawn_prepare<T: Send + 'static>(self, input: Input<T>) -> impl Future<Output = ReadyDocument<T>> + Send {
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
            ReadyDocument { tag, ready, room, answer_bytes_max, answer }
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
                    Ok(verdict) => Ready::Done(DocumentAnswer::Verdict(verdict)),
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

    async fn decide(self, ready: Ready, bytes_max: usize) -> DecidedInTurn {
        match ready {
            Ready::Done(answer) => DecidedInTurn::now(answer),
            Ready::Insert(id, metadata, prepared, options) => {
                let decided = self.collection.insert_within(id.clone(), metadata, prepared, options, bytes_max).await;
                match decided {
                    Ok(ticket) => DecidedInTurn {
                        json_bytes: ticket.json_bytes(),
                        waiting: Box::pin(async move {
                            match ticket.wait().await {
                                Ok(verdict) => DocumentAnswer::Verdict(verdict),
                                Err(error) => DocumentAnswer::Failed { id: Some(id), problem: error.into() },
                            }
                        }),
                    },
                    Err(error) => DecidedInTurn::now(DocumentAnswer::Failed { id: Some(id), problem: error.into() }),
                }
            }
            Ready::Delete(id) => match self.collection.delete(id.clone()).await {
                Ok(ticket) => DecidedInTurn {
                    json_bytes: deleted_bytes(&id),
                    waiting: Box::pin(async move {
                        match ticket.wait().await {
                            Ok(was_there) => DocumentAnswer::Deleted { id, was_there },
                            Err(error) => DocumentAnswer::Failed { id: Some(id), problem: error.into() },
                        }
                    }),
                },
                Err(error) => DecidedInTurn::now(DocumentAnswer::Failed { id: Some(id), problem: error.into() }),
            },
        }
    }
}

/// What became of a document, once it is on disk.
struct DecidedInTurn {
    /// Most bytes of the answer in JSON.
    json_bytes: usize,
    waiting: BoxFuture<'static, DocumentAnswer>,
}

impl DecidedInTurn {
    fn now(answer: DocumentAnswer) -> Self {
        Self { json_bytes: answer.json_bytes(), waiting: Box::pin(futures::future::ready(answer)) }
    }
}

impl DocumentAnswer {
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
pub(crate) fn ahead() -> usize {
    2 * std::thread::available_parallelism().map_or(2, usize::from)
}

fn failed(id: Option<DocId>, problem: Problem) -> Ready {
    Ready::Done(DocumentAnswer::Failed { id, problem })
}
