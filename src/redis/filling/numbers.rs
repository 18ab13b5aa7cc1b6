//! The numbers of the documents of a copy, in the order in which they are added.

use redis::Value;

use super::super::call::write;
use super::super::cluster::Cluster;
use super::super::keys::FIRST;
use super::super::patience::patiently;
use super::super::protocol::Ref;
use crate::verdicts::{CollectionError, Result};

/// How many numbers are reserved at a time, at least. They are reserved before they are used, because the data of a dropped
/// collection is removed up to the highest reserved number.
const BLOCK: u64 = 1024;
const BLOCK_MAX: u64 = 1 << 16;

pub(super) struct Numbers {
    cluster: Cluster,
    counter: Vec<u8>,
    reserved: u64,
    used: u64,
    /// The `seq` of each document where it comes from. They increase.
    seqs: Vec<u64>,
    /// The documents, by their places, before which a number was left out.
    after_gaps: Vec<u64>,
}

impl Numbers {
    pub(super) fn new(cluster: Cluster, counter: Vec<u8>) -> Self {
        Self { cluster, counter, reserved: 0, used: 0, seqs: Vec::new(), after_gaps: Vec::new() }
    }

    pub(super) fn reserve_memory(&mut self, documents: usize) {
        drop(self.seqs.try_reserve(documents));
    }

    /// Returns the number of the next document. With `gap`, the number before it is left out. `expected`: how many
    /// documents may follow.
    pub(super) async fn next(&mut self, seq: u64, gap: bool, expected: u64) -> Result<Ref> {
        if self.used + 2 > self.reserved {
            self.reserve(expected.clamp(BLOCK, BLOCK_MAX)).await?;
        }
        if gap {
            self.after_gaps.push(self.seqs.len() as u64);
            self.used += 1;
        }
        self.used += 1;
        self.seqs.push(seq);
        Ok(Ref(FIRST + self.used))
    }

    /// If a reply is lost, numbers are left out, which does no harm.
    async fn reserve(&mut self, block: u64) -> Result<()> {
        let add = redis::cmd("INCRBY").arg(&self.counter).arg(block).to_owned();
        let reserved = patiently(async || write(&self.cluster, &self.counter, add.clone()).await).await?;
        match reserved {
            Value::Int(last) if last >= (self.used + block) as i64 => self.reserved = last as u64,
            _ => return Err(CollectionError::Store("the counter of documents in the cluster was changed".into())),
        }
        Ok(())
    }

    pub(super) fn len(&self) -> u64 {
        self.seqs.len() as u64
    }

    /// Returns the numbers of all documents.
    pub(super) fn all(&self) -> impl Iterator<Item = u64> {
        let mut gaps = self.after_gaps.iter().copied().peekable();
        let mut number = FIRST;
        (0..self.len()).map(move |place| {
            number += 1 + u64::from(gaps.next_if_eq(&place).is_some());
            number
        })
    }

    /// Returns the number of the document that has this `seq` where it comes from, if it was added.
    pub(super) fn of(&self, seq: u64) -> Option<Ref> {
        let place = self.seqs.binary_search(&seq).ok()? as u64;
        let gaps = self.after_gaps.partition_point(|after| *after <= place) as u64;
        Some(Ref(FIRST + 1 + place + gaps))
    }
}
