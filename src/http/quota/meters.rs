//! The metrics of one key name. The handles of the metrics are made once, so that no request has to look them up.

use metrics::{Counter, counter};

use super::limit_names::Limit;
use crate::telemetry::names::{self, label};

/// Counts the work of one key name. Addresses have no such metrics, because a client can choose its address.
pub(super) struct Meters {
    /// The counters in the order of [`Limit::RATES`].
    taken: [Counter; 3],
    /// The counters in the order of [`Limit::ALL`].
    refused: [Counter; 4],
    slowed: Counter,
}

impl Meters {
    /// Returns meters that count nothing.
    pub(super) fn none() -> Self {
        let noop = |_| Counter::noop();
        Self { taken: [0; 3].map(noop), refused: [0; 4].map(noop), slowed: Counter::noop() }
    }

    /// Returns the meters that all sources share, because there may be very many sources.
    pub(super) fn of_sources() -> Self {
        let refused = |limit| match limit {
            Limit::Documents => counter!(names::SOURCE_RATE_REFUSED),
            Limit::Requests | Limit::Bytes | Limit::InFlight => Counter::noop(),
        };
        Self { refused: Limit::ALL.map(refused), slowed: counter!(names::SOURCE_RATE_SLOWED), ..Self::none() }
    }

    /// Returns the meters of a key name. All its time series exist from now on.
    pub(super) fn of_key(name: &str) -> Self {
        let key = || name.to_owned();
        let taken = [names::KEY_REQUESTS, names::KEY_BYTES, names::KEY_DOCUMENTS];
        let meters = Self {
            taken: taken.map(|metric| counter!(metric, label::KEY => key())),
            refused: Limit::ALL
                .map(|limit| counter!(names::KEY_REFUSED, label::KEY => key(), label::LIMIT => limit.setting())),
            slowed: counter!(names::KEY_SLOWED, label::KEY => key()),
        };
        meters.taken.iter().chain(&meters.refused).chain([&meters.slowed]).for_each(|counter| counter.increment(0));
        meters
    }

    pub(super) fn count(&self, limit: Limit, units: u64) {
        if let Some(at) = Limit::RATES.iter().position(|rate| *rate == limit) {
            self.taken[at].increment(units);
        }
    }

    pub(super) fn refused(&self, limit: Limit) {
        if let Some(at) = Limit::ALL.iter().position(|of_all| *of_all == limit) {
            self.refused[at].increment(1);
        }
    }

    pub(super) fn slowed(&self) {
        self.slowed.increment(1);
    }
}
