//! Documents -> their answers, in the same order.
//! Documents are parsed and signed ahead of their turn, concurrently. They are decided one after another, so that each
//! document sees the documents before it, even a document with the same id. They are answered once they are durable. In
//! a cluster, only documents that have a band or the id in common are decided one after another: see [`RequestOrder`].
//! Knows nothing of lines or of the JSON of answers.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{Stream, StreamExt};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::task::AbortOnDropHandle;

use super::operation::Operation;
use super::parsed::Parsed;
use super::several::Several;
use super::states::{
    DecidedInTurn, DocumentAnswer, Input, Insert, Ready, ReadyDocument, deleted_bytes, failed, too_long,
};
use crate::collections::{
    AskedCollections, CheckOptions, Collection, CollectionError, InsertOptions, JointVerdict, PrepareOptions, Prepared,
    Purpose, RequestOrder,
};
use crate::cpu::{self, CpuPool, WhenFull};
use crate::http::admission::{Class, Places};
use crate::http::answer::LineRoom;
use crate::http::audited::Audited;
use crate::http::body::Room;
use crate::http::caller::Caller;
use crate::http::dto::document::{DocumentInput, Extra, Invalid};
use crate::http::error::Problem;
use crate::http::quota::Sources;
use crate::http::request::parse;
use crate::http::state::AppState;
use crate::keys::Scores;
use crate::telemetry::request::carried;
use crate::types::{Content, DocId, PageFacts, SOURCE, Verdict};

/// The work on the documents of one request.
#[derive(Clone)]
pub(crate) struct DocumentWork {
    caller: Caller,
    collection: Collection,
    /// Present if the request asks other collections too.
    several: Option<Several>,
    audited: Audited,
    /// The pool that parses long documents. The collection's own pool signs them.
    cpu: CpuPool,
    /// The threads that work on short documents.
    threads: Handle,
    op: Operation,
    invalid: Invalid,
    extra: Extra,
    /// The most decisions that may wait for the disk or the cluster at once.
    open_max: usize,
    /// The bytes of JSON that all answers together may still take. Earlier documents are served first. `None`: no
    /// limit.
    answers_left: Option<BytesLeft>,
    gates: Gates,
}

/// The limits that can make a document wait.
#[derive(Clone)]
struct Gates {
    /// The places for documents: each document takes one while it is worked on. `None`: the request itself has a place.
    places: Option<Arc<Places>>,
    /// The rate limits of sources.
    sources: Sources,
    /// The order of the documents.
    order: Arc<RequestOrder>,
}

/// The largest sizes of a line and of its answer, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineBounds {
    pub(super) line_bytes_max: usize,
    pub(super) answer_bytes_max: usize,
}

/// The bytes of JSON that the answers of a request may still take.
type BytesLeft = Arc<AtomicUsize>;

/// Returns options with which a line waits for a free thread. During the wait no more lines are read, so the client is
/// slowed down instead of refused.
fn in_turn(purpose: Purpose) -> PrepareOptions {
    PrepareOptions { when_full: WhenFull::GiveWay, ranks: false, purpose }
}

impl DocumentWork {
    /// Makes the work on the documents of a stream. Each document takes one of the places that all streams share.
    pub(crate) fn of_stream(
        state: &AppState,
        caller: Caller,
        collection: Collection,
        op: Operation,
        invalid: Invalid,
    ) -> Self {
        let open_max = collection.writes_at_once().unwrap_or(usize::MAX).min(state.limits().bulk_open_max);
        let (cpu, threads) = (state.cpu().clone(), state.stream_threads().handle().clone());
        let places = Some(Arc::clone(state.admission().of(Class::Bulk)));
        let order = Arc::new(collection.begin_request());
        let gates = Gates { places, sources: state.sources().clone(), order };
        Self {
            audited: Audited::of(state, &caller, &collection),
            caller,
            collection,
            several: None,
            cpu,
            threads,
            op,
            invalid,
            extra: Extra::Refuse,
            open_max,
            answers_left: None,
            gates,
        }
    }

    /// Makes the work on the documents of a request that itself has a place. All answers together may take
    /// `answers_bytes_max` bytes of JSON.
    pub(crate) fn of_request(
        state: &AppState,
        caller: Caller,
        collection: Collection,
        op: Operation,
        invalid: Invalid,
        answers_bytes_max: usize,
    ) -> Self {
        let answers_left = Some(Arc::new(AtomicUsize::new(answers_bytes_max)));
        let stream = Self::of_stream(state, caller, collection, op, invalid);
        let gates = Gates { places: None, ..stream.gates };
        Self { answers_left, gates, ..stream }
    }

    /// Returns the same work with this treatment of unknown fields.
    pub(crate) fn with_extra(self, extra: Extra) -> Self {
        Self { extra, ..self }
    }

    /// Returns the same work for a request that may ask other collections too.
    pub(crate) fn asking(self, state: &AppState, asked: Option<AskedCollections>) -> Self {
        let several = asked.map(|asked| Several::new(state, &self.caller, asked));
        Self { several, ..self }
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(crate) fn collection(&self) -> &Collection {
        &self.collection
    }

    /// Returns how much of a verdict the client may see.
    pub(crate) fn scores(&self) -> Scores {
        self.caller.scores()
    }

    /// Returns how many documents may be decided at once.
    pub(crate) fn at_once(&self) -> usize {
        match self.op {
            Operation::Check(_) => self.collection.lookups_at_once(),
            Operation::Insert(_) | Operation::Delete => self.collection.writes_at_once().unwrap_or(1),
        }
    }

    /// Returns the number of collections in which each document is looked up.
    pub(super) fn lookups(&self) -> usize {
        1 + self.asked().map_or(0, |asked| asked.others().len())
    }

    /// Returns an upper bound on the memory that the shingles of a text of this many bytes take, in addition to the
    /// text.
    pub(super) fn shingle_bytes(&self, text_bytes: usize) -> usize {
        self.op.shingle_bytes(&self.collection, self.asked(), text_bytes)
    }

    /// Returns an upper bound on the size of one answer as JSON, in bytes.
    pub(super) fn answer_bytes_max(&self) -> usize {
        self.op.answer_bytes_max(self.asked())
    }

    fn asked(&self) -> Option<&AskedCollections> {
        self.several.as_ref().map(Several::asked)
    }

    /// Returns the answers, in the order of the inputs.
    pub(crate) fn answers<T: Send + 'static>(
        self,
        inputs: impl Stream<Item = Input<T>> + Send,
    ) -> impl Stream<Item = (T, DocumentAnswer, Option<LineRoom>)> + Send {
        let (open_max, ahead, work) = (self.open_max, self.collection.lookups_at_once(), Arc::new(self));
        let preparing = Arc::clone(&work);
        let ready = inputs.map(move |input| Arc::clone(&preparing).spawn_prepare(input)).buffered(ahead);
        let decided = ready.then(move |ReadyDocument { tag, ready, room, answer_bytes_max, mut answer }| {
            let work = Arc::clone(&work);
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

    /// Returns how many bytes an answer may take: `bytes_max`, or fewer if earlier answers have left fewer.
    fn bytes_left(&self, bytes_max: usize) -> usize {
        self.answers_left.as_ref().map_or(bytes_max, |left| left.load(Ordering::Relaxed).min(bytes_max))
    }

    /// Decides a document in its turn, and counts the bytes of its answer.
    async fn decide_in_turn(
        self: Arc<Self>,
        ready: Ready,
        room: Option<Room>,
        answer_bytes_max: usize,
    ) -> DecidedInTurn {
        let (left, bytes_max) = (self.answers_left.clone(), self.bytes_left(answer_bytes_max));
        let ready = self.with_source(ready).await;
        let decided = match ready {
            Ready::Done(mut answer) => {
                if let DocumentAnswer::Verdict(verdict) = &mut *answer {
                    verdict.fit(bytes_max);
                }
                DecidedInTurn::now(*answer)
            }
            ready => self.decide_here_or_apart(ready, room, bytes_max).await,
        };
        match left {
            Some(left) => taking(decided, left),
            None => decided,
        }
    }

    /// Counts a document against the rate limit of its source. If the limit is reached, a stream waits, and any other
    /// request is refused.
    async fn with_source(&self, ready: Ready) -> Ready {
        let Ready::Insert(insert) = &ready else { return ready };
        let source = insert.attached.labels.as_ref().and_then(|labels| labels.get(SOURCE));
        let Gates { places, sources, .. } = &self.gates;
        if places.is_some() {
            sources.due(self.collection.name(), source).await;
            return ready;
        }
        match sources.take(self.collection.name(), source) {
            Ok(()) => ready,
            Err(problem) => failed(Some(insert.id.clone()), problem),
        }
    }

    /// Decides a document. A decision that has to wait is moved to a separate task. This stream is not polled while the
    /// client reads nothing, and a decision without progress would block its id and its places in the queues.
    async fn decide_here_or_apart(
        self: Arc<Self>,
        ready: Ready,
        room: Option<Room>,
        bytes_max: usize,
    ) -> DecidedInTurn {
        let threads = self.threads.clone();
        let mut decide = Box::pin(carried(async move {
            let (_place, _room) = (self.place().await, room);
            let decided = self.decide(ready, bytes_max).await;
            cpu::let_others_run();
            decided
        }));
        if let Some(decided) = (&mut decide).now_or_never() {
            return decided;
        }
        let task = AbortOnDropHandle::new(threads.spawn(decide));
        task.await.unwrap_or_else(|error| {
            DecidedInTurn::now(DocumentAnswer::Failed { id: None, problem: Problem::internal(&error.to_string()) })
        })
    }

    /// Waits for a place to work on one document.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        match &self.gates.places {
            Some(places) => Some(places.piece().await),
            None => None,
        }
    }

    /// Prepares the documents of a group, one after another. A panic during the work on one of them fails only that one.
    pub(super) async fn prepare_group(self: Arc<Self>, group: Vec<Bytes>, bounds: LineBounds) -> Vec<Ready> {
        let LineBounds { line_bytes_max, answer_bytes_max } = bounds;
        let mut ready = Vec::with_capacity(group.len());
        for json in group {
            if json.len() > line_bytes_max {
                ready.push(failed(None, too_long(line_bytes_max)));
                continue;
            }
            let prepared = AssertUnwindSafe(self.prepare(json, answer_bytes_max)).catch_unwind().await;
            ready
                .push(prepared.unwrap_or_else(|_| failed(None, Problem::internal("a document could not be prepared"))));
        }
        ready
    }

    /// Decides the documents of a group, one after another.
    pub(super) async fn decide_group(&self, group: Vec<Ready>, bytes_max: usize) -> Vec<DecidedInTurn> {
        let mut decided = Vec::with_capacity(group.len());
        for ready in group {
            decided.push(self.decide(ready, bytes_max).await);
        }
        decided
    }

    fn spawn_prepare<T: Send + 'static>(
        self: Arc<Self>,
        input: Input<T>,
    ) -> impl Future<Output = ReadyDocument<T>> + Send {
        let Input { tag, json, room, answer_bytes_max, answer } = input;
        let threads = self.threads.clone();
        let task = async move {
            let ready = match json {
                Ok(json) => {
                    let _place = self.place().await;
                    self.prepare(json, answer_bytes_max).await
                }
                Err(problem) => failed(None, problem),
            };
            // A long document is still long after it is prepared, so its memory counts until it is decided. A document
            // that already has its answer needs none of this memory while it waits for its turn and for the client.
            let room = room.filter(|_| !matches!(ready, Ready::Done(_)));
            cpu::let_others_run();
            (ready, room)
        };
        let task = AbortOnDropHandle::new(threads.spawn(carried(task)));
        async move {
            // A panic during the work on one document fails only that document.
            let spoilt = |error: tokio::task::JoinError| (failed(None, Problem::internal(&error.to_string())), None);
            let (ready, room) = task.await.unwrap_or_else(spoilt);
            ReadyDocument { tag, ready, room, answer_bytes_max, answer }
        }
    }

    async fn prepare(&self, json: Bytes, answer_bytes_max: usize) -> Ready {
        let (op, invalid, extra, caller) = (self.op.clone(), self.invalid, self.extra, self.caller.clone());
        let (bytes, read) = (json.len(), move || Ok(Parsed::new(&json, op, invalid, extra, &caller)));
        let parsed = parse(&self.cpu, WhenFull::GiveWay, bytes, read).await;
        match parsed {
            Ok(Parsed::Check(DocumentInput { id, content, .. }, options)) => {
                match self.check(id.clone(), content, options, answer_bytes_max).await {
                    Ok(verdict) => Ready::Done(Box::new(DocumentAnswer::Verdict(verdict))),
                    Err(error) => failed(id, error.into()),
                }
            }
            Ok(Parsed::Insert(id, DocumentInput { content, attached, .. }, asked)) => {
                let ready = self.prepare_insert(content).await.map_err(Problem::from);
                let ready = ready.and_then(|(mut prepared, others)| {
                    let page = prepared.take_page();
                    let attached = asked.attached(attached, page.as_deref())?;
                    Ok(Ready::Insert(Box::new(Insert { id: id.clone(), attached, prepared, others, asked, page })))
                });
                ready.unwrap_or_else(|problem| failed(Some(id), problem))
            }
            Ok(Parsed::Delete(id)) => Ready::Delete(id),
            Ok(Parsed::Faulty(id, problem)) => failed(id, problem),
            Err(problem) => failed(None, problem),
        }
    }

    async fn check(
        &self,
        id: Option<DocId>,
        content: Content,
        options: CheckOptions,
        answer_bytes_max: usize,
    ) -> Result<JointVerdict, CollectionError> {
        let prepare = in_turn(Purpose::Check);
        if let Some(several) = &self.several {
            let bytes_max = self.bytes_left(answer_bytes_max);
            return Box::pin(several.check(id, content, prepare, options, bytes_max)).await;
        }
        let mut prepared = self.collection.prepare_with(content, prepare).await?;
        let (page, content) = (prepared.take_page(), prepared.content());
        let bytes_max = self.bytes_left(answer_bytes_max).saturating_sub(page_bytes(&page));
        let verdict = self.collection.check_within(id, prepared, options, bytes_max).await?;
        self.audited.checked(&verdict, content);
        Ok(Verdict { page, ..verdict }.into())
    }

    async fn prepare_insert(&self, content: Content) -> Result<(Prepared, Vec<Prepared>), CollectionError> {
        let prepare = in_turn(Purpose::Insert);
        match &self.several {
            None => Ok((self.collection.prepare_with(content, prepare).await?, Vec::new())),
            Some(several) => Box::pin(several.prepare(content, prepare)).await,
        }
    }

    async fn decide(&self, ready: Ready, bytes_max: usize) -> DecidedInTurn {
        match ready {
            Ready::Done(answer) => DecidedInTurn::now(*answer),
            Ready::Insert(insert) => self.insert(*insert, bytes_max).await,
            Ready::Delete(id) => match self.collection.delete_in_turn(&self.gates.order, id.clone()).await {
                Ok(ticket) => {
                    let json_bytes = deleted_bytes(&id);
                    let answer = self.audited.deleted(ticket, &id).map(|answer| match answer {
                        Ok(was_there) => DocumentAnswer::Deleted { id, was_there },
                        Err(error) => DocumentAnswer::Failed { id: Some(id), problem: error.into() },
                    });
                    DecidedInTurn { json_bytes, waiting: answer.boxed() }
                }
                Err(error) => DecidedInTurn::now(DocumentAnswer::Failed { id: Some(id), problem: error.into() }),
            },
        }
    }

    async fn insert(&self, insert: Insert, bytes_max: usize) -> DecidedInTurn {
        let Insert { id, attached, prepared, others, asked, page } = insert;
        let (content, page_bytes, payload_digest) =
            (prepared.content(), page_bytes(&page), attached.capture.digest.clone());
        let bytes_max = bytes_max.saturating_sub(page_bytes);
        // `places` is set only if the documents come from a stream. So inserts of streams are patient, and other
        // inserts are not.
        let options = InsertOptions { patient: self.gates.places.is_some(), ..asked.options() };
        let inserted =
            self.collection.insert_in_turn(&self.gates.order, id.clone(), attached, prepared, options, bytes_max).await;
        let ticket = match inserted {
            Ok(ticket) => ticket,
            Err(error) => {
                return DecidedInTurn::now(DocumentAnswer::Failed { id: Some(id), problem: error.into() });
            }
        };
        let mut json_bytes = ticket.json_bytes() + page_bytes;
        let durable = self.audited.inserted(ticket, content);
        let Some(several) = self.several.clone() else {
            let answer = durable.map(|verdict| stored(id, verdict.map(|verdict| Verdict { page, ..verdict }.into())));
            return DecidedInTurn { json_bytes, waiting: answer.boxed() };
        };
        // The decision is made, and becomes durable while the other collections are asked.
        let left = bytes_max.saturating_sub(json_bytes);
        let elsewhere = Box::pin(several.elsewhere(others, asked.elsewhere(payload_digest), left)).await;
        json_bytes += elsewhere.bytes();
        let answer = durable.map(move |verdict| {
            let joint = verdict.map(|verdict| several.inserted(Verdict { page, ..verdict }, elsewhere));
            stored(id, joint)
        });
        DecidedInTurn { json_bytes, waiting: answer.boxed() }
    }
}

/// Takes the bytes of an answer from those that are left. Gives back what the answer does not need.
fn taking(DecidedInTurn { json_bytes, waiting }: DecidedInTurn, left: BytesLeft) -> DecidedInTurn {
    let taken = json_bytes.min(left.load(Ordering::Relaxed));
    // Documents come here one after another, and nothing else takes bytes.
    left.fetch_sub(taken, Ordering::Relaxed);
    let waiting = waiting.inspect(move |answer| {
        left.fetch_add(taken.saturating_sub(answer.json_bytes()), Ordering::Relaxed);
    });
    DecidedInTurn { json_bytes, waiting: waiting.boxed() }
}

/// Returns the answer to an insertion.
fn stored(id: DocId, answer: Result<JointVerdict, CollectionError>) -> DocumentAnswer {
    match answer {
        Ok(verdict) => DocumentAnswer::Verdict(verdict),
        Err(error) => DocumentAnswer::Failed { id: Some(id), problem: error.into() },
    }
}

fn page_bytes(page: &Option<Box<PageFacts>>) -> usize {
    page.as_ref().map_or(0, |page| page.json_bytes())
}
