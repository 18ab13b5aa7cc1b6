//! The answers that servers get, and those that they give.

use super::super::terms::{Answer, Body, Ref, Reply};
use super::super::{Inserted, Rest, rest_of, rest_of_replaced};
use super::given::Outcome;
use super::world::Doc;

/// Lets a stored document be expired.
pub(super) fn expire(answer: &mut Answer<Doc>) {
    if let Reply::Record(Some(found)) = &mut answer.reply {
        found.expired = found.head.state.is_stored();
    }
}

pub(super) fn refs(found: Vec<(Ref, Doc)>) -> Vec<Ref> {
    found.into_iter().map(|(at, _)| at).collect()
}

/// Returns the outcome of an insertion, and the commands that remain.
pub(super) fn ended(inserted: Inserted<Doc>, own: Ref, bands: u16, rest: Rest<Doc>) -> (Option<Outcome>, Rest<Doc>) {
    let (outcome, more) = match inserted {
        Inserted::Stored { replaced: Some((old, doc)), .. } => {
            (Outcome::Replaced { old, by: own }, rest_of_replaced(old, own, doc.replaces(), bands))
        }
        Inserted::Duplicate { found, removed: Some((old, head, doc)), .. } => {
            (Outcome::Removed { old, found: refs(found) }, rest_of(old, head, doc.replaces(), bands))
        }
        Inserted::Stored { .. } => (Outcome::Stored(own), Vec::new()),
        Inserted::Duplicate { found, .. } => (Outcome::DuplicateOf(refs(found)), Vec::new()),
        Inserted::Held { by, .. } => (Outcome::Held(by), Vec::new()),
        Inserted::Unknown => (Outcome::Unknown, Vec::new()),
        Inserted::Again => return (None, rest),
    };
    (Some(outcome), [rest, more].concat())
}
