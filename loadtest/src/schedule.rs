//! A rate -> the times at which requests are due. They depend only on the seed, and not on how fast answers come.
//! `client/drive.rs` sends at these times, and counts each latency from them.

use std::time::Duration;

use crate::texts::Random;

/// The times between requests.
#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
pub(crate) enum Arrivals {
    /// Independent clients: intervals are random (exponential), so requests come in bunches
    Poisson,
    /// Equal intervals
    Uniform,
}

/// Due times, counted from the beginning. They never end.
pub(crate) struct Schedule {
    arrivals: Arrivals,
    rate: f64,
    random: Random,
    at: f64,
}

impl Schedule {
    /// Makes a schedule of `rate` requests per second.
    pub(crate) fn new(arrivals: Arrivals, rate: f64, seed: u64) -> Self {
        Self { arrivals, rate, random: Random::of(seed, 0x005c_4ed0), at: 0.0 }
    }
}

impl Iterator for Schedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let due = Duration::try_from_secs_f64(self.at).ok()?;
        self.at += match self.arrivals {
            Arrivals::Uniform => 1.0 / self.rate,
            Arrivals::Poisson => -self.random.unit().ln() / self.rate,
        };
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intervals(arrivals: Arrivals) -> Vec<f64> {
        let dues: Vec<f64> = Schedule::new(arrivals, 1_000.0, 5).take(20_001).map(|due| due.as_secs_f64()).collect();
        dues.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    #[test]
    fn both_keep_the_rate_and_only_one_varies() {
        for (arrivals, deviation) in [(Arrivals::Uniform, 0.0), (Arrivals::Poisson, 0.001)] {
            let intervals = intervals(arrivals);
            let mean = intervals.iter().sum::<f64>() / intervals.len() as f64;
            let variance =
                intervals.iter().map(|interval| (interval - mean).powi(2)).sum::<f64>() / intervals.len() as f64;
            assert!((mean - 0.001).abs() < 0.000_03, "{arrivals:?}: {mean}");
            // The standard deviation of exponential intervals is their mean.
            assert!((variance.sqrt() - deviation).abs() < 0.000_05, "{arrivals:?}: {}", variance.sqrt());
        }
    }

    #[test]
    fn a_schedule_depends_on_its_seed() {
        let first = |seed| Schedule::new(Arrivals::Poisson, 10.0, seed).nth(3);
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }
}
