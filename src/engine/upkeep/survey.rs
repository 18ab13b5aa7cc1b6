//! The survey: a thread that measures how crowded the buckets of the open collections are, for the metrics. To count all
//! buckets with every posting would slow inserts down; to count them for each scrape would stall a large index. A survey
//! looks at a sample, and rests for many times as long as it took. It also tells whether the documents of the sample can
//! be found by each of their bands.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::rounds::Rounds;
use crate::engine::lookup::Lookup;
use crate::types::CollectionName;

/// The least time between two looks for collections that are due.
const IDLE: Duration = Duration::from_millis(200);
/// The shortest time between two surveys of a collection.
const EVERY: Duration = Duration::from_secs(5);
/// The rest after the surveys of all collections that are due, in times of how long they took, and the longest.
const REST: u32 = 50;
const REST_MAX: Duration = Duration::from_secs(30);
/// The documents that a survey looks at.
const DOCUMENTS_MAX: u32 = 2000;
/// In collections of up to this many documents the largest bucket is exact, however small it is.
const ALL_DOCUMENTS_MAX: u64 = 10_000;

/// Starts the survey of one data directory.
pub(super) fn start(open: impl Fn() -> Option<Vec<SurveyTarget>> + Send + 'static) -> Rounds {
    let mut turns: HashMap<CollectionName, Turn> = HashMap::new();
    Rounds::start("hapax-survey", open, move |collections, stop| {
        let started = Instant::now();
        let open: HashMap<&CollectionName, _> =
            collections.iter().map(|target| (&target.name, Arc::as_ptr(&target.lookup))).collect();
        // Compared by identity: another collection of the same name may have been created in the meantime.
        turns.retain(|name, turn| open.get(name).is_some_and(|of| *of == turn.of.as_ptr()));
        for target in &collections {
            let of = Arc::downgrade(&target.lookup);
            let new = || Turn { of, due: started, number: 0 };
            let turn = turns.entry(target.name.clone()).or_insert_with(new);
            if turn.due <= started && !stop.within(Duration::ZERO) {
                turn.survey(target);
            }
        }
        (REST * started.elapsed()).clamp(IDLE, REST_MAX)
    })
}

/// A collection to survey.
pub(crate) struct SurveyTarget {
    pub name: CollectionName,
    pub lookup: Arc<Lookup>,
}

/// When it is a collection's turn.
struct Turn {
    of: Weak<Lookup>,
    due: Instant,
    /// The number of surveys so far: each looks at other documents.
    number: u32,
}

impl Turn {
    /// Measures a collection.
    fn survey(&mut self, target: &SurveyTarget) {
        let lookup = &target.lookup;
        let all = lookup.counts().documents() <= ALL_DOCUMENTS_MAX;
        let read_max = lookup.limits().bucket_read_max;
        let survey = lookup.index().survey((DOCUMENTS_MAX, self.number), all, read_max);
        lookup.meters().surveyed(&target.name, &survey);
        self.number = self.number.wrapping_add(1);
        self.due = Instant::now() + EVERY;
    }
}
