//! The share of one client: the work that its limits allow. A client is one key name, one address or one source. A
//! request takes units from the share before the work on it begins. Knows nothing of headers, or of where the limits
//! come from.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::bucket::{Bucket, Nanos};
use super::limit_names::Limit;
use super::meters::Meters;
use crate::http::error::{Code, Problem};
use crate::keys::KeyLimits;

/// How long a client with too many requests in flight is told to wait. It is not known when one of them will end.
const PLACE_WAIT: Duration = Duration::from_secs(1);

/// The owner of the limits, as named in a refusal.
#[derive(Clone, Debug)]
pub(super) enum Owner {
    Key(String),
    Address,
    /// The label `source` of documents.
    Source,
}

/// The buckets and places of one client. All requests of the client share them.
pub(crate) struct Share {
    owner: Owner,
    /// The buckets of the rates, in the order of [`Limit::RATES`].
    rates: [Bucket; 3],
    in_flight: AtomicU64,
    /// The most requests in flight; 0: no limit.
    in_flight_max: AtomicU64,
    meters: Meters,
}

impl Share {
    pub(super) fn new(owner: Owner, meters: Meters) -> Self {
        let (in_flight, in_flight_max) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { owner, rates: Default::default(), in_flight, in_flight_max, meters }
    }

    pub(super) fn limited(owner: Owner, limits: &KeyLimits, meters: Meters) -> Self {
        let share = Self::new(owner, meters);
        share.set_limits(limits);
        share
    }

    /// Sets the limits. Debts and requests in flight do not change.
    pub(super) fn set_limits(&self, limits: &KeyLimits) {
        let rates = [limits.requests_per_second, limits.bytes_per_second, limits.documents_per_second];
        self.rates.iter().zip(rates).for_each(|(bucket, rate)| bucket.set_rate(rate));
        let in_flight_max = limits.requests_in_flight.unwrap_or(0);
        if self.in_flight_max.load(Ordering::Relaxed) != in_flight_max {
            self.in_flight_max.store(in_flight_max, Ordering::Relaxed);
        }
    }

    pub(super) fn bucket(&self, limit: Limit) -> Option<&Bucket> {
        let at = Limit::RATES.iter().position(|rate| *rate == limit)?;
        self.rates.get(at)
    }

    /// Returns the most requests in flight, and how many more may begin; `None`: no limit.
    pub(super) fn places(&self) -> Option<(u64, u64)> {
        let max = Some(self.in_flight_max.load(Ordering::Relaxed)).filter(|&max| max > 0)?;
        Some((max, max.saturating_sub(self.in_flight.load(Ordering::Relaxed))))
    }

    /// Whether no request is in flight and all buckets are full. Removing the share then loses nothing.
    pub(super) fn is_unused(&self, now: Nanos) -> bool {
        self.in_flight.load(Ordering::Relaxed) == 0 && self.rates.iter().all(|bucket| bucket.is_full(now))
    }

    /// Takes one unit of the request rate, and a place among the requests in flight. Returns 429 if one of them is not
    /// available, or if the bytes of earlier requests are still a debt.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<Place, Problem> {
        let place = self.place()?;
        let (now, bytes) = (Nanos::now(), &self.rates[1]);
        let wait = bytes.wait(now);
        if !wait.is_zero() {
            return Err(self.refusal(Limit::Bytes, wait));
        }
        self.take(Limit::Requests, 1)?;
        Ok(place)
    }

    fn place(self: &Arc<Self>) -> Result<Place, Problem> {
        let max = self.in_flight_max.load(Ordering::Relaxed);
        let one_more = |held| (max == 0 || held < max).then_some(held + 1);
        match self.in_flight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Ok(Place(Arc::clone(self))),
            Err(_) => Err(self.refusal(Limit::InFlight, PLACE_WAIT)),
        }
    }

    /// Takes `units`; 429 if the bucket is empty or in debt.
    pub(super) fn take(&self, limit: Limit, units: u64) -> Result<(), Problem> {
        self.try_take(limit, units).map_err(|wait| self.refusal(limit, wait))
    }

    /// Takes `units`, or returns how long to wait if the bucket is empty or in debt.
    pub(super) fn try_take(&self, limit: Limit, units: u64) -> Result<(), Duration> {
        self.bucket(limit).map_or(Ok(()), |bucket| bucket.take(units, Nanos::now()))?;
        self.meters.count(limit, units);
        Ok(())
    }

    /// Takes `units` for work that has already begun.
    pub(super) fn charge(&self, limit: Limit, units: u64) {
        if let Some(bucket) = self.bucket(limit) {
            bucket.charge(units, Nanos::now());
        }
        self.meters.count(limit, units);
    }

    /// Returns how long work that has already begun must wait.
    pub(super) fn wait(&self, limit: Limit) -> Duration {
        self.bucket(limit).map_or(Duration::ZERO, |bucket| bucket.wait(Nanos::now()))
    }

    /// Counts a wait of work that has already begun.
    pub(super) fn slowed(&self) {
        self.meters.slowed();
    }

    fn refusal(&self, limit: Limit, wait: Duration) -> Problem {
        self.meters.refused(limit);
        let most = match self.bucket(limit) {
            Some(bucket) => bucket.rate().unwrap_or_default(),
            None => self.in_flight_max.load(Ordering::Relaxed),
        };
        let (words, setting) = (limit.words(), limit.setting());
        let detail = match &self.owner {
            Owner::Key(name) => format!(
                "the limit of the key `{name}` is reached: {most} {words} (`{setting}` in the keys file); try again later"
            ),
            Owner::Address => format!(
                "the limit of an address without an API key is reached: {most} {words} (`address_limits.{setting}`); \
                 try again later"
            ),
            Owner::Source => format!(
                "the limit of the source is reached: {most} {words} (`limits.source_{setting}`); try again later"
            ),
        };
        Problem { retry_after: Some(wait), ..Problem::new(Code::RateLimited, detail) }
    }
}

/// The place of one request among the requests in flight. It is given back when this is dropped.
pub(crate) struct Place(Arc<Share>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(limits: KeyLimits) -> Arc<Share> {
        let share = Share::new(Owner::Key("crawler".into()), Meters::none());
        share.set_limits(&limits);
        Arc::new(share)
    }

    #[test]
    fn a_place_is_held_until_it_is_dropped() {
        let share = share(KeyLimits { requests_in_flight: Some(2), ..KeyLimits::default() });
        let (one, two) = (share.begin().unwrap_or_else(|_| panic!()), share.begin());
        assert!(two.is_ok());
        let problem = share.begin().err().expect("both places are taken");
        assert_eq!((problem.code, problem.retry_after), (Code::RateLimited, Some(PLACE_WAIT)));
        assert!(problem.detail.contains("`crawler`") && problem.detail.contains("2 requests in flight"), "{problem:?}");
        drop(one);
        assert!(share.begin().is_ok());
    }

    #[test]
    fn a_refused_request_takes_nothing() {
        let share = share(KeyLimits { requests_per_second: Some(1), bytes_per_second: Some(10), ..Default::default() });
        share.charge(Limit::Bytes, 1000);
        let problem = share.begin().err().expect("the bytes are in debt");
        assert!(problem.retry_after > Some(Duration::from_secs(98)), "{problem:?}");
        assert!(share.take(Limit::Requests, 1).is_ok(), "the request was not counted");
        assert_eq!(share.in_flight.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn other_limits_hold_at_once() {
        let share = share(KeyLimits::default());
        for _ in 0..1000 {
            assert!(share.begin().is_ok() && share.take(Limit::Documents, 1_000_000).is_ok());
        }
        share.set_limits(&KeyLimits { requests_per_second: Some(1), ..KeyLimits::default() });
        assert_eq!((share.begin().is_ok(), share.begin().is_ok()), (true, false));
    }
}
