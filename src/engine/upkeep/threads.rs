//! The threads beside requests, of one data directory.

use std::sync::Arc;

use super::disk_watch;
use super::expiry::{self, Expiry};
use super::rounds::Rounds;
use super::scrub::{self, ScrubTarget};
use crate::engine::disk::DataDisk;
use crate::engine::write::Writes;
use crate::verdicts::ScrubConfig;

/// What the threads look after: the parts of each open collection.
pub(crate) struct UpkeepParts {
    pub expiry: Arc<Expiry>,
    pub scrub_target: ScrubTarget,
    pub writes: Arc<Writes>,
}

/// The threads. Dropped without [`stop`](Self::stop), each ends after the step it is at.
pub(crate) struct Background {
    disk_watch: Rounds,
    expiry: Rounds,
    scrub: Option<Rounds>,
}

impl Background {
    /// Starts them for the collections that `open` gives, asked again for each round; they end with its `None`.
    pub(crate) fn start(
        disk: Arc<DataDisk>,
        scrub: Option<ScrubConfig>,
        open: impl Fn() -> Option<Vec<UpkeepParts>> + Clone + Send + 'static,
    ) -> Self {
        fn of<P>(
            open: impl Fn() -> Option<Vec<UpkeepParts>> + Send + 'static,
            part: impl Fn(UpkeepParts) -> P + Copy + Send + 'static,
        ) -> impl Fn() -> Option<Vec<P>> + Send + 'static {
            move || open().map(|parts| parts.into_iter().map(part).collect())
        }
        let disk_watch = disk_watch::start(disk, of(open.clone(), |parts| parts.writes));
        let expiry = expiry::start(of(open.clone(), |parts| parts.expiry));
        let scrub = scrub.map(|config| scrub::start(config, of(open, |parts| parts.scrub_target)));
        Self { disk_watch, expiry, scrub }
    }

    /// Begins no further step, and waits for the scrub, which may hold a collection's file open for reading: the log goes
    /// with the last that does. Blocking; call it before the collections are closed.
    pub(crate) fn stop(&self) {
        self.expiry.stop();
        self.disk_watch.stop();
        self.scrub.iter().for_each(Rounds::stop);
        self.scrub.iter().for_each(Rounds::join);
    }

    /// Waits for the steps under way, once the collections are closed so that nothing holds them up; blocking.
    pub(crate) fn join(&self) {
        self.expiry.join();
        self.disk_watch.join();
    }
}
