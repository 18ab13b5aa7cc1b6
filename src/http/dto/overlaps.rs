//! The items of a containment collection that a text contains, as JSON.

use serde::Serialize;

use super::values;
use crate::collections::{OverlappingItem, Overlaps};
use crate::types::{DocId, ratio};

/// The answer of `POST …/overlaps`.
#[derive(Debug, Serialize)]
pub struct OverlapsBody {
    overlaps: Vec<OverlapBody>,
    found: u64,
    complete: bool,
}

#[derive(Debug, Serialize)]
struct OverlapBody {
    #[serde(serialize_with = "values::id")]
    id: DocId,
    containment: f64,
    shared: u64,
    ngrams: u64,
    spans: Vec<(u32, u32)>,
    #[serde(skip_serializing_if = "is_zero")]
    spans_omitted: u64,
}

impl From<Overlaps> for OverlapsBody {
    fn from(overlaps: Overlaps) -> Self {
        let Overlaps { items, found, is_complete } = overlaps;
        Self { overlaps: items.into_iter().filter_map(OverlapBody::new).collect(), found, complete: is_complete }
    }
}

impl OverlapBody {
    fn new(item: OverlappingItem) -> Option<Self> {
        let OverlappingItem { id, containment, shared, ngrams, spans, spans_omitted } = item;
        Some(Self { id: id?, containment: ratio(containment), shared, ngrams, spans, spans_omitted })
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
