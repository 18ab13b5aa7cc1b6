//! Clusters as clients page through them.

use super::cursor::Cursor;
use super::fit::fitting;
use crate::types::{DocId, ID_JSON_BYTES_MAX, Seq, Similarity, TimestampMs};

/// A document of a page without its ids.
const MEMBER_BYTES: usize = 256;

/// A document of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterMember {
    pub id: DocId,
    /// Its place in the order.
    pub seq: Seq,
    /// Where a page that ends with it goes on.
    pub cursor: Cursor,
    /// When this content was first stored under its id.
    pub first_seen: TimestampMs,
    /// Whether it is a link without postings.
    pub linked: bool,
    /// The first document of its cluster; absent if it is that itself.
    pub representative: Option<DocId>,
    /// How alike the two are, as a verdict of the collection would say it.
    pub similarity: Option<Similarity>,
    /// Whether the two are less alike than the threshold: another was the representative when the document came, or the
    /// threshold was lower.
    pub below_threshold: bool,
}

/// A page of one cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterPage {
    pub representative: DocId,
    /// How many documents it has; on the first page alone.
    pub documents: Option<u64>,
    /// In order of `seq`, so that the representative is the first of the first page.
    pub members: Vec<ClusterMember>,
    /// Where the next page begins.
    pub next: Option<Cursor>,
}

/// A page of all clusters that have more than one document.
#[derive(Clone, Debug, PartialEq)]
pub struct ClustersPage {
    /// Cluster by cluster, each in order of `seq`, so that its representative comes first.
    pub members: Vec<ClusterMember>,
    /// Where the next page begins.
    pub next: Option<Cursor>,
}

impl ClusterMember {
    /// Most bytes of the JSON of any.
    pub const BYTES_MAX: usize = MEMBER_BYTES + 2 * ID_JSON_BYTES_MAX;

    /// Most bytes of its JSON.
    pub fn bytes(&self) -> usize {
        MEMBER_BYTES + self.id.json_bytes() + self.representative.as_ref().map_or(0, DocId::json_bytes)
    }
}

/// Ends a page before it gets longer than so many bytes of JSON; one document stays.
fn fit(members: &mut Vec<ClusterMember>, next: &mut Option<Cursor>, bytes_max: usize) {
    let fit = fitting(members, bytes_max, ClusterMember::bytes);
    if fit < members.len() {
        members.truncate(fit);
        *next = members.last().map(|last| last.cursor.clone());
    }
}

impl ClusterPage {
    /// Ends it before it gets longer than so many bytes of JSON; one document stays.
    pub fn fit(&mut self, bytes_max: usize) {
        fit(&mut self.members, &mut self.next, bytes_max);
    }
}

impl ClustersPage {
    /// Ends it before it gets longer than so many bytes of JSON; one document stays.
    pub fn fit(&mut self, bytes_max: usize) {
        fit(&mut self.members, &mut self.next, bytes_max);
    }
}
