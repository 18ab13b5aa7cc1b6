//! A record of a local collection -> a document for the cluster, and a count of what the cluster does not have.

use crate::redis::{FilledDocument, FilledMatch, FilledVerdict};
use crate::store::{Record, StoredMatch};
use crate::verdicts::set_of;

/// How many documents have something that collections in a cluster do not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Links. They are left out as a whole.
    pub links: u64,
    /// Rows without a signature. Their texts were empty.
    pub empty: u64,
    pub labels: u64,
    pub dates: u64,
    pub payload_digests: u64,
    /// Hashes of pages.
    pub html_hashes: u64,
}

impl LeftOut {
    /// Returns the counts for one record.
    pub(super) fn of(record: &Record) -> Self {
        if record.linked {
            return Self { links: 1, ..Self::default() };
        }
        Self {
            links: 0,
            empty: 0,
            labels: record.labels.is_some().into(),
            dates: record.capture.date.is_some().into(),
            payload_digests: record.capture.digest.is_some().into(),
            html_hashes: record.page.is_some().into(),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            links: self.links + other.links,
            empty: self.empty + other.empty,
            labels: self.labels + other.labels,
            dates: self.dates + other.dates,
            payload_digests: self.payload_digests + other.payload_digests,
            html_hashes: self.html_hashes + other.html_hashes,
        }
    }
}

/// Returns the document for the cluster. `None` for a link.
pub(super) fn document_of(record: Record) -> Option<FilledDocument> {
    if record.linked {
        return None;
    }
    let verdict = record.verdict;
    let matches = verdict.matches.into_iter().map(|StoredMatch { seq, matching, exact, overlap }| FilledMatch {
        seq: seq.0,
        matching,
        same_content: exact,
        overlap,
    });
    Some(FilledDocument {
        seq: record.seq.0,
        id: record.id,
        signature: record.signature,
        content: (!record.given).then_some(record.content),
        shingles: record.shingles,
        set: record.payload.and_then(|payload| set_of(None, &payload)),
        metadata: record.metadata,
        first_seen: record.first_seen,
        id_first_seen: record.id_first_seen,
        seen: record.seen,
        verdict: FilledVerdict {
            kind: verdict.kind,
            threshold: verdict.threshold,
            duplicate_of: verdict.duplicate_of,
            candidates: verdict.candidates,
            matches: matches.collect(),
        },
    })
}
