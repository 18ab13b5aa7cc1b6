//! All collections in one cluster: their list is a hash in the cluster, which all servers share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use hapax_core::SecretKey;
use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;

use super::asked::storable;
use super::catalogue::{Catalogue, Listed};
use super::cluster::Cluster;
use super::collection::RedisCollection;
use super::context::{Context, Parts};
use super::dropping::remove_dropped;
use super::entry::Entry;
use super::keys::Keys;
use super::primaries::Primaries;
use super::reconcile::reconcile;
use super::start::{compare_default, connect};
use super::walker::walk;
use super::watch::{Gate, watch};
use crate::cpu::CpuPool;
use crate::telemetry::names::label;
use crate::telemetry::recorder;
use crate::types::{CollectionName, TimestampMs};
use crate::verdicts::{
    CollectionError, CollectionsConfig, Description, Limits, Preparer, Reconciled, RedisSettings, Result, Settings,
    Told,
};

/// The time between two reads of the list of collections, and of the counts of documents.
const REFRESH: Duration = Duration::from_secs(1);
/// How often an operation begins again because another server has changed the entry of the collection.
const ATTEMPTS: usize = 8;

/// The collections in a cluster.
pub struct RedisStore {
    cluster: Cluster,
    catalogue: Catalogue,
    settings: RedisSettings,
    secret: Option<SecretKey>,
    limits: Limits,
    cpu: CpuPool,
    collections_max: usize,
    open: Arc<Mutex<Opened>>,
    /// Whether writes are accepted.
    gate: Arc<Gate>,
    /// None: only one command uses the store.
    _background: Option<Background>,
}

/// The collections that this server has used.
type Opened = BTreeMap<CollectionName, Arc<RedisCollection>>;

/// What goes on in the background. It ends with the store.
struct Background {
    /// Reads the settings and the counts of the open collections again and again.
    _refresher: AbortOnDropHandle<()>,
    /// Removes the data of dropped collections.
    _remover: AbortOnDropHandle<()>,
    /// Ends what killed servers have left.
    _walker: AbortOnDropHandle<()>,
    /// Looks at the cluster again and again.
    _watcher: AbortOnDropHandle<()>,
}

impl RedisStore {
    /// Connects to the cluster, opens or creates `default`, and opens the other collections.
    pub async fn open(config: CollectionsConfig, settings: RedisSettings, cpu: CpuPool) -> Result<Self> {
        let default_settings = config.default_settings.clone();
        let (mut store, primaries) = Self::connect(config, settings, cpu).await?;
        store._background = Some(store.background(primaries));
        let name = CollectionName::default_collection();
        match store.find(&name).await? {
            Some(default) => compare_default(&default.settings(), &default_settings)?,
            None => _ = store.create(name, default_settings).await?,
        }
        // A server with another secret must not start.
        store.list().await?;
        Ok(store)
    }

    /// Connects to the cluster for one command. Creates no collection, and does nothing in the background.
    pub async fn attach(config: CollectionsConfig, settings: RedisSettings, cpu: CpuPool) -> Result<Self> {
        Self::connect(config, settings, cpu).await.map(|(store, _)| store)
    }

    async fn connect(config: CollectionsConfig, settings: RedisSettings, cpu: CpuPool) -> Result<(Self, Primaries)> {
        let (cluster, primaries, settings) = connect(settings).await?;
        let CollectionsConfig { secret, limits, collections_max, .. } = config;
        let catalogue = Catalogue::new(cluster.clone(), &settings.prefix);
        let (open, gate) = Default::default();
        let store =
            Self { cluster, catalogue, settings, secret, limits, cpu, collections_max, open, gate, _background: None };
        Ok((store, primaries))
    }

    /// Begins what goes on in the background.
    fn background(&self, primaries: Primaries) -> Background {
        let task = |task| AbortOnDropHandle::new(task);
        let known = Arc::clone(&self.open);
        let opened = move || known.lock().values().cloned().collect();
        let remover = remove_dropped(self.cluster.clone(), self.catalogue.clone(), self.settings.prefix.clone());
        let watcher = watch(self.cluster.clone(), self.settings.clone(), Arc::clone(&self.gate), primaries);
        Background {
            _refresher: task(tokio::spawn(refresh(self.catalogue.clone(), Arc::clone(&self.open)))),
            _remover: task(tokio::spawn(remover)),
            _walker: task(tokio::spawn(walk(opened))),
            _watcher: task(tokio::spawn(watcher)),
        }
    }

    /// Returns a collection.
    pub async fn get(&self, name: &CollectionName) -> Result<Arc<RedisCollection>> {
        if let Some(open) = self.open.lock().get(name) {
            return Ok(Arc::clone(open));
        }
        self.find(name).await?.ok_or_else(|| CollectionError::NoSuchCollection(name.clone()))
    }

    /// Creates a collection. False: it already exists with equal settings.
    pub async fn create(&self, name: CollectionName, settings: Settings) -> Result<(Arc<RedisCollection>, bool)> {
        let settings = storable(settings)?;
        self.gate.check()?;
        if self.find(&name).await?.is_none() && self.list().await?.len() >= self.collections_max {
            return Err(CollectionError::TooManyCollections { max: self.collections_max });
        }
        let expected = self.settings.documents_expected;
        let listed = Listed::new(self.catalogue.number().await?, TimestampMs::now(), &settings, expected);
        let made = self.catalogue.add(&name, &listed.to_text()).await?;
        let collection = self.find(&name).await?.ok_or_else(|| CollectionError::NoSuchCollection(name.clone()))?;
        if !collection.settings().answers(&settings) {
            let (held, asked) = (collection.settings().to_string(), settings.to_string());
            return Err(CollectionError::CollectionExists { name, held, asked });
        }
        Ok((collection, made))
    }

    /// Drops a collection. Its data is removed from the cluster later, see [`remove_dropped`].
    pub async fn remove(&self, name: &CollectionName) -> Result<()> {
        if *name == CollectionName::default_collection() {
            return Err(CollectionError::DefaultStays);
        }
        self.gate.check()?;
        let gone = || CollectionError::NoSuchCollection(name.clone());
        let mut text = self.catalogue.find(name).await?.ok_or_else(gone)?;
        // A collection that is created meanwhile is not dropped.
        let number = Listed::read(name, &text)?.0.number;
        while !self.catalogue.drop_entry(name, number, &text).await? {
            match self.catalogue.find(name).await? {
                Some(changed) if Listed::read(name, &changed)?.0.number == number => text = changed,
                _ => break,
            }
        }
        forget(&self.open, name, number);
        Ok(())
    }

    /// Adds what the documents of a collection have lost, see [`reconcile`].
    pub async fn reconcile(
        &self,
        name: &CollectionName,
        rate: u64,
        tell: impl FnMut(Told<'_>) + Send,
    ) -> Result<Reconciled> {
        reconcile(self.get(name).await?.context(), rate, tell).await
    }

    /// Returns the descriptions of all collections, by name.
    pub async fn list(&self) -> Result<Vec<Description>> {
        let all = self.catalogue.all().await?;
        let mut names: Vec<_> = all.keys().filter_map(|field| CollectionName::new(field).ok()).collect();
        names.sort();
        let mut described = Vec::new();
        for name in names {
            match self.get(&name).await {
                Ok(collection) => described.push(collection.describe()),
                // It was dropped meanwhile.
                Err(CollectionError::NoSuchCollection(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(described)
    }

    /// Returns the collections that this server has used.
    pub fn open_ones(&self) -> Vec<Arc<RedisCollection>> {
        self.open.lock().values().cloned().collect()
    }

    /// Returns the number of documents in these collections.
    pub fn documents(&self) -> u64 {
        self.open_ones().iter().map(|collection| collection.describe().documents).sum()
    }

    pub fn observe(&self) {
        self.open_ones().iter().for_each(|collection| collection.observe());
    }

    /// Opens a collection, if it exists.
    async fn find(&self, name: &CollectionName) -> Result<Option<Arc<RedisCollection>>> {
        for _ in 0..ATTEMPTS {
            let Some(text) = self.catalogue.find(name).await? else { return Ok(None) };
            let (listed, settings) = Listed::read(name, &text)?;
            let collection = self.collection(name, &listed, settings)?;
            match collection.context().entry().confirm().await {
                // Without replicas, documents can be looked up. Each change of them confirms the entry first.
                Ok(()) | Err(CollectionError::StoreUnavailable { uncertain: true, .. }) => {}
                // Perhaps it was created again, with another number.
                Err(CollectionError::NoSuchCollection(_)) => continue,
                Err(error) => return Err(error),
            }
            collection.context().counters().refresh(collection.name()).await;
            return Ok(Some(self.opened(collection)));
        }
        Ok(None)
    }

    fn collection(&self, name: &CollectionName, listed: &Listed, settings: Settings) -> Result<RedisCollection> {
        let (secret, cpu) = (self.secret.as_ref(), self.cpu.clone());
        let preparer = Preparer::new(name, &settings.spec, secret, settings.keep, settings.extract, cpu)?;
        let keys = Keys::new(&self.settings.prefix, listed.number, listed.documents_expected);
        Ok(RedisCollection::new(Context::new(Parts {
            entry: Entry::new(self.catalogue.clone(), name.clone(), listed, settings),
            preparer,
            cluster: self.cluster.clone(),
            limits: self.limits,
            keys,
            gate: Arc::clone(&self.gate),
        })))
    }

    /// Adds a collection to the open ones. If it is open already, returns that one with the settings of `collection`.
    fn opened(&self, collection: RedisCollection) -> Arc<RedisCollection> {
        let mut open = self.open.lock();
        if let Some(known) = open
            .get(collection.name())
            .filter(|known| known.context().entry().number() >= collection.context().entry().number())
        {
            if known.context().entry().number() == collection.context().entry().number() {
                known.context().entry().set(collection.settings());
            }
            return Arc::clone(known);
        }
        let collection = Arc::new(collection);
        recorder::admit(label::COLLECTION, collection.name().as_str());
        open.insert(collection.name().clone(), Arc::clone(&collection));
        collection
    }
}

/// Follows the list of collections, and reads the counts of documents.
async fn refresh(catalogue: Catalogue, open: Arc<Mutex<Opened>>) {
    loop {
        tokio::time::sleep(REFRESH).await;
        // A collection that is opened later than this may be missing in the list that is read next.
        let known: Vec<_> = open
            .lock()
            .values()
            .map(|collection| (Arc::clone(collection), collection.context().entry().settings()))
            .collect();
        let counts =
            join_all(known.iter().map(|(collection, _)| collection.context().counters().refresh(collection.name())));
        let (all, _) = tokio::join!(catalogue.all(), counts);
        let Ok(all) = all else { continue };
        for (collection, held) in known {
            let name = collection.name();
            match all.get(name.as_str()).map(|text| Listed::read(name, text)) {
                Some(Ok((listed, settings))) if listed.number == collection.context().entry().number() => {
                    collection.context().entry().replace(&held, settings);
                }
                // Another version has written it.
                Some(Err(_)) => {}
                _ => forget(&open, name, collection.context().entry().number()),
            }
        }
    }
}

/// Forgets a collection that was dropped, unless there is another one with its name.
fn forget(open: &Mutex<Opened>, name: &CollectionName, number: u64) {
    let mut open = open.lock();
    if open.get(name).is_some_and(|known| known.context().entry().number() == number) {
        open.remove(name);
        recorder::forget(label::COLLECTION, name.as_str());
    }
}
