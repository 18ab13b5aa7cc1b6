//! The passages of a text that consist of n-grams of an item. They are found only for the items that are shown, and without
//! the index.

use std::ops::Range;
use std::sync::Arc;

use hapax_core::window_hashes;

use super::index::FoundGrams;
use super::item::{GramSize, ItemGrams};

/// The passages of one item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passages {
    /// The longest runs of tokens that n-grams of the item cover, in order.
    pub runs: Vec<Range<usize>>,
    /// The number of further runs.
    pub omitted: usize,
}

/// Returns the passages of each of these items, at most `runs_max` of each. `grams`: the n-grams of the text that are in the
/// index of the items.
pub fn passages(
    size: GramSize,
    items: &[Arc<ItemGrams>],
    token_hashes: &[u64],
    grams: &FoundGrams,
    runs_max: usize,
) -> Vec<Passages> {
    let mut passages = vec![Passages::default(); items.len()];
    let mut windows = Vec::new();
    let mut lengths: Vec<usize> = items.iter().map(|item| item.tokens()).collect();
    lengths.sort_unstable();
    lengths.dedup();
    for tokens in lengths {
        window_hashes(token_hashes, tokens, &mut windows);
        let places = windows.iter().zip(0u32..).filter(|(gram, _)| tokens < size.tokens() || grams.has(**gram));
        let mut places: Vec<(u64, u32)> = places.map(|(&gram, at)| (gram, at)).collect();
        places.sort_unstable();
        for (item, passages) in items.iter().zip(&mut passages).filter(|(item, _)| item.tokens() == tokens) {
            let mut at: Vec<u32> = item.hashes().iter().flat_map(|&gram| places_of(&places, gram)).collect();
            at.sort_unstable();
            *passages = joined(&at, tokens, runs_max);
        }
    }
    passages
}

fn places_of(places: &[(u64, u32)], gram: u64) -> impl Iterator<Item = u32> {
    let first = places.partition_point(|(other, _)| *other < gram);
    places[first..].iter().take_while(move |(other, _)| *other == gram).map(|(_, at)| *at)
}

/// Joins n-grams that overlap or follow each other.
fn joined(at: &[u32], tokens: usize, runs_max: usize) -> Passages {
    let (mut passages, mut last) = (Passages::default(), None::<Range<usize>>);
    let mut add = |run: Range<usize>| match passages.runs.len() < runs_max {
        true => passages.runs.push(run),
        false => passages.omitted += 1,
    };
    for &from in at {
        let (from, to) = (from as usize, from as usize + tokens);
        match &mut last {
            Some(run) if from <= run.end => run.end = to,
            _ => last.replace(from..to).into_iter().for_each(&mut add),
        }
    }
    last.into_iter().for_each(add);
    passages
}
