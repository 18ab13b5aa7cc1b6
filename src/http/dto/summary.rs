//! What became of many documents: the counts that close a batch or a bulk answer.

use serde::Serialize;

use crate::types::{Verdict, VerdictKind};

/// Counts over the documents of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Documents or ids read, faulty ones included.
    pub documents: u64,
    /// Of these, how many could not be done.
    pub errors: u64,
    /// Verdicts `unique`.
    pub unique: u64,
    /// Verdicts `near_duplicate`.
    pub near_duplicate: u64,
    /// Verdicts `exact_duplicate`.
    pub exact_duplicate: u64,
    /// Verdicts `empty`.
    pub empty: u64,
    /// Documents whose content is held under their id now.
    pub stored: u64,
    pub deleted: u64,
}

impl Summary {
    pub fn verdict(&mut self, verdict: &Verdict) {
        self.documents += 1;
        self.stored += u64::from(verdict.stored);
        match verdict.kind {
            VerdictKind::Unique => self.unique += 1,
            VerdictKind::NearDuplicate => self.near_duplicate += 1,
            VerdictKind::ExactDuplicate => self.exact_duplicate += 1,
            VerdictKind::Empty => self.empty += 1,
        }
    }

    pub fn deletion(&mut self, was_there: bool) {
        self.documents += 1;
        self.deleted += u64::from(was_there);
    }

    pub fn error(&mut self) {
        self.documents += 1;
        self.errors += 1;
    }
}
