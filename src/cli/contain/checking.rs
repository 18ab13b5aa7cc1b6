//! The documents of a chunk -> the items that each of them contains, with the places in its text.

use hapax_core::TokenPlace;
use rayon::prelude::*;

use super::benchmarks::Benchmarks;
use crate::cli::placed::Unreadable;
use crate::grams::{FoundGrams, LookupScratch, Overlap, Overlaps, Passages, passages};
use crate::input::{Chunk, Origin};

/// The most items that are listed for one document. All are counted.
pub(super) const LISTED_MAX: usize = 100;

/// A chunk whose documents were looked up.
pub(super) struct Checked {
    /// The number of its file.
    file: usize,
    chunk: Chunk,
    /// One for each document.
    outcomes: Vec<Outcome>,
}

/// The result of looking up a document.
pub(super) enum Outcome {
    Clean {
        /// Whether no item is missing.
        is_complete: bool,
    },
    Contaminated(Contamination),
    /// It has no words that can be looked up.
    Failed(Unreadable),
}

/// The items that a document contains.
pub(super) struct Contamination {
    /// All items.
    pub found: Vec<Overlap>,
    /// The places of the first [`LISTED_MAX`] items in the text, in bytes.
    pub spans: Vec<Vec<TokenPlace>>,
    /// Whether no item is missing.
    pub is_complete: bool,
}

/// The buffers of a thread.
#[derive(Default)]
struct Scratch {
    hashes: Vec<u64>,
    lookup: LookupScratch,
}

impl Checked {
    pub(super) fn new(file: usize, chunk: Chunk, benchmarks: &Benchmarks, containment_min: f64) -> Self {
        let look_up = |scratch: &mut Scratch, line: &Vec<u8>| outcome(line, benchmarks, containment_min, scratch);
        let outcomes = chunk.lines.par_iter().map_init(Scratch::default, look_up).collect();
        Self { file, chunk, outcomes }
    }

    pub(super) fn file(&self) -> usize {
        self.file
    }

    /// The chunk that was read.
    pub(super) fn chunk(&self) -> &Chunk {
        &self.chunk
    }

    /// The documents with their outcomes.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = (usize, &Outcome)> {
        self.outcomes.iter().enumerate()
    }

    /// Returns the places in the chunk of the documents that are kept.
    pub(super) fn kept(&self) -> impl Iterator<Item = usize> {
        let is_kept = |outcome: &Outcome| matches!(outcome, Outcome::Clean { .. });
        self.outcomes().filter(move |(_, outcome)| is_kept(outcome)).map(|(at, _)| at)
    }

    /// Returns the lines from which no document was made, and the documents without words.
    pub(super) fn failures(&self) -> impl Iterator<Item = (&Origin, Unreadable)> {
        let unreadable = self.chunk.failures.iter().map(|(origin, reason)| (origin, Unreadable::from(reason)));
        unreadable.chain(self.outcomes().filter_map(|(at, outcome)| match outcome {
            Outcome::Failed(reason) => Some((&self.chunk.origins[at], reason.clone())),
            Outcome::Clean { .. } | Outcome::Contaminated(_) => None,
        }))
    }
}

fn outcome(line: &[u8], benchmarks: &Benchmarks, containment_min: f64, scratch: &mut Scratch) -> Outcome {
    let words = benchmarks.words();
    let text = match words.text(line) {
        Ok(text) => text,
        Err(reason) => return Outcome::Failed(reason),
    };
    words.hash(&text, &mut scratch.hashes);
    let (overlaps, grams) = benchmarks.index().look_up(&scratch.hashes, containment_min, &mut scratch.lookup);
    let is_complete = overlaps.is_complete();
    if overlaps.found().is_empty() {
        return Outcome::Clean { is_complete };
    }
    let spans = spans((&overlaps, &grams), benchmarks, (&text, &scratch.hashes));
    Outcome::Contaminated(Contamination { found: overlaps.found().to_vec(), spans, is_complete })
}

/// Returns where the text has the items.
fn spans(
    (overlaps, grams): (&Overlaps, &FoundGrams),
    benchmarks: &Benchmarks,
    (text, hashes): (&str, &[u64]),
) -> Vec<Vec<TokenPlace>> {
    let (index, words) = (benchmarks.index(), benchmarks.words());
    let listed = overlaps.found().iter().take(LISTED_MAX);
    let items: Vec<_> = listed.filter_map(|overlap| index.item(overlap.item).cloned()).collect();
    let places = words.places(text);
    let spans = |Passages { runs, .. }| {
        let runs: Vec<std::ops::Range<usize>> = runs;
        runs.into_iter().map(|run| (places[run.start].0, places[run.end - 1].1)).collect()
    };
    passages(words.size(), &items, hashes, grams, usize::MAX).into_iter().map(spans).collect()
}
