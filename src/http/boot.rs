//! The way from process start to open collections.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::error::{Code, Problem};
use crate::collections::{Collections, Opening};

/// Whether the collections are open. Written by whoever boots, read by every request.
#[derive(Default)]
pub struct Boot {
    opening: Arc<Opening>,
    collections: OnceLock<Collections>,
    ready: AtomicBool,
}

impl Boot {
    /// Nothing is open yet.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// How far the collections are with being opened.
    pub fn opening(&self) -> &Arc<Opening> {
        &self.opening
    }

    /// From now on requests to collections that are open are answered. Later calls change nothing.
    pub fn begin(&self, collections: Collections) {
        // A second boot in one process is not a thing; the first stays.
        let _ = self.collections.set(collections);
    }

    /// As [`begin`](Self::begin), and the server is ready: nothing more is to be opened.
    pub fn finish(&self, collections: Collections) {
        self.begin(collections);
        self.ready.store(true, Ordering::Release);
    }

    /// The collections, or 503 `starting`. Those that are not open yet answer likewise, one by one.
    pub fn collections(&self) -> Result<&Collections, Problem> {
        self.collections.get().ok_or_else(|| self.starting())
    }

    /// The collections once all of them are open, or 503 `starting`.
    pub fn ready(&self) -> Result<&Collections, Problem> {
        let collections = self.collections()?;
        if self.ready.load(Ordering::Acquire) { Ok(collections) } else { Err(self.starting()) }
    }

    fn starting(&self) -> Problem {
        let progress = self.opening.share();
        let detail = format!("the collections are being opened: {:.0} % done", progress * 100.0);
        Problem { progress: Some(progress), ..Problem::new(Code::Starting, detail) }
    }
}
