//! Signed documents -> decisions, one after another or at the end of the input.

use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};

use super::in_batches::InBatches;
use super::joining::Joining;
use super::results::Results;
use super::star::Star;
use crate::cli::corpus::order::Order;
use crate::cli::corpus::signing::SignedChunk;
use crate::corpus::CorpusSigner;

/// The decisions so far.
pub(super) struct Deciding {
    clusters: Clusters,
    results: Results,
}

/// The way in which documents form clusters.
pub(super) enum Clusters {
    Star(Star),
    Components(Joining),
    /// Either of them, in bounded memory.
    InBatches(InBatches),
}

impl Deciding {
    pub(super) fn new(clusters: Clusters, results: Results) -> Self {
        Self { clusters, results }
    }

    pub(super) fn signer(&self) -> &CorpusSigner {
        match &self.clusters {
            Clusters::Star(star) => star.signer(),
            Clusters::Components(joining) => joining.signer(),
            Clusters::InBatches(batches) => batches.signer(),
        }
    }

    /// The number of documents so far.
    pub(super) fn documents(&self) -> u64 {
        let undecided = match &self.clusters {
            Clusters::Star(star) => star.waiting(),
            Clusters::Components(joining) => joining.documents(),
            Clusters::InBatches(batches) => batches.documents(),
        };
        self.results.tally().documents() + undecided
    }

    pub(super) fn results(&self) -> &Results {
        &self.results
    }

    /// Passes the lines of the report since the last call to `take`.
    pub(super) fn each_line(&mut self, take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.results.report_mut().each(take)
    }

    /// Takes the documents of a chunk. If they can be decided on at once, returns the places in the chunk of those that are
    /// kept.
    pub(super) fn take(&mut self, chunk: &mut SignedChunk, order: &Order) -> Result<Vec<usize>> {
        self.results.note(chunk);
        let mut documents = chunk.take_documents();
        match &mut self.clusters {
            Clusters::InBatches(batches) => batches.take(documents, &mut self.results)?,
            Clusters::Star(star) if *order == Order::First => return star.decide(documents, &mut self.results),
            Clusters::Star(star) => star.wait(&mut documents),
            Clusters::Components(joining) => {
                documents.into_iter().try_for_each(|document| joining.take(document, &mut self.results))?;
            }
        }
        Ok(Vec::new())
    }

    /// Makes the decisions that waited for the end of the input.
    pub(super) fn finish(&mut self, order: &Order, stop: &AtomicBool) -> Result<()> {
        let lacks_ranks = match &self.clusters {
            Clusters::Star(star) => star.lacks_ranks(),
            Clusters::Components(joining) => joining.lacks_ranks(),
            Clusters::InBatches(batches) => batches.lacks_ranks(),
        };
        if let Some(field) = order.field().filter(|_| lacks_ranks) {
            bail!("--keep max:{field}: no document has a number in this field");
        }
        match &mut self.clusters {
            Clusters::Star(star) => star.decide_waiting(&mut self.results, stop),
            Clusters::Components(joining) => {
                joining.finish(&mut self.results);
                Ok(())
            }
            Clusters::InBatches(batches) => batches.finish(order, &mut self.results, stop),
        }
    }
}
