//! The two counters of a collection: the numbers of its documents, and how many documents are stored.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use parking_lot::Mutex;
use redis::Value;

use super::call::{add, call, write};
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
    numbers: Mutex<Numbers>,
    /// Is held while a block is reserved, so that only one is.
    reserving: tokio::sync::Mutex<()>,
    size: Size,
}

/// The numbers that this server has reserved. It uses them in their order: of equal matches, the first one is named.
#[derive(Default)]
struct Numbers {
    unused: VecDeque<u64>,
    /// The highest of them.
    highest: u64,
    /// How often a block could not be reserved.
    failures: u64,
}

impl Numbers {
    /// Adds a block. Numbers below one that may have been used are never used.
    fn add(&mut self, block: RangeInclusive<u64>) {
        if self.highest < *block.start() {
            self.highest = *block.end();
            self.unused.extend(block);
        }
    }
}

impl Counters {
    pub(super) fn new(cluster: Cluster, keys: Keys) -> Self {
        let size = Size::new(keys.groups());
        Self { cluster, keys, numbers: Mutex::default(), reserving: tokio::sync::Mutex::default(), size }
    }

    /// Returns a document number that no server has used.
    pub(super) async fn number(&self) -> Result<Ref> {
        loop {
            let failures = {
                let mut numbers = self.numbers.lock();
                if let Some(number) = numbers.unused.pop_front() {
                    return Ok(Ref(number));
                }
                numbers.failures
            };
            let only_one = self.reserving.lock().await;
            let has_failed = {
                let numbers = self.numbers.lock();
                if !numbers.unused.is_empty() {
                    continue;
                }
                numbers.failures != failures
            };
            // If a node does not answer, each request waits for one more failure, not for those of all others.
            let _only_one = if has_failed { None } else { Some(only_one) };
            let block = self.reserve().await;
            let mut numbers = self.numbers.lock();
            match block {
                Ok(block) => numbers.add(block),
                Err(error) => {
                    numbers.failures += 1;
                    return Err(error);
                }
            }
        }
    }

    /// Reserves a block of numbers.
    async fn reserve(&self) -> Result<RangeInclusive<u64>> {
        let key = self.keys.counter();
        let add = redis::cmd("INCRBY").arg(&key).arg(BLOCK).to_owned();
        let Value::Int(last) = write(&self.cluster, &key, add).await? else {
            return Err(CollectionError::Store("the counter of documents in the cluster is not a number".into()));
        };
        match u64::try_from(last).ok().filter(|last| (BLOCK..u64::MAX >> 1).contains(last)) {
            Some(last) => Ok(FIRST + last + 1 - BLOCK..=FIRST + last),
            None => Err(CollectionError::Store("the counter of documents in the cluster was changed".into())),
        }
    }

    /// Returns how many document numbers the servers have reserved.
    pub(super) async fn reserved(&self) -> Result<u64> {
        let key = self.keys.counter();
        let found = call(&self.cluster, &key, redis::cmd("GET").arg(&key).to_owned()).await?;
        let count = redis::from_redis_value::<Option<u64>>(found).ok().map(Option::unwrap_or_default);
        Ok(count.filter(|count| *count < u64::MAX >> 1).unwrap_or(0))
    }

    /// Reserves all document numbers up to `at`, if they are not reserved yet: a cluster that has lost writes may have
    /// forgotten that they are.
    pub(super) async fn reserve_up_to(&self, at: Ref) -> Result<()> {
        let missing = (at.0 - FIRST).saturating_sub(self.reserved().await?);
        if missing > 0 {
            let key = self.keys.counter();
            write(&self.cluster, &key, redis::cmd("INCRBY").arg(&key).arg(missing).to_owned()).await?;
        }
        Ok(())
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
        let counted = call(&self.cluster, &key, get).await.ok();
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
