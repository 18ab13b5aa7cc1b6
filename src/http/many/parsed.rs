//! One document's JSON -> the operation on it.

use super::operation::Operation;
use crate::collections::CheckOptions;
use crate::http::caller::Caller;
use crate::http::dto::document::{self, DocumentInput, Extra, Invalid};
use crate::http::error::Problem;
use crate::http::json::Object;
use crate::http::options::InsertAsked;
use crate::http::request::ill_formed;
use crate::types::DocId;

/// A parsed document, with its operation and options.
pub(super) enum Parsed {
    Check(DocumentInput, CheckOptions),
    Insert(DocId, DocumentInput, InsertAsked),
    Delete(DocId),
    Faulty(Option<DocId>, Problem),
}

impl Parsed {
    pub(super) fn new(json: &[u8], op: Operation, invalid: Invalid, extra: Extra, caller: &Caller) -> Self {
        let text = match std::str::from_utf8(json) {
            Ok(text) => text,
            Err(error) => return Self::Faulty(None, ill_formed(error)),
        };
        let parsed = match op {
            Operation::Check(options) => document::of_fields(text, invalid, extra, caller).map(|document| {
                let payload_digest = document.attached.capture.digest.clone();
                Self::Check(document, CheckOptions { payload_digest, ..options })
            }),
            Operation::Insert(asked) => document::of_fields(text, invalid, extra, caller)
                .and_then(|document| Ok(Self::Insert(document.required_id()?, document, asked))),
            Operation::Delete => id_alone(text, extra).map(Self::Delete),
        };
        parsed.unwrap_or_else(|problem| Self::Faulty(id_of(text), problem))
    }
}

fn id_alone(text: &str, extra: Extra) -> Result<DocId, Problem> {
    let mut object = Object::parse(text)?;
    let id = object.string("id")?.ok_or_else(|| Problem::invalid("id", "is required"))?;
    object.leave_out_empty_array("set");
    extra.finish(object)?;
    Ok(DocId::new(id)?)
}

/// Returns the id of a faulty document, if it has a valid one.
fn id_of(text: &str) -> Option<DocId> {
    DocId::new(Object::parse(text).ok()?.string("id").ok()??).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_faulty_document_still_tells_its_id() {
        assert_eq!(id_of(r#"{"id":"a","nonsense":1}"#).unwrap().as_str(), "a");
        assert_eq!(id_of(r#"{"id":5}"#), None);
        assert_eq!(id_of("{"), None);
    }

    #[test]
    fn nothing_but_an_empty_set_may_come_with_an_id() {
        assert_eq!(id_alone(r#"{"id":"a","set":[]}"#, Extra::Refuse).unwrap().as_str(), "a");
        assert_eq!(id_alone(r#"{"id":"a","set":[1]}"#, Extra::Refuse).unwrap_err().errors[0].field, "set");
    }
}
