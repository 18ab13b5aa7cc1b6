//! Postings and ids that lead to no stored document. A slow server may write one after the walker has settled its document.

use std::collections::{BTreeMap, BTreeSet};

use redis::Value;

use super::cluster::{Call, Cluster, Request};
use super::context::Context;
use super::failure::Failure;
use super::postings::{self, Field};
use super::protocol::Ref;
use super::wire;

/// How many postings of a sorted set are looked at.
const OF_SET: usize = 1000;

/// An entry of a group: a posting, or an id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    group: Vec<u8>,
    /// The field of a hash. A sorted set has none.
    field: Option<Vec<u8>>,
    pub at: Ref,
}

/// Returns the entries of these groups, by the documents that they lead to.
pub(super) async fn entries(context: &Context, groups: &[Vec<u8>]) -> Result<BTreeMap<Ref, BTreeSet<Entry>>, Failure> {
    let requests = groups.iter().map(|group| {
        let read = if is_set(group) {
            redis::cmd("ZRANGE").arg(group).arg(0).arg(OF_SET - 1).to_owned()
        } else {
            redis::cmd("HGETALL").arg(group).to_owned()
        };
        request(group, Call::plain(read))
    });
    let mut entries = BTreeMap::<_, BTreeSet<_>>::new();
    for (group, response) in groups.iter().zip(context.cluster().run(requests.collect()).await) {
        let values = response?.values.pop().unwrap_or(Value::Nil);
        for entry in entries_of(group, values)? {
            entries.entry(entry.at).or_default().insert(entry);
        }
    }
    Ok(entries)
}

/// Reads the entries of a group.
fn entries_of(group: &[u8], values: Value) -> Result<Vec<Entry>, Failure> {
    let entry = |field: Option<&Vec<u8>>, at| Entry { group: group.to_vec(), field: field.cloned(), at };
    if is_set(group) {
        return Ok(postings::refs(values)?.into_iter().map(|at| entry(None, at)).collect());
    }
    let fields: Vec<(Vec<u8>, Vec<u8>)> = redis::from_redis_value(values).unwrap_or_default();
    let mut entries = Vec::new();
    for (field, value) in fields {
        let refs = Field::of(Value::BulkString(value))?.refs;
        entries.extend(refs.into_iter().map(|at| entry(Some(&field), at)));
    }
    Ok(entries)
}

/// Removes entries.
pub(super) async fn remove(context: &Context, entries: Vec<Entry>) -> Result<(), Failure> {
    let requests = entries.into_iter().map(|Entry { group, field, at }| {
        let call = match &field {
            None => {
                let remove = redis::cmd("ZREM").arg(&group).arg(at.0).to_owned();
                Call::plain(remove)
            }
            Some(field) if is_of_ids(&group) => wire::release(&group, field, at),
            Some(field) => postings::leave_field(&group, field, at),
        };
        request(&group, call)
    });
    for response in context.cluster().run(requests.collect()).await {
        response?;
    }
    Ok(())
}

fn request(group: &[u8], call: Call) -> Request {
    Request { slot: Cluster::slot_of(group), calls: vec![call], waits: false }
}

/// Returns whether a group is the sorted set of one.
fn is_set(group: &[u8]) -> bool {
    group.ends_with(b"+")
}

/// Returns whether a group has ids.
fn is_of_ids(group: &[u8]) -> bool {
    group.rsplit(|&byte| byte == b':').next().is_some_and(|last| last.starts_with(b"i"))
}
