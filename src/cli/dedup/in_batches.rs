//! Signed documents -> decisions, in bounded memory: the same decisions as in memory.
//!
//! 1. Each document is written to a temporary file (`documents.rs` of `cli/spill`), and its band keys go to sorted runs
//!    (`key_runs.rs`). In memory, a document takes four bytes.
//! 2. The runs of each band are merged, so documents that share a key meet. A chain of shared bands joins documents to
//!    groups (`corpus/batches.rs`): decisions in one group do not depend on any other group. This takes eight bytes a
//!    document.
//! 3. A document that shares no band is kept. The others are written to another temporary file, divided into batches of
//!    whole groups that fit into memory.
//! 4. The documents of each batch are decided on as if they were the whole corpus, in the same order.
//! 5. The lines of the report are sorted again (`line_runs.rs`), and the kept documents are copied from the input.
//!
//! A group that is larger than a batch is decided on from temporary files alone (`on_shelves.rs`), which takes longer.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};
use indicatif::{HumanCount, ProgressBar};

use super::joining::Joining;
use super::on_shelves::{self, Room};
use super::results::Results;
use super::settings::{ClusterKind, Ways};
use super::star::Star;
use crate::cli::corpus::named::Named;
use crate::cli::corpus::order::Order;
use crate::cli::corpus::output::refuse_interrupted;
use crate::cli::corpus::signing::Document;
use crate::cli::memory::Memory;
use crate::cli::progress;
use crate::cli::spill::documents::{DocumentStreams, FileNames, StoredDocuments, order_of};
use crate::cli::spill::key_runs::KeyRuns;
use crate::cli::spill::line_runs::LineRuns;
use crate::corpus::{Batches, Components, CorpusSigner, Deduplicator, SharedBands};

/// The memory that a document takes in a batch besides its index entry, its id and its shingles: its names, its links to
/// other documents, and what allocations waste.
const DOCUMENT_BYTES: usize = 400;
/// The number of documents that are decided on between two looks for a signal.
const DECIDED_AT_ONCE: usize = 1000;
/// The largest buffer of a stream of documents.
const STREAM_BYTES_MAX: usize = 256 << 10;
const STREAM_BYTES_MIN: usize = 4 << 10;
const WEIGHTS_AT_ONCE: usize = 1 << 16;

/// The documents so far.
pub(super) struct InBatches {
    ways: Ways,
    memory: Memory,
    folder: PathBuf,
    names: FileNames,
    all: DocumentStreams,
    /// `None` when all documents were read.
    keys: Option<KeyRuns>,
    /// The memory that each document takes in a batch.
    bytes: Vec<Vec<u32>>,
    count: u32,
    /// Whether there is a document that could have a rank, and whether one has a rank.
    ranks: (bool, bool),
    /// The progress of the decisions.
    bar: ProgressBar,
}

impl InBatches {
    /// `folder`: the folder of temporary files.
    pub(super) fn new(ways: Ways, memory: Memory, folder: &Path) -> Result<Self> {
        let bands = ways.signer.settings().banding.bands();
        Ok(Self {
            memory,
            folder: folder.to_owned(),
            names: FileNames::default(),
            all: DocumentStreams::create(folder, 1, STREAM_BYTES_MAX)?,
            keys: Some(KeyRuns::create(folder, bands, memory.bytes() / 4)?),
            bytes: Vec::new(),
            count: 0,
            ranks: (false, false),
            bar: ProgressBar::hidden(),
            ways,
        })
    }

    pub(super) fn signer(&self) -> &CorpusSigner {
        &self.ways.signer
    }

    /// The number of documents with at least one token.
    pub(super) fn documents(&self) -> u64 {
        u64::from(self.count)
    }

    /// Returns whether no document has a rank.
    pub(super) fn lacks_ranks(&self) -> bool {
        self.ranks == (true, false)
    }

    /// Takes documents. `results` gets those that are empty.
    pub(super) fn take(&mut self, documents: Vec<Document>, results: &mut Results) -> Result<()> {
        let (mut record, settings) = (Vec::new(), self.ways.signer.settings().clone());
        let documents_max = self.memory.bytes() / 2 / SharedBands::BYTES_EACH;
        for document in documents {
            // Without chains, empty documents wait for their ranks too.
            if self.ways.clusters == ClusterKind::Star || document.signed.signature().is_some() {
                let (_, has_rank) = self.ranks;
                self.ranks = (true, has_rank || !document.rank.is_missing());
            }
            let Some(signature) = document.signed.signature() else {
                let Document { file, origin, id, .. } = document;
                results.empty(file, &Named { origin, id });
                continue;
            };
            if self.count as usize >= documents_max {
                bail!(
                    "--memory {}: this is enough for {} documents, and there are more; give more memory",
                    self.memory,
                    HumanCount(documents_max as u64)
                );
            }
            let keys = self.keys.as_mut().expect("no document follows the last one");
            keys.add(self.count, settings.banding.keys(signature, settings.spec.shape()).map(|key| key.0))?;
            self.names.bytes_of(&document, &mut record);
            self.all.add(0, &record)?;
            if self.bytes.last().is_none_or(|bytes| bytes.len() == WEIGHTS_AT_ONCE) {
                self.bytes.push(Vec::with_capacity(WEIGHTS_AT_ONCE));
            }
            let bytes = self.bytes_of(&document);
            self.bytes.last_mut().expect("it was added").push(u32::try_from(bytes).unwrap_or(u32::MAX));
            self.count += 1;
        }
        results.report_mut().check()
    }

    /// Returns the memory that a document takes in a batch.
    fn bytes_of(&self, document: &Document) -> usize {
        let id = document.id.as_ref().map_or(0, |id| id.as_str().len());
        self.ways.signer.bytes_each() + DOCUMENT_BYTES + id + document.signed.shingle_bytes()
    }

    /// Decides on all documents.
    pub(super) fn finish(&mut self, order: &Order, results: &mut Results, stop: &AtomicBool) -> Result<()> {
        let batches = self.batches(stop)?;
        self.bar =
            progress::of_steps(u64::from(self.count), "{bar:30.cyan/dim} {percent:>3} %  decided  {elapsed} elapsed");
        let are_large: Vec<_> = (0..batches.count()).map(|batch| batches.is_large(batch)).collect();
        let mut streams = self.divide(batches, results, stop)?;
        for (batch, is_large) in are_large.into_iter().enumerate() {
            let documents = streams.read(batch)?;
            let room = Room { folder: &self.folder, bytes: self.memory.bytes() / 2, bar: &self.bar };
            match self.ways.clusters {
                ClusterKind::Star if is_large => {
                    let documents = if *order == Order::First { documents } else { self.sorted(documents, stop)? };
                    on_shelves::star(&self.ways, (&self.names, documents), room, results, stop)?;
                }
                ClusterKind::Components if is_large => {
                    on_shelves::components(&self.ways, (&self.names, documents), room, results, stop)?;
                }
                ClusterKind::Star => self.star(documents, order, results, stop)?,
                ClusterKind::Components => self.joined(documents, results, stop)?,
            }
        }
        self.bar.finish_and_clear();
        Ok(())
    }

    /// Divides the documents into batches.
    fn batches(&mut self, stop: &AtomicBool) -> Result<Batches> {
        let keys = self.keys.take().expect("all documents are finished once").finish()?;
        let bytes = std::mem::take(&mut self.bytes).into_iter().flatten().map(|bytes| bytes as usize);
        let shared = Mutex::new(SharedBands::new(self.count, bytes));
        keys.each_pair(self.memory.bytes() / 8, |pairs| {
            refuse_interrupted(stop)?;
            let mut shared = shared.lock().expect("no thread panics");
            pairs.iter().for_each(|&(one, other)| shared.join(one, other));
            Ok(())
        })?;
        Ok(shared.into_inner().expect("no thread panics").into_batches(self.batch_bytes()))
    }

    fn batch_bytes(&self) -> usize {
        self.memory.bytes() / 10 * 6
    }

    /// Keeps the documents that share no band, and returns the others: a stream for each batch.
    fn divide(&mut self, mut batches: Batches, results: &mut Results, stop: &AtomicBool) -> Result<DocumentStreams> {
        let count = batches.count() as usize;
        let buffer_bytes = (self.memory.bytes() / 8 / count.max(1)).clamp(STREAM_BYTES_MIN, STREAM_BYTES_MAX);
        let mut streams = DocumentStreams::create(&self.folder, count, buffer_bytes)?;
        let mut all = self.all.read(0)?;
        let mut alone = 0;
        for number in 0..self.count {
            if (number as usize).is_multiple_of(DECIDED_AT_ONCE) {
                refuse_interrupted(stop)?;
            }
            match batches.of(number) {
                Some(batch) => streams.add(batch as usize, all.next_record()?.expect("it was added"))?,
                None => {
                    let document = all.next(&self.names, &self.ways.signer)?.expect("it was added");
                    let Document { file, origin, id, .. } = document;
                    results.kept(file, &Named { origin, id }, 0);
                    alone += 1;
                    self.bar.inc(1);
                }
            }
        }
        if self.ways.clusters == ClusterKind::Components {
            results.tally_mut().components(std::iter::repeat_n(1, alone));
        }
        streams.flush()?;
        self.all = DocumentStreams::create(&self.folder, 0, 0)?;
        Ok(streams)
    }

    /// Reads up to [`DECIDED_AT_ONCE`] documents. Returns none at the end.
    fn some(&self, documents: &mut StoredDocuments, stop: &AtomicBool) -> Result<Vec<Document>> {
        refuse_interrupted(stop)?;
        let mut some = Vec::new();
        while some.len() < DECIDED_AT_ONCE
            && let Some(document) = documents.next(&self.names, &self.ways.signer)?
        {
            some.push(document);
        }
        self.bar.inc(some.len() as u64);
        Ok(some)
    }

    fn star(
        &self,
        mut documents: StoredDocuments,
        order: &Order,
        results: &mut Results,
        stop: &AtomicBool,
    ) -> Result<()> {
        let Ways { signer, matching, limits, .. } = self.ways.clone();
        let mut star = Star::new(Deduplicator::new(signer, matching, limits));
        loop {
            let mut some = self.some(&mut documents, stop)?;
            if some.is_empty() {
                break;
            }
            if *order == Order::First {
                star.decide(some, results)?;
            } else {
                star.wait(&mut some);
            }
            results.report_mut().check()?;
        }
        star.decide_waiting(results, stop)?;
        results.report_mut().check()
    }

    /// Returns documents in the order of their ranks.
    fn sorted(&self, mut documents: StoredDocuments, stop: &AtomicBool) -> Result<StoredDocuments> {
        let mut runs = LineRuns::create(&self.folder, self.memory.bytes() / 4)?;
        while let Some(record) = documents.next_record()? {
            refuse_interrupted(stop)?;
            runs.add([(order_of(record), record.to_vec())])?;
        }
        let mut sorted = DocumentStreams::create(&self.folder, 1, STREAM_BYTES_MAX)?;
        runs.each(|record| sorted.add(0, record))?;
        sorted.read(0)
    }

    fn joined(&self, mut documents: StoredDocuments, results: &mut Results, stop: &AtomicBool) -> Result<()> {
        let Ways { signer, matching, limits, .. } = self.ways.clone();
        let mut joining = Joining::new(Components::new(signer, matching, limits));
        loop {
            let some = self.some(&mut documents, stop)?;
            if some.is_empty() {
                break;
            }
            some.into_iter().try_for_each(|document| joining.take(document, results))?;
        }
        joining.finish(results);
        results.report_mut().check()
    }
}
