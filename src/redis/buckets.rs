//! The fullest buckets of a sample: the buckets of some documents that are chosen at random. If a bucket has a tenth of
//! all documents, about a tenth of the sample is in it. So full buckets are found soon.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use hapax_core::{Banding, SignatureShape};
use redis::Value;

use super::cluster::{Cluster, Request, Response};
use super::counters::Counters;
use super::drive::Driver;
use super::failure::Failure;
use super::keys::{FIRST, Keys, Posting};
use super::postings::{self, Field, More};
use super::protocol::Ref;
use super::reads::stored;
use crate::verdicts::{CollectionError, HotBucket, Result};

/// The number of documents whose buckets are counted. The last ones are read together, so there may be up to half as
/// many more.
const DOCUMENTS: usize = 128;
/// The number of document numbers that are tried, at most. Insertions that store nothing take numbers, too.
const TRIED: u64 = 512;
/// How many commands are sent at a time.
const AT_ONCE: usize = 64;

/// Counts the buckets of one collection.
pub(super) struct Sampler<'a> {
    cluster: &'a Cluster,
    keys: &'a Keys,
    counters: &'a Counters,
    driver: Driver,
    how: (Banding, SignatureShape),
}

/// A bucket of a document in the sample.
struct Counted {
    band: u32,
    key: u64,
    posting: Posting,
    documents: u64,
}

impl<'a> Sampler<'a> {
    pub(super) fn new(
        cluster: &'a Cluster,
        keys: &'a Keys,
        counters: &'a Counters,
        driver: Driver,
        how: (Banding, SignatureShape),
    ) -> Self {
        Self { cluster, keys, counters, driver, how }
    }

    /// Returns the fullest buckets of a sample, the fullest first. The documents of a bucket are counted by their
    /// postings.
    pub(super) async fn fullest(&mut self, limit: usize) -> Result<Vec<HotBucket>> {
        let (banding, shape) = self.how;
        let mut buckets = BTreeMap::new();
        for signature in self.signatures().await? {
            let keys = banding.keys(&signature, shape).map(|key| key.0);
            buckets.extend((0..).zip(keys).zip(self.keys.postings(self.how, &signature, None)));
        }
        let mut counted = self.count(buckets).await?;
        counted.retain(|bucket| bucket.documents > 1);
        counted.sort_by_key(|bucket| (Reverse(bucket.documents), bucket.band));
        counted.truncate(limit);
        let mut hot = Vec::new();
        for Counted { band, key, posting, documents } in counted {
            let numbers = self.some_of(&posting).await?;
            let sample = stored(&mut self.driver, &numbers).await?;
            let sample = sample.into_iter().map(|(_, found)| found.stored.id.clone()).collect();
            hot.push(HotBucket { band, key, documents, sample });
        }
        Ok(hot)
    }

    /// Returns the signatures of some stored documents.
    async fn signatures(&mut self) -> Result<Vec<Vec<u8>>> {
        let count = self.counters.reserved().await?;
        let random = || getrandom::u64().expect("the system has random numbers");
        let numbers: BTreeSet<u64> =
            if count <= TRIED { (0..count).collect() } else { (0..TRIED).map(|_| random() % count).collect() };
        let mut numbers: Vec<_> = numbers.into_iter().map(|number| Ref(FIRST + 1 + number)).collect();
        // Otherwise, the oldest documents would come first.
        numbers.sort_by_cached_key(|_| random());
        let mut signatures = Vec::new();
        for some in numbers.chunks(AT_ONCE) {
            let sample = stored(&mut self.driver, some).await?;
            signatures.extend(sample.into_iter().map(|(_, found)| found.stored.signature.clone()));
            if signatures.len() >= DOCUMENTS {
                break;
            }
        }
        Ok(signatures)
    }

    async fn count(&self, buckets: BTreeMap<(u32, u64), Posting>) -> Result<Vec<Counted>> {
        let mut counted = Vec::new();
        let buckets: Vec<_> = buckets.into_iter().collect();
        for some in buckets.chunks(AT_ONCE) {
            let field = |(_, posting): &(_, Posting)| postings::request(posting, postings::read(posting), false);
            let count = |(_, posting): &(_, Posting)| {
                let more = More::of(posting);
                more.request(vec![more.count()], false)
            };
            let fields = self.values(some.iter().map(field));
            let (fields, counts) = tokio::try_join!(fields, self.values(some.iter().map(count)))?;
            for ((((band, key), posting), field), count) in some.iter().zip(fields).zip(counts) {
                let field = Field::of(field).map_err(told)?;
                let more = if let Value::Int(count) = count { u64::try_from(count).unwrap_or(0) } else { 0 };
                let (posting, documents) = (posting.clone(), field.refs.len() as u64 + more);
                counted.push(Counted { band: *band, key: *key, posting, documents });
            }
        }
        Ok(counted)
    }

    /// Sends requests with one call each.
    async fn values(&self, requests: impl Iterator<Item = Request>) -> Result<Vec<Value>> {
        let answers = self.cluster.run(requests.collect()).await.into_iter();
        let first = |answer: Response| answer.values.into_iter().next().unwrap_or(Value::Nil);
        answers.map(|answer| answer.map(first).map_err(|error| told(error.into()))).collect()
    }

    /// Returns the numbers of the oldest and of the newest documents of a bucket.
    async fn some_of(&self, posting: &Posting) -> Result<Vec<Ref>> {
        let more = More::of(posting);
        let ends = [false, true].map(|newest| more.request(vec![more.read(newest, HotBucket::SAMPLE_MAX)], false));
        let field = postings::request(posting, postings::read(posting), false);
        let mut values = self.values([field].into_iter().chain(ends)).await?.into_iter();
        let mut numbers: BTreeSet<_> =
            Field::of(values.next().unwrap_or(Value::Nil)).map_err(told)?.refs.into_iter().collect();
        for value in values {
            numbers.extend(postings::refs(value).map_err(told)?);
        }
        let (all, most) = (numbers.len(), HotBucket::SAMPLE_MAX);
        let chosen = numbers.into_iter().enumerate().filter(|(at, _)| *at < most / 2 || all - at <= most / 2);
        Ok(chosen.map(|(_, number)| number).collect())
    }
}

fn told(failure: Failure) -> CollectionError {
    failure.told(false)
}
