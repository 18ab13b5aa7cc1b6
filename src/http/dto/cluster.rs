//! Clusters as JSON.

use serde::Serialize;

use super::values::timestamp;
use crate::collections::{ClusterMember, ClusterPage, ClustersPage};
use crate::types::ratio;

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
