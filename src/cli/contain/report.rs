//! Outcomes -> lines of the files of contaminated documents and of items.

use hapax_core::TokenPlace;
use serde::Serialize;

use super::benchmarks::{Benchmarks, Item};
use super::checking::{Checked, Outcome};
use super::words::id;
use crate::cli::placed::{ErrorLine, PlaceFields};
use crate::types::ratio;

/// A document that contains items, or one whose lookup is not complete.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    #[serde(flatten)]
    place: PlaceFields<'a>,
    id: String,
    overlaps: Vec<OverlapLine<'a>>,
    /// The number of items that are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<usize>,
    complete: bool,
}

/// An item that a document contains.
#[derive(Serialize)]
struct OverlapLine<'a> {
    id: &'a str,
    #[serde(flatten)]
    place: PlaceFields<'a>,
    containment: f64,
    shared: usize,
    spans: &'a [TokenPlace],
}

/// An item of a benchmark.
#[derive(Serialize)]
struct ItemLine<'a> {
    kind: &'static str,
    #[serde(flatten)]
    place: PlaceFields<'a>,
    id: &'a str,
    status: &'static str,
    /// The number of documents that contain it.
    documents: u64,
}

/// Returns the lines of a chunk, in the order of the input.
pub(super) fn lines(checked: &Checked, benchmarks: &Benchmarks) -> impl Iterator<Item = Vec<u8>> {
    let failures = checked.failures().map(|(origin, reason)| {
        let line = ErrorLine::new(PlaceFields::of(origin).with_offset(origin), reason);
        (origin.number(), serde_json::to_vec(&line).expect("a line is JSON"))
    });
    let documents = checked.outcomes().filter_map(|(at, outcome)| {
        let line = document(checked, at, outcome, benchmarks)?;
        Some((checked.chunk().origins[at].number(), serde_json::to_vec(&line).expect("a line is JSON")))
    });
    let mut lines: Vec<_> = failures.chain(documents).collect();
    lines.sort_by_key(|(number, _)| *number);
    lines.into_iter().map(|(_, line)| line)
}

fn document<'a>(checked: &'a Checked, at: usize, outcome: &'a Outcome, benchmarks: &'a Benchmarks) -> Option<Line<'a>> {
    let (kind, contamination, complete) = match outcome {
        Outcome::Contaminated(found) => ("contaminated", Some(found), found.is_complete),
        Outcome::Clean { is_complete: false } => ("capped", None, false),
        Outcome::Clean { is_complete: true } | Outcome::Failed(_) => return None,
    };
    let (origin, line) = (&checked.chunk().origins[at], &checked.chunk().lines[at]);
    let listed = contamination.into_iter().flat_map(|found| found.found.iter().zip(&found.spans));
    let overlaps = listed.map(|(overlap, spans)| {
        let item = &benchmarks.items()[overlap.item as usize];
        OverlapLine {
            id: &item.id,
            place: PlaceFields::of(&item.origin),
            containment: ratio(overlap.containment()),
            shared: overlap.shared,
            spans,
        }
    });
    let more = contamination.map_or(0, |found| found.found.len() - found.spans.len());
    Some(Line {
        kind,
        place: PlaceFields::of(origin),
        id: id(line).map_or_else(|| origin.made_id(), |id| id.to_string()),
        overlaps: overlaps.collect(),
        more: Some(more).filter(|more| *more > 0),
        complete,
    })
}

/// Returns the line of an item that `documents` documents contain.
pub(super) fn item(item: &Item, documents: u64) -> Vec<u8> {
    let status = match (item.too_short, documents) {
        (Some(_), _) => "too_short",
        (None, 0) => "not_found",
        (None, _) => "found",
    };
    let line = ItemLine { kind: "item", place: PlaceFields::of(&item.origin), id: &item.id, status, documents };
    serde_json::to_vec(&line).expect("a line is JSON")
}
