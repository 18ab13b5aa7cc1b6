//! The operations on many documents: check, insert and delete.

use crate::collections::{AskedCollections, CheckOptions, Collection, JointVerdict, Purpose};
use crate::http::caller::Caller;
use crate::http::error::Problem;
use crate::http::options::{InsertAsked, check_options, insert_options, is_default};
use crate::http::query::Query;
use crate::http::required_scopes::OPERATIONS;
use crate::keys::Scope;
use crate::types::{ID_JSON_BYTES_MAX, PageFacts, Revisit, Verdict};

#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Check(CheckOptions),
    /// Looks the document up and stores it.
    Insert(InsertAsked),
    Delete,
}

impl Operation {
    /// Makes the operation called `name`, with its options from the query; returns 403 if the caller may not do it.
    pub(crate) fn new(name: &str, query: &Query, caller: &Caller) -> Result<Self, Problem> {
        let scope = OPERATIONS.into_iter().find(|scope| scope.as_str() == name);
        let scope = scope.ok_or_else(|| Problem::invalid("op", "must be one of check, insert, delete"))?;
        caller.require_for(scope, &format!("op {name}"))?;
        let (op, of_others): (_, &[&str]) = match scope {
            Scope::Check => {
                (Self::Check(check_options(query, caller)?), &["on_duplicate", "on_existing", "page_metadata", "label"])
            }
            Scope::Insert => (Self::Insert(insert_options(query, caller)?), &["threshold", "scope"]),
            _ => (
                Self::Delete,
                &[
                    "threshold",
                    "limit",
                    "with",
                    "on_duplicate",
                    "on_existing",
                    "page_metadata",
                    "invalid",
                    "label",
                    "scope",
                    "collections",
                ],
            ),
        };
        match of_others.iter().find(|other| !is_default(query, other)) {
            Some(other) => Err(Problem::invalid(*other, format!("cannot be combined with op {name}"))),
            None => Ok(op),
        }
    }

    /// Returns an upper bound on the memory that the shingles of a text of this many bytes take, in addition to the
    /// text.
    pub(crate) fn shingle_bytes(
        &self,
        collection: &Collection,
        asked: Option<&AskedCollections>,
        text_bytes: usize,
    ) -> usize {
        let purpose = match self {
            Self::Check(_) => Purpose::Check,
            Self::Insert(_) => Purpose::Insert,
            Self::Delete => return 0,
        };
        match asked {
            None => collection.shingle_bytes(purpose, text_bytes),
            // While the text is signed for another spec, a copy of the text is in memory.
            Some(asked) => text_bytes + asked.shingle_bytes(purpose, text_bytes),
        }
    }

    /// Returns an upper bound on the size of one answer as JSON, in bytes.
    pub(crate) fn answer_bytes_max(&self, asked: Option<&AskedCollections>) -> usize {
        let CheckOptions { limit, with_metadata, explain, .. } = match self {
            Self::Check(options) => options.clone(),
            Self::Insert(insert) => insert.elsewhere(None),
            Self::Delete => return 64 + ID_JSON_BYTES_MAX,
        };
        let own = Verdict::bytes_max(limit, with_metadata) + PageFacts::JSON_BYTES_MAX + Revisit::JSON_BYTES_MAX;
        own + asked.map_or(0, |asked| {
            JointVerdict::bytes_max(asked.others().len(), limit, with_metadata, explain) + Revisit::JSON_BYTES_MAX
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(raw: &str) -> Query {
        Query::parse(raw, &["threshold", "limit", "with", "on_duplicate", "on_existing", "invalid"]).unwrap()
    }

    #[test]
    fn options_of_another_operation_are_refused() {
        assert!(Operation::new("check", &query("threshold=0.5&limit=1000&with=metadata"), &Caller::anyone()).is_ok());
        assert!(Operation::new("insert", &query("on_duplicate=store&on_existing=replace"), &Caller::anyone()).is_ok());
        for (op, raw) in [("insert", "threshold=0.5"), ("check", "on_existing=keep"), ("delete", "limit=1"), ("x", "")]
        {
            assert!(Operation::new(op, &query(raw), &Caller::anyone()).is_err(), "{op} {raw}");
        }
    }

    // A generated client sends every default. Once, each batch of deletes from such a client was refused.
    #[test]
    fn defaults_of_another_operation_are_accepted() {
        for op in ["check", "insert", "delete"] {
            let raw = "limit=10&with=none&on_duplicate=skip&on_existing=conflict&invalid=refuse";
            assert!(Operation::new(op, &query(raw), &Caller::anyone()).is_ok(), "{op}");
        }
    }
}
