//! The bound of the process's anonymous memory (`memory.max_bytes`), and whether it is reached. In: the memory that the
//! process takes, measured a few times a second. Out: whether work that takes more memory may begin. Budgets limit
//! bodies, answers and the index. This bound also covers memory that no budget counts: connections, SQLite, and the
//! allocator's own memory.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::allocator::{give_back_free_pages, give_back_old_pages};
use super::system::anonymous_bytes;
use crate::telemetry::names::{self, label, value};

/// The time between two measurements of the process's memory.
const LOOK: Duration = Duration::from_millis(200);
/// If more than this share of the bound is taken, free memory of the heaps is returned to the system, at most once per
/// [`RETURN_PAUSE`].
const RETURN_PERCENT: u64 = 90;
const RETURN_PAUSE: Duration = Duration::from_secs(2);
/// If more than this share is taken, the log warns. If less than [`CALM_PERCENT`] is taken afterwards, the log says
/// that the shortage is over.
const WARN_PERCENT: u64 = 80;
const CALM_PERCENT: u64 = 75;
/// Memory is short from the moment the bound is reached until less than this share of the bound is taken.
const ENOUGH_PERCENT: u64 = 95;

/// The bound of a process, and the memory that the process takes.
#[derive(Debug, Default)]
pub struct Bound {
    /// `None`: no bound.
    max: Option<u64>,
    taken: AtomicU64,
    short: AtomicBool,
    warned: AtomicBool,
}

/// The kinds of work that are refused while memory is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Storing a document.
    Document,
    /// Keeping a large body or a decoder in memory.
    Body,
}

impl Refused {
    const ALL: [Self; 2] = [Self::Document, Self::Body];

    fn label(self) -> &'static str {
        match self {
            Self::Document => value::REFUSED_DOCUMENT,
            Self::Body => value::REFUSED_BODY,
        }
    }
}

impl Bound {
    /// A bound that is not watched yet.
    pub fn new(max: Option<u64>) -> Arc<Self> {
        Arc::new(Self { max, ..Self::default() })
    }

    /// The bound in bytes; `None` if there is no bound.
    pub fn max(&self) -> Option<u64> {
        self.max
    }

    /// The anonymous memory that the process took at the last measurement; 0 before the first.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Whether the process takes as much memory as it may. The check is cheap enough for each request.
    pub fn is_short(&self) -> bool {
        self.short.load(Ordering::Relaxed)
    }

    /// Counts work that was refused because memory is short.
    pub fn refused(&self, what: Refused) {
        metrics::counter!(names::MEMORY_SHORT_REFUSED, label::KIND => what.label()).increment(1);
    }

    /// Starts a thread that measures the process's memory until `self` is dropped. The thread also returns pages that
    /// have been free for a long time.
    pub fn watch(self: &Arc<Self>) -> std::io::Result<()> {
        if let Some(max) = self.max {
            metrics::gauge!(names::MEMORY_MAX).set(max as f64);
        }
        metrics::gauge!(names::MEMORY_SHORT).set(0.0);
        for refused in Refused::ALL {
            metrics::counter!(names::MEMORY_SHORT_REFUSED, label::KIND => refused.label()).increment(0);
        }
        let Some(taken) = anonymous_bytes() else { return Ok(()) };
        self.note(taken);
        let bound = Arc::downgrade(self);
        std::thread::Builder::new().name("hapax-memory".into()).spawn(move || watch(&bound)).map(drop)
    }

    /// Returns memory to the system if the bound is near, and records how much memory the process takes.
    fn look(&self, returned: &mut Option<Instant>) {
        let Some(mut taken) = anonymous_bytes() else { return };
        if self.max.is_some_and(|max| passes(taken, max, RETURN_PERCENT))
            && returned.is_none_or(|returned| returned.elapsed() > RETURN_PAUSE)
        {
            give_back_free_pages();
            *returned = Some(Instant::now());
            taken = anonymous_bytes().unwrap_or(taken);
        }
        self.note(taken);
    }

    /// Records how much memory the process takes. [`watch`](Self::watch) calls it. Tests call it directly.
    pub fn note(&self, taken: u64) {
        self.taken.store(taken, Ordering::Relaxed);
        metrics::gauge!(names::MEMORY_ANONYMOUS).set(taken as f64);
        let Some(max) = self.max else { return };
        let was_short = self.is_short();
        let short = passes(taken, max, if was_short { ENOUGH_PERCENT } else { 100 });
        if short != was_short {
            self.short.store(short, Ordering::Relaxed);
            metrics::gauge!(names::MEMORY_SHORT).set(f64::from(u8::from(short)));
        }
        self.tell(taken, max, (was_short, short));
    }

    fn tell(&self, taken: u64, max: u64, (was_short, short): (bool, bool)) {
        if short && !was_short {
            tracing::warn!(
                anonymous_bytes = taken,
                max_bytes = max,
                "the process has reached memory.max_bytes; new documents and large bodies are refused until it uses 5 \
                 % less"
            );
        } else if was_short && !short {
            tracing::info!(
                anonymous_bytes = taken,
                max_bytes = max,
                "the process uses less than memory.max_bytes again; new documents and large bodies are accepted"
            );
        }
        let was_warned = self.warned.load(Ordering::Relaxed);
        let warned = passes(taken, max, if was_warned { CALM_PERCENT } else { WARN_PERCENT });
        self.warned.store(warned, Ordering::Relaxed);
        if warned && !was_warned {
            tracing::warn!(
                anonymous_bytes = taken,
                max_bytes = max,
                "the process uses more than {WARN_PERCENT} % of memory.max_bytes"
            );
        } else if was_warned && !warned {
            tracing::info!(
                anonymous_bytes = taken,
                max_bytes = max,
                "the process uses less than {CALM_PERCENT} % of memory.max_bytes again"
            );
        }
    }
}

fn watch(bound: &Weak<Bound>) {
    let mut returned = None;
    while let Some(bound) = bound.upgrade() {
        give_back_old_pages();
        bound.look(&mut returned);
        drop(bound);
        std::thread::sleep(LOOK);
    }
}

fn passes(taken: u64, max: u64, percent: u64) -> bool {
    u128::from(taken) * 100 >= u128::from(max) * u128::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_short_from_the_bound_until_some_is_free() {
        let bound = Bound::new(Some(1000));
        for (taken, short) in [(0, false), (999, false), (1000, true), (960, true), (949, false), (999, false)] {
            bound.note(taken);
            assert_eq!((bound.taken(), bound.is_short()), (taken, short));
        }
    }

    #[test]
    fn without_a_bound_memory_is_never_short() {
        let bound = Bound::new(None);
        bound.note(u64::MAX);
        assert!(!bound.is_short());
    }
}
