//! Every collection of a data directory: opened at start (`opening.rs`) or when first asked for, made, listed, dropped.
//! One file a collection, `collections/NAME.sqlite`; the directory belongs to one process at a time.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::backups::Backups;
use super::opening;
use crate::collections::opening::Opening;
use crate::cpu::CpuPool;
use crate::engine::boot::Common;
use crate::engine::disk::DataDisk;
use crate::engine::long_work::{blocking, finished};
use crate::engine::memory::MemoryBudget;
use crate::engine::{Background, Collection};
use crate::engine::{boot, meters};
use crate::store::lock::DataDirLock;
use crate::store::{self, Inventory, Store};
use crate::telemetry::names::{self, label};
use crate::types::CollectionName;
use crate::verdicts::{CollectionError, CollectionsConfig, Description, Medium, Result, Settings, WriteFailure};

/// How long a request waits for a collection to be opened before it is told to come again.
const OPEN_WAIT: Duration = Duration::from_secs(20);

/// Where collections are, in the data directory.
const KEPT: &str = "collections";
/// Where they are with [`Medium::Memory`].
const NOT_KEPT: &str = "collections.memory";

/// Filled once, by whoever opens, makes or drops the collection first; `None`: it was dropped.
pub(crate) type Cell = Arc<OnceCell<Option<Arc<Collection>>>>;

/// The collections that are open, or about to be.
type Open = Mutex<HashMap<CollectionName, Cell>>;

/// The collections of one data directory.
pub struct Registry {
    pub(crate) common: Common,
    collections_max: usize,
    dir: PathBuf,
    open: Arc<Open>,
    pub(crate) opening: Arc<Opening>,
    /// Absent if nothing is kept, or if it cannot be read or written.
    inventory: Arc<Mutex<Option<Inventory>>>,
    /// While those that are not open yet refuse requests.
    pub(crate) opening_rest: AtomicBool,
    /// Those that are being opened, as they were before.
    pub(crate) described: Mutex<BTreeMap<CollectionName, Description>>,
    /// Those that could not be opened for another reason than damage, and why.
    pub(crate) unopened: Mutex<BTreeMap<CollectionName, CollectionError>>,
    /// Those that do not open because their files are damaged, and how that shows. Each is looked at once: a file does
    /// not mend itself, and reading it through takes long.
    pub(crate) damaged: Mutex<BTreeMap<CollectionName, CollectionError>>,
    background: Background,
    pub(crate) backups: Backups,
    /// Held while a collection is made or dropped.
    pub(crate) changing: tokio::sync::Mutex<()>,
    _lock: DataDirLock,
}

impl Registry {
    /// Takes the data directory, and makes or opens `default`; blocking. The others are opened by
    /// [`open_rest`](Self::open_rest), or when they are asked for. Long contents will be signed on `cpu`; `opening` is
    /// told how far it is.
    pub fn open(config: CollectionsConfig, cpu: CpuPool, opening: Arc<Opening>) -> Result<Arc<Self>> {
        let CollectionsConfig { data_dir, lock_wait, collections_max, secret, default_settings: asked, .. } = config;
        let CollectionsConfig { limits, memory_max_bytes, medium, backup, scrub, .. } = config;
        let lock =
            DataDirLock::acquire(&data_dir, lock_wait).map_err(|error| CollectionError::Store(error.to_string()))?;
        let not_kept = data_dir.join(NOT_KEPT);
        forget(&not_kept)?;
        let dir = match medium {
            Medium::Disk => {
                store::backup::refuse_half_restored(&data_dir)
                    .map_err(|error| CollectionError::Store(error.chain()))?;
                data_dir.join(KEPT)
            }
            Medium::Memory => {
                tracing::warn!("data.store is \"memory\": NOTHING IS KEPT when this process ends");
                not_kept
            }
        };
        let unusable = |error: std::io::Error| CollectionError::Store(format!("{}: {error}", dir.display()));
        store::make_dir(&dir).map_err(unusable)?;
        for leftover in store::clean_leftovers(&dir).map_err(unusable)? {
            tracing::warn!(path = %leftover.display(), "removed what a crash left of a creation or a drop");
        }
        for stranger in store::strangers(&dir).map_err(unusable)? {
            match store::log_without_database(&stranger) {
                Some(name) => tracing::warn!(
                    path = %stranger.display(), collection = %name,
                    "ignoring it: not a collection, but a log without its database, whose file is gone; restore a backup"
                ),
                None => tracing::warn!(path = %stranger.display(), "ignoring it: not a collection"),
            }
        }
        let memory = Arc::new(MemoryBudget::new(memory_max_bytes));
        let disk = DataDisk::new(&data_dir);
        let common = Common { secret, limits, cpu, memory, medium, disk };
        let open = Arc::<Open>::default();
        let weakly_open = Arc::downgrade(&open);
        let background = Background::start(Arc::clone(&common.disk), scrub, move || {
            let open = weakly_open.upgrade()?;
            Some(each_open(&open).iter().map(|collection| collection.kept()).collect())
        });
        let collections = Self {
            common,
            collections_max,
            dir,
            open,
            opening,
            inventory: Arc::default(),
            opening_rest: AtomicBool::new(false),
            described: Mutex::default(),
            unopened: Mutex::default(),
            damaged: Mutex::default(),
            background,
            backups: Backups::new(backup),
            changing: tokio::sync::Mutex::default(),
            _lock: lock,
        };
        let name = CollectionName::default_collection();
        let path = collections.path(&name);
        if medium == Medium::Disk {
            *collections.inventory.lock() = missed(&data_dir, &collections.names()?);
        }
        let expected: Vec<_> = collections.names()?.into_iter().chain([name.clone()]).collect();
        expected.iter().for_each(meters::admit);
        collections.opening.expect(expected.into_iter().map(|name| {
            let bytes = opening::bytes_of(&collections.path(&name));
            (name, bytes)
        }));
        match collections.open_default(&path, &name, asked) {
            Ok(default) => {
                let cell = Arc::new(OnceCell::new_with(Some(Some(default))));
                collections.open.lock().insert(name.clone(), cell);
            }
            // The others are well, and this one says what is wrong when it is asked for.
            Err(error @ CollectionError::Damaged { .. }) => collections.note_damage(&name, &error),
            Err(error) => return Err(error),
        }
        collections.note_made(&name);
        collections.opening.end(&name);
        Ok(Arc::new(collections))
    }

    fn open_default(&self, path: &Path, name: &CollectionName, asked: Settings) -> Result<Arc<Collection>> {
        if !path.exists() {
            return boot::create(path, name, &asked.checked()?, &self.common);
        }
        let held = Store::peek(path)?.meta;
        if held.spec != asked.spec.to_string() {
            return Err(CollectionError::SpecMismatch {
                name: name.clone(),
                held: format!("spec `{}`", held.spec),
                asked: format!("`default_collection` of the configuration asks for spec `{}`", asked.spec),
            });
        }
        let default = boot::open(path, &self.common, &|share| self.opening.set(name, share))?;
        let held = default.settings();
        if held != asked {
            tracing::info!(%held, %asked, "`default` keeps its settings; those of the configuration are for a new one");
        }
        Ok(default)
    }

    /// From here on the collection is refused with this error, until the process is restarted or it is dropped.
    pub(crate) fn note_damage(&self, name: &CollectionName, error: &CollectionError) {
        tracing::error!(collection = %name, %error, "a collection is damaged and not served; `hapax verify` tells more");
        meters::admit(name);
        self.damaged.lock().insert(name.clone(), error.clone());
    }

    /// Those known not to open because their files are damaged, and how that shows.
    pub fn damaged(&self) -> Vec<(CollectionName, CollectionError)> {
        self.damaged.lock().iter().map(|(name, error)| (name.clone(), error.clone())).collect()
    }

    /// A collection, opened if it is not yet.
    pub async fn get(self: &Arc<Self>, name: &CollectionName) -> Result<Arc<Collection>> {
        let missing = || CollectionError::NoSuchCollection(name.clone());
        if let Some(error) = self.damaged.lock().get(name) {
            return Err(error.clone());
        }
        let cell = {
            let mut open = self.open.lock();
            match open.get(name) {
                Some(cell) => Arc::clone(cell),
                None if self.path(name).exists() => Arc::clone(open.entry(name.clone()).or_default()),
                None => return Err(missing()),
            }
        };
        if let Some(opened) = cell.get() {
            return opened.clone().ok_or_else(missing);
        }
        self.refuse_while_opening(name)?;
        // In a task of its own: a client that leaves must not stop what others wait for.
        let opening = tokio::spawn(Arc::clone(self).open_in(cell, name.clone()));
        match tokio::time::timeout(OPEN_WAIT, opening).await {
            Ok(opened) => finished(opened)?.ok_or_else(missing),
            Err(_) => Err(CollectionError::Overloaded {
                detail: "the collection is still being opened".into(),
                retry_after: OPEN_WAIT,
            }),
        }
    }

    /// Makes a collection. False: it was there with equal settings.
    pub async fn create(self: &Arc<Self>, name: CollectionName, settings: Settings) -> Result<(Arc<Collection>, bool)> {
        let settings = settings.checked()?;
        let this = Arc::clone(self);
        // A task of its own, so that a client that leaves does not leave a file that nobody knows.
        finished(tokio::spawn(async move { this.create_whole(name, settings).await }).await)
    }

    async fn create_whole(
        self: Arc<Self>,
        name: CollectionName,
        settings: Settings,
    ) -> Result<(Arc<Collection>, bool)> {
        let _one_at_a_time = self.changing.lock().await;
        if self.path(&name).exists() {
            let held = self.get(&name).await?;
            if !held.settings().answers(&settings) {
                let (held, asked) = (held.settings().to_string(), settings.to_string());
                return Err(CollectionError::CollectionExists { name, held, asked });
            }
            return Ok((held, false));
        }
        let max = self.collections_max;
        if self.names()?.len() >= max {
            return Err(CollectionError::TooManyCollections { max });
        }
        // Made through its cell, so that whoever asks for it meanwhile waits and does not open the file beside us.
        let cell = self.cell(&name);
        let (path, common) = (self.path(&name), self.common.clone());
        let (for_file, this) = (name.clone(), Arc::clone(&self));
        let made = cell
            .get_or_try_init(|| {
                blocking(move || {
                    let made = boot::create(&path, &for_file, &settings, &common)?;
                    this.note_made(&for_file);
                    Ok(Some(made))
                })
            })
            .await;
        match made {
            Ok(made) => Ok((made.clone().ok_or(CollectionError::NoSuchCollection(name))?, true)),
            Err(error) => {
                self.open.lock().remove(&name);
                meters::forget(&name);
                Err(error)
            }
        }
    }

    /// Every collection by name, open or not, but for those that are damaged; then those, and how that shows.
    pub async fn list(self: &Arc<Self>) -> Result<(Vec<Description>, Vec<(CollectionName, CollectionError)>)> {
        let _nothing_dropped_meanwhile = self.changing.lock().await;
        let (mut described, mut damaged) = (Vec::new(), Vec::new());
        for name in self.names()? {
            match self.describe(&name).await {
                Ok(description) => described.extend(description),
                Err(error @ CollectionError::Damaged { .. }) => damaged.push((name, error)),
                Err(error) => return Err(error),
            }
        }
        Ok((described, damaged))
    }

    /// Drops a collection and all its documents.
    pub async fn remove(self: &Arc<Self>, name: &CollectionName) -> Result<()> {
        if *name == CollectionName::default_collection() {
            return Err(CollectionError::DefaultStays);
        }
        let (this, name) = (Arc::clone(self), name.clone());
        finished(tokio::spawn(async move { this.remove_whole(name).await }).await)
    }

    async fn remove_whole(self: Arc<Self>, name: CollectionName) -> Result<()> {
        let _one_at_a_time = self.changing.lock().await;
        let path = self.path(&name);
        if !path.exists() {
            let forgotten = self.forget_missing(name.clone()).await?;
            return if forgotten { Ok(()) } else { Err(CollectionError::NoSuchCollection(name)) };
        }
        self.refuse_while_opening(&name)?;
        // Waits for an opening under way, and bars those that come later.
        let opened = self.cell(&name).get_or_init(|| async { None }).await.clone();
        let (this, listed) = (Arc::clone(&self), name.clone());
        let removed = blocking(move || {
            if let Some(opened) = opened {
                opened.close();
            }
            // Before its file goes: a crash between the two must not have it missed.
            if let Some(inventory) = &mut *this.inventory.lock() {
                warn_unlisted(inventory.remove(&listed));
            }
            let removed = Store::remove(&path);
            if removed.is_err() && path.exists() {
                this.note_made(&listed);
            }
            removed.map_err(|error| CollectionError::of_file(error, WriteFailure::Uncertain))
        })
        .await;
        self.open.lock().remove(&name);
        self.unopened.lock().remove(&name);
        if removed.is_ok() {
            self.damaged.lock().remove(&name);
            // Last: what is looked up under this name from here on is not shown.
            meters::forget(&name);
        }
        removed
    }

    pub(crate) fn cell(&self, name: &CollectionName) -> Cell {
        Arc::clone(self.open.lock().entry(name.clone()).or_default())
    }

    /// Whether the data directory takes writes, as far as that is known.
    pub fn is_writable(&self) -> bool {
        self.common.disk.is_writable()
    }

    fn note_made(&self, name: &CollectionName) {
        if let Some(inventory) = &mut *self.inventory.lock() {
            warn_unlisted(inventory.add(name));
        }
    }

    /// Registry whose files vanished while no server ran.
    pub fn missing(&self) -> Vec<CollectionName> {
        self.inventory.lock().iter().flat_map(Inventory::missing).cloned().collect()
    }

    /// Forgets one whose file vanished. False: there is none of this name.
    async fn forget_missing(self: &Arc<Self>, name: CollectionName) -> Result<bool> {
        let this = Arc::clone(self);
        blocking(move || {
            let mut inventory = this.inventory.lock();
            let Some(inventory) = inventory.as_mut().filter(|inventory| inventory.missing().contains(&name)) else {
                return Ok(false);
            };
            warn_unlisted(inventory.remove(&name));
            Ok(true)
        })
        .await
    }

    /// Documents in the collections that are open.
    pub fn documents(&self) -> u64 {
        self.each_open().iter().map(|collection| collection.describe().documents).sum()
    }

    /// Sets the gauges of every open collection.
    pub fn observe(&self) {
        let set = |name: &CollectionName, damaged| {
            metrics::gauge!(names::COLLECTION_DAMAGED, label::COLLECTION => name.to_string()).set(damaged);
        };
        for collection in self.each_open() {
            collection.observe();
            set(collection.name(), 0.0);
        }
        self.damaged.lock().keys().for_each(|name| set(name, 1.0));
        self.observe_open();
        self.common.memory.observe();
        self.common.disk.observe();
        self.backups.observe();
    }

    fn observe_open(&self) {
        let set = |name: &CollectionName, open| {
            metrics::gauge!(names::COLLECTION_OPEN, label::COLLECTION => name.to_string()).set(open);
        };
        self.each_open().iter().for_each(|collection| set(collection.name(), 1.0));
        self.damaged.lock().keys().for_each(|name| set(name, 0.0));
        self.unopened.lock().keys().for_each(|name| set(name, 0.0));
        self.opening.pending().iter().for_each(|(name, _)| set(name, 0.0));
    }

    /// Waits until all that was taken is on disk; blocking. No write is taken after.
    pub fn close(&self) {
        self.backups.close();
        self.background.stop();
        for collection in self.each_open() {
            collection.close();
        }
        self.background.join();
        if self.common.medium == Medium::Memory
            && let Err(error) = forget(&self.dir)
        {
            tracing::warn!(%error, "what was not to be kept is removed at the next start");
        }
    }

    fn each_open(&self) -> Vec<Arc<Collection>> {
        each_open(&self.open)
    }

    pub(crate) fn path(&self, name: &CollectionName) -> PathBuf {
        store::path_of(&self.dir, name)
    }

    pub(crate) fn names(&self) -> Result<Vec<CollectionName>> {
        store::list(&self.dir).map_err(|error| CollectionError::of_system(self.dir.display(), &error))
    }
}

/// Reads the list of what should be in the data directory, and logs what is missing.
fn missed(data_dir: &Path, present: &[CollectionName]) -> Option<Inventory> {
    let inventory = match Inventory::open(data_dir, present) {
        Ok(inventory) => inventory,
        Err(error) => {
            tracing::warn!(%error, "the list of collections is of no use; a file that vanishes would not be missed");
            return None;
        }
    };
    let default = CollectionName::default_collection();
    // A directory of an earlier version has no list, but always had this one.
    let used = inventory.missing().contains(&default) || !present.is_empty();
    if used && !present.contains(&default) {
        tracing::error!(
            collection = %default,
            "the file of this collection is gone, and an EMPTY one takes its place; if this is not intended, stop the \
             server and restore a backup"
        );
    }
    for name in inventory.missing().iter().filter(|name| **name != default) {
        tracing::error!(
            collection = %name,
            "the file of this collection is gone, though it was not dropped; restore a backup, or forget it with DELETE"
        );
    }
    Some(inventory)
}

fn warn_unlisted(noted: std::io::Result<()>) {
    if let Err(error) = noted {
        tracing::warn!(%error, "the list of collections could not be written; a file that vanishes may not be missed");
    }
}

/// Removes what was not to be kept; nothing else is ever written there.
fn forget(dir: &Path) -> Result<()> {
    match std::fs::remove_dir_all(dir) {
        Ok(()) => tracing::info!(path = %dir.display(), "removed what was not to be kept"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(CollectionError::Store(format!("{}: {error}", dir.display()))),
    }
    Ok(())
}

fn each_open(open: &Open) -> Vec<Arc<Collection>> {
    open.lock().values().filter_map(|cell| cell.get().cloned().flatten()).collect()
}
