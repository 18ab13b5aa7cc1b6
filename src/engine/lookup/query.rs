//! A prepared document -> the queries that look for similar documents: by signature for the index, by shingles for
//! `survivors`.

use std::collections::HashSet;

use crate::index::{Place, Query};
use crate::types::{Seq, Verify};
use crate::verdicts::{Made, Settings, ShingleQuery};

/// Makes the query for documents similar to `made`. `contents_max` is given if the survivors will be compared by their
/// shingles.
pub(crate) fn query<'a>(
    made: &'a Made,
    own: Option<Place>,
    matching_min: u32,
    limit: usize,
    contents_max: Option<usize>,
    mistaken: &'a HashSet<Seq>,
) -> Query<'a> {
    // The limit after the first mistaken document: if one has been mistaken, many may be.
    const MISTAKEN: usize = 1024;
    Query {
        signature: &made.signature,
        content: made.content_prefix(),
        own,
        matching_min,
        members_max: limit.max(if mistaken.is_empty() { 1 } else { MISTAKEN }),
        contents_max,
        mistaken,
        explain: false,
    }
}

/// Returns the query by shingles, if shingles decide.
pub(crate) fn shingle_query<'a>(made: &'a Made, settings: &Settings, threshold: f64) -> Option<ShingleQuery<'a>> {
    let exact = settings.verify == Verify::Exact;
    made.kept.as_ref().filter(|_| exact).map(|kept| ShingleQuery::new(&kept.set, threshold))
}
