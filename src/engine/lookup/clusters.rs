//! Pages of clusters for clients: the state on disk, with the similarity of each document to its representative. The
//! order of the members comes from `src/store/read/clusters.rs`.

use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use super::existing::Existing;
use super::lookup::Lookup;
use super::pairs::{Paired, Pairs, Representative};
use super::retry::{ATTEMPTS, changing, wait_for_commit};
use crate::engine::long_work::{beside, blocking};
use crate::index::View;
use crate::store::{ClusterRows, ClusterStart, LargestRows, Stretch};
use crate::types::{ClusterPlace, ClusterRank, DocId, Seq};
use crate::verdicts::{ClusterMember, ClusterPage, ClustersPage, Cursor, LargestClusters, Result};

/// Returns a page of the cluster of document `id`. With `after`, returns the next page of the cluster that `after`
/// names. The document `id` may then have left this cluster or been deleted.
pub(crate) async fn cluster(
    lookup: &Arc<Lookup>,
    id: DocId,
    after: Option<ClusterPlace>,
    limit: usize,
) -> Result<Option<ClusterPage>> {
    beside(lookup, move |lookup| {
        for attempt in 0..ATTEMPTS {
            let rows = match after {
                Some(place) => lookup.records().store().cluster(ClusterStart::After(place), limit)?,
                None => cluster_of(lookup, &id, limit)?,
            };
            let Some(ClusterRows { stretch, documents, next }) = rows else { return Ok(None) };
            lookup.doubts().cluster_is_certain(&stretch)?;
            let representative = stretch.representative.head.id.clone();
            if let Some(page) = compared_page(vec![stretch], next, &mut pairs(lookup))? {
                let members = page.members.into_iter().map(|member| ClusterMember { representative: None, ..member });
                let (members, next) = (members.collect(), page.next);
                return Ok(Some(ClusterPage { representative, documents, members, next }));
            }
            wait_for_commit(attempt);
        }
        Err(changing())
    })
    .await
}

/// Returns a page of all clusters that have more than one document.
pub(crate) async fn clusters(lookup: &Arc<Lookup>, after: ClusterPlace, limit: usize) -> Result<ClustersPage> {
    beside(lookup, move |lookup| {
        for attempt in 0..ATTEMPTS {
            let (stretches, next) = lookup.records().store().clusters(after, limit)?;
            stretches.iter().try_for_each(|stretch| lookup.doubts().cluster_is_certain(stretch))?;
            if let Some(page) = compared_page(stretches, next, &mut pairs(lookup))? {
                return Ok(page);
            }
            wait_for_commit(attempt);
        }
        Err(changing())
    })
    .await
}

/// Returns a page of the clusters that have more than one document, the largest first. The work keeps its turn until it
/// ends, even if the client disconnects.
pub(crate) async fn largest(
    lookup: &Arc<Lookup>,
    after: Option<ClusterRank>,
    limit: usize,
    turn: OwnedMutexGuard<()>,
) -> Result<LargestClusters> {
    let lookup = Arc::clone(lookup);
    blocking(move || {
        let _turn = turn;
        let LargestRows { clusters, total, next } = lookup.records().store().largest_clusters(after, limit)?;
        Ok(LargestClusters { clusters, total, next: next.map(Cursor::from) })
    })
    .await
}

fn pairs(lookup: &Lookup) -> Pairs<'_> {
    let (verify, threshold) = {
        let policy = lookup.policy();
        (policy.settings.verify, policy.settings.threshold)
    };
    let preparer = lookup.preparer();
    let made_by = (preparer.spec(), preparer.pipeline());
    Pairs::new(lookup.records().store(), made_by, verify, threshold, lookup.limits().exact_bytes_max)
}

fn cluster_of(lookup: &Lookup, id: &DocId, limit: usize) -> Result<Option<ClusterRows>> {
    for _ in 0..ATTEMPTS {
        let (_reading, durable) = lookup.read();
        // A replacement may be on disk before checks see it. `View::Decided` already shows the replacement.
        for view in [durable, View::Decided] {
            let Some(existing) = Existing::find(lookup, id, view)? else { continue };
            let rows = lookup.records().store().cluster(ClusterStart::Of(existing.record.seq), limit)?;
            if rows.is_some() {
                return Ok(rows);
            }
        }
        if Existing::find(lookup, id, durable)?.is_none() {
            return Ok(None);
        }
    }
    Ok(None)
}

/// Compares members with their representatives until the page has used up its bytes. Returns `None` if a representative
/// is gone, which means that these rows are outdated.
pub(crate) fn compared_page(
    stretches: Vec<Stretch>,
    next: Option<ClusterPlace>,
    pairs: &mut Pairs<'_>,
) -> Result<Option<ClustersPage>> {
    let mut page = ClustersPage { members: Vec::new(), next: next.map(Cursor::from) };
    for Stretch { cluster, representative: first, members } in stretches {
        let mut representative = Representative::from(&first);
        // `Seq(0)` means that the next page starts with the first member of this cluster. This is right although the
        // first stretch may continue a cluster from an earlier page, because its first member is always compared.
        let mut before = Seq(0);
        for member in members {
            if pairs.is_spent() && !page.members.is_empty() {
                page.next = Some(ClusterPlace { cluster, seq: before }.into());
                return Ok(Some(page));
            }
            before = member.head.seq;
            let alike = if member.head.seq == first.head.seq {
                None
            } else {
                match pairs.compare(&mut representative, &member)? {
                    Paired::At(alike) => Some(alike),
                    Paired::MemberGone => continue,
                    Paired::RepresentativeGone => return Ok(None),
                }
            };
            page.members.push(ClusterMember {
                representative: alike.map(|_| first.head.id.clone()),
                similarity: alike.map(|alike| alike.similarity),
                below_threshold: alike.is_some_and(|alike| !alike.reaches),
                id: member.head.id,
                seq: member.head.seq,
                cursor: ClusterPlace { cluster, seq: member.head.seq }.into(),
                first_seen: member.head.first_seen,
                linked: member.head.linked,
            });
        }
    }
    Ok(Some(page))
}
