//! The survey: a thread that measures how crowded the buckets of the open collections are, for the metrics. Counting
//! all buckets at each change would slow inserts down, and counting them for each scrape would stall a large index.
//! Therefore a survey looks at a sample, and then pauses for many times as long as it took. It also checks whether the
//! documents of the sample can be found by each of their bands.

use std::time::{Duration, Instant};

use super::rounds::Rounds;
use super::targets::{States, Target};
use crate::cpu::let_others_run;

/// The shortest time between two searches for collections that are due.
const IDLE: Duration = Duration::from_millis(200);
/// The shortest time between two surveys of a collection.
const EVERY: Duration = Duration::from_secs(5);
/// The pause after the surveys of all collections that are due, as a multiple of the time that these surveys took.
const REST: u32 = 50;
/// The longest of these pauses.
const REST_MAX: Duration = Duration::from_secs(30);
/// The maximum number of documents that a survey looks at.
const DOCUMENTS_MAX: u32 = 2000;
/// In collections of up to this many documents, the size of the largest bucket is exact, however small the bucket is.
const ALL_DOCUMENTS_MAX: u64 = 10_000;

/// Starts the survey of one data directory.
pub(super) fn start(open: impl Fn() -> Option<Vec<Target>> + Send + 'static) -> Rounds {
    let mut turns = States::default();
    Rounds::start("hapax-survey", open, move |collections, stop| {
        let started = Instant::now();
        turns.keep(&collections, |_| Turn { due: started, number: 0 });
        for target in &collections {
            let turn = turns.of(target);
            if turn.due <= started && !stop.within(Duration::ZERO) {
                turn.survey(target);
            }
        }
        (REST * started.elapsed()).clamp(IDLE, REST_MAX)
    })
}

/// The next turn of a collection.
struct Turn {
    due: Instant,
    /// The number of surveys so far. It selects the sample, so each survey looks at other documents.
    number: u32,
}

impl Turn {
    /// Measures a collection.
    fn survey(&mut self, target: &Target) {
        let lookup = &target.lookup;
        let all = lookup.counts().documents() <= ALL_DOCUMENTS_MAX;
        let read_max = lookup.limits().bucket_read_max;
        let survey = lookup.index().survey((DOCUMENTS_MAX, self.number), all, read_max, let_others_run);
        lookup.meters().surveyed(&target.name, &survey);
        self.number = self.number.wrapping_add(1);
        self.due = Instant::now() + EVERY;
    }
}
