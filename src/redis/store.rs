//! All collections in one cluster: their list is a hash in the cluster, which all servers share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hapax_core::{Banding, SecretKey, Spec};
use parking_lot::Mutex;
use redis::{Cmd, Value};
use serde::{Deserialize, Serialize};
use tokio_util::task::AbortOnDropHandle;

use super::asked::refuse;
use super::call::{call, confirm};
use super::cluster::Cluster;
use super::collection::{Parts, RedisCollection};
use super::keys::Keys;
use super::start::{compare_default, connect};
use super::watch::{Gate, watch};
use crate::cpu::CpuPool;
use crate::types::{CollectionName, Extract, Keep, TimestampMs, Verify};
use crate::verdicts::{
    CollectionError, CollectionsConfig, Description, Limits, Preparer, RedisSettings, Result, Settings,
};

/// The time between two reads of the counts of documents.
const REFRESH: Duration = Duration::from_secs(1);

/// The collections in a cluster.
pub struct RedisStore {
    cluster: Cluster,
    settings: RedisSettings,
    secret: Option<SecretKey>,
    limits: Limits,
    cpu: CpuPool,
    collections_max: usize,
    open: Arc<Mutex<Opened>>,
    /// Whether writes are accepted.
    gate: Arc<Gate>,
    /// Reads the counts of the open collections again and again. It ends with the store.
    _refresher: AbortOnDropHandle<()>,
    /// Looks at the cluster again and again. It ends with the store.
    _watcher: AbortOnDropHandle<()>,
}

/// The collections that this server has used.
type Opened = BTreeMap<CollectionName, Arc<RedisCollection>>;

/// A collection in the list.
#[derive(Serialize, Deserialize)]
struct Listed {
    /// The number in the keys of its documents.
    number: u64,
    created: i64,
    spec: String,
    bands: u32,
    rows: u32,
    banding_by_hand: bool,
    threshold: f64,
    extract: String,
    /// Decides the number of groups, and so the keys. All servers use the value with which it was created.
    documents_expected: u64,
}

impl RedisStore {
    /// Connects to the cluster, opens or creates `default`, and opens the other collections.
    pub async fn open(config: CollectionsConfig, settings: RedisSettings, cpu: CpuPool) -> Result<Self> {
        let cluster = connect(&settings).await?;
        let CollectionsConfig { secret, limits, collections_max, default_settings, .. } = config;
        let open = Arc::default();
        let _refresher = AbortOnDropHandle::new(tokio::spawn(refresh(Arc::clone(&open))));
        let gate = Arc::default();
        let watcher = tokio::spawn(watch(cluster.clone(), settings.clone(), Arc::clone(&gate)));
        let _watcher = AbortOnDropHandle::new(watcher);
        let store = Self { cluster, settings, secret, limits, cpu, collections_max, open, gate, _refresher, _watcher };
        let name = CollectionName::default_collection();
        match store.find(&name).await? {
            Some(default) => compare_default(&default.settings(), &default_settings)?,
            None => _ = store.create(name, default_settings).await?,
        }
        // A server with another secret must not start.
        store.list().await?;
        Ok(store)
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
        let settings = settings.checked()?;
        refuse(settings.keep != Keep::Signature, "`keep` other than `signature`")?;
        refuse(settings.verify != Verify::Estimate, "`verify` other than `estimate`")?;
        refuse(settings.ttl.is_some(), "a `ttl`")?;
        refuse(settings.touch, "`touch`")?;
        self.gate.check()?;
        if self.find(&name).await?.is_none() && self.list().await?.len() >= self.collections_max {
            return Err(CollectionError::TooManyCollections { max: self.collections_max });
        }
        let listed = Listed {
            number: self.number().await?,
            created: TimestampMs::now().0,
            spec: settings.spec.to_string(),
            bands: settings.banding.bands(),
            rows: settings.banding.rows(),
            banding_by_hand: settings.banding_by_hand,
            threshold: settings.threshold,
            extract: settings.extract.as_str().to_owned(),
            documents_expected: self.settings.documents_expected,
        };
        let text = serde_json::to_string(&listed).expect("numbers and texts are JSON");
        let list = self.list_key();
        let made = self.call(&list, redis::cmd("HSETNX").arg(&list).arg(name.as_str()).arg(text), true).await?;
        let collection = self.find(&name).await?.ok_or_else(|| CollectionError::NoSuchCollection(name.clone()))?;
        if !collection.settings().answers(&settings) {
            let (held, asked) = (collection.settings().to_string(), settings.to_string());
            return Err(CollectionError::CollectionExists { name, held, asked });
        }
        Ok((collection, matches!(made, Value::Int(1))))
    }

    /// Returns the descriptions of all collections, by name.
    pub async fn list(&self) -> Result<Vec<Description>> {
        let list = self.list_key();
        let Value::Array(names) = self.call(&list, redis::cmd("HKEYS").arg(&list), false).await? else {
            return Err(CollectionError::Store("the list of collections in the cluster is not a hash".into()));
        };
        let mut names: Vec<_> =
            names.into_iter().filter_map(|name| redis::from_redis_value::<String>(name).ok()).collect();
        names.sort();
        let mut described = Vec::new();
        for name in names.iter().filter_map(|name| CollectionName::new(name).ok()) {
            described.push(self.get(&name).await?.describe());
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

    async fn find(&self, name: &CollectionName) -> Result<Option<Arc<RedisCollection>>> {
        let list = self.list_key();
        let found = self.call(&list, redis::cmd("HGET").arg(&list).arg(name.as_str()), false).await?;
        let Ok(Some(text)) = redis::from_redis_value::<Option<String>>(found) else { return Ok(None) };
        let unusable = |detail: String| CollectionError::Store(format!("collection `{name}` in the cluster: {detail}"));
        let listed: Listed = serde_json::from_str(&text).map_err(|error| unusable(error.to_string()))?;
        let spec = Spec::parse(&listed.spec).map_err(|error| unusable(error.to_string()))?;
        let banding =
            Banding::new(listed.bands, listed.rows, spec.shape()).map_err(|error| unusable(error.to_string()))?;
        let extract = Extract::parse(&listed.extract).ok_or_else(|| unusable("another extractor".into()))?;
        let settings = Settings {
            extract,
            banding_by_hand: listed.banding_by_hand,
            ..Settings::new(spec, banding, listed.threshold)
        };
        let preparer =
            Preparer::new(name, &settings.spec, self.secret.as_ref(), settings.keep, extract, self.cpu.clone())?;
        let collection = Arc::new(RedisCollection::new(Parts {
            name: name.clone(),
            created: TimestampMs(listed.created),
            settings,
            preparer,
            cluster: self.cluster.clone(),
            keys: Keys::new(&self.settings.prefix, listed.number, listed.documents_expected),
            limits: self.limits,
            gate: Arc::clone(&self.gate),
        }));
        // A failover may undo the entry of a collection that was just created. Then another server may create it with
        // another number, and the documents of the two would not know each other.
        if !confirm(&self.cluster, &list, name.as_str(), &text, self.settings.acks).await? {
            return Err(CollectionError::StoreUnavailable {
                detail: format!("collection `{name}` is being created by another server; send the request again"),
                uncertain: false,
            });
        }
        collection.refresh().await;
        Ok(Some(Arc::clone(self.open.lock().entry(name.clone()).or_insert(collection))))
    }

    fn list_key(&self) -> Vec<u8> {
        format!("{}:collections", self.settings.prefix).into_bytes()
    }

    /// Returns a number that no collection has.
    async fn number(&self) -> Result<u64> {
        let key = format!("{}:numbers", self.settings.prefix).into_bytes();
        match self.call(&key, redis::cmd("INCR").arg(&key), true).await? {
            Value::Int(number) => Ok(number as u64),
            _ => Err(CollectionError::Store("the counter of collections in the cluster is not a number".into())),
        }
    }

    async fn call(&self, key: &[u8], command: &Cmd, waits: bool) -> Result<Value> {
        call(&self.cluster, key, command.clone(), waits.then_some(self.settings.acks)).await
    }
}

async fn refresh(open: Arc<Mutex<Opened>>) {
    loop {
        tokio::time::sleep(REFRESH).await;
        let collections: Vec<_> = open.lock().values().cloned().collect();
        for collection in collections {
            collection.refresh().await;
        }
    }
}
