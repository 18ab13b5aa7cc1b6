//! Signed documents -> an index of them, for as long as a process runs; and whether two documents are similar. No document
//! is looked for by its id, and none is removed.

use hapax_core::ShingleSet;

use crate::index::{Entry, Index, IndexOptions, LabelSet, PLACES_MAX};
use crate::types::{Overlap, Seq, TimestampMs};
use crate::verdicts::{CollectionError, Made, Result, Settings, ShingleQuery, Terms};

pub(super) fn empty_index(settings: &Settings) -> Index {
    Index::new(&IndexOptions {
        shape: settings.spec.shape(),
        banding: settings.banding,
        id_fingerprint_bits: u64::BITS,
        seed: None,
    })
}

/// Adds document `number` to an index; the first one has the number 0. Fails if the index is full.
pub(super) fn enter(index: &Index, number: usize, made: &Made) -> Result<()> {
    let seq = seq(number);
    let entry = Entry {
        seq,
        id_fingerprint: seq.0,
        content: made.content_prefix(),
        linked: false,
        signature: &made.signature,
        labels: LabelSet::NONE,
        last_seen: TimestampMs(0),
    };
    index.enter(entry).ok_or_else(too_many).map(drop)
}

pub(super) fn too_many() -> CollectionError {
    let detail = format!("are too many; at most {PLACES_MAX} documents can be kept");
    CollectionError::Invalid { field: "documents", detail }
}

/// Returns the position of a document in the index. Positions begin with 1.
pub(super) fn seq(number: usize) -> Seq {
    Seq(number as u64 + 1)
}

pub(super) fn number(seq: Seq) -> usize {
    seq.0 as usize - 1
}

/// Returns the shingles of a document, if they are compared.
pub(super) fn compared_set(made: &Made, terms: Terms) -> Option<&ShingleSet> {
    made.kept.as_ref().filter(|_| terms.compares_shingles()).map(|kept| &*kept.set)
}

/// Decides whether a document with `matching` equal slots is similar to the one with the shingles `set`. If the signatures
/// leave a doubt, compares the shingles, and returns the overlap. `None`: the two are not similar.
pub(super) fn confirmed<'a>(
    terms: Terms,
    set: Option<&ShingleSet>,
    matching: u32,
    other: impl FnOnce() -> &'a ShingleSet,
) -> Option<Option<Overlap>> {
    let Some(set) = set.filter(|_| matching < terms.certain_min) else { return Some(None) };
    let overlap = ShingleQuery::new(set, terms).compare(other())?;
    terms.reached_by(overlap).then_some(Some(overlap))
}
