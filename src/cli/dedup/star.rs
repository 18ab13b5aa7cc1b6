//! Signed documents -> decisions, each with the kept document that it repeats.

use std::cmp::Reverse;
use std::sync::atomic::AtomicBool;

use anyhow::Result;

use super::report::Original;
use super::results::Results;
use crate::cli::corpus::named::Named;
use crate::cli::corpus::output::refuse_interrupted;
use crate::cli::corpus::signing::Document;
use crate::corpus::{CorpusSigner, Decided, Decision, Deduplicator};

/// The number of documents that are decided on between two looks for a signal.
const DECIDED_AT_ONCE: usize = 1000;

/// The documents so far.
pub(super) struct Star {
    deduplicator: Deduplicator,
    /// The documents that are kept with the numbers of their files, in the order of the decisions.
    kept: Vec<(usize, Named)>,
    /// The documents that wait for the end of the input, because their order depends on all of them.
    waiting: Vec<Document>,
}

impl Star {
    pub(super) fn new(deduplicator: Deduplicator) -> Self {
        Self { deduplicator, kept: Vec::new(), waiting: Vec::new() }
    }

    pub(super) fn signer(&self) -> &CorpusSigner {
        self.deduplicator.signer()
    }

    /// Lets documents wait for [`decide_waiting`](Self::decide_waiting).
    pub(super) fn wait(&mut self, documents: &mut Vec<Document>) {
        self.waiting.append(documents);
    }

    /// The number of documents that wait.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Returns whether none of the documents that wait has a rank.
    pub(super) fn lacks_ranks(&self) -> bool {
        !self.waiting.is_empty() && self.waiting.iter().all(|document| document.rank.is_missing())
    }

    /// Decides on the documents that wait. Those of the highest rank come first, and those of one rank stay in the order of
    /// the input.
    pub(super) fn decide_waiting(&mut self, results: &mut Results, stop: &AtomicBool) -> Result<()> {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_by_key(|document| Reverse(document.rank));
        let mut waiting = waiting.into_iter();
        while waiting.len() > 0 {
            refuse_interrupted(stop)?;
            self.decide(waiting.by_ref().take(DECIDED_AT_ONCE), results)?;
        }
        Ok(())
    }

    /// Decides on documents. Returns the places in the chunk of those that are kept.
    pub(super) fn decide(
        &mut self,
        documents: impl IntoIterator<Item = Document>,
        results: &mut Results,
    ) -> Result<Vec<usize>> {
        let mut places = Vec::new();
        for Document { file, origin, id, signed, at, .. } in documents {
            let Decided { decision, unread } = self.deduplicator.decide(signed)?;
            let named = Named { origin, id };
            match decision {
                Decision::Kept => {
                    results.kept(file, &named, unread);
                    self.kept.push((file, named));
                    places.push(at);
                }
                Decision::Empty => results.empty(file, &named),
                Decision::Duplicate(duplicate) => {
                    let (of_file, kept) = &self.kept[duplicate.of];
                    let original = Original { file: *of_file, kept, similar_to: None, duplicate };
                    results.duplicate(file, &named, original, unread);
                }
            }
        }
        Ok(places)
    }
}
