//! Evaluates the golden sets of the open collections again and again, for the metrics. A set is so small that it is
//! evaluated in one step.

use std::time::{Duration, Instant};

use super::rounds::Rounds;
use super::targets::{States, Target};
use crate::engine::lookup::golden;

/// The time between two searches for collections that are due.
const IDLE: Duration = Duration::from_secs(1);
/// The time between two evaluations of a collection's set.
const EVERY: Duration = Duration::from_secs(60);

/// Starts the evaluation in one data directory.
pub(super) fn start(open: impl Fn() -> Option<Vec<Target>> + Send + 'static) -> Rounds {
    let mut due = States::default();
    Rounds::start("hapax-golden", open, move |collections, stop| {
        due.keep(&collections, |_| Instant::now());
        for target in &collections {
            if *due.of(target) <= Instant::now() && !stop.within(Duration::ZERO) {
                evaluate(target);
                *due.of(target) = Instant::now() + EVERY;
            }
        }
        IDLE
    })
}

fn evaluate(target: &Target) {
    let store = target.lookup.records().store();
    match store.in_passing(|| golden::stored(&target.lookup)) {
        Ok(report) => target.lookup.meters().golden(&target.name, &report),
        Err(_) if store.is_closed() => {}
        Err(error) => {
            tracing::error!(collection = %target.name, %error, "the golden set cannot be evaluated");
        }
    }
}
