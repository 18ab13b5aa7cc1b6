//! Decisions -> the records that are kept, the report, and the counts.

use super::listing::Listing;
use super::report::{Original, Report};
use super::tally::Tally;
use crate::cli::corpus::kept_records::KeptRecords;
use crate::cli::corpus::named::Named;
use crate::cli::corpus::signing::SignedChunk;
use crate::corpus::{Decided, Decision};

/// The results so far.
pub(super) struct Results {
    kept: KeptRecords,
    report: Report,
    tally: Tally,
    /// The documents themselves, if they are listed.
    listing: Option<Listing>,
}

impl Results {
    /// `files`: the number of files. `is_listed`: whether the documents are listed.
    pub(super) fn new(files: usize, report: Report, is_listed: bool) -> Self {
        let listing = is_listed.then(Listing::default);
        Self { kept: KeptRecords::new(files), report, tally: Tally::default(), listing }
    }

    /// Returns the documents, if they are listed.
    pub(super) fn listing(&self) -> Option<&Listing> {
        self.listing.as_ref()
    }

    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    pub(super) fn tally_mut(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// The documents that are kept.
    pub(super) fn kept_records(&self) -> &KeptRecords {
        &self.kept
    }

    pub(super) fn report_mut(&mut self) -> &mut Report {
        &mut self.report
    }

    /// Counts what a chunk has besides its documents, and takes the texts of these if they are listed.
    pub(super) fn note(&mut self, chunk: &SignedChunk) {
        self.listing.iter_mut().for_each(|listing| listing.read(chunk));
        self.tally.read(chunk.chunk().text_bytes, chunk.chunk().skipped);
        for (origin, reason) in chunk.failures() {
            self.tally.fail(origin, &reason);
            self.report.failed(chunk.file(), origin, reason);
        }
    }

    pub(super) fn empty(&mut self, file: usize, named: &Named) {
        self.tally.decided(&Decided { decision: Decision::Empty, unread: 0 });
        self.report.empty(file, named);
    }

    pub(super) fn kept(&mut self, file: usize, named: &Named, unread: u64) {
        self.tally.decided(&Decided { decision: Decision::Kept, unread });
        self.report.kept(file, named, unread);
        self.listing.iter_mut().for_each(|listing| listing.kept(file, named));
        self.kept.add(file, named.origin.number());
    }

    pub(super) fn duplicate(&mut self, file: usize, named: &Named, original: Original<'_>, unread: u64) {
        self.report.duplicate(file, named, &original, unread);
        self.listing.iter_mut().for_each(|listing| listing.duplicate(file, named, &original));
        self.tally.decided(&Decided { decision: Decision::Duplicate(original.duplicate), unread });
    }
}
