//! Checks with prepared texts, whose right answers are known.

use std::sync::Arc;

use bytes::Bytes;
use hyper::Uri;

use super::{check_body, path, unexpected};
use crate::answers::Verdict;
use crate::client::{Answer, Fate, Request, Work};
use crate::queries::{Queries, Truth};
use crate::texts::Texts;

/// The number of prepared texts. More would only take memory, because a check does not depend on earlier ones.
const PREPARED: u64 = 6_000;

pub(crate) struct Checks {
    target: Uri,
    queries: Arc<Queries>,
    bodies: Vec<Bytes>,
}

impl Checks {
    /// Makes checks about the first `documents` documents of a collection.
    pub(crate) fn new(texts: &Texts, collection: &str, documents: u64) -> Arc<Self> {
        let queries = Queries::prepare(texts, documents, PREPARED);
        let bodies = (0..PREPARED).map(|n| check_body(&queries.get(n).text)).collect();
        Arc::new(Self { target: path(collection, "check"), queries: Arc::new(queries), bodies })
    }

    pub(crate) fn queries(&self) -> &Queries {
        &self.queries
    }
}

impl Work for Checks {
    type Note = Truth;

    fn request(&self, n: u64) -> (Request, Truth) {
        let body = self.bodies[(n % PREPARED) as usize].clone();
        (Request::post("check", &self.target, body), self.queries.get(n).truth)
    }

    fn judge(&self, truth: Truth, answer: &Answer) -> Fate {
        match Verdict::parse(&answer.body) {
            Some(verdict) if answer.status == 200 => {
                self.queries.count(truth, &verdict);
                Fate::Good
            }
            _ => unexpected(answer),
        }
    }
}
