//! Checks at a given rate, first alone, and then while many bulk requests use the rest of the server's processor time.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;

use super::companion::Companion;
use super::import::import;
use crate::bench::{Bench, runtime};
use crate::client::{Latencies, Pace, Tally};
use crate::options;
use crate::scrape::sum;
use crate::works::{Bulk, Checks};

/// The largest factor by which checks may be slower during bulk requests.
const RATIO_MAX: f64 = 3.0;
const STREAMS: usize = 64;
const LINES: u64 = 500;
const CHECKS: f64 = 200.0;

#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: options::Args,
    /// Bulk requests at the same time
    #[arg(long, default_value_t = STREAMS)]
    pub(crate) streams: usize,
    /// Lines of each
    #[arg(long, default_value_t = LINES)]
    pub(crate) lines: u64,
    /// Checks per second
    #[arg(long, default_value_t = CHECKS)]
    pub(crate) checks: f64,
}

impl Args {
    /// Adds the defaults to the options that all scenarios share.
    pub(super) fn of(common: &options::Args) -> Self {
        Self { common: common.clone(), streams: STREAMS, lines: LINES, checks: CHECKS }
    }
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    let mut bench = Bench::new("bulk", &args.common, &[])?;
    import(&bench, "default", args.common.documents)?;
    load(&mut bench, args)?;
    bench.report.finish(&args.common)
}

pub(super) fn load(bench: &mut Bench, args: &Args) -> Result<()> {
    let checks = Checks::new(&bench.texts, "default", bench.args.documents);
    let seconds = bench.args.seconds;
    let pace = bench.open(args.checks);
    let alone = bench.phase_with("checks alone", &checks, pace, seconds, 32)?;
    bench.report.nothing_wrong("checks alone", &alone);
    for (name, work) in [
        ("bulk checks", Bulk::checks(&bench.texts, args.lines)),
        ("bulk inserts", Bulk::inserts(&bench.texts, args.lines)),
    ] {
        let (lines, begun) = (lines_read(bench)?, Instant::now());
        let (bulk, during) = together(bench, args, name, &work, &checks)?;
        // The server's own count is used, because a short phase may end in the middle of every request.
        let documents = (lines_read(bench)? - lines) / begun.elapsed().as_secs_f64();
        bench.report.nothing_wrong(name, &bulk);
        bench.report.nothing_wrong(&format!("checks during {name}"), &during);
        bench.report.figure(&format!("{name}, documents/s"), documents)?;
        let what = format!("refused checks during {name}");
        bench.report.at_most(&what, during.refused().len() as f64, 0.0, true);
        let p99 = |latencies: Latencies| latencies.value_at_quantile(0.99).max(1) as f64;
        let what = format!("p99 of checks during {name}, compared with checks alone");
        bench.report.at_most(&what, p99(during.good()) / p99(alone.good()), RATIO_MAX, true);
    }
    bench.expect_recall(checks.queries().recall());
    Ok(())
}

/// Returns the lines of bulk requests that the server has read so far.
fn lines_read(bench: &Bench) -> Result<f64> {
    Ok(sum(&bench.scrape()?, "hapax_http_bulk_lines_total"))
}

fn together(
    bench: &mut Bench,
    args: &Args,
    name: &str,
    work: &Arc<Bulk>,
    checks: &Arc<Checks>,
) -> Result<(Tally, Tally)> {
    let seconds = bench.args.seconds;
    // This client's threads for bulk requests have a lower priority than those for checks.
    let plan = (Pace::Closed, seconds, args.streams);
    let bulk = Companion::start(bench, runtime(bench.args.threads, 19)?, name, work, plan);
    let pace = bench.open(args.checks);
    let during = bench.phase_with(&format!("checks during {name}"), checks, pace, seconds, 32)?;
    Ok((bulk.finish(bench)?, during))
}
