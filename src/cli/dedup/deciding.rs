//! Signed documents -> decisions, with the report and the counts.

use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};

use super::report::Report;
use super::tally::Tally;
use crate::cli::corpus::named::Named;
use crate::cli::corpus::output::{KeptRecords, refuse_interrupted};
use crate::cli::corpus::signing::{Document, SignedChunk};
use crate::corpus::{Decided, Decision, Deduplicator};

/// The number of documents that are decided on between two looks for a signal.
const DECIDED_AT_ONCE: usize = 1000;

/// The decisions so far.
pub(super) struct Deciding {
    deduplicator: Deduplicator,
    /// The documents that are kept, in the order of the decisions.
    named: Vec<Named>,
    kept: KeptRecords,
    report: Report,
    tally: Tally,
    /// The documents that wait for the end of the input, because their order depends on all of them.
    waiting: Vec<Document>,
}

impl Deciding {
    /// `files`: the number of files. `has_report`: whether the report is wanted.
    pub(super) fn new(deduplicator: Deduplicator, files: usize, has_report: bool) -> Self {
        Self {
            deduplicator,
            named: Vec::new(),
            kept: KeptRecords::new(files),
            report: Report::new(has_report),
            tally: Tally::default(),
            waiting: Vec::new(),
        }
    }

    pub(super) fn documents(&self) -> u64 {
        self.tally.documents() + self.waiting.len() as u64
    }

    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The documents that are kept.
    pub(super) fn kept(&self) -> &KeptRecords {
        &self.kept
    }

    /// Returns the lines of the report since the last call.
    pub(super) fn take_report(&mut self) -> impl Iterator<Item = Vec<u8>> {
        self.report.take()
    }

    /// Decides on the documents of a chunk. Returns the places in the chunk of those that are kept.
    pub(super) fn take(&mut self, chunk: &mut SignedChunk) -> Result<Vec<usize>> {
        self.note(chunk);
        self.decide(chunk.take_documents())
    }

    /// Lets the documents of a chunk wait for [`decide_waiting`](Self::decide_waiting).
    pub(super) fn wait(&mut self, chunk: &mut SignedChunk) {
        self.note(chunk);
        self.waiting.append(&mut chunk.take_documents());
    }

    /// Decides on the documents that wait. Those of the highest rank come first, and those of one rank stay in the order of
    /// the input. `field`: the field with the ranks.
    pub(super) fn decide_waiting(&mut self, field: Option<&String>, stop: &AtomicBool) -> Result<()> {
        let mut waiting = std::mem::take(&mut self.waiting);
        if let Some(field) = field
            && !waiting.is_empty()
            && waiting.iter().all(|document| document.rank == f64::NEG_INFINITY)
        {
            bail!("--keep max:{field}: no document has a number in this field");
        }
        waiting.sort_by(|a, b| b.rank.total_cmp(&a.rank));
        let mut waiting = waiting.into_iter();
        while waiting.len() > 0 {
            refuse_interrupted(stop)?;
            self.decide(waiting.by_ref().take(DECIDED_AT_ONCE))?;
        }
        Ok(())
    }

    /// Counts what a chunk has besides its documents.
    fn note(&mut self, chunk: &SignedChunk) {
        self.tally.read(chunk.chunk().text_bytes, chunk.chunk().skipped);
        for (origin, reason) in chunk.failures() {
            self.tally.fail(origin, &reason);
            self.report.failed(chunk.file(), origin, reason);
        }
    }

    fn decide(&mut self, documents: impl IntoIterator<Item = Document>) -> Result<Vec<usize>> {
        let mut kept = Vec::new();
        for Document { file, origin, id, signed, at, .. } in documents {
            let decided = self.deduplicator.decide(signed)?;
            let named = Named { origin, id };
            self.tally.decided(&decided);
            let Decided { decision, unread } = decided;
            match decision {
                Decision::Kept => {
                    self.report.kept(file, &named, unread);
                    self.kept.add(file, named.origin.number());
                    self.named.push(named);
                    kept.push(at);
                }
                Decision::Empty => self.report.empty(file, &named),
                Decision::Duplicate(duplicate) => {
                    self.report.duplicate(file, &named, (&self.named[duplicate.of], &duplicate), unread);
                }
            }
        }
        Ok(kept)
    }
}
