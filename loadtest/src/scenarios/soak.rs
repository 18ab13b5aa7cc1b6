//! A long time at a share of the capacity, with everything that a server does in production: a crawler's mix with as
//! many deletes as inserts, a collection whose documents expire, new bandings, and backups. Memory must stay flat.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use hyper::{Method, Uri};

use super::companion::Companion;
use super::import::import;
use super::operator::{Operator, Work};
use crate::bench::{Bench, runtime};
use crate::client::{Pace, Request, Tally};
use crate::memory::Memory;
use crate::options;
use crate::scrape::sum;
use crate::works::{Crawl, Inserts, Mix};

/// The number of documents stays the same, because as many are deleted as are inserted.
const MIX: Mix = Mix { new: 20, copy: 15, again: 10, read: 5, delete: 20 };
/// The share of the load that goes to the collection whose documents expire.
const EXPIRING: f64 = 1.0 / 7.0;
/// The number of clients that together reach the capacity. With more clients, the server would answer more requests,
/// but it would also refuse some.
const CLIENTS: usize = 16;
/// The slowest seconds do not count for the capacity, because a banding may change in them, for example. This is their
/// share of all seconds.
const SLOWEST: f64 = 0.05;
const COLLECTION: &str = "expiring";
/// The number of cycles whose memory is averaged. On a slow machine, rebandings shift from cycle to cycle, and they
/// take memory. The means of single cycles then differ by as much as the limit allows.
const MEAN_CYCLES: f64 = 4.0;

#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: options::Args,
    /// Seconds of one round of rebandings and a backup [default: a thirtieth of --seconds, 10 to 60]
    #[arg(long)]
    pub(crate) cycle: Option<f64>,
    /// Seconds before memory counts [default: a sixth of --seconds, at least two cycles]
    #[arg(long)]
    pub(crate) warm_up: Option<f64>,
    /// How far the mean memory of four cycles may differ from that of the first four after the warm-up, in percent
    #[arg(long, default_value_t = 3.0)]
    pub(crate) rss_percent: f64,
    /// Seconds after which a document of the expiring collection is deleted
    #[arg(long, default_value_t = 20)]
    pub(crate) ttl: u64,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    let mut bench = Bench::new("soak", &args.common, &[])?;
    import(&bench, "default", args.common.documents)?;
    let cycle = args.cycle.unwrap_or((args.common.seconds / 30.0).clamp(10.0, 60.0));
    let to: Uri = format!("/v1/collections/{COLLECTION}").parse()?;
    bench.must(&Request::json("create", Method::PUT, &to, format!(r#"{{"ttl": {}}}"#, args.ttl)))?;
    let work = soak(&mut bench, args, cycle)?;
    bench.report.figure("rebandings", work.rebandings as f64)?;
    bench.report.figure("longest rebanding, s", work.rebanding_s)?;
    bench.report.figure("backups", work.backups as f64)?;
    bench.report.figure("longest backup, s", work.backup_s)?;
    let scrape = bench.scrape()?;
    let expired = sum(&scrape, "hapax_expired_documents_total");
    bench.report.figure("expired documents", expired)?;
    bench.report.at_most("collections in which nothing expired", f64::from(expired == 0.0), 0.0, false);
    bench.report.at_most("damaged records", sum(&scrape, "hapax_scrub_errors_total"), 0.0, false);
    bench.report.finish(&args.common)
}

/// Sends everything at the same time.
fn soak(bench: &mut Bench, args: &Args, cycle: f64) -> Result<Work> {
    let crawl = Crawl::new(&bench.texts, "default", bench.args.documents, MIX);
    let operator = Operator::start(&bench.target, COLLECTION, Duration::from_secs_f64(cycle));
    let rate = match bench.args.rate {
        Some(rate) => rate,
        // The capacity is measured for the time until the first documents expire, and then for a whole cycle.
        None => capacity(bench, &crawl, args.ttl as f64 + cycle)? * bench.args.load,
    };
    let paces = (bench.open(rate * (1.0 - EXPIRING)), bench.open(rate * EXPIRING));
    let begun_s = bench.sampler.now();
    let tallies = both(bench, &crawl, "soak", paces, args.common.seconds, (bench.args.connections, 32))?;
    for (what, tally) in [("crawl", &tallies.0), ("expiring", &tallies.1)] {
        bench.report.nothing_wrong(what, tally);
        let refused = tally.refused().len() as f64;
        bench.report.at_most(&format!("{what}: refused requests"), refused, 0.0, true);
    }
    bench.report.figure("new documents that are not deleted yet", crawl.left() as f64)?;
    bench.expect_recall(crawl.checks().queries().recall());
    let work = operator.finish()?;
    flat(bench, args, begun_s, cycle)?;
    Ok(work)
}

/// Returns the number of requests that are answered in all except the slowest seconds, while documents expire, bandings
/// change and backups are made.
fn capacity(bench: &mut Bench, crawl: &Arc<Crawl>, seconds: f64) -> Result<f64> {
    let expiring = (CLIENTS as f64 * EXPIRING).round() as usize;
    let tallies =
        both(bench, crawl, "capacity", (Pace::Closed, Pace::Closed), seconds, (CLIENTS - expiring, expiring))?;
    let mut good: Vec<u64> =
        tallies.0.seconds.iter().zip(&tallies.1.seconds).map(|(one, other)| one.good + other.good).collect();
    // The last second is incomplete.
    good.pop();
    good.sort_unstable();
    let rate = good.get((good.len() as f64 * SLOWEST) as usize).copied().unwrap_or_default() as f64;
    bench.report.nothing_wrong("at the capacity, crawl", &tallies.0);
    bench.report.nothing_wrong("at the capacity, expiring", &tallies.1);
    bench.report.figure("capacity, requests/s", rate)?;
    Ok(rate)
}

/// Sends the crawler's mix, and documents that expire. Each load has its own pace and connections. The ids of the
/// documents begin with `name`.
fn both(
    bench: &mut Bench,
    crawl: &Arc<Crawl>,
    name: &'static str,
    paces: (Pace, Pace),
    seconds: f64,
    connections: (usize, usize),
) -> Result<(Tally, Tally)> {
    let inserts = Inserts::new(&bench.texts, COLLECTION, name);
    let plan = (paces.1, seconds, connections.1);
    let expiring = Companion::start(bench, runtime(Some(1), 0)?, &format!("{name}, expiring"), &inserts, plan);
    let crawled = bench.phase_with(&format!("{name}, crawl"), crawl, paces.0, seconds, connections.0)?;
    Ok((crawled, expiring.finish(bench)?))
}

/// Requires that memory is flat after the warm-up.
fn flat(bench: &mut Bench, args: &Args, begun_s: f64, cycle: f64) -> Result<()> {
    let warm_up = args.warm_up.unwrap_or((args.common.seconds / 6.0).max(2.0 * cycle));
    let samples = bench.sampler.since(begun_s + warm_up);
    let rest_s = samples.last().zip(samples.first()).map_or(0.0, |(last, first)| last.at_s - first.at_s);
    let window_s = (cycle * MEAN_CYCLES).min(rest_s / 2.0);
    for (what, pick) in
        [("resident", (|memory| memory.rss) as fn(&Memory) -> u64), ("anonymous", |memory| memory.anonymous)]
    {
        let means = means(&samples, window_s, pick);
        let first = means.first().copied().unwrap_or_default();
        let most = means
            .iter()
            .map(|mean| (mean / first - 1.0) * 100.0)
            .fold(0.0, |most, percent: f64| if percent.abs() > most { percent.abs() } else { most });
        let last = means.last().map_or(0.0, |last| last / 1e6);
        bench.report.figure(&format!("{what} memory after the warm-up, MB"), first / 1e6)?;
        bench.report.figure(&format!("{what} memory at the end, MB"), last)?;
        let what = format!("{what} memory: percent by which the mean of some cycles differs from the first");
        bench.report.at_most(&what, most, args.rss_percent, false);
    }
    Ok(())
}

/// Returns the mean of each complete window of this many seconds.
fn means(samples: &[Memory], window_s: f64, pick: fn(&Memory) -> u64) -> Vec<f64> {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return Vec::new() };
    let windows = ((last.at_s - first.at_s) / window_s) as usize;
    let mean = |window: usize| {
        let from = first.at_s + window as f64 * window_s;
        let inside = samples.iter().filter(|sample| (from..from + window_s).contains(&sample.at_s));
        let (sum, count) = inside.fold((0.0, 0.0), |(sum, count), sample| (sum + pick(sample) as f64, count + 1.0));
        sum / f64::max(count, 1.0)
    };
    (0..windows).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_whole_and_averaged() {
        let sample =
            |at: u32| Memory { at_s: f64::from(at), rss: u64::from(at / 10) * 100 + u64::from(at % 2), anonymous: 7 };
        let samples: Vec<Memory> = (0..=35).map(sample).collect();
        assert_eq!(means(&samples, 10.0, |memory| memory.rss), [0.5, 100.5, 200.5]);
        assert_eq!(means(&samples, 10.0, |memory| memory.anonymous), [7.0, 7.0, 7.0]);
        assert!(means(&[], 10.0, |memory| memory.rss).is_empty());
    }
}
