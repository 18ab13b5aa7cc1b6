//! The calls of clients, and the answers of servers to them. In: an HTTP answer, or none. Out: what it says.

use serde_json::{Value, json};
use ureq::Agent;

use super::cell::{Doc, Id};
use crate::redis_store::contents::Content;
use crate::redis_store::http::{self, Answer};
use crate::support::client::{CHECK, DOCUMENTS, encode};
use crate::support::server::Address;

/// Groups of one cell, at most.
pub const GROUPS_MAX: u64 = 4;

/// The number of a cell. No cell is used in two rounds.
pub type CellNumber = u64;

/// What a client asks of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// An insertion with `on_duplicate=skip`. `replaces`: with `on_existing=replace`.
    Insert {
        id: Id,
        doc: Doc,
        replaces: bool,
    },
    Delete(Id),
    Check(Doc),
    Get(Id),
}

/// What a server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Stored,
    /// It was stored already.
    Repeated,
    Replaced,
    Removed(Named),
    /// Of an insertion or a check: this document is a duplicate.
    Named(Named),
    Conflict,
    Deleted,
    /// A deletion has found nothing.
    NotFound,
    Unique,
    Shown(Option<Doc>),
    /// Nothing was done. The detail is for the reader of a failure.
    Refused {
        code: String,
        detail: String,
    },
    /// Anything may have happened, or will.
    Uncertain(&'static str),
}

/// An id in an answer, with its cell.
pub type Named = (CellNumber, Id);

impl Call {
    /// Sends the call to a server.
    pub fn send(self, agent: &Agent, address: &Address, cell: CellNumber) -> Said {
        let (method, path, body) = self.request(cell);
        match http::ask(agent, method, &address.url(&path), &body) {
            None => Said::Uncertain("no answer"),
            Some(answer) => self.said(cell, &answer),
        }
    }

    fn request(self, cell: CellNumber) -> (&'static str, String, Value) {
        match self {
            Self::Insert { id, doc, replaces } => {
                let existing = if replaces { "replace" } else { "conflict" };
                // The metadata names the document. A document that is sent again has other metadata.
                let mut metadata = content(cell, doc).metadata();
                metadata["sent"] = json!(rand::random::<u64>());
                let body = json!({"id": id_text(cell, id), "text": content(cell, doc).text(), "metadata": metadata});
                ("POST", format!("{DOCUMENTS}?on_existing={existing}"), body)
            }
            Self::Delete(id) => ("DELETE", path_of(cell, id), Value::Null),
            Self::Get(id) => ("GET", path_of(cell, id), Value::Null),
            Self::Check(doc) => ("POST", CHECK.to_owned(), json!({"text": content(cell, doc).text()})),
        }
    }

    fn said(self, cell: CellNumber, answer: &Answer) -> Said {
        let Answer { status, body, .. } = answer;
        let named = || named(&body["duplicate_of"]);
        match (self, *status, answer.code()) {
            (_, 503, "store_unavailable") | (_, 507, "memory_budget_reached") => {
                let detail = body["detail"].as_str().unwrap_or_default().to_owned();
                Said::Refused { code: answer.code().to_owned(), detail }
            }
            (Self::Insert { .. } | Self::Delete(_), 503, "uncertain") => Said::Uncertain("uncertain"),
            (Self::Insert { .. }, 409, "id_conflict") => Said::Conflict,
            (Self::Insert { .. }, 200, _) => match body["outcome"].as_str() {
                Some("inserted") => Said::Stored,
                Some("updated" | "unchanged") => Said::Repeated,
                Some("replaced") => Said::Replaced,
                Some("removed") => Said::Removed(named()),
                Some("skipped") => Said::Named(named()),
                _ => panic!("{self:?}: {body}"),
            },
            (Self::Check(_), 200, _) if body["verdict"] == "unique" => Said::Unique,
            (Self::Check(_), 200, _) => Said::Named(named()),
            (Self::Delete(_), 200, _) if body["deleted"] == 0 => Said::NotFound,
            (Self::Delete(_), 200, _) => Said::Deleted,
            (Self::Get(_), 404, _) => Said::Shown(None),
            (Self::Get(_), 200, _) => Said::Shown(Some(shown(cell, body))),
            _ => panic!("{self:?} in cell {cell}: {status} {body}"),
        }
    }
}

/// Names are claims of the test's own, so that an answer with another id is no answer to these calls.
fn id_text(cell: CellNumber, id: Id) -> String {
    format!("https://cell.example/{cell}/{id}")
}

fn path_of(cell: CellNumber, id: Id) -> String {
    format!("{DOCUMENTS}?id={}", encode(&id_text(cell, id)))
}

fn content(cell: CellNumber, Doc { group, variant }: Doc) -> Content {
    Content { group: cell * GROUPS_MAX + u64::from(group), variant: variant.into() }
}

fn named(id: &Value) -> Named {
    let parts = id.as_str().and_then(|id| id.strip_prefix("https://cell.example/")?.split_once('/'));
    let read = parts.and_then(|(cell, id)| Some((cell.parse().ok()?, id.parse().ok()?)));
    read.unwrap_or_else(|| panic!("not an id that was sent: {id}"))
}

/// Reads a document by its metadata.
fn shown(cell: CellNumber, body: &Value) -> Doc {
    let Content { group, variant } = Content::of(&body["metadata"]);
    assert_eq!(group / GROUPS_MAX, cell, "a document of another cell: {body}");
    Doc { group: (group % GROUPS_MAX) as u8, variant: variant as u8 }
}
