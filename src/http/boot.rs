//! The state of the boot: whether the collections are open, and how much of their opening is done. It exists from the
//! start of the process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::error::{Code, Problem};
use super::query;
use crate::collections::{Collections, Opening};

/// The interval at which a waiting request checks again.
const LOOK: Duration = Duration::from_millis(10);

/// Whether the collections are open. The boot sets this state, and every request reads it.
#[derive(Default)]
pub struct Boot {
    opening: Arc<Opening>,
    collections: OnceLock<Collections>,
    ready: AtomicBool,
}

impl Boot {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The progress of opening the collections.
    pub fn opening(&self) -> &Arc<Opening> {
        &self.opening
    }

    /// Starts answering requests to the collections that are open. Later calls change nothing.
    pub fn begin(&self, collections: Collections) {
        // A process boots once; a second call is ignored.
        let _ = self.collections.set(collections);
    }

    /// Does the same as [`begin`](Self::begin), and marks the server ready, because all collections are open.
    pub fn finish(&self, collections: Collections) {
        self.begin(collections);
        self.ready.store(true, Ordering::Release);
    }

    /// Returns the collections, or 503 `starting`. A collection that is not open yet answers 503 itself.
    pub fn collections(&self) -> Result<&Collections, Problem> {
        self.collections.get().ok_or_else(|| self.starting())
    }

    /// Returns the collections once all are open; else 503 `starting`.
    pub fn ready(&self) -> Result<&Collections, Problem> {
        let collections = self.collections()?;
        if self.ready.load(Ordering::Acquire) { Ok(collections) } else { Err(self.starting()) }
    }

    /// Waits until requests on this path can be answered, but at most for `patience`. Also returns when `stop` is
    /// cancelled.
    pub async fn wait(&self, path: &str, patience: Duration, stop: &CancellationToken) {
        if patience.is_zero() || self.ready.load(Ordering::Acquire) {
            return;
        }
        let opens = async {
            while self.is_opening(path) {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            () = opens => {}
            () = stop.cancelled() => {}
            () = tokio::time::sleep(patience) => {}
        }
    }

    /// Whether no collection can be used yet, or the collection that the path names is still being opened.
    fn is_opening(&self, path: &str) -> bool {
        if self.collections.get().is_none() {
            return true;
        }
        !self.ready.load(Ordering::Acquire)
            && query::collection(path).is_some_and(|name| self.opening.share_of(&name).is_some())
    }

    fn starting(&self) -> Problem {
        let progress = self.opening.share();
        let detail = format!("the collections are being opened: {:.0} % done", progress * 100.0);
        Problem { progress: Some(progress), ..Problem::new(Code::Starting, detail) }
    }
}
