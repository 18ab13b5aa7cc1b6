//! Checks and inserts at shares of the capacity, alone and during other work: inserts, an import, backups.

use std::sync::Arc;

use anyhow::Result;

use super::companion::Companion;
use super::import::import;
use super::operator::Operator;
use crate::bench::{Bench, runtime};
use crate::client::{Pace, Tally};
use crate::options::Args;
use crate::works::{Bulk, Checks, Inserts, Later};

/// The shares of the capacity at which everything is measured.
const LOADS: [f64; 2] = [0.5, 0.8];
/// The share of the capacity that inserts use during checks. At the greater share of [`LOADS`], the rate of the checks
/// is lowered, so that both loads together do not exceed that share.
const WITH: f64 = 0.25;
/// The largest factor by which the slowest of a thousand checks may be slower during inserts, at the smaller share.
const RATIO_MAX: f64 = 3.0;
/// The number of lines in a request of the import, which has one connection.
const LINES: u64 = 1000;
/// The loads that run during checks begin the numbers of their documents at different multiples of this number.
const APART: u64 = 1 << 24;

pub(crate) fn run(args: &Args) -> Result<bool> {
    let mut bench = Bench::new("latency", args, &[])?;
    import(&bench, "default", args.documents)?;
    let checks = Checks::new(&bench.texts, "default", args.documents);
    let inserts = Inserts::new(&bench.texts, "default", "new");
    let capacity = Capacity { checks: bench.capacity(&checks)?, inserts: bench.capacity(&inserts)? };
    for (round, load) in (0..).zip(LOADS) {
        measure(&mut bench, &checks, &inserts, &capacity, (round, load))?;
    }
    bench.expect_recall(checks.queries().recall());
    bench.report.finish(args)
}

/// The number of requests per second that the server answers if it does no other work.
struct Capacity {
    checks: f64,
    inserts: f64,
}

fn measure(
    bench: &mut Bench,
    checks: &Arc<Checks>,
    inserts: &Arc<Inserts>,
    capacity: &Capacity,
    (round, load): (u64, f64),
) -> Result<()> {
    let (seconds, percent) = (bench.args.seconds, load * 100.0);
    let name = |what: &str| format!("{what} at {percent:.0} %");
    let rate = bench.open(capacity.checks * load);
    let alone = bench.faultless(&name("checks"), checks, rate, seconds)?;
    let insert_rate = bench.open(capacity.inserts * load);
    bench.faultless(&name("inserts"), inserts, insert_rate, seconds)?;

    let later = |of: u64| (2 * round + of + 1) * APART;
    let (beside, less) = (Later::new(inserts, later(0)), load.min(LOADS[1] - WITH));
    let plan = (bench.open(capacity.inserts * WITH), seconds, bench.args.connections);
    let companion =
        Companion::start(bench, runtime(bench.args.threads, 0)?, &name("inserts during checks"), &beside, plan);
    let rate_beside = bench.open(capacity.checks * less);
    let during =
        bench.faultless(&format!("checks at {:.0} %, and inserts", less * 100.0), checks, rate_beside, seconds)?;
    nothing_wrong(bench, companion)?;
    if load == LOADS[0] {
        let slowest = |tally: &Tally| tally.good().value_at_quantile(0.999).max(1) as f64;
        let what = "p99.9 of checks during inserts, compared with checks alone";
        bench.report.at_most(what, slowest(&during) / slowest(&alone), RATIO_MAX, true);
    }

    let import = Later::new(&Bulk::inserts(&bench.texts, LINES), later(1) / LINES);
    let plan = (Pace::Closed, seconds, 1);
    let companion = Companion::start(bench, runtime(bench.args.threads, 19)?, "an import", &import, plan);
    bench.faultless(&name("checks during an import,"), checks, rate, seconds)?;
    nothing_wrong(bench, companion)?;

    let backups = Operator::back_up(&bench.target);
    bench.faultless(&name("checks during backups,"), checks, rate, seconds)?;
    bench.report.figure("backups meanwhile", backups.finish()?.backups as f64)
}

fn nothing_wrong(bench: &mut Bench, companion: Companion) -> Result<()> {
    let tally = companion.finish(bench)?;
    bench.report.nothing_wrong("at the same time", &tally);
    Ok(())
}
