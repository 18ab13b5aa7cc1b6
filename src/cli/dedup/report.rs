//! Decisions -> lines of the report, in the order of the input.

use anyhow::{Error, Result};
use serde::Serialize;

use crate::cli::corpus::named::Named;
use crate::cli::placed::{ErrorLine, PlaceFields, Unreadable};
use crate::cli::spill::line_runs::{LineKey, LineRuns};
use crate::corpus::Duplicate;
use crate::input::Origin;
use crate::types::{Similarity, VerdictKind, ratio};

/// The lines that have not been written yet.
pub(super) struct Report {
    is_wanted: bool,
    lines: Vec<(LineKey, Vec<u8>)>,
    /// The lines, if they wait on disk.
    runs: Option<LineRuns>,
    /// The first error of writing a run.
    failure: Option<Error>,
}

/// The kept document that a document repeats.
pub(super) struct Original<'a> {
    /// The number of the file of the kept document.
    pub file: usize,
    pub kept: &'a Named,
    /// The document that the similarity belongs to, if it may be another one.
    pub similar_to: Option<&'a Named>,
    pub duplicate: Duplicate,
}

/// A document that is not kept, or one that was not compared with all others.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    #[serde(flatten)]
    place: PlaceFields<'a>,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    #[serde(flatten)]
    original: Option<OriginalFields<'a>>,
    /// The number of documents that were not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    unread: Option<u64>,
}

/// The kept document that a document repeats.
#[derive(Serialize)]
struct OriginalFields<'a> {
    duplicate_of: String,
    original: PlaceFields<'a>,
    /// The document that the similarity belongs to, if it may be another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    similar_to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    similar: Option<PlaceFields<'a>>,
    similarity: f64,
    low: f64,
    high: f64,
    method: &'static str,
}

impl Report {
    /// `runs`: given if the lines do not wait in memory.
    pub(super) fn new(is_wanted: bool, runs: Option<LineRuns>) -> Self {
        Self { is_wanted, lines: Vec::new(), runs, failure: None }
    }

    /// Fails if a line could not be written to the disk.
    pub(super) fn check(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Passes the lines that were added since the last call to `take`, in the order of the input.
    pub(super) fn each(&mut self, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.check()?;
        if let Some(runs) = self.runs.take() {
            return runs.each(take);
        }
        self.lines.sort_by_key(|(place, _)| *place);
        std::mem::take(&mut self.lines).into_iter().try_for_each(|(_, line)| take(&line))
    }

    pub(super) fn failed(&mut self, file: usize, origin: &Origin, reason: Unreadable) {
        self.add(file, origin, &ErrorLine::new(PlaceFields::of(origin).with_offset(origin), reason));
    }

    /// Adds a document that is kept, if it was not compared with all others.
    pub(super) fn kept(&mut self, file: usize, named: &Named, unread: u64) {
        if unread > 0 {
            self.add(file, &named.origin, &Line { unread: Some(unread), ..Line::of("capped", named) });
        }
    }

    pub(super) fn empty(&mut self, file: usize, named: &Named) {
        let line = Line { verdict: Some(VerdictKind::Empty.as_str()), ..Line::of("dropped", named) };
        self.add(file, &named.origin, &line);
    }

    pub(super) fn duplicate(&mut self, file: usize, named: &Named, original: &Original<'_>, unread: u64) {
        let Original { kept, similar_to, duplicate, .. } = original;
        let kind = VerdictKind::of_match(duplicate.same_content);
        let Similarity { value, low, high, method } = duplicate.similarity;
        let original = OriginalFields {
            duplicate_of: kept.id(),
            original: PlaceFields::of(&kept.origin),
            similar_to: similar_to.map(Named::id),
            similar: similar_to.map(|named| PlaceFields::of(&named.origin)),
            similarity: ratio(value),
            low: ratio(low),
            high: ratio(high),
            method: method.as_str(),
        };
        let (verdict, original) = (Some(kind.as_str()), Some(original));
        let unread = Some(unread).filter(|&unread| unread > 0);
        self.add(file, &named.origin, &Line { verdict, original, unread, ..Line::of("dropped", named) });
    }

    fn add(&mut self, file: usize, origin: &Origin, line: &impl Serialize) {
        if !self.is_wanted || self.failure.is_some() {
            return;
        }
        let line = ([file as u64, origin.number(), 0], serde_json::to_vec(line).expect("the report is JSON"));
        match &mut self.runs {
            Some(runs) => self.failure = runs.add([line]).err(),
            None => self.lines.push(line),
        }
    }
}

impl<'a> Line<'a> {
    fn of(kind: &'static str, named: &'a Named) -> Self {
        Self {
            kind,
            place: PlaceFields::of(&named.origin),
            id: named.id(),
            verdict: None,
            original: None,
            unread: None,
        }
    }
}
