//! Every collection of a data directory, opened when first asked for.
//! One file a collection, `collections/NAME.sqlite`; the directory belongs to one process at a time.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hapax_core::{Banding, Spec};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::{Collection, CollectionError, CollectionsConfig, Description, Result, Settings, boot};
use crate::store::lock::DataDirLock;
use crate::store::{self, Opened, Store};
use crate::types::CollectionName;

/// How long a request waits for a collection to be opened before it is told to come again.
const OPEN_WAIT: Duration = Duration::from_secs(20);

/// The collections of one data directory.
pub struct Collections {
    config: CollectionsConfig,
    dir: PathBuf,
    open: Mutex<HashMap<CollectionName, Arc<OnceCell<Arc<Collection>>>>>,
    /// Held while a collection is made or dropped.
    changing: tokio::sync::Mutex<()>,
    _lock: DataDirLock,
}

impl Collections {
    /// Takes the data directory, and makes or opens `default`; blocking. `progress` is told shares from 0 to 1.
    pub fn open(config: CollectionsConfig, progress: &(dyn Fn(f64) + Sync)) -> Result<Arc<Self>> {
        let lock = DataDirLock::acquire(&config.data_dir, config.lock_wait)
            .map_err(|error| CollectionError::Store(error.to_string()))?;
        let dir = config.data_dir.join("collections");
        let unusable = |error: std::io::Error| CollectionError::Store(format!("{}: {error}", dir.display()));
        std::fs::create_dir_all(&dir).map_err(unusable)?;
        for leftover in store::clean_leftovers(&dir).map_err(unusable)? {
            tracing::warn!(path = %leftover.display(), "removed what a crash left of a creation or a drop");
        }
        let collections = Self {
            dir,
            open: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            _lock: lock,
            config,
        };
        let name = CollectionName::default_collection();
        let path = collections.path(&name);
        let CollectionsConfig { default_settings: asked, secret, limits, .. } = &collections.config;
        let default = if path.exists() {
            let held = Store::read_meta(&path)?;
            if held.spec != asked.spec.to_string() {
                return Err(CollectionError::SpecMismatch {
                    name,
                    held: format!("spec `{}`", held.spec),
                    asked: format!("`{}` in `default_collection` of the configuration", asked.spec),
                });
            }
            boot::open(&path, secret.as_ref(), *limits, progress)?
        } else {
            boot::create(&path, &name, &asked.clone().checked()?, secret.as_ref(), *limits)?
        };
        let held = default.settings();
        if held != *asked {
            tracing::info!(%held, %asked, "`default` keeps its settings; those of the configuration are for a new one");
        }
        collections.open.lock().insert(name, Arc::new(OnceCell::new_with(Some(default))));
        Ok(Arc::new(collections))
    }

    /// A collection, opened if it is not yet.
    pub async fn get(self: &Arc<Self>, name: &CollectionName) -> Result<Arc<Collection>> {
        let cell = {
            let mut open = self.open.lock();
            match open.get(name) {
                Some(cell) => Arc::clone(cell),
                None if self.path(name).exists() => Arc::clone(open.entry(name.clone()).or_default()),
                None => return Err(CollectionError::NoSuchCollection(name.clone())),
            }
        };
        if let Some(collection) = cell.get() {
            return Ok(Arc::clone(collection));
        }
        // In a task of its own: a client that leaves must not stop what others wait for.
        let (this, name) = (Arc::clone(self), name.clone());
        let opening = tokio::spawn(async move {
            cell.get_or_try_init(|| async {
                let path = this.path(&name);
                let (secret, limits) = (this.config.secret.clone(), this.config.limits);
                blocking(move || boot::open(&path, secret.as_ref(), limits, &|_| {})).await
            })
            .await
            .cloned()
        });
        match tokio::time::timeout(OPEN_WAIT, opening).await {
            Ok(opened) => opened.unwrap_or_else(|stopped| std::panic::resume_unwind(stopped.into_panic())),
            Err(_) => Err(CollectionError::Overloaded {
                detail: "the collection is still being opened".into(),
                retry_after: OPEN_WAIT,
            }),
        }
    }

    /// Makes a collection. False: it was there with equal settings.
    pub async fn create(
        self: &Arc<Self>,
        name: CollectionName,
        settings: Settings,
    ) -> Result<(Arc<Collection>, bool)> {
        let settings = settings.checked()?;
        let this = Arc::clone(self);
        // A task of its own, so that a client that leaves does not leave a file that nobody knows.
        let created = tokio::spawn(async move {
            let _one_at_a_time = this.changing.lock().await;
            if this.path(&name).exists() {
                let held = this.get(&name).await?;
                if held.settings() != settings {
                    let (held, asked) = (held.settings().to_string(), settings.to_string());
                    return Err(CollectionError::CollectionExists { name, held, asked });
                }
                return Ok((held, false));
            }
            let max = this.config.collections_max;
            if this.names()?.len() >= max {
                return Err(CollectionError::TooManyCollections { max });
            }
            let (path, secret, limits) = (this.path(&name), this.config.secret.clone(), this.config.limits);
            let for_file = name.clone();
            let made =
                blocking(move || boot::create(&path, &for_file, &settings, secret.as_ref(), limits)).await?;
            this.open.lock().insert(name, Arc::new(OnceCell::new_with(Some(Arc::clone(&made)))));
            Ok((made, true))
        });
        created.await.unwrap_or_else(|stopped| std::panic::resume_unwind(stopped.into_panic()))
    }

    /// Every collection by name, open or not.
    pub async fn list(self: &Arc<Self>) -> Result<Vec<Description>> {
        let this = Arc::clone(self);
        blocking(move || {
            this.names()?
                .into_iter()
                .map(|name| {
                    let open = this.open.lock().get(&name).and_then(|cell| cell.get().cloned());
                    match open {
                        Some(collection) => Ok(collection.describe()),
                        None => describe_closed(&this.path(&name)),
                    }
                })
                .collect()
        })
        .await
    }

    /// Drops a collection and all its documents.
    pub async fn remove(self: &Arc<Self>, name: &CollectionName) -> Result<()> {
        if *name == CollectionName::default_collection() {
            return Err(CollectionError::DefaultStays);
        }
        let (this, name) = (Arc::clone(self), name.clone());
        let removed = tokio::spawn(async move {
            let _one_at_a_time = this.changing.lock().await;
            let path = this.path(&name);
            if !path.exists() {
                return Err(CollectionError::NoSuchCollection(name));
            }
            let opened = this.open.lock().get(&name).cloned();
            if let Some(cell) = opened {
                // Waits for an opening under way, so that no committer works on a file that is gone.
                let _ = cell.get_or_try_init(|| async { Err(()) }).await;
                if let Some(collection) = cell.get().cloned() {
                    blocking(move || {
                        collection.close();
                        Ok(())
                    })
                    .await?;
                }
            }
            blocking(move || Ok(Store::remove(&path)?)).await?;
            this.open.lock().remove(&name);
            Ok(())
        });
        removed.await.unwrap_or_else(|stopped| std::panic::resume_unwind(stopped.into_panic()))
    }

    /// Documents in the collections that are open.
    pub fn documents(&self) -> u64 {
        self.each_open().iter().map(|collection| collection.describe().documents).sum()
    }

    /// Sets the gauges of every open collection.
    pub fn observe(&self) {
        for collection in self.each_open() {
            collection.observe();
        }
    }

    /// Waits until all that was taken is on disk; blocking. No write is taken after.
    pub fn close(&self) {
        for collection in self.each_open() {
            collection.close();
        }
    }

    fn each_open(&self) -> Vec<Arc<Collection>> {
        self.open.lock().values().filter_map(|cell| cell.get().cloned()).collect()
    }

    fn path(&self, name: &CollectionName) -> PathBuf {
        store::path_of(&self.dir, name)
    }

    fn names(&self) -> Result<Vec<CollectionName>> {
        store::list(&self.dir).map_err(|error| CollectionError::Store(format!("{}: {error}", self.dir.display())))
    }
}

fn describe_closed(path: &Path) -> Result<Description> {
    let Opened { meta, documents, .. } = Store::peek(path)?;
    let damaged = |detail: String| CollectionError::Store(format!("{}: {detail}", path.display()));
    let spec = Spec::parse(&meta.spec).map_err(|error| damaged(error.to_string()))?;
    let banding =
        Banding::new(meta.bands, meta.rows, spec.shape()).map_err(|error| damaged(error.to_string()))?;
    let settings = Settings { spec, banding, threshold: meta.threshold };
    Ok(Description::new(meta.name, settings, meta.created, documents, None))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(stopped) => std::panic::resume_unwind(stopped.into_panic()),
    }
}
