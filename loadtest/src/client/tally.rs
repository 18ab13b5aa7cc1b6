//! The outcomes of many requests: latencies by kind, and counts by second.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::request::Fate;

/// The longest latency that is recorded exactly, in microseconds.
const LONGEST_US: u64 = 120_000_000;
/// The number of different errors whose text is kept.
const ERRORS_MAX: usize = 20;

/// A histogram of latencies in microseconds, with three significant digits.
pub(crate) type Latencies = Histogram<u64>;

pub(crate) fn latencies() -> Latencies {
    Histogram::new_with_bounds(1, LONGEST_US, 3).expect("valid bounds")
}

pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// The requests of one kind.
#[derive(Clone)]
pub(crate) struct Kind {
    pub(crate) good: Latencies,
    pub(crate) refused: Latencies,
    /// The number of errors, by their text.
    pub(crate) wrong: BTreeMap<String, u64>,
}

impl Default for Kind {
    fn default() -> Self {
        Self { good: latencies(), refused: latencies(), wrong: BTreeMap::new() }
    }
}

impl Kind {
    pub(crate) fn wrongs(&self) -> u64 {
        self.wrong.values().sum()
    }
}

/// One second of a phase.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Second {
    pub(crate) good: u64,
    pub(crate) refused: u64,
    pub(crate) wrong: u64,
    /// The longest latency of a good answer, in microseconds.
    pub(crate) longest_us: u64,
}

#[derive(Clone)]
pub(crate) struct Tally {
    pub(crate) kinds: BTreeMap<&'static str, Kind>,
    pub(crate) seconds: Vec<Second>,
    /// How late requests were sent, in microseconds, because they waited for a connection or for this client.
    pub(crate) late: Latencies,
    /// The number of connections that were opened.
    pub(crate) opened: u64,
    /// The number of requests that were due but never sent, because no connection became free.
    pub(crate) unsent: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self { kinds: BTreeMap::new(), seconds: Vec::new(), late: latencies(), opened: 0, unsent: 0 }
    }
}

/// One answered request. Times are counted from the beginning of the phase.
pub(crate) struct Entry {
    pub(crate) kind: &'static str,
    pub(crate) due: Duration,
    pub(crate) sent: Duration,
    pub(crate) done: Duration,
    /// Whether the latency counts. During the warm-up of client and server it does not.
    pub(crate) counts: bool,
}

impl Tally {
    pub(crate) fn enter(&mut self, entry: &Entry, fate: Fate) {
        let latency = micros(entry.done.saturating_sub(entry.due));
        let second = entry.done.as_secs() as usize;
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, Second::default());
        }
        let second = &mut self.seconds[second];
        let kind = self.kinds.entry(entry.kind).or_default();
        match fate {
            Fate::Good => {
                second.good += 1;
                second.longest_us = second.longest_us.max(latency);
                if entry.counts {
                    kind.good.saturating_record(latency);
                }
            }
            Fate::Refused => {
                second.refused += 1;
                if entry.counts {
                    kind.refused.saturating_record(latency);
                }
            }
            Fate::Wrong(error) => {
                second.wrong += 1;
                let known = kind.wrong.len() < ERRORS_MAX || kind.wrong.contains_key(&error);
                *kind.wrong.entry(if known { error } else { "others".to_owned() }).or_default() += 1;
            }
        }
        if entry.counts {
            self.late.saturating_record(micros(entry.sent.saturating_sub(entry.due)));
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (name, theirs) in &other.kinds {
            let own = self.kinds.entry(name).or_default();
            own.good.add(&theirs.good).expect("equal bounds");
            own.refused.add(&theirs.refused).expect("equal bounds");
            for (error, count) in &theirs.wrong {
                *own.wrong.entry(error.clone()).or_default() += count;
            }
        }
        self.seconds.resize(self.seconds.len().max(other.seconds.len()), Second::default());
        for (own, theirs) in self.seconds.iter_mut().zip(&other.seconds) {
            own.good += theirs.good;
            own.refused += theirs.refused;
            own.wrong += theirs.wrong;
            own.longest_us = own.longest_us.max(theirs.longest_us);
        }
        self.late.add(&other.late).expect("equal bounds");
        self.opened += other.opened;
        self.unsent += other.unsent;
    }

    /// Returns the latencies of all good answers, of every kind.
    pub(crate) fn good(&self) -> Latencies {
        let mut all = latencies();
        self.kinds.values().for_each(|kind| all.add(&kind.good).expect("equal bounds"));
        all
    }

    /// Returns the latencies of all refusals, of every kind.
    pub(crate) fn refused(&self) -> Latencies {
        let mut all = latencies();
        self.kinds.values().for_each(|kind| all.add(&kind.refused).expect("equal bounds"));
        all
    }

    pub(crate) fn wrongs(&self) -> u64 {
        self.kinds.values().map(Kind::wrongs).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(due_ms: u64, sent_ms: u64, done_ms: u64) -> Entry {
        let [due, sent, done] = [due_ms, sent_ms, done_ms].map(Duration::from_millis);
        Entry { kind: "check", due, sent, done, counts: true }
    }

    #[test]
    fn latency_counts_from_the_time_a_request_was_due() {
        let mut tally = Tally::default();
        tally.enter(&entry(100, 600, 700), Fate::Good);
        assert_eq!(tally.good().max() / 1_000, 600, "not 100 ms, although it was sent late");
        assert_eq!(tally.late.max() / 1_000, 500);
    }

    #[test]
    fn tallies_add_up_by_second_and_kind() {
        let (mut a, mut b) = (Tally::default(), Tally::default());
        a.enter(&entry(0, 0, 10), Fate::Good);
        b.enter(&entry(900, 900, 1_900), Fate::Refused);
        b.enter(&entry(900, 900, 1_950), Fate::Wrong("gone".to_owned()));
        a.add(&b);
        assert_eq!(a.seconds.len(), 2);
        assert_eq!((a.seconds[0].good, a.seconds[1].refused, a.seconds[1].wrong), (1, 1, 1));
        assert_eq!((a.good().len(), a.refused().len(), a.wrongs()), (1, 1, 1));
    }

    #[test]
    fn a_flood_of_different_errors_stays_bounded() {
        let mut tally = Tally::default();
        (0..1_000).for_each(|n| tally.enter(&entry(0, 0, 0), Fate::Wrong(format!("error {n}"))));
        assert_eq!(tally.kinds["check"].wrong.len(), ERRORS_MAX + 1);
        assert_eq!(tally.wrongs(), 1_000);
    }
}
