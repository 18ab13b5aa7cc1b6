//! Reads clusters from disk, one page at a time. The document with the lowest `seq` represents its cluster. A cluster
//! is named by the `seq` of its founder. In the founder's own row, the cluster is 0. In the rows of the other members,
//! it is the name of the cluster. `joined.rs` lists these members in order. The rows of an answer come from one snapshot.
//! This file knows nothing about similarity.

use std::collections::{BinaryHeap, HashMap};

use rusqlite::Row;

use super::records::record;
use super::snapshot::{Snapshot, reading};
use crate::store::error::{Result, StoreError};
use crate::store::format::columns::Flaw;
use crate::store::format::rows::{
    DOCUMENT_COLUMN_COUNT, DocumentRow, SignatureRow, document_columns, signature_columns,
};
use crate::store::record::Head;
use crate::types::{ClusterPlace, ClusterRank, DocId, Document, Seq};

/// The maximum number of clusters that are visited for one page. Without this limit, a page could take long: there may
/// be many clusters with only one document left, and such clusters are skipped.
const VISITED_MAX: usize = 2000;
/// The number of documents that are taken from memory at once. Commits wait meanwhile.
const COUNTED_AT_ONCE: usize = 10_000;
const READ_AT_ONCE: usize = 64;

const SIGNATURE_GONE: Flaw = "its signature is gone";

macro_rules! members_sql {
    () => {
        concat!(
            "SELECT ",
            document_columns!(),
            ", ",
            signature_columns!(),
            " FROM signature s LEFT JOIN document d ON d.seq = s.seq"
        )
    };
}

/// A document of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The record, without its metadata.
    pub head: Head,
    /// The packed slots.
    pub signature: Vec<u8>,
}

/// A part of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    pub cluster: Seq,
    pub representative: Member,
    /// Consecutive documents, in order of `seq`. They include the representative if they are the beginning of the
    /// cluster.
    pub members: Vec<Member>,
}

/// A page of one cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterRows {
    pub stretch: Stretch,
    /// The number of documents of the cluster. Present only on the first page, because all documents of the cluster
    /// must be visited to count them.
    pub documents: Option<u64>,
    /// The place where the next page begins.
    pub next: Option<ClusterPlace>,
}

/// A page of the clusters with more than one document, the largest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LargestRows {
    /// The representative of each cluster, and the number of its documents.
    pub clusters: Vec<(DocId, u64)>,
    /// How many clusters a document has joined.
    pub total: u64,
    /// The last cluster of the page, if there are more.
    pub next: Option<ClusterRank>,
}

/// The place to begin reading a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterStart {
    /// At the beginning of the cluster of this document.
    Of(Seq),
    After(ClusterPlace),
}

/// Reads up to `limit` documents of one cluster. `None` if there is no such document, or if the cluster has no document
/// left.
pub(in crate::store) fn cluster(
    snapshot: &mut Snapshot<'_>,
    start: ClusterStart,
    limit: usize,
) -> Result<Option<ClusterRows>> {
    let (ClusterPlace { cluster, seq }, documents) = match start {
        ClusterStart::After(place) => (place, None),
        ClusterStart::Of(seq) => {
            let Some(cluster) = cluster_of(snapshot, seq)? else { return Ok(None) };
            (ClusterPlace { cluster, seq: Seq(0) }, Some(count(snapshot, cluster)?))
        }
    };
    let Some(representative) = representative(snapshot, cluster)? else { return Ok(None) };
    let mut members = members(snapshot, cluster, seq, limit + 1)?;
    let more = members.len() > limit;
    members.truncate(limit);
    let next = members.last().filter(|_| more).map(|last| ClusterPlace { cluster, seq: last.head.seq });
    Ok(Some(ClusterRows { stretch: Stretch { cluster, representative, members }, documents, next }))
}

/// Fills in the representatives of documents whose clusters are known.
pub(super) fn with_representatives(
    snapshot: &mut Snapshot<'_>,
    documents: Vec<(Document, Seq)>,
) -> Result<Vec<Document>> {
    let mut known: HashMap<Seq, Option<Head>> = HashMap::new();
    let mut named = Vec::with_capacity(documents.len());
    for (document, cluster) in documents {
        if cluster != Seq(0) && !known.contains_key(&cluster) {
            known.insert(cluster, representative(snapshot, cluster)?.map(|member| member.head));
        }
        let representative = known.get(&cluster).and_then(Option::as_ref).filter(|head| head.seq != document.seq);
        let representative = representative.map(|head| head.id.clone());
        named.push(Document { representative, ..document });
    }
    Ok(named)
}

/// Reads up to `limit` documents of the clusters with more than one document. Also returns the place where the next
/// page begins. A place at the beginning of a cluster has the `seq` 0.
pub(in crate::store) fn clusters(
    snapshot: &mut Snapshot<'_>,
    after: ClusterPlace,
    limit: usize,
) -> Result<(Vec<Stretch>, Option<ClusterPlace>)> {
    let (mut stretches, mut left, mut place) = (Vec::new(), limit, after);
    for _ in 0..VISITED_MAX {
        let cluster = place.cluster;
        let mut members = members(snapshot, cluster, place.seq, left + 1)?;
        let alone = place.seq == Seq(0) && members.len() == 1;
        let more = members.len() > left;
        members.truncate(left);
        if let Some(last) = members.last().filter(|_| !alone)
            && let Some(representative) = representative(snapshot, cluster)?
        {
            place.seq = last.head.seq;
            left -= members.len();
            stretches.push(Stretch { cluster, representative, members });
        }
        if more {
            return Ok((stretches, Some(place)));
        }
        let Some(cluster) = snapshot.clusters().cluster_after(cluster)? else { return Ok((stretches, None)) };
        place = ClusterPlace { cluster, seq: Seq(0) };
        if left == 0 {
            break;
        }
    }
    Ok((stretches, Some(place)))
}

/// Reads up to `limit` of the clusters with more than one document, the largest first. All documents that joined a
/// cluster are visited, in memory; only the representatives of the page are read.
pub(in crate::store) fn largest(
    snapshot: &mut Snapshot<'_>,
    after: Option<ClusterRank>,
    limit: usize,
) -> Result<LargestRows> {
    let mut page = LargestRows::default();
    // The heap has the largest of the visited clusters. Its greatest element is the one that comes last.
    let mut best = BinaryHeap::new();
    let mut counted = |joined: u64, cluster: Seq| {
        let rank = ClusterRank { joined, cluster };
        page.total += u64::from(joined > 0);
        if joined > 0 && after.is_none_or(|after| rank.order() > after.order()) {
            best.push((rank.order(), cluster, joined));
            if best.len() > limit + 1 {
                best.pop();
            }
        }
    };
    let (doomed, mut place, mut current, mut joined) = (snapshot.doomed(), (Seq(0), Seq(0)), Seq(0), 0);
    loop {
        let (documents, last) = snapshot.clusters().joined_after(place, COUNTED_AT_ONCE)?;
        for (cluster, seq) in documents {
            if cluster != current {
                counted(joined, current);
                (current, joined) = (cluster, 0);
            }
            joined += u64::from(!doomed.has(seq));
        }
        let Some(last) = last else { break };
        place = last;
    }
    counted(joined, current);
    let mut ranks: Vec<_> = best.into_sorted_vec();
    let more = ranks.len() > limit;
    ranks.truncate(limit);
    page.next = ranks.last().filter(|_| more).map(|&(_, cluster, joined)| ClusterRank { joined, cluster });
    for (_, cluster, joined) in ranks {
        if let Some(first) = representative(snapshot, cluster)? {
            let documents = joined + u64::from(first.head.seq == cluster);
            // A document whose cluster has lost its founder and all others is alone.
            if documents > 1 {
                page.clusters.push((first.head.id, documents));
            }
        }
    }
    Ok(page)
}

/// Returns the cluster of a document; `None` if there is no such document.
fn cluster_of(snapshot: &mut Snapshot<'_>, seq: Seq) -> Result<Option<Seq>> {
    let Some(record) = record(snapshot, seq)? else { return Ok(None) };
    Ok(Some(if record.cluster == Seq(0) { seq } else { record.cluster }))
}

/// Counts the documents of a cluster.
fn count(snapshot: &mut Snapshot<'_>, cluster: Seq) -> Result<u64> {
    let founder = "SELECT 1 FROM signature WHERE seq = ?1 AND cluster = 0";
    let founder =
        snapshot.connection().prepare_cached(founder).and_then(|mut founder| founder.exists([bound(cluster)]));
    let has_founder = founder.map_err(|error| reading(snapshot.collection(), error))?;
    let doomed = snapshot.doomed();
    let mut count = u64::from(has_founder && !doomed.has(cluster));
    let mut after = Seq(0);
    loop {
        let joined = snapshot.clusters().documents(cluster, after, COUNTED_AT_ONCE)?;
        let Some(&last) = joined.last() else { return Ok(count) };
        count += joined.iter().filter(|seq| !doomed.has(**seq)).count() as u64;
        after = last;
    }
}

/// Reads the first document of a cluster; `None` if the cluster has no document left.
pub(in crate::store) fn representative(snapshot: &mut Snapshot<'_>, cluster: Seq) -> Result<Option<Member>> {
    Ok(members(snapshot, cluster, Seq(0), 1)?.pop())
}

/// Reads up to `limit` documents of a cluster after the document `after`: first the founder, then the documents that
/// joined the cluster.
fn members(snapshot: &mut Snapshot<'_>, cluster: Seq, after: Seq, limit: usize) -> Result<Vec<Member>> {
    let (doomed, mut members) = (snapshot.doomed(), Vec::new());
    if after < cluster && !doomed.has(cluster) {
        // The name of the cluster may come from a client, so it may be the `seq` of a document that founded no cluster.
        let founder = concat!(members_sql!(), " WHERE s.seq = ?1 AND s.cluster = 0");
        members.extend(member(snapshot, founder, cluster, Seq(0))?);
    }
    let (mut place, one) = (after, concat!(members_sql!(), " WHERE s.seq = ?1"));
    while members.len() < limit {
        let at_once = (limit - members.len()).max(READ_AT_ONCE);
        let joined = snapshot.clusters().documents(cluster, place, at_once)?;
        let Some(&last) = joined.last() else { break };
        for seq in joined.into_iter().filter(|seq| !doomed.has(*seq)) {
            let Some(member) = member(snapshot, one, seq, cluster)? else {
                return Err(StoreError::damaged(snapshot.collection(), seq, SIGNATURE_GONE));
            };
            members.push(member);
            if members.len() == limit {
                break;
            }
        }
        place = last;
    }
    Ok(members)
}

/// Reads the document that `sql` selects by its `seq`; `None` if there is none.
fn member(snapshot: &mut Snapshot<'_>, sql: &str, seq: Seq, cluster: Seq) -> Result<Option<Member>> {
    let (connection, collection) = (snapshot.connection(), snapshot.collection());
    let reading = |error| reading(collection, error);
    let mut statement = connection.prepare_cached(sql).map_err(reading)?;
    let mut rows = statement.query([bound(seq)]).map_err(reading)?;
    let Some(row) = rows.next().map_err(reading)? else { return Ok(None) };
    let member = read_member(row, cluster, snapshot.buffer());
    member.map(Some).map_err(|flaw| StoreError::damaged(collection, seq, flaw))
}

fn read_member(row: &Row<'_>, cluster: Seq, buffer: &mut Vec<u8>) -> Result<Member, Flaw> {
    let head = DocumentRow::read(row, 0, buffer)?.head(false)?;
    let (signature, _) = SignatureRow::read(row, DOCUMENT_COLUMN_COUNT, buffer)?;
    if signature.cluster != cluster {
        return Err("it is in another cluster than at the start");
    }
    Ok(Member { head, signature: signature.bytes.to_vec() })
}

/// Converts a `seq` to a bound of a query. A client may send any number, but no document is beyond `i64::MAX`.
fn bound(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}
