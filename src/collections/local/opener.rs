//! Opens the collections of a data directory: `default` first, then the others, from the smallest to the largest. They
//! are opened one after another, because opening one already uses all cores. A request can also open a collection. Each
//! collection answers as soon as it is open. This file also describes collections that are not open.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hapax_core::Spec;
use parking_lot::Mutex;

use super::cells::{Cell, Cells};
use super::faults::Faults;
use super::folder::Folder;
use crate::collections::opening::Opening;
use crate::engine::boot::{self, Common};
use crate::engine::long_work::blocking;
use crate::engine::{LocalCollection, meters};
use crate::store::{Opened, Store};
use crate::types::CollectionName;
use crate::verdicts::{CollectionError, Description, Result, Settings};

/// The time between two checks of a collection that is being opened.
const LOOK: Duration = Duration::from_millis(50);

/// Opens and describes collections. Each collection is opened through its cell.
pub(super) struct Opener {
    common: Common,
    folder: Folder,
    cells: Cells,
    faults: Faults,
    progress: Arc<Opening>,
    /// Whether collections that are not open yet refuse requests.
    opening_rest: AtomicBool,
    /// Descriptions of the collections that are being opened. Each was made before the opening began.
    described: Mutex<BTreeMap<CollectionName, Description>>,
}

impl Opener {
    /// Makes an opener, which has opened no collection yet. `progress` receives the existing collections.
    pub(super) fn new(common: Common, folder: Folder, progress: Arc<Opening>) -> Result<Self> {
        let expected: Vec<_> = folder.names()?.into_iter().chain([CollectionName::default_collection()]).collect();
        expected.iter().for_each(meters::admit);
        progress.expect(expected.into_iter().map(|name| {
            let bytes = folder.bytes_of(&name);
            (name, bytes)
        }));
        Ok(Self {
            common,
            folder,
            cells: Cells::default(),
            faults: Faults::default(),
            progress,
            opening_rest: AtomicBool::new(false),
            described: Mutex::default(),
        })
    }

    pub(super) fn common(&self) -> &Common {
        &self.common
    }

    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    pub(super) fn cells(&self) -> &Cells {
        &self.cells
    }

    pub(super) fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Opens `default`, or creates it with these settings. Blocks the thread. If `default` is damaged, the other
    /// collections can still be used, and requests for `default` get the error.
    pub(super) fn open_default(&self, asked: Settings) -> Result<()> {
        let name = CollectionName::default_collection();
        match self.default(&name, asked) {
            Ok(default) => self.cells.fill(name.clone(), default),
            Err(error @ CollectionError::Damaged { .. }) => self.faults.note_damage(&name, &error),
            Err(error) => return Err(error),
        }
        self.progress.end(&name);
        Ok(())
    }

    fn default(&self, name: &CollectionName, asked: Settings) -> Result<Arc<LocalCollection>> {
        let path = self.folder.path(name);
        if !path.exists() {
            return boot::create(&path, name, &asked.checked()?, &self.common);
        }
        let held = Store::peek(&path)?.meta;
        if held.spec != asked.spec.to_string() {
            return Err(CollectionError::SpecMismatch {
                name: name.clone(),
                held: format!("spec `{}`", held.spec),
                asked: format!("[default_collection] of the configuration has spec `{}`", asked.spec),
            });
        }
        let default = boot::open(&path, &self.common, &|share| self.progress.set(name, share))?;
        let held = default.settings();
        if held != asked {
            tracing::info!(
                %held, %asked,
                "`default` keeps its settings; those of the configuration apply only to new collections"
            );
        }
        Ok(default)
    }

    /// Opens every collection that is not open yet. A collection that is damaged, or cannot be opened for another
    /// reason, is skipped, and the log says which collection it is and why. Until the future is done, a collection that
    /// is not open yet refuses requests with [`CollectionError::Opening`].
    pub(super) fn open_rest(self: &Arc<Self>) -> impl Future<Output = ()> + Send + use<> {
        self.opening_rest.store(true, Ordering::Release);
        let this = Arc::clone(self);
        async move {
            while let Some(name) = this.progress.next() {
                match Arc::clone(&this).open(this.cells.of(&name), name.clone()).await {
                    Ok(_) | Err(CollectionError::Damaged { .. } | CollectionError::NoSuchCollection(_)) => {}
                    Err(error) => this.faults.note_unopened(&name, error),
                }
                this.progress.end(&name);
            }
            this.opening_rest.store(false, Ordering::Release);
        }
    }

    /// Returns an error if [`open_rest`](Self::open_rest) has neither opened nor skipped this collection yet.
    pub(super) fn refuse_while_opening(&self, name: &CollectionName) -> Result<()> {
        if !self.opening_rest.load(Ordering::Acquire) {
            return Ok(());
        }
        match self.progress.share_of(name) {
            Some(progress) => Err(CollectionError::Opening { name: name.clone(), progress }),
            None => Ok(()),
        }
    }

    /// Waits until [`open_rest`](Self::open_rest) has opened or skipped this collection, or until `stop` returns true.
    pub(super) async fn opened_or_over(&self, name: &CollectionName, stop: impl Fn() -> bool) {
        while self.refuse_while_opening(name).is_err() && !stop() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Opens a collection and stores it in its cell. If another request is already opening the collection, waits for
    /// that request instead. Returns `None` if the collection was dropped.
    pub(super) async fn open(
        self: Arc<Self>,
        cell: Cell,
        name: CollectionName,
    ) -> Result<Option<Arc<LocalCollection>>> {
        let this = &self;
        let open = async || {
            let (its, opening_name) = (Arc::clone(this), name.clone());
            let opened = blocking(move || its.open_file(&opening_name)).await;
            this.described.lock().remove(&name);
            match &opened {
                Err(error @ CollectionError::Damaged { .. }) => this.faults.note_damage(&name, error),
                Ok(Some(_)) => this.faults.forget_unopened(&name),
                _ => {}
            }
            opened?.ok_or(CollectionError::NoSuchCollection(name.clone())).map(Some)
        };
        cell.get_or_try_init(open).await.cloned()
    }

    fn open_file(&self, name: &CollectionName) -> Result<Option<Arc<LocalCollection>>> {
        let path = self.folder.path(name);
        // The file is missing if this opening waited for the creation of the collection, and the creation failed.
        if !path.exists() {
            return Ok(None);
        }
        // From now on the file may change, so it cannot be described. Until the collection is open, lists of the
        // collections show this description.
        let description = describe_closed(&path)?;
        self.described.lock().insert(name.clone(), description);
        boot::open(&path, &self.common, &|share| self.progress.set(name, share)).map(Some)
    }

    /// Describes a collection, open or not. `None`: the collection has been dropped since.
    pub(super) async fn describe(&self, name: &CollectionName) -> Result<Option<Description>> {
        self.faults.refuse_damaged(name)?;
        let path = self.folder.path(name);
        if !path.exists() {
            return Ok(None);
        }
        // While the cell is in use, no other code opens the file. This matters, because a file looks damaged while it
        // is being opened. The cell stays empty.
        let cell = self.cells.of(name);
        let peek = || async { Err(blocking(move || describe_closed(&path)).await) };
        let mut looked = std::pin::pin!(cell.get_or_try_init(peek));
        loop {
            tokio::select! {
                biased;
                looked = &mut looked => return match looked {
                    Ok(opened) => Ok(opened.as_ref().map(|collection| collection.describe())),
                    Err(described) => described.map(Some),
                },
                // Opening may take long, but the description is available soon after the beginning.
                () = tokio::time::sleep(LOOK) => {
                    if let Some(description) = self.described.lock().get(name) {
                        return Ok(Some(description.clone()));
                    }
                }
            }
        }
    }

    /// Returns the collections that are not open yet, and the completed part of each, 0 to 1.
    pub(super) fn pending(&self) -> Vec<(CollectionName, f64)> {
        self.progress.pending()
    }
}

fn describe_closed(path: &std::path::Path) -> Result<Description> {
    let Opened { meta, documents, .. } = Store::peek(path)?;
    let damaged = |detail: String| CollectionError::Damaged { collection: meta.name.to_string(), record: None, detail };
    let spec = Spec::parse(&meta.spec).map_err(|error| damaged(error.to_string()))?;
    let settings = Settings::of(&meta, spec).map_err(|error| damaged(error.to_string()))?;
    Ok(Description::new(meta.name, settings, meta.created, documents, None))
}
