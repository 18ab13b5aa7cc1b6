//! Clusters as clients page through them: what is on disk, with how alike each document and its representative are.

use std::sync::Arc;

use super::judge::View;
use super::order::{ATTEMPTS, changing, wait_for_commit};
use super::pairs::{Compared, Pairs, Representative};
use super::{Collection, ID_JSON_BYTES_MAX, Result, fitting};
use crate::store::{self, ClusterRows, ClusterStart, Record, Stretch};
use crate::types::{ClusterPlace, DocId, Seq, Similarity, TimestampMs};

/// A document of a page without its ids.
const MEMBER_BYTES: usize = 256;

/// A document of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterMember {
    /// Its id.
    pub id: DocId,
    /// Its place in the order.
    pub seq: Seq,
    /// Where a page that ends with it goes on.
    pub place: ClusterPlace,
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
        self.blocking(move |collection| {
            for attempt in 0..ATTEMPTS {
                let rows = match after {
                    Some(place) => collection.records.store().cluster(ClusterStart::After(place), limit)?,
                    None => collection.cluster_of(&id, limit)?,
                };
                let Some(ClusterRows { stretch, documents, next }) = rows else { return Ok(None) };
                collection.cluster_is_certain(&stretch)?;
                let representative = stretch.representative.head.id.clone();
                if let Some(page) = ClustersPage::compared(vec![stretch], next, &mut collection.pairs())? {
                    let members =
                        page.members.into_iter().map(|member| ClusterMember { representative: None, ..member });
                    let (members, next) = (members.collect(), page.next);
                    return Ok(Some(ClusterPage { representative, documents, members, next }));
                }
                wait_for_commit(attempt);
            }
            Err(changing())
        })
        .await
    }

    /// A page of all clusters that have more than one document.
    pub async fn clusters(self: &Arc<Self>, after: ClusterPlace, limit: usize) -> Result<ClustersPage> {
        self.blocking(move |collection| {
            for attempt in 0..ATTEMPTS {
                let (stretches, next) = collection.records.store().clusters(after, limit)?;
                stretches.iter().try_for_each(|stretch| collection.cluster_is_certain(stretch))?;
                if let Some(page) = ClustersPage::compared(stretches, next, &mut collection.pairs())? {
                    return Ok(page);
                }
                wait_for_commit(attempt);
            }
            Err(changing())
        })
        .await
    }

    fn pairs(&self) -> Pairs<'_> {
        let settings = self.settings();
        Pairs {
            store: self.records.store(),
            pipeline: self.preparer.pipeline(),
            spec: self.preparer.spec(),
            verify: settings.verify,
            threshold: settings.threshold,
            bytes_left: self.limits.exact_bytes_max,
        }
    }

    /// Who stands for a stored document, as of what is on disk; `None` where it does itself.
    pub(crate) fn representative_of(&self, record: &Record) -> Result<Option<DocId>> {
        if record.cluster == Seq(0) {
            return Ok(None);
        }
        let representative = self.records.store().representative(record.cluster)?;
        let representative = representative.filter(|(seq, _)| *seq != record.seq).map(|(_, id)| id);
        representative.iter().try_for_each(|id| self.certain(id))?;
        Ok(representative)
    }

    fn cluster_of(&self, id: &DocId, limit: usize) -> Result<Option<ClusterRows>> {
        let id_fingerprint = store::id_fingerprint(id);
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

impl ClusterMember {
    /// Most bytes of the JSON of any.
    pub const BYTES_MAX: usize = MEMBER_BYTES + 2 * ID_JSON_BYTES_MAX;

    /// Most bytes of its JSON.
    pub fn bytes(&self) -> usize {
        MEMBER_BYTES + self.id.json_bytes() + self.representative.as_ref().map_or(0, DocId::json_bytes)
    }
}

/// Ends a page before it gets longer than so many bytes of JSON; one document stays.
fn fit(members: &mut Vec<ClusterMember>, next: &mut Option<ClusterPlace>, bytes_max: usize) {
    let fit = fitting(members, bytes_max, ClusterMember::bytes);
    if fit < members.len() {
        members.truncate(fit);
        *next = members.last().map(|last| last.place);
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

    /// Compares members with their representatives, until the page is spent. `None`: a representative is gone, so that
    /// these rows are of the past.
    pub(crate) fn compared(
        stretches: Vec<Stretch>,
        next: Option<ClusterPlace>,
        pairs: &mut Pairs<'_>,
    ) -> Result<Option<Self>> {
        let mut page = Self { members: Vec::new(), next };
        for Stretch { cluster, representative: first, members } in stretches {
            let mut representative = Representative::from(&first);
            // A stretch that goes on from an earlier page is the first, and its first member is always compared.
            let mut before = Seq(0);
            for member in members {
                if pairs.is_spent() && !page.members.is_empty() {
                    page.next = Some(ClusterPlace { cluster, seq: before });
                    return Ok(Some(page));
                }
                before = member.head.seq;
                let alike = if member.head.seq == first.head.seq {
                    None
                } else {
                    match pairs.compare(&mut representative, &member)? {
                        Compared::At(alike) => Some(alike),
                        Compared::MemberGone => continue,
                        Compared::RepresentativeGone => return Ok(None),
                    }
                };
                page.members.push(ClusterMember {
                    representative: alike.map(|_| first.head.id.clone()),
                    similarity: alike.map(|alike| alike.similarity),
                    below_threshold: alike.is_some_and(|alike| !alike.reaches),
                    id: member.head.id,
                    seq: member.head.seq,
                    place: ClusterPlace { cluster, seq: member.head.seq },
                    first_seen: member.head.first_seen,
                    linked: member.head.linked,
                });
            }
        }
        Ok(Some(page))
    }
}
