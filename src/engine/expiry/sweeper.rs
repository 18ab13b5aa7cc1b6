//! Has each open collection take the next step of its expiry, and rests as long as that took, so that expiry takes at
//! most half of what one thread can make the disk do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::Collection;
use crate::engine::rounds::Rounds;

/// The rest where no collection has anything to do.
const IDLE: Duration = Duration::from_millis(200);
/// The least rest between two steps.
const REST_MIN: Duration = Duration::from_millis(1);

/// The sweeper of one data directory. Stop it before the collections are closed, and join it once they are, so that
/// nothing holds its step up.
pub(crate) fn start(open: impl Fn() -> Option<Vec<Arc<Collection>>> + Send + 'static) -> Rounds {
    Rounds::start("hapax-expiry", open, |collections, stop| {
        let started = Instant::now();
        let mut busy = false;
        for collection in collections {
            if stop.within(Duration::ZERO) {
                break;
            }
            busy |= collection.sweep();
        }
        if busy { started.elapsed().clamp(REST_MIN, IDLE) } else { IDLE }
    })
}
