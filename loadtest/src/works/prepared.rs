//! The same few requests again and again. They are made before the load begins, so this client only has to send them.

use std::sync::Arc;

use super::unexpected;
use crate::client::{Answer, Fate, Request, Work};

pub(crate) struct Prepared(Vec<Request>);

impl Prepared {
    /// Repeats these requests. There must be at least one.
    pub(crate) fn new(requests: Vec<Request>) -> Arc<Self> {
        assert!(!requests.is_empty(), "there is nothing to send");
        Arc::new(Self(requests))
    }
}

impl Work for Prepared {
    type Note = ();

    fn request(&self, n: u64) -> (Request, ()) {
        (self.0[(n % self.0.len() as u64) as usize].clone(), ())
    }

    fn judge(&self, (): (), answer: &Answer) -> Fate {
        if answer.status == 200 { Fate::Good } else { unexpected(answer) }
    }
}
