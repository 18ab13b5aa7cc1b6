//! A document that was stored elsewhere, and the record that it gets in the cluster.

use std::sync::Arc;

use hapax_core::{ContentHash, ShingleSet};

use super::super::first_verdict::{FirstMatch, FirstVerdict, Replaced};
use super::super::keys::FIRST;
use super::super::protocol::Ref;
use super::super::record::{Set, Stored};
use crate::types::{DocId, Metadata, Overlap, TimestampMs, VerdictKind};

/// A document that was stored elsewhere.
#[derive(Clone, Debug)]
pub struct FilledDocument {
    /// The number of the document where it comes from. It is higher than that of the document before.
    pub seq: u64,
    pub id: DocId,
    pub signature: Vec<u8>,
    /// Absent if only a signature was sent.
    pub content: Option<ContentHash>,
    pub shingles: Option<u64>,
    /// The shingles, if the collection stores them.
    pub set: Option<ShingleSet>,
    pub metadata: Option<Metadata>,
    pub first_seen: TimestampMs,
    /// When a document was first stored under the id.
    pub id_first_seen: TimestampMs,
    /// When the document was last seen.
    pub seen: TimestampMs,
    pub verdict: FilledVerdict,
}

/// The verdict of the insertion.
#[derive(Clone, Debug)]
pub struct FilledVerdict {
    pub kind: VerdictKind,
    pub threshold: f64,
    pub duplicate_of: Option<DocId>,
    pub candidates: u32,
    pub matches: Vec<FilledMatch>,
}

/// A match of the verdict.
#[derive(Clone, Copy, Debug)]
pub struct FilledMatch {
    pub seq: u64,
    /// The number of equal slots.
    pub matching: u32,
    pub same_content: bool,
    pub overlap: Option<Overlap>,
}

impl FilledDocument {
    /// Returns whether another document was stored under the id before.
    pub(super) fn is_of_older_id(&self) -> bool {
        self.id_first_seen != self.first_seen
    }

    /// Returns the document with the number `at`. `known` returns the number of a match. A match that is not known gets a
    /// number that no document has, as if the document was deleted. So the similarity of the best match is kept.
    pub(super) fn stored(self, at: Ref, has_ttl: bool, known: impl Fn(u64) -> Option<Ref>) -> Stored {
        // A record names the document that it has replaced. Nothing has this number, as if that one was removed.
        let replaced = Replaced { at: Ref(at.0 - 1), id_first_seen: self.id_first_seen };
        let replaced = self.is_of_older_id().then_some(replaced);
        let FilledVerdict { kind, threshold, duplicate_of, candidates, matches } = self.verdict;
        let matches = matches.into_iter().map(|FilledMatch { seq, matching, same_content, overlap }| {
            let at = known(seq).unwrap_or(Ref(FIRST));
            FirstMatch { at, matching, same_content, overlap }
        });
        let matches = matches.collect();
        Stored {
            id: self.id,
            signature: self.signature,
            content: self.content,
            shingles: self.shingles,
            set: self.set.map_or(Set::None, |set| Set::Read(Arc::new(set))),
            metadata: self.metadata.filter(|metadata| !metadata.is_empty()),
            first_seen: self.first_seen,
            seen: Some(self.seen).filter(|seen| has_ttl && *seen != self.first_seen),
            verdict: Some(FirstVerdict { kind, threshold, duplicate_of, candidates, matches, replaced }),
        }
    }
}
