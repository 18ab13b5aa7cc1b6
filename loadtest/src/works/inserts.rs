//! Inserts of documents that resemble no other document.

use std::sync::Arc;

use hyper::Uri;

use super::{document_body, path, unexpected};
use crate::answers::Verdict;
use crate::client::{Answer, Fate, Request, Work};
use crate::queries::NEW;
use crate::texts::Texts;

/// The numbers of the texts of inserts begin here. Queries use other numbers.
pub(super) const INSERTED: u64 = NEW * 2;

pub(crate) struct Inserts {
    texts: Arc<Texts>,
    target: Uri,
    prefix: &'static str,
}

impl Inserts {
    /// Inserts documents with ids that begin with `prefix`.
    pub(crate) fn new(texts: &Arc<Texts>, collection: &str, prefix: &'static str) -> Arc<Self> {
        let target = path(collection, "documents?on_duplicate=store&limit=1");
        Arc::new(Self { texts: Arc::clone(texts), target, prefix })
    }
}

impl Work for Inserts {
    type Note = ();

    fn request(&self, n: u64) -> (Request, ()) {
        let text = self.texts.fresh(INSERTED + n);
        (Request::post("insert", &self.target, document_body(self.prefix, n, text.as_bytes())), ())
    }

    fn judge(&self, (): (), answer: &Answer) -> Fate {
        match Verdict::parse(&answer.body) {
            Some(verdict) if answer.status == 200 && verdict.stored => Fate::Good,
            _ => unexpected(answer),
        }
    }
}
