//! The new work that is on its way to a queue: it was accepted, but its body is still being decoded. The estimate of
//! the wait counts such work like work in the queue. Otherwise many bodies would be accepted at once, decoded, and then
//! refused. In: accepted work. Out: the number of pieces of work on their way.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Work on its way, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Coming {
    works: VecDeque<(u64, Instant)>,
    next: u64,
}

impl Coming {
    /// Adds work, and returns its number.
    pub(super) fn add(&mut self, now: Instant) -> u64 {
        let number = self.next;
        self.next += 1;
        self.works.push_back((number, now));
        number
    }

    /// Removes work that has arrived in the queue, or that will never arrive.
    pub(super) fn remove(&mut self, number: u64) {
        if let Ok(at) = self.works.binary_search_by_key(&number, |(number, _)| *number) {
            self.works.remove(at);
        }
    }

    /// Returns the number of pieces of work on their way. Work older than `life` no longer counts. Otherwise clients
    /// that send slowly would keep other clients out.
    pub(super) fn count(&mut self, now: Instant, life: Duration) -> usize {
        while self.works.front().is_some_and(|(_, since)| now.duration_since(*since) > life) {
            self.works.pop_front();
        }
        self.works.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_counts_until_it_has_come_or_is_old() {
        let (mut coming, start, ms) = (Coming::default(), Instant::now(), Duration::from_millis);
        let numbers: Vec<_> = (0..5).map(|at| coming.add(start + ms(10 * at))).collect();
        assert_eq!(coming.count(start + ms(40), ms(100)), 5);
        coming.remove(numbers[3]);
        coming.remove(numbers[3]);
        assert_eq!(coming.count(start + ms(40), ms(100)), 4);
        assert_eq!(coming.count(start + ms(115), ms(100)), 2, "two are old");
        coming.remove(numbers[0]);
        coming.remove(numbers[4]);
        assert_eq!(coming.count(start + ms(115), ms(100)), 1);
    }
}
