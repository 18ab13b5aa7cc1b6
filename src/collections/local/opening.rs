//! How the collections of a data directory come to be open at start: `default` first, then the others, the smallest
//! first and one after another, because each is read by all cores. Each answers as soon as it is open.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hapax_core::Spec;

use super::registry::Cell;
use super::registry::Registry;
use crate::engine::Collection;
use crate::engine::boot;
use crate::engine::long_work::blocking;
use crate::store::{self, Opened, Store};
use crate::types::CollectionName;
use crate::verdicts::{CollectionError, Description, Result, Settings};

/// Between two looks at a collection that is being opened.
const LOOK: Duration = Duration::from_millis(50);

impl Registry {
    /// Opens every collection that is not open yet. What is damaged, or fails for another reason, is passed over: the
    /// log says which and why. From the call on, until the future is done, a collection that is not open yet refuses requests with
    /// [`CollectionError::Opening`].
    pub fn open_rest(self: &Arc<Self>) -> impl Future<Output = ()> + Send + use<> {
        self.opening_rest.store(true, Ordering::Release);
        let this = Arc::clone(self);
        async move {
            while let Some(name) = this.opening.next() {
                this.open_or_note(&name).await;
                this.opening.end(&name);
            }
            this.opening_rest.store(false, Ordering::Release);
        }
    }

    async fn open_or_note(self: &Arc<Self>, name: &CollectionName) {
        match Arc::clone(self).open_in(self.cell(name), name.clone()).await {
            Ok(_) | Err(CollectionError::Damaged { .. } | CollectionError::NoSuchCollection(_)) => {}
            Err(error) => {
                tracing::error!(
                    collection = %name, %error,
                    "a collection could not be opened; the next request for it tries again"
                );
                self.unopened.lock().insert(name.clone(), error);
            }
        }
    }

    /// An error while [`open_rest`](Self::open_rest) has not come to the end of this one.
    pub(crate) fn refuse_while_opening(&self, name: &CollectionName) -> Result<()> {
        if !self.opening_rest.load(Ordering::Acquire) {
            return Ok(());
        }
        match self.opening.share_of(name) {
            Some(progress) => Err(CollectionError::Opening { name: name.clone(), progress }),
            None => Ok(()),
        }
    }

    /// Waits until [`open_rest`](Self::open_rest) has come to the end of this one, or until `stop`.
    pub(crate) async fn opened_or_over(&self, name: &CollectionName, stop: impl Fn() -> bool) {
        while self.refuse_while_opening(name).is_err() && !stop() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Those that could not be opened for another reason than damage, and why.
    pub fn unopened(&self) -> Vec<(CollectionName, CollectionError)> {
        self.unopened.lock().iter().map(|(name, error)| (name.clone(), error.clone())).collect()
    }

    /// Opens a collection through its cell, or waits until another request has. `None`: it was dropped.
    pub(crate) async fn open_in(self: Arc<Self>, cell: Cell, name: CollectionName) -> Result<Option<Arc<Collection>>> {
        let this = &self;
        let open = async || {
            let (its, opening_name) = (Arc::clone(this), name.clone());
            let opened = blocking(move || its.open_file(&opening_name)).await;
            this.described.lock().remove(&name);
            match &opened {
                Err(error @ CollectionError::Damaged { .. }) => this.note_damage(&name, error),
                Ok(Some(_)) => drop(this.unopened.lock().remove(&name)),
                _ => {}
            }
            opened?.ok_or(CollectionError::NoSuchCollection(name.clone())).map(Some)
        };
        cell.get_or_try_init(open).await.cloned()
    }

    fn open_file(&self, name: &CollectionName) -> Result<Option<Arc<Collection>>> {
        let path = self.path(name);
        // It was being made, and that came to nothing.
        if !path.exists() {
            return Ok(None);
        }
        // From here on its file changes while it is read; meanwhile a list of all collections shows this description.
        let description = describe_closed(&path)?;
        self.described.lock().insert(name.clone(), description);
        boot::open(&path, &self.common, &|share| self.opening.set(name, share)).map(Some)
    }

    /// What a collection is, open or not; `None`: it was dropped meanwhile.
    pub(crate) async fn describe(self: &Arc<Self>, name: &CollectionName) -> Result<Option<Description>> {
        if let Some(error) = self.damaged.lock().get(name) {
            return Err(error.clone());
        }
        let path = self.path(name);
        if !path.exists() {
            return Ok(None);
        }
        // Through its cell, so that nothing opens the file meanwhile: half of what opening does to the files looks like
        // damage. The cell stays empty.
        let cell = self.cell(name);
        let peek = || async { Err(blocking(move || describe_closed(&path)).await) };
        let mut looked = std::pin::pin!(cell.get_or_try_init(peek));
        loop {
            tokio::select! {
                biased;
                looked = &mut looked => return match looked {
                    Ok(opened) => Ok(opened.as_ref().map(|collection| collection.describe())),
                    Err(described) => described.map(Some),
                },
                // Opening it may be long, but shows what it is soon after its begin.
                () = tokio::time::sleep(LOOK) => {
                    if let Some(description) = self.described.lock().get(name) {
                        return Ok(Some(description.clone()));
                    }
                }
            }
        }
    }
}

/// The bytes of a collection's file and of its log.
pub(super) fn bytes_of(path: &std::path::Path) -> u64 {
    let bytes = |path: &std::path::Path| path.metadata().map_or(0, |metadata| metadata.len());
    bytes(path) + bytes(&store::log_of(path))
}

fn describe_closed(path: &std::path::Path) -> Result<Description> {
    let Opened { meta, documents, .. } = Store::peek(path)?;
    let damaged = |detail: String| CollectionError::Damaged { collection: meta.name.to_string(), record: None, detail };
    let spec = Spec::parse(&meta.spec).map_err(|error| damaged(error.to_string()))?;
    let settings = Settings::of(&meta, spec).map_err(|error| damaged(error.to_string()))?;
    Ok(Description::new(meta.name, settings, meta.created, documents, None))
}
