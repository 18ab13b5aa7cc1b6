//! Work whose requests have later numbers, so that they repeat no id of an earlier load.

use std::sync::Arc;

use crate::client::{Answer, Fate, Request, Work};

pub(crate) struct Later<W> {
    work: Arc<W>,
    by: u64,
}

impl<W> Later<W> {
    pub(crate) fn new(work: &Arc<W>, by: u64) -> Arc<Self> {
        Arc::new(Self { work: Arc::clone(work), by })
    }
}

impl<W: Work> Work for Later<W> {
    type Note = W::Note;

    fn request(&self, n: u64) -> (Request, W::Note) {
        self.work.request(n + self.by)
    }

    fn judge(&self, note: W::Note, answer: &Answer) -> Fate {
        self.work.judge(note, answer)
    }

    fn refused(&self, note: W::Note) {
        self.work.refused(note);
    }
}
