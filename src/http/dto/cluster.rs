//! Clusters as JSON.

use serde::Serialize;

use super::values::{id, timestamp};
use crate::collections::{ClusterMember, ClusterPage, ClustersPage, LargestClusters};
use crate::types::{DocId, ID_JSON_BYTES_MAX, ratio};

/// A page of one cluster, or of all clusters.
#[derive(Debug, Serialize)]
pub struct ClusterBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    representative: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    documents: Option<u64>,
    members: Vec<MemberBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct MemberBody {
    id: String,
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    representative: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    below_threshold: bool,
    first_seen: String,
    linked: bool,
}

impl ClusterBody {
    /// A page of one cluster. `next_cursor` must encode the page's `next`.
    pub fn one(page: ClusterPage, next_cursor: Option<String>) -> Self {
        Self {
            representative: Some(page.representative.as_str().to_owned()),
            documents: page.documents,
            members: page.members.into_iter().map(MemberBody::from).collect(),
            next_cursor,
        }
    }

    pub fn all(page: ClustersPage, next_cursor: Option<String>) -> Self {
        let members = page.members.into_iter().map(MemberBody::from).collect();
        Self { representative: None, documents: None, members, next_cursor }
    }
}

/// A page of the largest clusters.
#[derive(Debug, Serialize)]
pub struct LargestBody {
    clusters: Vec<SizeBody>,
    total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
struct SizeBody {
    #[serde(serialize_with = "id")]
    representative: DocId,
    documents: u64,
}

impl LargestBody {
    /// The bytes of JSON of a cluster without its id.
    const SIZE_BYTES: usize = 64;
    /// The most bytes of JSON of a cluster.
    pub const CLUSTER_BYTES_MAX: usize = Self::SIZE_BYTES + ID_JSON_BYTES_MAX;

    pub fn new(page: LargestClusters) -> Self {
        let body = |(representative, documents)| SizeBody { representative, documents };
        let next_cursor = page.next.map(|next| next.to_string());
        Self { clusters: page.clusters.into_iter().map(body).collect(), total: page.total, next_cursor }
    }

    /// Returns the number of clusters.
    pub fn count(&self) -> usize {
        self.clusters.len()
    }

    /// Returns the bytes of JSON of all clusters.
    pub fn bytes(&self) -> usize {
        self.clusters.iter().map(|cluster| Self::SIZE_BYTES + cluster.representative.json_bytes()).sum()
    }
}

impl From<ClusterMember> for MemberBody {
    fn from(member: ClusterMember) -> Self {
        Self {
            id: member.id.as_str().to_owned(),
            seq: member.seq.0,
            representative: member.representative.map(|id| id.as_str().to_owned()),
            similarity: member.similarity.map(|similarity| ratio(similarity.value)),
            low: member.similarity.map(|similarity| ratio(similarity.low)),
            high: member.similarity.map(|similarity| ratio(similarity.high)),
            method: member.similarity.map(|similarity| similarity.method.as_str()),
            below_threshold: member.below_threshold,
            first_seen: timestamp(member.first_seen),
            linked: member.linked,
        }
    }
}
