//! A judgement and the records of its documents -> the facts that a verdict states. A document whose record is no
//! longer there was deleted meanwhile, and is left out. `verdicts/wording.rs` puts the facts into words.

use hapax_core::ContentHash;

use super::judgement::Judgement;
use super::records::Heads;
use super::sources::Lookup;
use crate::store::{Head, StoredMatch};
use crate::types::Metadata;
use crate::verdicts::{Cited, Findings};

/// Returns what was found. `content` is the content hash of the document that is looked up.
pub(crate) fn findings(
    lookup: &Lookup,
    judgement: &Judgement,
    heads: &Heads,
    content: Option<ContentHash>,
    limit: usize,
    metadata: impl Fn(&Head) -> Option<Metadata>,
) -> Findings {
    let cited = judgement.cited(limit).iter().filter_map(|ranked| {
        let head = heads.get(ranked.found.seq)?;
        let metadata = metadata(head);
        Some(Cited {
            id: head.id.clone(),
            first_seen: head.first_seen,
            matching: ranked.found.matching,
            same_content: ranked.found.same_content && content == Some(head.content),
            overlap: ranked.overlap,
            metadata_omitted: metadata.is_none() && head.metadata_left,
            metadata,
        })
    });
    Findings::of(lookup.preparer().spec(), cited, limit)
}

/// Returns a match of a stored verdict, if the matching document still exists.
pub(crate) fn cited_again(found: &StoredMatch, heads: &Heads, with_metadata: bool) -> Option<Cited> {
    let head = heads.get(found.seq)?;
    Some(Cited {
        id: head.id.clone(),
        first_seen: head.first_seen,
        matching: found.matching,
        same_content: found.exact,
        overlap: found.overlap,
        metadata: head.metadata.clone().filter(|_| with_metadata),
        metadata_omitted: head.metadata_left,
    })
}
