//! Writes the statistics of collections to the disk, every few seconds.

use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;

use super::rounds::Rounds;
use crate::engine::write::Writes;
use crate::verdicts::CollectionError;

/// The pause between two rounds. A crash loses the counts of this time.
const REST: Duration = Duration::from_secs(5);

/// Starts the thread. Stop it before the collections are closed, and join it after they are closed.
pub(super) fn start(open: impl Fn() -> Option<Vec<Arc<Writes>>> + Send + 'static) -> Rounds {
    Rounds::start("hapax-statistics", open, |collections, stop| {
        for writes in collections {
            if stop.within(Duration::ZERO) {
                break;
            }
            write(&writes);
        }
        REST
    })
}

/// Writes the counts that are not on disk, and waits until they are on disk. If the disk refuses the write, the next
/// round tries again.
pub(crate) fn write(writes: &Writes) {
    let _writing = writes.statistics().writing();
    let rows = Arc::new(writes.statistics().take_unwritten());
    if rows.is_empty() {
        return;
    }
    let sent = writes.write_statistics(Arc::clone(&rows));
    let written = sent.and_then(|sent| block_on(sent).unwrap_or_else(|_| Err(CollectionError::closed())));
    if let Err(error) = written {
        tracing::debug!(%error, "statistics will be written later");
        writes.statistics().not_written(&rows);
    }
}
