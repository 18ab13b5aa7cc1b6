//! A thread that watches the disk of a data directory, and whether a collection refuses writes.

use std::sync::Arc;
use std::time::Duration;

use super::rounds::Rounds;
use crate::engine::disk::DataDisk;
use crate::engine::write::Writes;

/// The time between two checks of the disk.
const PERIOD: Duration = Duration::from_secs(2);

pub(super) fn start(disk: Arc<DataDisk>, open: impl Fn() -> Option<Vec<Arc<Writes>>> + Send + 'static) -> Rounds {
    Rounds::start("hapax-disk", open, move |collections, _| {
        disk.look(collections.iter().any(|writes| writes.are_refused()));
        PERIOD
    })
}
