//! Reads clusters from disk, one page at a time. The document with the lowest `seq` represents its cluster. A cluster
//! is named by the `seq` of its founder. In the founder's own row, the cluster is 0. In the rows of the other members,
//! it is the name of the cluster. The index `signature_by_cluster` lists the members in order. Each answer comes from
//! one snapshot. This file knows nothing about similarity.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, Row, params_from_iter};

use super::records::record;
use super::snapshot::{Snapshot, reading};
use crate::store::error::{Result, StoreError};
use crate::store::format::columns::Flaw;
use crate::store::format::rows::{
    DOCUMENT_COLUMN_COUNT, DocumentRow, SignatureRow, document_columns, signature_columns,
};
use crate::store::record::Head;
use crate::types::{ClusterPlace, Document, Seq};

/// The maximum number of clusters that are visited for one page. Without this limit, a page could take long: there may
/// be many clusters with only one document left, and such clusters are skipped.
const VISITED_MAX: usize = 2000;

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
    /// The number of documents of the cluster. Present only on the first page, because counting visits all of them.
    pub documents: Option<u64>,
    /// The place where the next page begins.
    pub next: Option<ClusterPlace>,
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
        let Some(cluster) = cluster_after(snapshot, cluster)? else { return Ok((stretches, None)) };
        place = ClusterPlace { cluster, seq: Seq(0) };
        if left == 0 {
            break;
        }
    }
    Ok((stretches, Some(place)))
}

/// Returns the cluster of a document; `None` if there is no such document.
fn cluster_of(snapshot: &mut Snapshot<'_>, seq: Seq) -> Result<Option<Seq>> {
    let Some(record) = record(snapshot, seq)? else { return Ok(None) };
    Ok(Some(if record.cluster == Seq(0) { seq } else { record.cluster }))
}

/// Counts the documents of a cluster.
fn count(snapshot: &mut Snapshot<'_>, cluster: Seq) -> Result<u64> {
    let sql = "SELECT seq FROM signature WHERE seq = ?1 AND cluster = 0
               UNION ALL SELECT seq FROM signature WHERE cluster = ?1 AND cluster <> 0";
    let reading = |error| reading(snapshot.collection(), error);
    let (doomed, mut count) = (snapshot.doomed(), 0);
    let mut statement = snapshot.connection().prepare_cached(sql).map_err(reading)?;
    let mut rows = statement.query([bound(cluster)]).map_err(reading)?;
    while let Some(row) = rows.next().map_err(reading)? {
        let seq = row.get::<_, i64>(0).map_err(reading)?;
        count += u64::from(!doomed.has(Seq(seq as u64)));
    }
    Ok(count)
}

/// Returns the next cluster that has members other than its founder. The founder itself may be gone.
fn cluster_after(snapshot: &mut Snapshot<'_>, cluster: Seq) -> Result<Option<Seq>> {
    let sql = "SELECT cluster FROM signature WHERE cluster > ?1 AND cluster <> 0 ORDER BY cluster LIMIT 1";
    let found = snapshot.connection().prepare_cached(sql);
    let found = found.and_then(|mut statement| statement.query_row([bound(cluster)], |row| row.get(0)).optional());
    let found: Option<i64> = found.map_err(|error| reading(snapshot.collection(), error))?;
    Ok(found.map(|cluster| Seq(cluster as u64)))
}

/// Reads the first document of a cluster; `None` if the cluster has no document left.
pub(in crate::store) fn representative(snapshot: &mut Snapshot<'_>, cluster: Seq) -> Result<Option<Member>> {
    Ok(members(snapshot, cluster, Seq(0), 1)?.pop())
}

/// Reads up to `limit` documents of a cluster after the document `after`: first the founder, then the documents that
/// joined the cluster.
fn members(snapshot: &mut Snapshot<'_>, cluster: Seq, after: Seq, limit: usize) -> Result<Vec<Member>> {
    let mut members = Vec::new();
    if after < cluster {
        // The name of the cluster may come from a client, so it may be the `seq` of a document that founded no cluster.
        let founder = concat!(members_sql!(), " WHERE s.seq = ?1 AND s.cluster = 0");
        read_members(snapshot, (founder, &[bound(cluster)]), Seq(0), limit, &mut members)?;
    }
    if !snapshot.doomed().is_empty() {
        let one = concat!(members_sql!(), " WHERE s.seq = ?1 AND s.cluster <> 0");
        for seq in joined_and_there(snapshot, cluster, after, limit - members.len())? {
            read_members(snapshot, (one, &[bound(seq)]), cluster, limit, &mut members)?;
        }
        return Ok(members);
    }
    let joined = concat!(members_sql!(), " WHERE s.cluster = ?1 AND s.cluster <> 0 AND s.seq > ?2 ORDER BY s.seq");
    read_members(snapshot, (joined, &[bound(cluster), bound(after)]), cluster, limit, &mut members)?;
    Ok(members)
}

/// Returns up to `limit` documents of a cluster after the document `after`, without the founder. Documents that are
/// deleted by label are skipped, and only the index is read for them, because there may be millions.
fn joined_and_there(snapshot: &Snapshot<'_>, cluster: Seq, after: Seq, limit: usize) -> Result<Vec<Seq>> {
    let sql = "SELECT seq FROM signature WHERE cluster = ?1 AND cluster <> 0 AND seq > ?2 ORDER BY seq";
    let reading = |error| reading(snapshot.collection(), error);
    let (doomed, mut there) = (snapshot.doomed(), Vec::new());
    let mut statement = snapshot.connection().prepare_cached(sql).map_err(reading)?;
    let mut rows = statement.query([bound(cluster), bound(after)]).map_err(reading)?;
    while there.len() < limit
        && let Some(row) = rows.next().map_err(reading)?
    {
        let seq = Seq(row.get::<_, i64>(0).map_err(reading)? as u64);
        there.extend(Some(seq).filter(|seq| !doomed.has(*seq)));
    }
    Ok(there)
}

fn read_members(
    snapshot: &mut Snapshot<'_>,
    (sql, bounds): (&str, &[i64]),
    cluster: Seq,
    limit: usize,
    members: &mut Vec<Member>,
) -> Result<()> {
    let (connection, collection) = (snapshot.connection(), snapshot.collection());
    let reading = |error| reading(collection, error);
    let mut statement = connection.prepare_cached(sql).map_err(reading)?;
    let mut rows = statement.query(params_from_iter(bounds)).map_err(reading)?;
    let doomed = snapshot.doomed();
    while members.len() < limit
        && let Some(row) = rows.next().map_err(reading)?
    {
        let seq = row.get::<_, i64>(DOCUMENT_COLUMN_COUNT).unwrap_or_default();
        if !doomed.is_empty() && doomed.has(Seq(seq as u64)) {
            continue;
        }
        let member = read_member(row, cluster, snapshot.buffer());
        members.push(member.map_err(|flaw| StoreError::damaged(collection, Seq(seq as u64), flaw))?);
    }
    Ok(())
}

fn read_member(row: &Row<'_>, cluster: Seq, buffer: &mut Vec<u8>) -> Result<Member, Flaw> {
    let head = DocumentRow::read(row, 0, buffer)?.head(false)?;
    let (signature, _) = SignatureRow::read(row, DOCUMENT_COLUMN_COUNT, buffer)?;
    if signature.cluster != cluster {
        return Err("it is in another cluster than the index says");
    }
    Ok(Member { head, signature: signature.bytes.to_vec() })
}

/// Converts a `seq` to a bound of a query. A client may send any number, but no document is beyond `i64::MAX`.
fn bound(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}
