//! Comparisons and pairs -> counts, a histogram of the similarities, and the failures that are shown.

use std::io::{self, Write};
use std::time::Duration;

use hapax_core::tuning::candidate_probability;
use hapax_core::{Banding, SignatureShape};

use crate::cli::corpus::histogram::Histogram;
use crate::cli::placed::Unreadable;
use crate::cli::summary::{Failures, write_count, write_speed};
use crate::corpus::SimilarTo;
use crate::input::Origin;

/// The results so far.
pub(super) struct Tally {
    banding: (Banding, SignatureShape),
    /// Documents with tokens, except those of `against`.
    documents: u64,
    /// `None`: all pairs are of one corpus.
    against: Option<u64>,
    empty: u64,
    /// Records without a page. They are not documents.
    skipped: u64,
    text_bytes: u64,
    failures: Failures,
    /// The pairs that could be similar: of each document with each earlier one, or of two sets.
    all: u128,
    comparisons: Comparisons,
    similarities: Histogram,
}

#[derive(Default)]
struct Comparisons {
    pairs: u64,
    compared: u64,
    below: u64,
    /// The pairs that were probably not found, because they share no band.
    missed: f64,
}

impl Tally {
    pub(super) fn new(banding: (Banding, SignatureShape)) -> Self {
        Self {
            banding,
            documents: 0,
            against: None,
            empty: 0,
            skipped: 0,
            text_bytes: 0,
            failures: Failures::default(),
            all: 0,
            comparisons: Comparisons::default(),
            similarities: Histogram::default(),
        }
    }

    /// The documents that were read, and the lines that are none.
    pub(super) fn documents(&self) -> u64 {
        self.documents + self.against.unwrap_or_default() + self.empty + self.failed()
    }

    pub(super) fn failed(&self) -> u64 {
        self.failures.count()
    }

    /// Whether there are lines, but none is a document.
    pub(super) fn has_only_failures(&self) -> bool {
        self.failed() > 0 && self.documents() == self.failed()
    }

    pub(super) fn similarities(&self) -> &[u64] {
        self.similarities.parts()
    }

    pub(super) fn read(&mut self, text_bytes: u64, skipped: u64) {
        self.text_bytes += text_bytes;
        self.skipped += skipped;
    }

    pub(super) fn fail(&mut self, origin: &Origin, reason: &Unreadable) {
        self.failures.add(|| format!("{origin}: {}", reason.detail()));
    }

    /// Counts a document that is looked for among `others` ones. `has_tokens`: whether it can be similar to any.
    pub(super) fn document(&mut self, has_tokens: bool, others: usize) {
        if has_tokens {
            self.documents += 1;
            self.all += others as u128;
        } else {
            self.empty += 1;
        }
    }

    /// Counts a document with which others are compared.
    pub(super) fn against(&mut self, has_tokens: bool) {
        *self.against.get_or_insert(0) += u64::from(has_tokens);
        self.empty += u64::from(!has_tokens);
    }

    /// Counts the pairs of a document.
    pub(super) fn compared(&mut self, SimilarTo { found, compared, below }: &SimilarTo) {
        let (banding, shape) = self.banding;
        let comparisons = &mut self.comparisons;
        comparisons.compared += compared;
        comparisons.below += below;
        comparisons.pairs += found.len() as u64;
        for similar in found {
            let value = similar.similarity.value;
            self.similarities.add(value);
            // Documents with equal contents share all bands.
            if !similar.same_content {
                // If a pair of this similarity is found once in N times, N - 1 others are missed for each one found.
                comparisons.missed += 1.0 / candidate_probability(value, banding, shape) - 1.0;
            }
        }
    }

    /// Writes the failures, for people.
    pub(super) fn write_failures(&self, words: &mut impl Write) -> io::Result<()> {
        self.failures.write(words)
    }

    /// Writes the counts, for people and scripts.
    pub(super) fn write_summary(&self, elapsed: Duration, out: &mut impl Write) -> io::Result<()> {
        write_count(out, "documents", self.documents, "")?;
        if let Some(against) = self.against {
            write_count(out, "against", against, "")?;
        }
        write_count(out, "empty", self.empty, "")?;
        write_count(out, "failed", self.failed(), "")?;
        if self.skipped > 0 {
            write_count(out, "skipped", self.skipped, "")?;
        }
        self.write_comparisons(out)?;
        write_speed(out, self.documents(), self.text_bytes, elapsed)?;
        self.similarities.write("similarity of pairs", out)?;
        out.flush()
    }

    fn write_comparisons(&self, out: &mut impl Write) -> io::Result<()> {
        let Comparisons { pairs, compared, below, missed } = self.comparisons;
        let all = u64::try_from(self.all).unwrap_or(u64::MAX);
        let saved = all.saturating_sub(compared);
        let missed_share = percent(missed, missed + pairs as f64);
        let saved_share = percent(saved as f64, all as f64);
        let false_share = percent(below as f64, compared as f64);
        write_count(out, "pairs", pairs, "")?;
        let missed = missed.round() as u64;
        write_count(out, "missed", missed, format_args!("  {missed_share} of the similar pairs, expected"))?;
        write_count(out, "all pairs", all, "")?;
        write_count(out, "compared", compared, "")?;
        write_count(out, "saved", saved, format_args!("  {saved_share} of all pairs"))?;
        write_count(out, "false", below, format_args!("  {false_share} of the compared"))
    }
}

fn percent(part: f64, whole: f64) -> String {
    let share = if whole > 0.0 { part / whole } else { 0.0 };
    format!("{:.2} %", 100.0 * share)
}
