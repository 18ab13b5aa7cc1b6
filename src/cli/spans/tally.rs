//! Documents and spans -> counts, and the failures that are shown.

use std::io::{self, Write};
use std::time::Duration;

use crate::cli::placed::Unreadable;
use crate::cli::summary::{Failures, write_count, write_speed};
use crate::corpus::Span;
use crate::input::Origin;

/// The results so far.
#[derive(Default)]
pub(super) struct Tally {
    documents: u64,
    with_spans: u64,
    spans: u64,
    /// The tokens of the documents that have a window.
    tokens: u64,
    /// The bytes that are in spans.
    span_bytes: u64,
    /// Records without a page. They are not documents.
    skipped: u64,
    text_bytes: u64,
    failures: Failures,
    /// The readings of the files after the first one.
    readings_more: u64,
}

impl Tally {
    pub(super) fn failed(&self) -> u64 {
        self.failures.count()
    }

    /// Whether there are lines, but none is a document.
    pub(super) fn has_only_failures(&self) -> bool {
        self.failed() > 0 && self.documents == 0
    }

    pub(super) fn read(&mut self, text_bytes: u64, skipped: u64) {
        self.text_bytes += text_bytes;
        self.skipped += skipped;
    }

    pub(super) fn fail(&mut self, origin: &Origin, reason: &Unreadable) {
        self.failures.add(|| format!("{origin}: {}", reason.detail()));
    }

    pub(super) fn document(&mut self, tokens: usize) {
        self.documents += 1;
        self.tokens += tokens as u64;
    }

    pub(super) fn read_again(&mut self) {
        self.readings_more += 1;
    }

    /// Counts the spans of a document.
    pub(super) fn spans(&mut self, spans: &[Span]) {
        self.with_spans += u64::from(!spans.is_empty());
        self.spans += spans.len() as u64;
        let mut end = 0;
        for span in spans {
            self.span_bytes += u64::from(span.to.saturating_sub(span.from.max(end)));
            end = end.max(span.to);
        }
    }

    /// Writes the failures, for people.
    pub(super) fn write_failures(&self, words: &mut impl Write) -> io::Result<()> {
        self.failures.write(words)
    }

    /// Writes the counts, for people and scripts.
    pub(super) fn write_summary(&self, elapsed: Duration, out: &mut impl Write) -> io::Result<()> {
        let rows = [
            ("documents", self.documents),
            ("with spans", self.with_spans),
            ("spans", self.spans),
            ("span bytes", self.span_bytes),
            ("tokens", self.tokens),
            ("failed", self.failed()),
        ];
        // Most runs have none of these.
        let skipped = Some(("skipped", self.skipped)).filter(|(_, count)| *count > 0);
        let readings = Some(("readings", self.readings_more + 1)).filter(|(_, count)| *count > 1);
        for (name, count) in rows.into_iter().chain(skipped).chain(readings) {
            write_count(out, name, count, "")?;
        }
        write_speed(out, self.documents, self.text_bytes, elapsed)?;
        out.flush()
    }
}
