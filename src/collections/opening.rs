//! How the collections of a data directory come to be open at start: `default` first, then the others, the smallest
//! first and one after another, because each is read by all cores. Each answers as soon as it is open.
//! Out: how far that is, as a whole and by collection, for `/readyz` and `hapax_boot_progress_ratio`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hapax_core::Spec;
use parking_lot::Mutex;

use super::registry::Cell;
use super::{Collection, CollectionError, Collections, Description, Result, Settings};
use crate::engine::boot;
use crate::engine::long_work::blocking;
use crate::store::{self, Opened, Store};
use crate::types::CollectionName;

/// Between two looks at a collection that is being opened.
const LOOK: Duration = Duration::from_millis(50);

/// How far the collections are with being opened. Written by what opens them, read by probes.
#[derive(Debug, Default)]
pub struct Opening {
    parts: Mutex<BTreeMap<CollectionName, Part>>,
}

/// One collection of an [`Opening`].
#[derive(Debug)]
struct Part {
    /// Of its file and its log: what opening it takes is about proportional to that.
    bytes: u64,
    share: f64,
    over: bool,
}

impl Opening {
    /// Notes what is to be opened, with its size in bytes.
    pub fn expect(&self, sizes: impl IntoIterator<Item = (CollectionName, u64)>) {
        let part = |bytes| Part { bytes, share: 0.0, over: false };
        self.parts.lock().extend(sizes.into_iter().map(|(name, bytes)| (name, part(bytes))));
    }

    /// How much of one is done, 0 to 1.
    pub fn set(&self, name: &CollectionName, share: f64) {
        if let Some(part) = self.parts.lock().get_mut(name) {
            part.share = share;
        }
    }

    /// It is open, or will not be.
    pub fn end(&self, name: &CollectionName) {
        if let Some(part) = self.parts.lock().get_mut(name) {
            (part.share, part.over) = (1.0, true);
        }
    }

    /// How much of all is done, by bytes, 0 to 1; 0 as long as nothing is expected.
    pub fn share(&self) -> f64 {
        let parts = self.parts.lock();
        let weight = |part: &Part| part.bytes.max(1) as f64;
        let total: f64 = parts.values().map(weight).sum();
        let done: f64 = parts.values().map(|part| weight(part) * part.share).sum();
        if total > 0.0 { done / total } else { 0.0 }
    }

    /// Those that are not open yet, and how much of each is done.
    pub fn pending(&self) -> Vec<(CollectionName, f64)> {
        let parts = self.parts.lock();
        parts.iter().filter(|(_, part)| !part.over).map(|(name, part)| (name.clone(), part.share)).collect()
    }

    /// How much of one is done; `None` where nothing is left to do.
    fn share_of(&self, name: &CollectionName) -> Option<f64> {
        self.parts.lock().get(name).filter(|part| !part.over).map(|part| part.share)
    }

    /// The smallest that is not open yet.
    fn next(&self) -> Option<CollectionName> {
        let parts = self.parts.lock();
        let pending = parts.iter().filter(|(_, part)| !part.over);
        pending.min_by_key(|(_, part)| part.bytes).map(|(name, _)| name.clone())
    }
}

impl Collections {
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
pub(crate) fn bytes_of(path: &std::path::Path) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> CollectionName {
        CollectionName::new(text).unwrap()
    }

    #[test]
    fn progress_is_weighed_by_bytes_and_ends_at_one() {
        let opening = Opening::default();
        assert_eq!(opening.share(), 0.0);
        opening.expect([(name("a"), 300), (name("b"), 100), (name("empty"), 0)]);
        assert_eq!(opening.next(), Some(name("empty")));
        opening.set(&name("a"), 0.5);
        assert!((opening.share() - 150.0 / 401.0).abs() < 1e-9);
        assert_eq!(opening.pending().len(), 3);
        opening.end(&name("empty"));
        opening.end(&name("b"));
        assert_eq!(opening.pending(), [(name("a"), 0.5)]);
        opening.end(&name("a"));
        assert_eq!((opening.share(), opening.next()), (1.0, None));
    }
}
