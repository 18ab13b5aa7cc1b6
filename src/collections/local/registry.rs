//! Every collection of a data directory: hands collections to requests, creates, lists and drops them. Only one
//! creation or drop runs at a time.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::faults::Faults;
use super::known::Known;
use super::load_place::LoadPlace;
use super::opener::Opener;
use crate::engine::long_work::{blocking, finished};
use crate::engine::{Background, LocalCollection, boot, meters};
use crate::load::{self, FileSource, LoadError, LoadFile, Loaded, Made};
use crate::store::{self, Store};
use crate::telemetry::names::{self, label};
use crate::types::CollectionName;
use crate::verdicts::{CollectionError, Description, Result, Settings, WriteFailure};

/// How long a request waits for a collection to be opened. After that, the request is refused, and the client is asked
/// to try again.
const OPEN_WAIT: Duration = Duration::from_secs(20);

/// The collections of one data directory.
pub(in crate::collections) struct Registry {
    opener: Arc<Opener>,
    known: Known,
    background: Background,
    collections_max: usize,
    /// The settings of a loaded collection, if its file has only a spec.
    default_settings: Settings,
    /// Locked while a collection is created or dropped.
    changing: tokio::sync::Mutex<()>,
    /// Locked while a collection is loaded. Creations and drops do not wait for this lock.
    loading: Arc<tokio::sync::Mutex<()>>,
}

/// A collection's file while no other code opens or drops it.
pub(super) enum SettledFile {
    Open(Arc<LocalCollection>),
    /// The file is not open.
    Settled,
}

impl Registry {
    /// Makes a registry of the collections that `opener` opens.
    pub(super) fn new(
        opener: Arc<Opener>,
        known: Known,
        background: Background,
        collections_max: usize,
        default_settings: Settings,
    ) -> Self {
        Self {
            opener,
            known,
            background,
            collections_max,
            default_settings,
            changing: tokio::sync::Mutex::default(),
            loading: Arc::default(),
        }
    }

    /// Opens every collection that is not open yet; see [`Opener::open_rest`].
    pub(in crate::collections) fn open_rest(&self) -> impl Future<Output = ()> + Send + use<> {
        self.opener.open_rest()
    }

    /// Returns a collection, and opens it if it is not open yet.
    pub(in crate::collections) async fn get(&self, name: &CollectionName) -> Result<Arc<LocalCollection>> {
        let missing = || CollectionError::NoSuchCollection(name.clone());
        self.opener.faults().refuse_damaged(name)?;
        let exists = || self.opener.folder().path(name).exists();
        let cell = self.opener.cells().of_existing(name, exists).ok_or_else(missing)?;
        if let Some(opened) = cell.get() {
            return opened.clone().ok_or_else(missing);
        }
        self.opener.refuse_while_opening(name)?;
        // The opening runs in its own task, so that it continues if this client leaves: other clients may wait for it.
        let opening = tokio::spawn(Arc::clone(&self.opener).open(cell, name.clone()));
        match tokio::time::timeout(OPEN_WAIT, opening).await {
            Ok(opened) => finished(opened)?.ok_or_else(missing),
            Err(_) => Err(CollectionError::Overloaded {
                detail: "the collection is still being opened; try again later".into(),
                retry_after: OPEN_WAIT,
            }),
        }
    }

    /// Creates a collection. False: it already exists with equal settings.
    pub(in crate::collections) async fn create(
        self: &Arc<Self>,
        name: CollectionName,
        settings: Settings,
    ) -> Result<(Arc<LocalCollection>, bool)> {
        let settings = settings.checked()?;
        let this = Arc::clone(self);
        // The creation runs in its own task. So it is completed even if the client leaves, and no unregistered file
        // remains.
        finished(tokio::spawn(async move { this.create_whole(name, settings).await }).await)
    }

    async fn create_whole(
        self: Arc<Self>,
        name: CollectionName,
        settings: Settings,
    ) -> Result<(Arc<LocalCollection>, bool)> {
        let _one_at_a_time = self.changing.lock().await;
        let path = self.opener.folder().path(&name);
        if path.exists() {
            let held = self.get(&name).await?;
            if !held.settings().answers(&settings) {
                let (held, asked) = (held.settings().to_string(), settings.to_string());
                return Err(CollectionError::CollectionExists { name, held, asked });
            }
            return Ok((held, false));
        }
        self.admit_another()?;
        // The cell makes other requests for this name wait, so that they do not open the file during its creation.
        let cell = self.opener.cells().of(&name);
        let (for_file, this) = (name.clone(), Arc::clone(&self));
        let make = || {
            blocking(move || {
                let made = boot::create(&path, &for_file, &settings, this.opener.common())?;
                this.known.add(&for_file);
                Ok(Some(made))
            })
        };
        match cell.get_or_try_init(make).await {
            Ok(made) => Ok((made.clone().ok_or(CollectionError::NoSuchCollection(name))?, true)),
            Err(error) => {
                self.opener.cells().forget(&name);
                meters::forget(&name);
                Err(error)
            }
        }
    }

    /// Begins to load a new collection, if no other load is running.
    pub(in crate::collections) async fn begin_load(&self, name: CollectionName) -> Result<LoadPlace> {
        let only = Arc::clone(&self.loading).try_lock_owned().map_err(|_| CollectionError::LoadRunning)?;
        self.admit_new(&name)?;
        let path = self.path(&name);
        let file = blocking(move || {
            store::spool(&path).map_err(|error| CollectionError::of_system("making a file for the load", &error))
        });
        Ok(LoadPlace::new(name, file.await?, Arc::clone(&self.opener.common().disk), only))
    }

    /// Makes a new collection from a file of precomputed signatures, whole or not at all. If `stop` returns true while
    /// rows are read, the load is cancelled. Other collections are served, created and dropped meanwhile.
    pub(in crate::collections) async fn load(
        self: &Arc<Self>,
        place: LoadPlace,
        stop: impl Fn() -> bool + Send + 'static,
    ) -> Result<(Arc<LocalCollection>, Loaded)> {
        let this = Arc::clone(self);
        // The load runs in its own task. So it ends properly even if the client leaves, and no unregistered file
        // remains.
        finished(tokio::spawn(async move { this.load_whole(&place, stop).await }).await)
    }

    async fn load_whole(
        self: Arc<Self>,
        place: &LoadPlace,
        stop: impl Fn() -> bool + Send + 'static,
    ) -> Result<(Arc<LocalCollection>, Loaded)> {
        let unusable = |error| CollectionError::of_system("reading the file of the load", &error);
        let source = FileSource { label: "the file".to_owned(), file: place.file().map_err(unusable)? };
        // This is checked again, because the upload may have taken hours.
        self.admit_new(place.name())?;
        let (its, name) = (Arc::clone(&self), place.name().clone());
        let made = blocking(move || {
            let (path, default) = (its.path(&name), &its.default_settings);
            let file = LoadFile::open(source)?;
            // This check comes first, so that work is done only for a collection that can be served.
            boot::admit(&name, &file.settings().settings(default), file.rows(), its.opener.common())?;
            // On a full disk, the remaining room is reserved for deletes, so the load stops.
            let disk = &its.opener.common().disk;
            let stop = || stop() || disk.admit().is_err();
            let made = load::build(vec![file], (&name, &path), default, &|_| {}, &stop);
            if matches!(made, Err(LoadError::Cancelled)) {
                disk.admit()?;
            }
            Ok(made?)
        });
        let Made { file, loaded } = made.await?;
        {
            let _one_at_a_time = self.changing.lock().await;
            self.admit_new(place.name())?;
            let (its, name) = (Arc::clone(&self), place.name().clone());
            let publish = move || {
                file.publish().map_err(|error| CollectionError::of_file(error, WriteFailure::NothingKept))?;
                its.known.add(&name);
                Ok(())
            };
            blocking(publish).await?;
        }
        let cell = self.opener.cells().of(place.name());
        let opened = Arc::clone(&self.opener).open(cell, place.name().clone()).await?;
        Ok((opened.ok_or_else(|| CollectionError::NoSuchCollection(place.name().clone()))?, loaded))
    }

    /// Fails if the collection already exists, or if there is no room for another collection.
    fn admit_new(&self, name: &CollectionName) -> Result<()> {
        if self.path(name).exists() {
            return Err(CollectionError::LoadIntoExisting(name.clone()));
        }
        self.admit_another()
    }

    fn admit_another(&self) -> Result<()> {
        let max = self.collections_max;
        if self.opener.folder().names()?.len() >= max {
            return Err(CollectionError::TooManyCollections { max });
        }
        // On a full disk, the remaining room is reserved for deletes.
        self.opener.common().disk.admit()
    }

    /// Returns the descriptions of all collections, open or not, by name; and the damaged collections with their
    /// errors.
    pub(in crate::collections) async fn list(
        &self,
    ) -> Result<(Vec<Description>, Vec<(CollectionName, CollectionError)>)> {
        let _nothing_dropped_meanwhile = self.changing.lock().await;
        let (mut described, mut damaged) = (Vec::new(), Vec::new());
        for name in self.names()? {
            match self.opener.describe(&name).await {
                Ok(description) => described.extend(description),
                Err(error @ CollectionError::Damaged { .. }) => damaged.push((name, error)),
                Err(error) => return Err(error),
            }
        }
        Ok((described, damaged))
    }

    /// Drops a collection and all its documents.
    pub(in crate::collections) async fn remove(self: &Arc<Self>, name: &CollectionName) -> Result<()> {
        if *name == CollectionName::default_collection() {
            return Err(CollectionError::DefaultStays);
        }
        let (this, name) = (Arc::clone(self), name.clone());
        finished(tokio::spawn(async move { this.remove_whole(name).await }).await)
    }

    async fn remove_whole(self: Arc<Self>, name: CollectionName) -> Result<()> {
        let _one_at_a_time = self.changing.lock().await;
        if !self.opener.folder().path(&name).exists() {
            let (this, missed) = (Arc::clone(&self), name.clone());
            let forgotten = blocking(move || Ok(this.known.forget_missing(&missed))).await?;
            return if forgotten { Ok(()) } else { Err(CollectionError::NoSuchCollection(name)) };
        }
        self.opener.refuse_while_opening(&name)?;
        // Waits for an opening that has already begun, and prevents later openings.
        let opened = self.opener.cells().of(&name).get_or_init(|| async { None }).await.clone();
        let (this, dropped) = (Arc::clone(&self), name.clone());
        let removed = blocking(move || {
            if let Some(opened) = opened {
                opened.close();
            }
            this.remove_file(&dropped)
        })
        .await;
        self.opener.cells().forget(&name);
        self.opener.faults().forget_unopened(&name);
        if removed.is_ok() {
            self.opener.faults().forget_damage(&name);
            // This is the last step, so that no metric series with this name appears again.
            meters::forget(&name);
        }
        removed
    }

    fn remove_file(&self, name: &CollectionName) -> Result<()> {
        let path = self.opener.folder().path(name);
        // The list is changed before the file is removed: after a crash between the two, the file must not count as
        // missing.
        self.known.remove(name);
        let removed = Store::remove(&path);
        if removed.is_err() && path.exists() {
            self.known.add(name);
        }
        removed.map_err(|error| CollectionError::of_file(error, WriteFailure::Uncertain))
    }

    /// Returns a collection's file in a state in which it can be copied. If the file is not open, `settle` prepares it.
    /// `None`: the collection was dropped.
    pub(super) async fn settled(
        &self,
        name: &CollectionName,
        settle: impl FnOnce(PathBuf) -> Result<()> + Send + 'static,
    ) -> Result<Option<SettledFile>> {
        let _nothing_dropped_meanwhile = self.changing.lock().await;
        let path = self.path(name);
        if !path.exists() {
            return Ok(None);
        }
        // While the cell is in use, no other code opens the file. The cell stays empty, because a copy needs no index.
        let settle = || async { Err(blocking(move || settle(path)).await) };
        match self.opener.cells().of(name).get_or_try_init(settle).await {
            Ok(opened) => Ok(opened.clone().map(SettledFile::Open)),
            Err(settled) => settled.map(|()| Some(SettledFile::Settled)),
        }
    }

    /// Waits until a collection is open or will not be opened at this start, or until `stop` returns true.
    pub(super) async fn opened_or_over(&self, name: &CollectionName, stop: impl Fn() -> bool) {
        self.opener.opened_or_over(name, stop).await;
    }

    /// Returns the path of a collection's file. The file may be missing.
    pub(super) fn path(&self, name: &CollectionName) -> PathBuf {
        self.opener.folder().path(name)
    }

    /// Returns every collection, open or not.
    pub(super) fn names(&self) -> Result<Vec<CollectionName>> {
        self.opener.folder().names()
    }

    /// Returns the collections that are not served.
    pub(in crate::collections) fn faults(&self) -> &Faults {
        self.opener.faults()
    }

    /// Returns the collections whose files vanished while no server was running.
    pub(in crate::collections) fn missing(&self) -> Vec<CollectionName> {
        self.known.missing()
    }

    /// Whether the data directory accepts writes, as far as that is known.
    pub(in crate::collections) fn is_writable(&self) -> bool {
        self.opener.common().disk.is_writable()
    }

    /// Returns the collections that are open.
    pub(in crate::collections) fn open_ones(&self) -> Vec<Arc<LocalCollection>> {
        self.opener.cells().open()
    }

    /// Returns the number of documents in the open collections.
    pub(in crate::collections) fn documents(&self) -> u64 {
        self.opener.cells().open().iter().map(|collection| collection.describe().documents).sum()
    }

    /// Sets the gauges of every collection.
    pub(super) fn observe(&self) {
        let set = |gauge: &'static str, name: &CollectionName, value| {
            metrics::gauge!(gauge, label::COLLECTION => name.to_string()).set(value);
        };
        for collection in self.opener.cells().open() {
            collection.observe();
            set(names::COLLECTION_DAMAGED, collection.name(), 0.0);
            set(names::COLLECTION_OPEN, collection.name(), 1.0);
            set(names::COLLECTION_BOOT_PROGRESS, collection.name(), 1.0);
        }
        self.opener.faults().observe();
        self.known.observe();
        for (name, share) in self.opener.pending() {
            set(names::COLLECTION_OPEN, &name, 0.0);
            set(names::COLLECTION_BOOT_PROGRESS, &name, share);
        }
        self.opener.common().memory.observe();
        self.opener.common().disk.observe();
    }

    /// Waits until all accepted writes are on disk. Blocks the thread. No write is accepted afterwards.
    pub(super) fn close(&self) {
        self.background.stop();
        for collection in self.opener.cells().open() {
            collection.close();
        }
        self.background.join();
        self.opener.folder().leave();
    }
}
