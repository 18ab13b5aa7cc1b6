//! A text -> the items of a containment collection that it contains, with their ids and the passages of the text that
//! they share. Reads only durable data. Never writes.

use std::cell::RefCell;
use std::sync::Arc;

use hapax_core::{Pipeline, SignScratch, TokenLocator};

use super::items::{FoundItem, FoundItems, Items};
use super::lookup::Lookup;
use super::records::Mentions;
use crate::cpu::WhenFull;
use crate::engine::long_work::beside;
use crate::types::Seq;
use crate::verdicts::{CollectionError, OverlapOptions, OverlappingItem, Overlaps, Result};

thread_local! {
    static SCRATCH: RefCell<SignScratch> = RefCell::default();
}

/// Finds the items that a text contains.
pub(crate) async fn overlaps(
    lookup: &Arc<Lookup>,
    text: String,
    options: OverlapOptions,
    when_full: WhenFull,
) -> Result<Overlaps> {
    let (its, bytes) = (Arc::clone(lookup), text.len());
    let work = move || {
        let parts = its.items().zip(its.preparer().pipeline());
        let (items, pipeline) = parts.ok_or_else(CollectionError::closed)?;
        Ok(look_up(items, pipeline, &text, options))
    };
    let (seqs, overlaps) = lookup.preparer().compute(bytes, when_full, work).await?;
    beside(lookup, move |lookup| named(lookup, &seqs, overlaps)).await
}

/// Returns the items without their ids, and the `seq` of each.
fn look_up(items: &Items, pipeline: &Pipeline, text: &str, options: OverlapOptions) -> (Vec<Seq>, Overlaps) {
    let OverlapOptions { containment_min, limit } = options;
    let mut tokens = Vec::new();
    SCRATCH.with_borrow_mut(|scratch| pipeline.token_hashes(scratch, text, &mut tokens));
    let FoundItems { best, count, is_complete } = items.look_up(&tokens, containment_min, limit);
    let mut locator = TokenLocator::new(pipeline);
    if !best.is_empty() {
        locator.locate(text);
    }
    let places = locator.places();
    let item = |found: &FoundItem| {
        let span = |run: &std::ops::Range<usize>| (places[run.start].0, places[run.end - 1].1);
        OverlappingItem {
            id: None,
            containment: found.overlap.containment(),
            shared: found.overlap.shared as u64,
            ngrams: found.overlap.grams as u64,
            spans: found.passages.runs.iter().map(span).collect(),
            spans_omitted: found.passages.omitted as u64,
        }
    };
    let overlaps = Overlaps { items: best.iter().map(item).collect(), found: count as u64, is_complete };
    (best.into_iter().map(|found| found.seq).collect(), overlaps)
}

/// Adds the ids. An item that was deleted meanwhile is left out.
fn named(lookup: &Lookup, seqs: &[Seq], mut overlaps: Overlaps) -> Result<Overlaps> {
    let (records, mut mentions) = (lookup.records(), Mentions::default());
    let missing = records.recall(&mut mentions, seqs.iter().copied(), false);
    records.load(&mut mentions, &missing, None, false)?;
    for (item, &seq) in overlaps.items.iter_mut().zip(seqs) {
        item.id = mentions.get(seq).map(|mention| mention.identity.id.clone());
    }
    let listed = overlaps.items.len();
    overlaps.items.retain(|item| item.id.is_some());
    overlaps.found -= (listed - overlaps.items.len()) as u64;
    Ok(overlaps)
}
