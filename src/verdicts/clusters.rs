//! Clusters in the form of pages for clients.

use super::cursor::Cursor;
use crate::types::{DocId, ID_JSON_BYTES_MAX, Seq, Similarity, TimestampMs, fitting};

/// The largest possible size of a document as JSON without its ids, in bytes.
const MEMBER_BYTES: usize = 256;

/// A document of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterMember {
    pub id: DocId,
    /// The place of the document in the commit order.
    pub seq: Seq,
    /// The cursor of the next page, if a page ends with this document.
    pub cursor: Cursor,
    /// When this content was first stored under its id.
    pub first_seen: TimestampMs,
    /// Whether the document is a link, which has no postings.
    pub linked: bool,
    /// The first document of its cluster. It is absent if this document is the first.
    pub representative: Option<DocId>,
    /// The similarity of the document and its representative, as in a verdict of the collection.
    pub similarity: Option<Similarity>,
    /// Whether this similarity is below the threshold. This happens if the cluster had another representative, or a
    /// lower threshold, when the document was inserted.
    pub below_threshold: bool,
}

/// A page of one cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterPage {
    pub representative: DocId,
    /// The number of documents of the cluster. Only the first page has it.
    pub documents: Option<u64>,
    /// The documents in order of `seq`, so the representative is the first member of the first page.
    pub members: Vec<ClusterMember>,
    /// The cursor of the next page.
    pub next: Option<Cursor>,
}

/// A page of all clusters that have more than one document.
#[derive(Clone, Debug, PartialEq)]
pub struct ClustersPage {
    /// One cluster after another. The documents of each are in order of `seq`, so its representative comes first.
    pub members: Vec<ClusterMember>,
    /// The cursor of the next page.
    pub next: Option<Cursor>,
}

/// A page of the clusters that have more than one document, the largest first.
#[derive(Clone, Debug, PartialEq)]
pub struct LargestClusters {
    /// The representative of each cluster, and the number of its documents.
    pub clusters: Vec<(DocId, u64)>,
    /// How many clusters a document has joined.
    pub total: u64,
    /// The cursor of the next page.
    pub next: Option<Cursor>,
}

impl ClusterMember {
    /// The largest possible size of any member as JSON, in bytes.
    pub const BYTES_MAX: usize = MEMBER_BYTES + 2 * ID_JSON_BYTES_MAX;

    /// Returns the largest possible size of this member as JSON, in bytes.
    pub fn bytes(&self) -> usize {
        MEMBER_BYTES + self.id.json_bytes() + self.representative.as_ref().map_or(0, DocId::json_bytes)
    }
}

/// Shortens a page to at most `bytes_max` bytes of JSON, but keeps at least one document.
fn fit(members: &mut Vec<ClusterMember>, next: &mut Option<Cursor>, bytes_max: usize) {
    let fit = fitting(members, bytes_max, ClusterMember::bytes);
    if fit < members.len() {
        members.truncate(fit);
        *next = members.last().map(|last| last.cursor.clone());
    }
}

impl ClusterPage {
    /// Shortens the page to at most `bytes_max` bytes of JSON, but keeps at least one document.
    pub fn fit(&mut self, bytes_max: usize) {
        fit(&mut self.members, &mut self.next, bytes_max);
    }
}

impl ClustersPage {
    /// Shortens the page to at most `bytes_max` bytes of JSON, but keeps at least one document.
    pub fn fit(&mut self, bytes_max: usize) {
        fit(&mut self.members, &mut self.next, bytes_max);
    }
}
