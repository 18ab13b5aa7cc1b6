//! A client's limits, and how much of each is left -> the fields `RateLimit-Policy` and `RateLimit` of the answer, as
//! defined by draft-ietf-httpapi-ratelimit-headers-11 (May 2026).
//!
//! Each limit is a policy, named after its setting. The draft registers no unit for documents, so hapax uses
//! `documents`.

use std::fmt::Write;

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::bucket::Nanos;
use super::limit_names::Limit;
use super::share::Share;
use crate::types::retry_after;

pub(crate) const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(crate) const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The parameters of a policy in addition to its quota.
fn parameters(limit: Limit) -> &'static str {
    match limit {
        Limit::Requests => ";w=1",
        Limit::Bytes => ";qu=\"content-bytes\";w=1",
        Limit::Documents => ";qu=\"documents\";w=1",
        Limit::InFlight => ";qu=\"concurrent-requests\"",
    }
}

/// Adds the fields. If the client has no limits, adds none.
pub(crate) fn write(share: &Share, headers: &mut HeaderMap) {
    let (mut policies, mut left) = (String::new(), String::new());
    let mut item = |limit: Limit, quota: u64, rest: u64, seconds: Option<u64>| {
        let separator = if policies.is_empty() { "" } else { ", " };
        let (name, parameters) = (limit.setting(), parameters(limit));
        // RFC 9651, 3.3.1: at most 15 digits.
        let quota = quota.min(999_999_999_999_999);
        let _ = write!(policies, "{separator}\"{name}\";q={quota}{parameters}");
        let _ = write!(left, "{separator}\"{name}\";r={}", rest.min(quota));
        if let Some(seconds) = seconds {
            let _ = write!(left, ";t={seconds}");
        }
    };
    let now = Nanos::now();
    for limit in Limit::RATES {
        let Some((bucket, rate)) = share.bucket(limit).and_then(|bucket| Some((bucket, bucket.rate()?))) else {
            continue;
        };
        // The units that are left apply for at least one second, or until the debt is paid.
        let seconds = retry_after::seconds(bucket.wait(now));
        item(limit, rate, bucket.left(now), Some(seconds));
    }
    if let Some((max, rest)) = share.places() {
        item(Limit::InFlight, max, rest, None);
    }
    for (name, value) in [(RATE_LIMIT_POLICY, policies), (RATE_LIMIT, left)] {
        if let Ok(value) = HeaderValue::try_from(value)
            && !value.is_empty()
        {
            headers.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::meters::Meters;
    use super::super::share::Owner;
    use super::*;
    use crate::keys::KeyLimits;

    fn fields(limits: KeyLimits, take: impl FnOnce(&Share)) -> (Option<String>, Option<String>) {
        let share = Share::new(Owner::Address, Meters::none());
        share.set_limits(&limits);
        take(&share);
        let mut headers = HeaderMap::new();
        write(&share, &mut headers);
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        (text(RATE_LIMIT_POLICY), text(RATE_LIMIT))
    }

    #[test]
    fn each_limit_is_a_policy_and_what_is_left_of_it() {
        let limits = KeyLimits {
            requests_per_second: Some(3),
            bytes_per_second: Some(u64::MAX),
            documents_per_second: Some(1),
            requests_in_flight: Some(7),
        };
        let (policy, left) = fields(limits, |share| {
            share.charge(Limit::Requests, 1);
            share.charge(Limit::Documents, 100);
        });
        assert_eq!(
            policy.unwrap(),
            "\"requests_per_second\";q=3;w=1, \"bytes_per_second\";q=999999999999999;qu=\"content-bytes\";w=1, \
             \"documents_per_second\";q=1;qu=\"documents\";w=1, \"requests_in_flight\";q=7;qu=\"concurrent-requests\""
        );
        assert_eq!(
            left.unwrap(),
            "\"requests_per_second\";r=2;t=1, \"bytes_per_second\";r=999999999999999;t=1, \
             \"documents_per_second\";r=0;t=100, \"requests_in_flight\";r=7"
        );
    }

    #[test]
    fn without_limits_there_are_no_fields() {
        assert_eq!(fields(KeyLimits::default(), |_| {}), (None, None));
    }
}
