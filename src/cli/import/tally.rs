//! The answers to an import -> counts, and the failures that are shown. Knows nothing of how documents are sent.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use indicatif::HumanCount;

use super::answer::Answer;
use crate::cli::placed::FOREIGN_ANSWER;
use crate::cli::summary::{Failures, write_count, write_speed};
use crate::input::{Origin, Reason};

/// Counts of documents by result. Each document is counted once.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    unique: u64,
    near: u64,
    exact: u64,
    empty: u64,
    unchanged: u64,
    updated: u64,
    /// Records without a page. They are not documents.
    skipped: u64,
}

/// The results so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: Counts,
    text_bytes: u64,
    failures: Failures,
    /// The documents that are not stored although nothing is wrong with them, such as items that are too short.
    not_stored: Failures,
    /// The number of failed documents for each reason, by the reason's code.
    reasons: BTreeMap<String, u64>,
    /// Whether a line that lacks a required field is among the failures.
    has_no_field: bool,
}

impl Tally {
    pub(super) fn documents(&self) -> u64 {
        let Counts { unique, near, exact, empty, unchanged, updated, skipped: _ } = self.counts;
        unique + near + exact + empty + unchanged + updated + self.failed()
    }

    pub(super) fn failed(&self) -> u64 {
        self.failures.count()
    }

    /// Counts decompressed bytes, and records without a page.
    pub(super) fn read(&mut self, text_bytes: u64, skipped: u64) {
        self.text_bytes += text_bytes;
        self.counts.skipped += skipped;
    }

    /// Counts a line or a record that is not a document.
    pub(super) fn unreadable(&mut self, origin: &Origin, reason: &Reason) {
        // Only the first line without a required field is shown. The others probably have the same cause.
        let known = matches!(reason, Reason::NoField(_)) && std::mem::replace(&mut self.has_no_field, true);
        if known {
            self.failures.add_hidden();
            self.count_reason(reason.code());
        } else {
            self.fail(origin, None, reason.code(), &reason.to_string());
        }
    }

    /// Counts a document whose answer is an error, or cannot be read.
    fn fail(&mut self, origin: &Origin, id: Option<&str>, code: &str, reason: &str) {
        self.count_reason(code);
        self.failures.add(|| format!("{origin}{}: {reason}", named(id)));
    }

    fn count_reason(&mut self, code: &str) {
        match self.reasons.get_mut(code) {
            Some(count) => *count += 1,
            None => drop(self.reasons.insert(code.to_owned(), 1)),
        }
    }

    /// Returns the reasons with their counts, the most frequent first.
    fn reasons(&self) -> String {
        let mut reasons: Vec<_> = self.reasons.iter().collect();
        // Reasons with equal counts stay in the order of their codes.
        reasons.sort_by_key(|&(_, &count)| std::cmp::Reverse(count));
        let reasons: Vec<_> = reasons.iter().map(|&(code, &count)| format!("{code} {}", HumanCount(count))).collect();
        if reasons.is_empty() { String::new() } else { format!("  ({})", reasons.join(", ")) }
    }

    /// Counts the answer to a document.
    pub(super) fn answer(&mut self, origin: &Origin, answer: Option<&Answer>) {
        let Some(answer) = answer else {
            return self.fail(origin, None, FOREIGN_ANSWER, "cannot read the server's answer");
        };
        if let Some(problem) = &answer.error {
            return self.fail(origin, answer.id.as_deref(), &problem.code, &problem.sentence());
        }
        if let Some(warning) = answer.warning.as_ref().filter(|_| !answer.stored) {
            self.not_stored.add(|| format!("{origin}{}: {warning}", named(answer.id.as_deref())));
        }
        let counts = &mut self.counts;
        match (answer.outcome.as_deref(), answer.verdict.as_deref()) {
            (Some("unchanged"), _) => counts.unchanged += 1,
            (Some("updated"), _) => counts.updated += 1,
            (_, Some("unique")) => counts.unique += 1,
            (_, Some("near_duplicate")) => counts.near += 1,
            (_, Some("exact_duplicate")) => counts.exact += 1,
            (_, Some("empty")) => counts.empty += 1,
            _ => self.fail(origin, answer.id.as_deref(), FOREIGN_ANSWER, "the server's answer has no verdict"),
        }
    }

    /// Writes the failures, for people.
    pub(super) fn write_failures(&self, words: &mut impl Write) -> io::Result<()> {
        self.not_stored.write_as("not stored", words)?;
        self.failures.write(words)
    }

    /// Writes the counts, for people and scripts.
    pub(super) fn write_summary(&self, elapsed: Duration, out: &mut impl Write) -> io::Result<()> {
        let counts = &self.counts;
        for (name, count) in [
            ("documents", self.documents()),
            ("unique", counts.unique),
            ("near", counts.near),
            ("exact", counts.exact),
            ("empty", counts.empty),
            ("unchanged", counts.unchanged),
            ("updated", counts.updated),
        ] {
            write_count(out, name, count, "")?;
        }
        write_count(out, "failed", self.failed(), self.reasons())?;
        // Only records of WARC files can be skipped.
        if counts.skipped > 0 {
            write_count(out, "skipped", counts.skipped, "")?;
        }
        write_speed(out, self.documents(), self.text_bytes, elapsed)?;
        out.flush()
    }
}

/// Returns an id for people.
fn named(id: Option<&str>) -> String {
    id.map(|id| format!(" (id {id:?})")).unwrap_or_default()
}
