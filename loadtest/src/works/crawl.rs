//! The requests of a crawler: new pages, copies of known pages, pages that have not changed, lookups, reads and
//! deletes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hyper::{Method, Uri};

use super::inserts::INSERTED;
use super::{Checks, document_body, path, unexpected};
use crate::answers::Verdict;
use crate::client::{Answer, Fate, Request, Work};
use crate::queries::Truth;
use crate::texts::Texts;

/// The number of inserted documents that are kept before the oldest is deleted.
const STAY: usize = 500;

/// The shares of the requests, in percent. The other requests are checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    pub(crate) new: u64,
    pub(crate) copy: u64,
    pub(crate) again: u64,
    pub(crate) read: u64,
    pub(crate) delete: u64,
}

pub(crate) struct Crawl {
    mix: Mix,
    texts: Arc<Texts>,
    collection: String,
    documents: u64,
    checks: Arc<Checks>,
    insert: Uri,
    /// The texts of clear near-duplicates of imported documents, and the numbers of these documents.
    copies: Vec<(Bytes, u64)>,
    /// Documents whose insert was acknowledged, the oldest first.
    acknowledged: Mutex<VecDeque<u64>>,
}

/// The request that an answer is about.
pub(crate) enum Note {
    New(u64),
    Copy(u64),
    Again,
    Read,
    Delete(u64),
    Check(Truth),
}

impl Crawl {
    /// Makes requests about the first `documents` documents of a collection, which are not changed.
    pub(crate) fn new(texts: &Arc<Texts>, collection: &str, documents: u64, mix: Mix) -> Arc<Self> {
        let checks = Checks::new(texts, collection, documents);
        Arc::new(Self {
            mix,
            texts: Arc::clone(texts),
            collection: collection.to_owned(),
            documents: documents.max(1),
            insert: path(collection, "documents?limit=10"),
            copies: checks.queries().clear_copies(),
            checks,
            acknowledged: Mutex::default(),
        })
    }

    pub(crate) fn checks(&self) -> &Checks {
        &self.checks
    }

    /// Returns the number of inserted documents that are not deleted.
    pub(crate) fn left(&self) -> usize {
        self.acknowledged.lock().expect("not poisoned").len()
    }

    fn by_id(&self, kind: &'static str, method: Method, id: &str) -> Request {
        Request::bare(kind, method, path(&self.collection, &format!("documents?id={id}")))
    }

    /// Returns the oldest document that may be deleted.
    fn oldest(&self) -> Option<u64> {
        let mut acknowledged = self.acknowledged.lock().expect("not poisoned");
        if acknowledged.len() > STAY { acknowledged.pop_front() } else { None }
    }

    fn insert(&self, kind: &'static str, prefix: &str, n: u64, text: &[u8]) -> Request {
        Request::post(kind, &self.insert, document_body(prefix, n, text))
    }

    fn check(&self, n: u64) -> (Request, Note) {
        let (request, truth) = self.checks.request(n);
        (request, Note::Check(truth))
    }
}

impl Work for Crawl {
    type Note = Note;

    fn request(&self, n: u64) -> (Request, Note) {
        let (mut random, mix) = (self.texts.random(4, n), self.mix);
        let mut drawn = random.below(100);
        let mut is = |share: u64| {
            let chosen = drawn < share;
            drawn = if chosen { u64::MAX } else { drawn - share.min(drawn) };
            chosen
        };
        if is(mix.new) {
            let text = self.texts.fresh(INSERTED + n);
            return (self.insert("insert new", "new", n, text.as_bytes()), Note::New(n));
        }
        if is(mix.copy) && !self.copies.is_empty() {
            let (text, original) = &self.copies[random.below(self.copies.len() as u64) as usize];
            return (self.insert("insert copy", "copy", n, text), Note::Copy(*original));
        }
        let known = random.below(self.documents);
        if is(mix.again) {
            let text = self.texts.document(known);
            return (self.insert("insert again", "doc", known, text.as_bytes()), Note::Again);
        }
        if is(mix.read) {
            return (self.by_id("read", Method::GET, &format!("doc-{known}")), Note::Read);
        }
        if is(mix.delete)
            && let Some(oldest) = self.oldest()
        {
            return (self.by_id("delete", Method::DELETE, &format!("new-{oldest}")), Note::Delete(oldest));
        }
        self.check(n)
    }

    fn judge(&self, note: Note, answer: &Answer) -> Fate {
        let verdict = || Verdict::parse(&answer.body).filter(|_| answer.status == 200);
        let right = match note {
            Note::Check(truth) => return self.checks.judge(truth, answer),
            Note::New(n) => {
                let stored = verdict().is_some_and(|verdict| verdict.stored && verdict.verdict == "unique");
                if stored {
                    self.acknowledged.lock().expect("not poisoned").push_back(n);
                }
                stored
            }
            Note::Copy(original) => verdict().is_some_and(|verdict| !verdict.stored && verdict.names(original)),
            Note::Again => verdict().is_some_and(|verdict| verdict.outcome == "unchanged"),
            Note::Read => answer.status == 200,
            Note::Delete(_) => answer.status == 200 && answer.body.ends_with(b":1}"),
        };
        if right { Fate::Good } else { unexpected(answer) }
    }

    /// A document whose delete was refused still exists. It is deleted later, so that the collection does not grow.
    fn refused(&self, note: Note) {
        if let Note::Delete(n) = note {
            self.acknowledged.lock().expect("not poisoned").push_front(n);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_whose_delete_was_refused_is_deleted_later() {
        let texts = Arc::new(Texts::new(1, 256));
        let mix = Mix { new: 0, copy: 0, again: 0, read: 0, delete: 100 };
        let crawl = Crawl::new(&texts, "default", 10, mix);
        crawl.acknowledged.lock().unwrap().extend(0..=STAY as u64);
        let delete = || crawl.request(0);
        let (first, note) = delete();
        assert!(first.target.to_string().ends_with("id=new-0") && crawl.left() == STAY);
        // There are so few documents that none may be deleted, and a check replaces the delete.
        assert!(matches!(delete().1, Note::Check(_)));
        crawl.refused(note);
        assert_eq!((delete().0.target, crawl.left()), (first.target, STAY));
    }
}
