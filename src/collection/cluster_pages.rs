//! Clusters as clients page through them: what is on disk, with how alike each document and its representative are.

use std::sync::Arc;

use hapax_core::{SignatureShape, verify};

use super::judge::View;
use super::{Collection, Result};
use crate::index::IdIndex;
use crate::store::{ClusterRows, ClusterStart, Member, Record, Stretch};
use crate::types::{ClusterPlace, DocId, Seq, TimestampMs};

/// How often a document may be replaced while its cluster is being looked for.
const ATTEMPTS: usize = 16;

/// A document of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterMember {
    /// Its id.
    pub id: DocId,
    /// Its place in the order.
    pub seq: Seq,
    /// When this content was first stored under its id.
    pub first_seen: TimestampMs,
    /// Whether it is a link without postings.
    pub linked: bool,
    /// Who stands for it; absent where it does itself.
    pub representative: Option<DocId>,
    /// How alike the two are, from their signatures.
    pub similarity: Option<f64>,
}

/// A page of one cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterPage {
    /// Its first document.
    pub representative: DocId,
    /// How many documents it has; on the first page alone.
    pub documents: Option<u64>,
    /// In order of `seq`, so that the representative is the first of the first page.
    pub members: Vec<ClusterMember>,
    /// Where the next page begins.
    pub next: Option<ClusterPlace>,
}

/// A page of all clusters that have more than one document.
#[derive(Clone, Debug, PartialEq)]
pub struct ClustersPage {
    /// Cluster by cluster, each in order of `seq`, so that its representative comes first.
    pub members: Vec<ClusterMember>,
    /// Where the next page begins.
    pub next: Option<ClusterPlace>,
}

impl Collection {
    /// A page of the cluster that a document is in, or of the cluster of `after`, whatever became of the document since.
    pub async fn cluster(
        self: &Arc<Self>,
        id: DocId,
        after: Option<ClusterPlace>,
        limit: usize,
    ) -> Result<Option<ClusterPage>> {
        let shape = self.shape;
        self.blocking(move |collection| {
            let rows = match after {
                Some(place) => collection.records.store().cluster(ClusterStart::After(place), limit)?,
                None => collection.cluster_of(&id, limit)?,
            };
            Ok(rows.map(|ClusterRows { stretch, documents, next }| ClusterPage {
                representative: stretch.representative.head.id.clone(),
                documents,
                members: members(stretch, shape),
                next,
            }))
        })
        .await
    }

    /// A page of all clusters that have more than one document.
    pub async fn clusters(self: &Arc<Self>, after: ClusterPlace, limit: usize) -> Result<ClustersPage> {
        let shape = self.shape;
        self.blocking(move |collection| {
            let (stretches, next) = collection.records.store().clusters(after, limit)?;
            Ok(ClustersPage::new(stretches, next, shape))
        })
        .await
    }

    /// Who stands for a stored document, as of what is on disk; `None` where it does itself.
    pub(super) fn representative_of(&self, record: &Record) -> Result<Option<DocId>> {
        if record.cluster == Seq(0) {
            return Ok(None);
        }
        let representative = self.records.store().representative(record.cluster)?;
        Ok(representative.filter(|(seq, _)| *seq != record.seq).map(|(_, id)| id))
    }

    fn cluster_of(&self, id: &DocId, limit: usize) -> Result<Option<ClusterRows>> {
        let id_fingerprint = IdIndex::fingerprint(id);
        for _ in 0..ATTEMPTS {
            let (_reading, durable) = self.read();
            // A replacement may be on disk and not yet in the view of checks: then deciders know its place.
            for view in [durable, View::Decided] {
                let Some(existing) = self.find(id, id_fingerprint, view)? else { continue };
                let rows = self.records.store().cluster(ClusterStart::Of(existing.record.seq), limit)?;
                if rows.is_some() {
                    return Ok(rows);
                }
            }
            if self.find(id, id_fingerprint, durable)?.is_none() {
                return Ok(None);
            }
        }
        Ok(None)
    }
}

impl ClustersPage {
    pub(super) fn new(stretches: Vec<Stretch>, next: Option<ClusterPlace>, shape: SignatureShape) -> Self {
        let named = |stretch: Stretch| {
            let representative = (stretch.representative.head.seq, stretch.representative.head.id.clone());
            let (stands, id) = representative;
            members(stretch, shape).into_iter().map(move |member| ClusterMember {
                representative: (member.seq != stands).then(|| id.clone()),
                ..member
            })
        };
        Self { members: stretches.into_iter().flat_map(named).collect(), next }
    }
}

/// Without naming the representative, which is the same for all.
fn members(stretch: Stretch, shape: SignatureShape) -> Vec<ClusterMember> {
    let Stretch { representative, members, .. } = stretch;
    let similarity = |member: &Member| {
        let (a, b) = (&representative.head, &member.head);
        if !a.given && !b.given && a.content == b.content {
            return 1.0;
        }
        verify::similarity(verify::matching_slots(&representative.signature, &member.signature, shape), shape)
    };
    let member = |member: Member| ClusterMember {
        similarity: (member.head.seq != representative.head.seq).then(|| similarity(&member)),
        id: member.head.id,
        seq: member.head.seq,
        first_seen: member.head.first_seen,
        linked: member.head.linked,
        representative: None,
    };
    members.into_iter().map(member).collect()
}
