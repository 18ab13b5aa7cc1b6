//! The filling of a new collection with documents that were decided on elsewhere: `hapax copy`. In: documents, in the order
//! of their numbers. Out: a collection, whole or not at all.
//!
//! The records are written while the documents arrive. Ids and postings are kept in memory until all documents are there.
//! Then they are written group by group, one band after the other. Nothing is visible until the collection is published,
//! which is one command. So no other server reads or writes these keys meanwhile, and no protocol is needed.

mod batches;
mod document;
mod error;
mod groups;
mod note;
mod numbers;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hapax_core::{Banding, SignatureShape};

pub use document::{FilledDocument, FilledMatch, FilledVerdict};
pub use error::FillError;

use self::batches::Batches;
use self::groups::{Entry, IdEntry, put_ids, put_postings};
use self::note::Note;
use self::numbers::Numbers;
use super::asked::storable;
use super::call::write;
use super::catalogue::{Catalogue, Listed, Published};
use super::cluster::{Cluster, Packed};
use super::keys::{Keys, content_key};
use super::patience::patiently;
use super::protocol::Token;
use super::start::{compare_default, connect};
use super::wire::sealed;
use crate::cpu::CpuPool;
use crate::types::{CollectionName, TimestampMs};
use crate::verdicts::{CollectionError, CollectionsConfig, Preparer, RedisSettings, Settings};

type Result<T, E = FillError> = std::result::Result<T, E>;

/// A batch that was sent twice may arrive late. The collection is published so long after the last one.
const LATE_COMMANDS: Duration = Duration::from_secs(10);
/// How many documents of a band are prepared before it is looked whether the copy must stop.
const BETWEEN_LOOKS: usize = 1 << 16;

/// A collection that is being filled, and is not visible yet.
pub struct Filling {
    cluster: Cluster,
    catalogue: Catalogue,
    name: CollectionName,
    listed: Listed,
    keys: Keys,
    how: (Banding, SignatureShape),
    has_ttl: bool,
    batches: Batches,
    numbers: Numbers,
    ids: Vec<IdEntry>,
    contents: Vec<Entry>,
}

impl Filling {
    /// Begins a collection with these settings. Checks first what a server checks when it starts, and that there is no
    /// collection with this name. `documents`: how many will be added, approximately. Ends soon after `stop` is set.
    pub async fn begin(
        (config, redis): (&CollectionsConfig, &RedisSettings),
        name: CollectionName,
        settings: Settings,
        documents: u64,
        (cpu, stop): (CpuPool, Arc<AtomicBool>),
    ) -> Result<Self> {
        let settings = storable(settings)?;
        // Otherwise the servers could not open it.
        Preparer::new(&name, &settings.spec, config.secret.as_ref(), settings.keep, settings.extract, cpu)?;
        if name == CollectionName::default_collection() {
            compare_default(&settings, &config.default_settings)?;
        }
        let (cluster, ..) = connect(redis.clone()).await?;
        let catalogue = Catalogue::new(cluster.clone(), &redis.prefix);
        let all = catalogue.all().await?;
        if all.contains_key(name.as_str()) {
            return Err(FillError::Exists(name));
        }
        if all.keys().filter(|field| CollectionName::new(field).is_ok()).count() >= config.collections_max {
            return Err(CollectionError::TooManyCollections { max: config.collections_max }.into());
        }
        let number = catalogue.number().await?;
        let listed = Listed::new(number, TimestampMs::now(), &settings, redis.documents_expected);
        let note = Note::begin(catalogue.clone(), listed.clone()).await?;
        let keys = Keys::new(&redis.prefix, number, redis.documents_expected);
        let mut filling = Self {
            batches: Batches::new(cluster.clone(), note, stop),
            numbers: Numbers::new(cluster.clone(), keys.counter()),
            how: (settings.banding, settings.spec.shape()),
            has_ttl: settings.ttl.is_some(),
            ids: Vec::new(),
            contents: Vec::new(),
            cluster,
            catalogue,
            name,
            listed,
            keys,
        };
        filling.reserve_memory(documents);
        Ok(filling)
    }

    /// Makes room for so many documents, so that lists are not copied while they grow.
    fn reserve_memory(&mut self, documents: u64) {
        let documents = usize::try_from(documents).unwrap_or(0);
        self.numbers.reserve_memory(documents);
        drop(self.ids.try_reserve(documents));
        drop(self.contents.try_reserve(documents));
    }

    /// Writes the records of documents. Their ids must be different. `left`: how many may follow.
    pub async fn add(&mut self, documents: Vec<FilledDocument>, left: u64) -> Result<()> {
        for document in documents {
            let at = self.numbers.next(document.seq, document.is_of_older_id(), left).await?;
            let (group, field) = self.keys.id_place(&document.id);
            let group = u32::try_from(group).expect("there are at most 2^32 groups");
            self.ids.push(IdEntry { group, field, at: at.0 });
            if let Some(content) = document.content {
                self.contents.push(Entry { place: self.keys.place(content_key(content)), at: at.0 });
            }
            let stored = document.stored(at, self.has_ttl, |seq| self.numbers.of(seq));
            let token = Token(getrandom::u64().expect("the system has random numbers"));
            let (key, value) = (self.keys.record(at), sealed(&stored, token));
            let set = Packed::new("SET", 2, key.len() + value.len()).arg(&key).arg(&value);
            self.batches.push(&key, set).await?;
        }
        Ok(())
    }

    /// Returns the number of documents.
    pub fn documents(&self) -> u64 {
        self.numbers.len()
    }

    /// Writes ids and postings, and publishes the collection. `signatures` has those of all documents, one after the
    /// other. `tell` is called with the share that is done.
    pub async fn publish(&mut self, signatures: &[u8], tell: &(dyn Fn(f64) + Sync)) -> Result<()> {
        let parts = f64::from(self.how.0.bands() + 2);
        let (mut ids, mut contents) = (std::mem::take(&mut self.ids), std::mem::take(&mut self.contents));
        put_ids(&mut self.batches, &self.keys, &mut ids).await?;
        drop(ids);
        tell(1.0 / parts);
        put_postings(&mut self.batches, &self.keys, None, &mut contents).await?;
        drop(contents);
        let mut entries = Vec::with_capacity(self.numbers.len() as usize);
        for band in 0..self.how.0.bands() {
            tell(f64::from(2 + band) / parts);
            self.read_band(band, signatures, &mut entries)?;
            put_postings(&mut self.batches, &self.keys, Some(band.into()), &mut entries).await?;
        }
        self.batches.settle().await?;
        let documents = self.keys.documents();
        let count = redis::cmd("SET").arg(&documents).arg(self.numbers.len()).to_owned();
        patiently(async || write(&self.cluster, &documents, count.clone()).await).await?;
        if self.batches.has_tried_again() {
            tokio::time::sleep(LATE_COMMANDS).await;
        }
        self.batches.look()?;
        self.list().await
    }

    /// Puts the postings of a band into `entries`.
    fn read_band(&self, band: u32, signatures: &[u8], entries: &mut Vec<Entry>) -> Result<()> {
        let (banding, shape) = self.how;
        entries.clear();
        for (signature, at) in signatures.chunks_exact(shape.bytes()).zip(self.numbers.all()) {
            if entries.len().is_multiple_of(BETWEEN_LOOKS) {
                self.batches.look()?;
            }
            entries.push(Entry { place: self.keys.place(banding.key(signature, shape, band).0), at });
        }
        Ok(())
    }

    /// Adds the collection to the list.
    async fn list(&self) -> Result<()> {
        let (number, text) = (self.listed.number, self.listed.to_text());
        let mut tries = 0;
        let publish = async || {
            tries += 1;
            self.catalogue.publish(&self.name, number, &text).await
        };
        match patiently(publish).await {
            Ok(Published::Done) => Ok(()),
            Ok(Published::Exists) => Err(FillError::Exists(self.name.clone())),
            Ok(Published::Gone) if tries == 1 => Err(FillError::Late),
            // The first try may have published it, and a client has changed it since.
            Ok(Published::Gone) => {
                let detail = "the cluster has not answered in time".into();
                Err(FillError::Uncertain(CollectionError::StoreUnavailable { detail, uncertain: true }))
            }
            Err(error) => Err(FillError::Uncertain(error)),
        }
    }

    /// Notes that the collection will not be filled, so that servers remove its data. False: the note could not be
    /// written. Servers remove the data all the same, but later.
    pub async fn abandon(self) -> bool {
        let Self { catalogue, listed, batches, .. } = self;
        drop(batches);
        catalogue.abandon_copy(listed.number, &listed.to_text()).await.is_ok()
    }
}
