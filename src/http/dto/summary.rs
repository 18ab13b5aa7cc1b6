//! The counts at the end of a bulk answer and at the start of a batch answer.

use serde::Serialize;

use crate::types::{Verdict, VerdictKind};

/// Counts of the documents in one request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Documents or ids read, including faulty ones.
    pub documents: u64,
    /// How many of them failed.
    pub errors: u64,
    /// Documents with the verdict `unique`.
    pub unique: u64,
    /// Documents with the verdict `near_duplicate`.
    pub near_duplicate: u64,
    /// Documents with the verdict `exact_duplicate`.
    pub exact_duplicate: u64,
    /// Documents with the verdict `empty`.
    pub empty: u64,
    /// Documents whose content is now stored under their id.
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
