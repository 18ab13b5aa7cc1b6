//! A tally -> the figures of one phase, as they are in the JSON report.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::client::{Kind, Latencies, Tally};
use crate::memory::Memory;

/// The quantiles of the picture, each as the share of requests that are slower.
const TAILS: [f64; 13] = [0.9, 0.75, 0.5, 0.25, 0.1, 0.05, 0.025, 0.01, 0.005, 0.002_5, 0.001, 0.000_25, 0.000_1];

/// Latencies in milliseconds, counted from the time when a request was due.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Percentiles {
    pub(crate) mean: f64,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) p99_9: f64,
    pub(crate) max: f64,
}

impl Percentiles {
    pub(crate) fn of(latencies: &Latencies) -> Self {
        let at = |quantile| latencies.value_at_quantile(quantile) as f64 / 1e3;
        Self {
            mean: latencies.mean() / 1e3,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            max: latencies.max() as f64 / 1e3,
        }
    }
}

/// The requests of one kind in one phase.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Operation {
    pub(crate) kind: String,
    pub(crate) good: u64,
    pub(crate) latency_ms: Percentiles,
    pub(crate) refused: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused_latency_ms: Option<Percentiles>,
    pub(crate) wrong: BTreeMap<String, u64>,
    /// Pairs: the share of requests that are slower, and the latency in milliseconds.
    pub(crate) tail: Vec<(f64, f64)>,
}

impl Operation {
    fn of(name: &str, kind: &Kind) -> Self {
        let slower = |&share: &f64| (share * kind.good.len() as f64) >= 1.0;
        let point = |share: f64| (share, kind.good.value_at_quantile(1.0 - share) as f64 / 1e3);
        Self {
            kind: name.to_owned(),
            good: kind.good.len(),
            latency_ms: Percentiles::of(&kind.good),
            refused: kind.refused.len(),
            refused_latency_ms: (!kind.refused.is_empty()).then(|| Percentiles::of(&kind.refused)),
            wrong: kind.wrong.clone(),
            tail: TAILS.into_iter().filter(slower).map(point).collect(),
        }
    }
}

/// Counts by second.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct OverTime {
    pub(crate) good: Vec<u64>,
    pub(crate) refused: Vec<u64>,
    pub(crate) wrong: Vec<u64>,
    pub(crate) longest_ms: Vec<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Phase {
    pub(crate) name: String,
    /// Seconds from the beginning of the report.
    pub(crate) begun_s: f64,
    /// The seconds whose requests are counted in `operations`. Requests of the warm-up are only in `over_time`.
    pub(crate) seconds: f64,
    /// The number of requests due per second; absent if clients waited for answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<f64>,
    pub(crate) connections: usize,
    pub(crate) operations: Vec<Operation>,
    pub(crate) over_time: OverTime,
    /// How late this client sent requests.
    pub(crate) sent_late_ms: Percentiles,
    /// The number of requests that were due but never got a connection.
    pub(crate) unsent: u64,
    pub(crate) opened_connections: u64,
    pub(crate) memory: Vec<Memory>,
}

/// The circumstances of a phase.
pub(crate) struct Setting<'a> {
    pub(crate) name: &'a str,
    pub(crate) begun_s: f64,
    pub(crate) seconds: f64,
    /// The seconds whose latencies count.
    pub(crate) counted_s: f64,
    pub(crate) rate: Option<f64>,
    pub(crate) connections: usize,
}

impl Phase {
    pub(crate) fn of(setting: Setting<'_>, tally: &Tally, memory: Vec<Memory>) -> Self {
        // The last second is often incomplete, and contains answers that came after the end.
        let whole = tally.seconds.len().min(setting.seconds.ceil() as usize);
        let seconds = &tally.seconds[..whole];
        Self {
            name: setting.name.to_owned(),
            begun_s: setting.begun_s,
            seconds: setting.counted_s,
            rate: setting.rate,
            connections: setting.connections,
            operations: tally.kinds.iter().map(|(name, kind)| Operation::of(name, kind)).collect(),
            over_time: OverTime {
                good: seconds.iter().map(|second| second.good).collect(),
                refused: seconds.iter().map(|second| second.refused).collect(),
                wrong: seconds.iter().map(|second| second.wrong).collect(),
                longest_ms: seconds.iter().map(|second| second.longest_us as f64 / 1e3).collect(),
            },
            sent_late_ms: Percentiles::of(&tally.late),
            unsent: tally.unsent,
            opened_connections: tally.opened,
            memory,
        }
    }
}
