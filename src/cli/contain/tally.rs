//! Outcomes -> counts of documents and items, and the failures that are shown.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::HumanCount;

use super::benchmarks::{Benchmarks, Item};
use super::checking::{Checked, Outcome};
use crate::cli::summary::{Failures, write_count, write_speed};

/// The results so far. Each document is counted once.
pub(super) struct Tally {
    kept: u64,
    contaminated: u64,
    /// Documents whose lookup is not complete. They are also counted above.
    capped: u64,
    /// Records without a page. They are not documents.
    skipped: u64,
    text_bytes: u64,
    failures: Failures,
    /// For each item, the number of documents that contain it.
    found: Vec<u64>,
}

impl Tally {
    pub(super) fn new(items: usize) -> Self {
        let failures = Failures::default();
        Self { kept: 0, contaminated: 0, capped: 0, skipped: 0, text_bytes: 0, failures, found: vec![0; items] }
    }

    pub(super) fn documents(&self) -> u64 {
        self.kept + self.contaminated + self.failed()
    }

    pub(super) fn failed(&self) -> u64 {
        self.failures.count()
    }

    /// Whether there are lines, but none is a document.
    pub(super) fn has_only_failures(&self) -> bool {
        self.failed() > 0 && self.documents() == self.failed()
    }

    /// For each item, the number of documents that contain it.
    pub(super) fn found(&self) -> &[u64] {
        &self.found
    }

    pub(super) fn add(&mut self, checked: &Checked) {
        self.text_bytes += checked.chunk().text_bytes;
        self.skipped += checked.chunk().skipped;
        for (origin, reason) in checked.failures() {
            self.failures.add(|| format!("{origin}: {}", reason.detail()));
        }
        for (_, outcome) in checked.outcomes() {
            match outcome {
                Outcome::Clean { is_complete } => {
                    self.kept += 1;
                    self.capped += u64::from(!is_complete);
                }
                Outcome::Contaminated(contamination) => {
                    self.contaminated += 1;
                    self.capped += u64::from(!contamination.is_complete);
                    contamination.found.iter().for_each(|overlap| self.found[overlap.item as usize] += 1);
                }
                Outcome::Failed(_) => {}
            }
        }
    }

    /// Writes the failures, for people.
    pub(super) fn write_failures(&self, words: &mut impl Write) -> io::Result<()> {
        self.failures.write(words)
    }

    /// Writes the counts, for people and scripts.
    pub(super) fn write_summary(
        &self,
        benchmarks: &Benchmarks,
        elapsed: Duration,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let rows = [
            ("documents", self.documents()),
            ("kept", self.kept),
            ("contaminated", self.contaminated),
            ("failed", self.failed()),
        ];
        // Most runs have none of these.
        let seldom = [("capped", self.capped), ("skipped", self.skipped)].into_iter().filter(|(_, count)| *count > 0);
        for (name, count) in rows.into_iter().chain(seldom) {
            write_count(out, name, count, "")?;
        }
        write_speed(out, self.documents(), self.text_bytes, elapsed)?;
        let bytes = benchmarks.bytes() as u64 / benchmarks.findable().max(1) as u64;
        write_count(out, "bytes/item", bytes, "")?;
        self.write_items(benchmarks, out)?;
        out.flush()
    }

    /// Writes how many items of each benchmark were found.
    fn write_items(&self, benchmarks: &Benchmarks, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "\n       items       found   too short  benchmark")?;
        for (file, path) in benchmarks.files().iter().enumerate() {
            let items = || benchmarks.items().iter().zip(&self.found).filter(|(item, _)| item.file == file);
            let count = |is: fn(&(&Item, &u64)) -> bool| HumanCount(items().filter(is).count() as u64).to_string();
            let all = count(|_| true);
            let (found, short) = (count(|(_, found)| **found > 0), count(|(item, _)| item.too_short.is_some()));
            writeln!(out, "{all:>12}{found:>12}{short:>12}  {}", path.display())?;
        }
        Ok(())
    }
}
