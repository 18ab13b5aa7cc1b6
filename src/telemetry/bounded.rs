//! Limits how much a fault or a client can write to the log. A full disk once caused 79,930 lines (41 MB) in 8 seconds.
//! In: every event. Out: whether its line is written; and every 10 s, how many lines were left out.
//!
//! The limits are for lines of level info and above. If a line was written, equal lines are left out until the period
//! ends. Lines that differ only in times and counts are equal. In each period, a place in the source may write a few
//! different lines for each collection.

use std::collections::HashMap;
use std::fmt::{Debug, Write};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::names;

/// The period in which equal lines are written only once.
const PERIOD: Duration = Duration::from_secs(10);
/// The number of different lines that one place in the source may write per period and collection.
const DIFFERENT_MAX: usize = 10;
/// The largest number of pairs of a place and a collection that are tracked. If this number is reached, all lines are
/// written until the period ends.
const PLACES_MAX: usize = 4096;
/// The target of the lines that report how many lines were left out. These reports are always written.
const TARGET: &str = "hapax::log";
/// The target of lines that say which key did what. These lines are always written, whatever other lines there are.
pub(crate) const AUDIT: &str = "hapax::audit";
/// The target of lines that say which addresses were refused. They are always written; `Refusals` limits their number.
pub(crate) const REFUSED: &str = "hapax::refused";

#[derive(Clone, Default)]
pub(super) struct Bounded(Arc<Mutex<Places>>);

type Places = HashMap<(Identifier, String), Place>;

/// A place in the source, for one collection, in this period.
struct Place {
    metadata: &'static Metadata<'static>,
    message: String,
    /// The hashes of the lines that were written.
    written: Vec<u64>,
    left_out: u64,
}

impl Bounded {
    /// Starts a thread that reports, once per [`PERIOD`], how many lines were left out.
    pub(super) fn start() -> Self {
        let bounded = Self::default();
        let places = Arc::downgrade(&bounded.0);
        let thread = std::thread::Builder::new().name("hapax-log".into());
        // Without this thread, each line would be written only once in the life of the process. A process that cannot
        // start one more thread cannot serve anyway.
        thread.spawn(move || tell(&places)).expect("the system has room for one thread more");
        bounded
    }

    fn writes(&self, event: &Event<'_>) -> bool {
        let metadata = event.metadata();
        if *metadata.level() > Level::INFO || [TARGET, AUDIT, REFUSED].contains(&metadata.target()) {
            return true;
        }
        let mut said = Said::default();
        event.record(&mut said);
        let hash = said.hash.finish();
        let mut places = self.0.lock();
        if places.len() >= PLACES_MAX {
            return true;
        }
        let place = places.entry((metadata.callsite(), said.collection)).or_insert_with(|| Place {
            metadata,
            message: said.message,
            written: Vec::new(),
            left_out: 0,
        });
        if place.written.len() < DIFFERENT_MAX && !place.written.contains(&hash) {
            place.written.push(hash);
            return true;
        }
        place.left_out += 1;
        false
    }
}

fn tell(places: &Weak<Mutex<Places>>) {
    loop {
        std::thread::sleep(PERIOD);
        let Some(places) = places.upgrade() else { return };
        // This is a separate statement so that the lock is released: the log lines below take the lock too.
        let over = std::mem::take(&mut *places.lock());
        let mut total = 0;
        for ((_, collection), Place { metadata, message, left_out, .. }) in over {
            if left_out > 0 {
                total += left_out;
                let place = format!("{}:{}", metadata.file().unwrap_or_default(), metadata.line().unwrap_or_default());
                let collection = Some(collection).filter(|name| !name.is_empty());
                tracing::warn!(target: TARGET, left_out, like = message, place, collection, "left out similar log lines");
            }
        }
        metrics::counter!(names::LOG_LINES_LEFT_OUT).increment(total);
    }
}

/// The parts of an event that distinguish it from other events.
#[derive(Default)]
struct Said {
    message: String,
    collection: String,
    hash: DefaultHasher,
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = write!(text, "{value:?}");
        field.name().hash(&mut self.hash);
        text.hash(&mut self.hash);
        match field.name() {
            "message" => self.message = text,
            "collection" => self.collection = text.trim_matches('"').to_owned(),
            _ => {}
        }
    }

    // Numbers differ from line to line, so they are ignored. Only the numbers in these fields identify the subject of a
    // line.
    fn record_u64(&mut self, field: &Field, value: u64) {
        if matches!(field.name(), "record" | "seq" | "status") {
            value.hash(&mut self.hash);
        }
    }

    fn record_i64(&mut self, _field: &Field, _value: i64) {}

    fn record_f64(&mut self, _field: &Field, _value: f64) {}
}

impl<S: Subscriber> Layer<S> for Bounded {
    fn event_enabled(&self, event: &Event<'_>, _context: Context<'_, S>) -> bool {
        self.writes(event)
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::fmt;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;
    use crate::telemetry::LogLines;

    #[test]
    fn what_says_the_same_is_written_once_and_what_differs_a_few_times() {
        let (lines, bounded) = (LogLines::default(), Bounded::default());
        let made = lines.clone();
        let layer = fmt::layer().with_writer(move || made.clone());
        let subscriber = tracing_subscriber::registry().with(layer).with(bounded.clone());
        tracing::subscriber::with_default(subscriber, || {
            for n in 0..1000u64 {
                tracing::error!(collection = "a", decisions = n, elapsed_ms = 0.1 * n as f64, "refused");
                tracing::error!(collection = if n % 2 == 0 { "b" } else { "c" }, error = %"no room", "lost");
                tracing::warn!(id = %n, "different");
                tracing::debug!("whatever");
            }
        });
        let text = lines.text();
        let count = |word: &str| text.lines().filter(|line| line.contains(word)).count();
        assert_eq!((count("refused"), count("lost"), count("different"), count("whatever")), (1, 2, 10, 1000));
        let places = bounded.0.lock();
        assert_eq!(places.values().map(|place| place.left_out).sum::<u64>(), 999 + 998 + 990);
    }
}
