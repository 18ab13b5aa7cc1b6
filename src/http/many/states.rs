//! The states of a document of a bulk or batch request: received, prepared, decided, answered.

use bytes::Bytes;
use futures::future::BoxFuture;

use crate::collections::{Attached, JointVerdict, Prepared};
use crate::http::answer::LineRoom;
use crate::http::body::Room;
use crate::http::error::{Code, Problem};
use crate::http::options::InsertAsked;
use crate::types::{DocId, PageFacts};

/// A document to work on. `tag` is returned with its answer.
pub(crate) struct Input<T> {
    /// A line number, or a place in a batch.
    pub(crate) tag: T,
    /// The document's JSON, or the reason why there is none.
    pub(crate) json: Result<Bytes, Problem>,
    /// The memory reserved for the document's text; given back once the document is decided.
    pub(crate) room: Option<Room>,
    /// An upper bound on the size of the document's answer as JSON, in bytes.
    pub(crate) answer_bytes_max: usize,
    /// The memory reserved for the document's answer, if that answer has its own reservation.
    pub(crate) answer: Option<LineRoom>,
}

/// The answer to one document.
pub(crate) enum DocumentAnswer {
    Verdict(JointVerdict),
    /// The document was deleted, or was not stored.
    Deleted {
        id: DocId,
        /// Whether the document was stored before.
        was_there: bool,
    },
    Failed {
        /// The document's id, if it has a valid one.
        id: Option<DocId>,
        problem: Problem,
    },
}

/// A prepared document that waits for its turn.
pub(super) struct ReadyDocument<T> {
    pub(super) tag: T,
    pub(super) ready: Ready,
    pub(super) room: Option<Room>,
    pub(super) answer_bytes_max: usize,
    pub(super) answer: Option<LineRoom>,
}

/// The prepared part of a document.
pub(super) enum Ready {
    Done(Box<DocumentAnswer>),
    Insert(Box<Insert>),
    Delete(DocId),
}

/// A document to insert.
pub(super) struct Insert {
    pub(super) id: DocId,
    pub(super) attached: Attached,
    pub(super) prepared: Prepared,
    /// The same document, prepared for lookups in the other collections.
    pub(super) others: Vec<Prepared>,
    pub(super) asked: InsertAsked,
    pub(super) page: Option<Box<PageFacts>>,
}

/// A decided document. Its answer may still wait for the disk.
pub(super) struct DecidedInTurn {
    /// An upper bound on the size of the answer as JSON, in bytes.
    pub(super) json_bytes: usize,
    pub(super) waiting: BoxFuture<'static, DocumentAnswer>,
}

impl DecidedInTurn {
    pub(super) fn now(answer: DocumentAnswer) -> Self {
        Self { json_bytes: answer.json_bytes(), waiting: Box::pin(futures::future::ready(answer)) }
    }
}

impl DocumentAnswer {
    pub(super) fn json_bytes(&self) -> usize {
        match self {
            Self::Verdict(verdict) => verdict.bytes(),
            Self::Deleted { id, .. } => deleted_bytes(id),
            Self::Failed { id, problem } => id.as_ref().map_or(0, DocId::json_bytes) + problem.json_bytes(),
        }
    }
}

pub(super) fn deleted_bytes(id: &DocId) -> usize {
    64 + id.json_bytes()
}

pub(super) fn failed(id: Option<DocId>, problem: Problem) -> Ready {
    Ready::Done(Box::new(DocumentAnswer::Failed { id, problem }))
}

/// Returns the problem of a line of more than `max` bytes.
pub(super) fn too_long(max: usize) -> Problem {
    Problem::new(Code::TooLarge, format!("the line is longer than {max} bytes (`server.bulk_line_bytes_max`)"))
}
