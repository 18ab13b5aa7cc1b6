//! Decisions -> counts, a histogram of the similarities, and the failures that are shown.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::HumanCount;

use crate::cli::corpus::histogram::Histogram;
use crate::cli::placed::Unreadable;
use crate::cli::summary::{Failures, write_count, write_speed};
use crate::corpus::{Decided, Decision};
use crate::input::Origin;

/// The share of all documents above which a component counts as large, and the least number of its documents. In a small
/// corpus, a few duplicates are a large share.
const LARGE: f64 = 0.01;
const LARGE_DOCUMENTS: u64 = 100;

/// The results so far. Each document is counted once.
#[derive(Default)]
pub(super) struct Tally {
    kept: u64,
    near: u64,
    exact: u64,
    empty: u64,
    /// Documents that were not compared with all others. They are also counted above.
    capped: u64,
    /// Records without a page. They are not documents.
    skipped: u64,
    text_bytes: u64,
    /// The near duplicates by their similarity.
    similarities: Histogram,
    /// The components of at least two documents, if there are components.
    clusters: Option<u64>,
    /// The number of documents of the largest component.
    largest: u64,
    failures: Failures,
}

impl Tally {
    pub(super) fn documents(&self) -> u64 {
        self.kept + self.near + self.exact + self.empty + self.failed()
    }

    pub(super) fn failed(&self) -> u64 {
        self.failures.count()
    }

    /// Whether there are lines, but none is a document.
    pub(super) fn has_only_failures(&self) -> bool {
        self.failed() > 0 && self.documents() == self.failed()
    }

    pub(super) fn read(&mut self, text_bytes: u64, skipped: u64) {
        self.text_bytes += text_bytes;
        self.skipped += skipped;
    }

    pub(super) fn fail(&mut self, origin: &Origin, reason: &Unreadable) {
        self.failures.add(|| format!("{origin}: {}", reason.detail()));
    }

    pub(super) fn decided(&mut self, Decided { decision, unread }: &Decided) {
        self.capped += u64::from(*unread > 0);
        match decision {
            Decision::Kept => self.kept += 1,
            Decision::Empty => self.empty += 1,
            Decision::Duplicate(duplicate) if duplicate.same_content => self.exact += 1,
            Decision::Duplicate(duplicate) => {
                self.near += 1;
                self.similarities.add(duplicate.similarity.value);
            }
        }
    }

    /// Takes the numbers of documents of some components.
    pub(super) fn components(&mut self, sizes: impl Iterator<Item = u64>) {
        let clusters = self.clusters.get_or_insert_default();
        for size in sizes {
            *clusters += u64::from(size > 1);
            self.largest = self.largest.max(size);
        }
    }

    /// The number of near duplicates in each equal part of the similarities from 0 to 1.
    pub(super) fn similarities(&self) -> &[u64] {
        self.similarities.parts()
    }

    /// Returns a warning if one component has many documents, which are often not similar to each other.
    pub(super) fn warning(&self) -> Option<String> {
        let all = self.documents() - self.failed();
        let is_large = self.largest >= LARGE_DOCUMENTS && self.largest as f64 > all as f64 * LARGE;
        is_large.then(|| {
            let share = self.largest as f64 / all as f64 * 100.0;
            format!(
                "the largest component has {} documents, {share:.1} % of all, of which one is kept; a chain of duplicates \
                 may join documents that are not similar to each other. Compare with --clusters star",
                HumanCount(self.largest)
            )
        })
    }

    /// Writes the failures, for people.
    pub(super) fn write_failures(&self, words: &mut impl Write) -> io::Result<()> {
        self.failures.write(words)
    }

    /// Writes the counts, for people and scripts.
    pub(super) fn write_summary(&self, elapsed: Duration, out: &mut impl Write) -> io::Result<()> {
        let rows = [
            ("documents", self.documents()),
            ("kept", self.kept),
            ("near", self.near),
            ("exact", self.exact),
            ("empty", self.empty),
            ("failed", self.failed()),
        ];
        let components = self.clusters.map(|clusters| [("clusters", clusters), ("largest", self.largest)]);
        // Most runs have none of these.
        let seldom = [("capped", self.capped), ("skipped", self.skipped)].into_iter().filter(|(_, count)| *count > 0);
        for (name, count) in rows.into_iter().chain(components.into_iter().flatten()).chain(seldom) {
            write_count(out, name, count, "")?;
        }
        write_speed(out, self.documents(), self.text_bytes, elapsed)?;
        self.similarities.write("similarity of near duplicates", out)?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_large_component_of_many_documents_is_warned_about() {
        let warns = |largest: u64, others: u64| {
            let mut tally = Tally { kept: largest + others, ..Tally::default() };
            tally.components([largest].into_iter().chain((0..others).map(|_| 1)));
            tally.warning().is_some()
        };
        assert!(!warns(3, 0) && !warns(99, 1) && warns(100, 0) && warns(100, 9_899) && !warns(100, 9_900));
    }
}
