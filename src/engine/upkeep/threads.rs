//! The background threads of one data directory.

use std::sync::Arc;

use super::canary;
use super::disk_watch;
use super::expiry::{self, Expiry};
use super::golden;
use super::merges::{self, Merges};
use super::removals::{self, Removals};
use super::rounds::Rounds;
use super::scrub;
use super::statistics;
use super::survey;
use super::targets::Target;
use crate::engine::disk::DataDisk;
use crate::engine::write::Writes;
use crate::types::CollectionName;
use crate::verdicts::ScrubConfig;

/// The parts of an open collection that the threads work on.
pub(crate) struct UpkeepParts {
    pub expiry: Arc<Expiry>,
    pub removals: Arc<Removals>,
    pub merges: Arc<Merges>,
    pub target: Target,
    pub writes: Arc<Writes>,
}

/// The threads. If they are dropped without [`stop`](Self::stop), each ends after its current step.
pub(crate) struct Background {
    canary: Rounds,
    disk_watch: Rounds,
    expiry: Rounds,
    golden: Rounds,
    merges: Rounds,
    removals: Rounds,
    scrub: Option<Rounds>,
    statistics: Rounds,
    survey: Rounds,
}

impl Background {
    /// Starts the threads. They ask `open` for the open collections in each round, and end when it returns `None`.
    /// `exists` tells whether there is a collection, open or not.
    pub(crate) fn start(
        disk: Arc<DataDisk>,
        scrub: Option<ScrubConfig>,
        open: impl Fn() -> Option<Vec<UpkeepParts>> + Clone + Send + 'static,
        exists: impl Fn(&CollectionName) -> bool + Send + 'static,
    ) -> Self {
        fn of<P>(
            open: impl Fn() -> Option<Vec<UpkeepParts>> + Send + 'static,
            part: impl Fn(UpkeepParts) -> P + Copy + Send + 'static,
        ) -> impl Fn() -> Option<Vec<P>> + Send + 'static {
            move || open().map(|parts| parts.into_iter().map(part).collect())
        }
        let disk_watch = disk_watch::start(disk, of(open.clone(), |parts| parts.writes));
        let statistics = statistics::start(of(open.clone(), |parts| parts.writes));
        let expiry = expiry::start(of(open.clone(), |parts| parts.expiry));
        let removals = removals::start(of(open.clone(), |parts| parts.removals));
        let merges = merges::start(of(open.clone(), |parts| parts.merges), exists);
        let canary = canary::start(of(open.clone(), |parts| parts.target));
        let golden = golden::start(of(open.clone(), |parts| parts.target));
        let survey = survey::start(of(open.clone(), |parts| parts.target));
        let scrub = scrub.map(|config| scrub::start(config, of(open, |parts| parts.target)));
        Self { canary, disk_watch, expiry, golden, merges, removals, scrub, statistics, survey }
    }

    /// Prevents further steps of the threads. Waits for the threads that may hold a collection's file open for reading,
    /// because SQLite removes the log when the last connection closes. Blocks the thread; call it before the
    /// collections are closed.
    pub(crate) fn stop(&self) {
        self.expiry.stop();
        self.merges.stop();
        self.removals.stop();
        self.statistics.stop();
        self.disk_watch.stop();
        self.survey.stop();
        self.golden.stop();
        self.canary.stop();
        self.scrub.iter().for_each(Rounds::stop);
        self.golden.join();
        self.canary.join();
        self.scrub.iter().for_each(Rounds::join);
    }

    /// Waits for the current steps. Call it once the collections are closed, so that nothing blocks these steps. Blocks
    /// the thread.
    pub(crate) fn join(&self) {
        self.expiry.join();
        self.merges.join();
        self.removals.join();
        self.statistics.join();
        self.disk_watch.join();
        self.survey.join();
    }
}
