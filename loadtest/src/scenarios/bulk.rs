//! Checks at a rate, alone, and while many bulk requests use every other moment of the server.

use std::sync::Arc;

use anyhow::Result;

use super::beside::Beside;
use super::import::import;
use crate::bench::{Bench, counted, runtime};
use crate::client::{Latencies, Pace, Tally};
use crate::options;
use crate::works::{Bulk, Checks};

/// How much longer checks may take beside bulk requests.
const RATIO_MAX: f64 = 3.0;
const STREAMS: usize = 64;
const LINES: u64 = 500;
const CHECKS: f64 = 200.0;

#[derive(Clone, Debug, clap::Args)]
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
        let (bulk, beside) = together(bench, args, name, &work, &checks)?;
        bench.report.nothing_wrong(name, &bulk);
        bench.report.nothing_wrong(&format!("checks beside {name}"), &beside);
        let documents = bulk.good().len() as f64 * args.lines as f64 / counted(seconds);
        bench.report.figure(&format!("{name}, documents/s"), documents)?;
        let p99 = |latencies: Latencies| latencies.value_at_quantile(0.99).max(1) as f64;
        let what = format!("p99 of checks beside {name}, compared with checks alone");
        bench.report.at_most(&what, p99(beside.good()) / p99(alone.good()), RATIO_MAX, true);
    }
    bench.expect_recall(checks.queries().recall());
    Ok(())
}

fn together(
    bench: &mut Bench,
    args: &Args,
    name: &str,
    work: &Arc<Bulk>,
    checks: &Arc<Checks>,
) -> Result<(Tally, Tally)> {
    let seconds = bench.args.seconds;
    // This client's threads for bulk give way to those for checks.
    let plan = (Pace::Closed, seconds, args.streams);
    let bulk = Beside::start(bench, runtime(bench.args.threads, 10)?, name, work, plan);
    let pace = bench.open(args.checks);
    let beside = bench.phase_with(&format!("checks beside {name}"), checks, pace, seconds, 32)?;
    Ok((bulk.finish(bench)?, beside))
}
