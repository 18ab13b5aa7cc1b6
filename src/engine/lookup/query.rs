//! A prepared document -> the queries that look for similar documents: by signature for the index, by shingles for
//! `survivors`.

use std::collections::HashSet;

use crate::index::{Place, Query};
use crate::types::Seq;
use crate::verdicts::{Made, ShingleQuery, Terms};

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
    // The limit is at least this high if a document was mistaken for a copy of the query. There may then be many more
    // such documents.
    const MISTAKEN: usize = 1024;
    Query {
        signature: &made.signature,
        content: made.content_prefix(),
        own,
        matching_min,
        members_max: limit.max(if mistaken.is_empty() { 1 } else { MISTAKEN }),
        contents_max,
        scope: None,
        mistaken,
        explain: false,
    }
}

/// Returns the query by shingles, if shingles must be compared.
pub(crate) fn shingle_query(made: &Made, terms: Terms) -> Option<ShingleQuery<'_>> {
    made.kept.as_ref().filter(|_| terms.compares_shingles()).map(|kept| ShingleQuery::new(&kept.set, terms))
}
