//! The two counters of a collection: the numbers of its documents, and how many documents are stored.

use std::collections::VecDeque;

use parking_lot::Mutex;
use redis::Value;

use super::call::{add, call};
use super::cluster::Cluster;
use super::keys::{FIRST, Keys};
use super::protocol::Ref;
use super::size::Size;
use crate::types::CollectionName;
use crate::verdicts::{CollectionError, Result};

/// The number of document numbers that a server reserves at a time.
const BLOCK: u64 = 256;

pub(super) struct Counters {
    cluster: Cluster,
    keys: Keys,
    acks: usize,
    /// The numbers that this server has reserved and not used.
    numbers: Mutex<VecDeque<u64>>,
    size: Size,
}

impl Counters {
    pub(super) fn new(cluster: Cluster, keys: Keys, acks: usize) -> Self {
        let size = Size::new(keys.groups());
        Self { cluster, keys, acks, numbers: Mutex::default(), size }
    }

    /// Returns a document number that no server has used.
    pub(super) async fn number(&self) -> Result<Ref> {
        if let Some(number) = self.numbers.lock().pop_front() {
            return Ok(Ref(number));
        }
        let key = self.keys.counter();
        let add = redis::cmd("INCRBY").arg(&key).arg(BLOCK).to_owned();
        let Value::Int(last) = call(&self.cluster, &key, add, Some(self.acks)).await? else {
            return Err(CollectionError::Store("the counter of documents in the cluster is not a number".into()));
        };
        let Some(last) = u64::try_from(last).ok().filter(|last| (BLOCK..u64::MAX >> 1).contains(last)) else {
            return Err(CollectionError::Store("the counter of documents in the cluster was changed".into()));
        };
        let mut numbers = self.numbers.lock();
        numbers.extend((last + 1 - BLOCK..=last).map(|number| FIRST + number));
        Ok(Ref(numbers.pop_front().expect("a block was added")))
    }

    /// Returns how many document numbers the servers have reserved.
    pub(super) async fn reserved(&self) -> Result<u64> {
        let key = self.keys.counter();
        let found = call(&self.cluster, &key, redis::cmd("GET").arg(&key).to_owned(), None).await?;
        let count = redis::from_redis_value::<Option<u64>>(found).ok().map(Option::unwrap_or_default);
        Ok(count.filter(|count| *count < u64::MAX >> 1).unwrap_or(0))
    }

    /// Counts a document in the cluster, in the background. A server that is killed meanwhile leaves it uncounted.
    pub(super) fn count(&self, change: i64) {
        let (cluster, key) = (self.cluster.clone(), self.keys.documents());
        tokio::spawn(async move {
            let _ = add(&cluster, &key, change).await;
        });
    }

    /// Reads how many documents the cluster has counted.
    pub(super) async fn refresh(&self, name: &CollectionName) {
        let key = self.keys.documents();
        let get = redis::cmd("GET").arg(&key).to_owned();
        let counted = call(&self.cluster, &key, get, None).await.ok();
        if let Some(Ok(counted)) = counted.map(redis::from_redis_value::<Option<i64>>) {
            self.size.set(counted.unwrap_or(0).max(0) as u64, name);
        }
    }

    /// Returns the number of documents, as the cluster counted them last.
    pub(super) fn documents(&self) -> u64 {
        self.size.documents()
    }

    /// Sets the gauges of the collection.
    pub(super) fn observe(&self, name: &CollectionName) {
        self.size.observe(name);
    }
}
