//! Signed documents -> pairs in the output, and the counts.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use rayon::prelude::*;

use super::output::PairFile;
use super::pair::Pair;
use super::tally::Tally;
use crate::cli::corpus::named::Named;
use crate::cli::corpus::output::refuse_interrupted;
use crate::cli::corpus::signing::{Document, SignedChunk};
use crate::corpus::{CorpusSigner, PairFinder, SimilarTo, Sought};

/// The documents of one block are looked for at the same time, and their pairs are in memory until they are written. A
/// block has few documents if those of the block before had many pairs.
const BLOCK_PAIRS: usize = 1 << 19;
const BLOCK_DOCUMENTS: usize = 500;

/// The pairs so far.
pub(super) struct Finding {
    finder: PairFinder,
    /// The documents that were added to the finder.
    named: Vec<Named>,
    output: PairFile,
    tally: Tally,
}

impl Finding {
    pub(super) fn new(finder: PairFinder, output: PairFile) -> Self {
        let tally = Tally::new(finder.banding());
        Self { finder, named: Vec::new(), output, tally }
    }

    pub(super) fn signer(&self) -> &CorpusSigner {
        self.finder.signer()
    }

    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    pub(super) fn into_parts(self) -> (PairFinder, Tally, PairFile) {
        (self.finder, self.tally, self.output)
    }

    /// Adds the documents of a chunk, so that others can be compared with them.
    pub(super) fn add(&mut self, mut chunk: SignedChunk) -> Result<()> {
        self.note(&chunk);
        for Document { origin, id, signed, .. } in chunk.take_documents() {
            let is_added = self.finder.add(signed)?.is_some();
            self.tally.against(is_added);
            if is_added {
                self.named.push(Named { origin, id });
            }
        }
        self.finder.resize();
        Ok(())
    }

    /// Finds the pairs of the documents of a chunk and the documents that were added.
    pub(super) fn seek(&mut self, mut chunk: SignedChunk, stop: &AtomicBool) -> Result<()> {
        self.note(&chunk);
        let (mut named, mut sought) = (Vec::new(), Vec::new());
        for Document { origin, id, signed, .. } in chunk.take_documents() {
            let found = self.finder.seek(signed);
            self.tally.document(found.is_some(), self.named.len());
            if let Some(found) = found {
                named.push(Named { origin, id });
                sought.push(found);
            }
        }
        self.search(&sought, stop, |_, at| &named[at])
    }

    /// Adds the documents of a chunk, and finds their pairs with each other and with earlier documents.
    pub(super) fn pair_up(&mut self, mut chunk: SignedChunk, stop: &AtomicBool) -> Result<()> {
        self.note(&chunk);
        let first = self.named.len();
        let mut sought = Vec::new();
        for Document { origin, id, signed, .. } in chunk.take_documents() {
            let added = self.finder.add(signed)?;
            self.tally.document(added.is_some(), self.named.len());
            if let Some(added) = added {
                self.named.push(Named { origin, id });
                sought.push(added);
            }
        }
        self.finder.resize();
        self.search(&sought, stop, |named, at| &named[first + at])
    }

    /// Counts what a chunk has besides its documents.
    fn note(&mut self, chunk: &SignedChunk) {
        self.tally.read(chunk.chunk().text_bytes, chunk.chunk().skipped);
        for (origin, reason) in chunk.failures() {
            self.tally.fail(origin, &reason);
        }
    }

    /// Writes the pairs of these documents. `name`: returns the names of one of them, from the names of the documents that
    /// were added.
    fn search<'a>(
        &'a mut self,
        sought: &[Sought],
        stop: &AtomicBool,
        name: impl Fn(&'a [Named], usize) -> &'a Named,
    ) -> Result<()> {
        let Self { finder, named, output, tally } = self;
        let (mut done, mut documents) = (0, BLOCK_DOCUMENTS);
        while done < sought.len() {
            refuse_interrupted(stop)?;
            let block = &sought[done..sought.len().min(done + documents)];
            let found: Vec<SimilarTo> = block.par_iter().map(|sought| finder.similar_to(sought)).collect();
            for (at, similar) in found.iter().enumerate() {
                tally.compared(similar);
                let b = name(named, done + at);
                for found in &similar.found {
                    let a = &named[found.document as usize];
                    output.pair(&Pair { a, b, similarity: found.similarity })?;
                }
            }
            done += block.len();
            let most = found.iter().map(|similar| similar.found.len()).max().unwrap_or_default();
            documents = (BLOCK_PAIRS / (most + 1)).clamp(1, BLOCK_DOCUMENTS);
        }
        Ok(())
    }
}
