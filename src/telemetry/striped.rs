//! Numbers that many threads add to without waiting for each other.
//! If two processors add to one number in turns, each fetches the number's cache line from the other. This takes longer
//! than finding an entry of the index. For this reason, there are several copies of each number, on separate cache
//! lines. A thread always adds to the same copy, and the number is the sum of all copies.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use metrics::CounterFn;

/// The largest number of copies. If there are more threads than copies, threads share copies.
const COPIES_MAX: usize = 16;
/// The count of numbers in two cache lines. Processors fetch two lines together.
const NUMBERS_EACH: usize = 16;

#[derive(Default)]
#[repr(align(128))]
struct Lines([AtomicU64; NUMBERS_EACH]);

/// Some numbers, each in several copies.
pub(super) struct Striped {
    lines: Box<[Lines]>,
    lines_each: usize,
}

/// One copy of all numbers.
#[derive(Clone, Copy)]
pub(super) struct OneCopy<'a>(&'a [Lines]);

impl Striped {
    pub(super) fn new(numbers: usize) -> Self {
        let lines_each = numbers.div_ceil(NUMBERS_EACH);
        Self { lines: (0..lines_each * copies()).map(|_| Lines::default()).collect(), lines_each }
    }

    /// Returns the copy that this thread adds to.
    #[inline]
    pub(super) fn here(&self) -> OneCopy<'_> {
        let first = own() % copies() * self.lines_each;
        OneCopy(&self.lines[first..first + self.lines_each])
    }

    pub(super) fn copies(&self) -> impl Iterator<Item = OneCopy<'_>> {
        self.lines.chunks(self.lines_each).map(OneCopy)
    }

    /// Returns a number: the sum of its copies.
    pub(super) fn sum(&self, number: usize) -> u64 {
        self.copies().map(|copy| copy.at(number).load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
    }
}

impl<'a> OneCopy<'a> {
    #[inline]
    pub(super) fn at(self, number: usize) -> &'a AtomicU64 {
        &self.0[number / NUMBERS_EACH].0[number % NUMBERS_EACH]
    }
}

/// A counter of events.
pub(super) struct StripedCounter(Striped);

impl Default for StripedCounter {
    fn default() -> Self {
        Self(Striped::new(1))
    }
}

impl StripedCounter {
    pub(super) fn get(&self) -> u64 {
        self.0.sum(0)
    }
}

impl CounterFn for StripedCounter {
    fn increment(&self, value: u64) {
        if value > 0 {
            self.0.here().at(0).fetch_add(value, Ordering::Relaxed);
        }
    }

    /// Only one thread may set a counter, and no thread may increment the same counter.
    fn absolute(&self, value: u64) {
        let first = self.0.copies().next().expect("there is at least one copy");
        first.at(0).fetch_max(value, Ordering::Relaxed);
    }
}

fn copies() -> usize {
    static COPIES: OnceLock<usize> = OnceLock::new();
    *COPIES.get_or_init(|| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        processors.next_power_of_two().min(COPIES_MAX)
    })
}

/// Returns the number of this thread.
fn own() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: usize = NEXT.fetch_add(1, Ordering::Relaxed));
    // While a thread ends, its number may already be gone.
    OWN.try_with(|own| *own).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_add_is_added_up() {
        let (numbers, counter) = (Striped::new(40), StripedCounter::default());
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    for number in 0..40 {
                        numbers.here().at(number).fetch_add(number as u64, Ordering::Relaxed);
                    }
                    counter.increment(3);
                });
            }
        });
        assert!((0..40).all(|number| numbers.sum(number) == 20 * number as u64));
        assert_eq!(counter.get(), 60);
    }

    #[test]
    fn a_counter_that_is_set_never_falls() {
        let counter = StripedCounter::default();
        [5, 9, 7].into_iter().for_each(|value| counter.absolute(value));
        assert_eq!(counter.get(), 9);
    }
}
