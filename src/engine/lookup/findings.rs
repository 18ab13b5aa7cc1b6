//! A judgement and the records of its documents -> the facts that a verdict states. A document without a mention
//! was deleted meanwhile, and is left out. `verdicts/verdict.rs` puts the facts into words.

use std::cmp::Reverse;

use hapax_core::ContentHash;

use super::judgement::Judgement;
use super::lookup::Lookup;
use super::records::{Mention, Mentions};
use crate::store::StoredMatch;
use crate::types::{Below, BucketLook, Explanation, Metadata, Revisit, Seq};
use crate::verdicts::{Cited, Findings};

/// Returns the findings of a lookup. `content` is the content hash of the document that is looked up.
pub(crate) fn findings(
    lookup: &Lookup,
    judgement: &Judgement,
    mentions: &Mentions,
    content: Option<ContentHash>,
    limit: usize,
    metadata: impl Fn(Seq, &Mention) -> Option<Metadata>,
) -> Findings {
    let cited = judgement.cited(limit).iter().filter_map(|ranked| {
        let mention = mentions.get(ranked.found.seq)?;
        let metadata = metadata(ranked.found.seq, mention);
        Some(Cited {
            id: mention.identity.id.clone(),
            first_seen: mention.identity.first_seen,
            matching: ranked.found.matching,
            same_content: ranked.found.same_content && content == Some(mention.identity.content),
            overlap: ranked.overlap,
            metadata_omitted: metadata.is_none() && mention.metadata_left,
            metadata,
        })
    });
    Findings::of(lookup.preparer().spec(), cited, limit)
}

/// Returns the best of the revisits that `revisit` returns for the listed matches.
pub(crate) fn revisit(
    judgement: &Judgement,
    mentions: &Mentions,
    limit: usize,
    revisit: impl Fn(Seq, &Mention) -> Option<Revisit>,
) -> Option<Revisit> {
    let seqs = judgement.cited(limit).iter().map(|ranked| ranked.found.seq);
    Revisit::best(seqs.filter_map(|seq| revisit(seq, mentions.get(seq)?)))
}

/// Returns the details of the lookup, if the query asked for them.
pub(crate) fn explanation(lookup: &Lookup, judgement: &Judgement, mentions: &Mentions) -> Option<Box<Explanation>> {
    let examined = judgement.examined()?;
    let sizes = examined.bucket_documents.iter().enumerate().filter(|(_, documents)| **documents > 0);
    let mut buckets: Vec<BucketLook> =
        sizes.map(|(band, &documents)| BucketLook { band: band as u32, documents: documents as u64 }).collect();
    let bands_hit = buckets.len() as u32;
    buckets.sort_by_key(|bucket| Reverse(bucket.documents));
    buckets.truncate(Explanation::BUCKETS_MAX);
    buckets.sort_by_key(|bucket| bucket.band);
    let below = judgement.below().iter().filter_map(|ranked| {
        let id = mentions.get(ranked.found.seq)?.identity.id.clone();
        Some(Below { id, similarity: lookup.similarity(ranked.found.matching, false, ranked.overlap) })
    });
    let mut below: Vec<Below> = below.collect();
    below.sort_by(|a, b| b.similarity.value.total_cmp(&a.similarity.value));
    below.truncate(Explanation::BELOW_MAX);
    Some(Box::new(Explanation {
        bands: examined.banding.bands(),
        rows: examined.banding.rows(),
        bands_hit,
        buckets,
        found: examined.seen,
        hidden: judgement.hidden(),
        below,
    }))
}

/// Returns a match of a stored verdict, if the matching document still exists.
pub(crate) fn cited_again(found: &StoredMatch, mentions: &Mentions, with_metadata: bool) -> Option<Cited> {
    let mention = mentions.get(found.seq)?;
    Some(Cited {
        id: mention.identity.id.clone(),
        first_seen: mention.identity.first_seen,
        matching: found.matching,
        same_content: found.exact,
        overlap: found.overlap,
        metadata: mention.metadata.clone().filter(|_| with_metadata),
        metadata_omitted: mention.metadata_left,
    })
}
