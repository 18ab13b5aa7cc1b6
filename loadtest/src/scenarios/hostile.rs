//! One attack after another, while a prober sends ordinary checks from a separate thread with a higher priority. The
//! prober must be answered soon.

use anyhow::{Context, Result};
use hyper::{Method, Uri};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::import::import;
use crate::attacks::{Attack, Attackers, Ground};
use crate::bench::{Bench, runtime};
use crate::client::Request;
use crate::options;
use crate::works::Checks;

const PROBER_CONNECTIONS: usize = 16;
const P99_MS: f64 = 250.0;
const PROBES: f64 = 100.0;
/// Sockets that this client needs in addition to those of attackers.
const SPARE_SOCKETS: u64 = 1_000;

#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: options::Args,
    /// Checks of the prober, per second
    #[arg(long, default_value_t = PROBES)]
    pub(crate) probes: f64,
    /// Only attacks whose name contains this
    #[arg(long, value_name = "NAME", default_value = "")]
    pub(crate) only: String,
}

impl Args {
    /// Adds the defaults to the options that all scenarios share.
    pub(super) fn of(common: &options::Args) -> Self {
        Self { common: common.clone(), probes: PROBES, only: String::new() }
    }
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    let mut bench = Bench::new("hostile", &args.common, &[])?;
    import(&bench, "default", args.common.documents)?;
    load(&mut bench, args)?;
    bench.report.finish(&args.common)
}

pub(super) fn load(bench: &mut Bench, args: &Args) -> Result<()> {
    raise_descriptors()?;
    let ground = Ground::prepare(bench.target.address, &bench.texts)?;
    let checks = Checks::new(&bench.texts, "default", bench.args.documents);
    let attacking = runtime(bench.args.threads, 19)?;
    let (pace, seconds) = (bench.open(args.probes), bench.args.seconds);
    let quiet = bench.phase_with("quiet", &checks, pace, seconds, PROBER_CONNECTIONS)?;
    bench.report.nothing_wrong("quiet", &quiet);
    for attack in Attack::ALL.into_iter().filter(|attack| attack.name().contains(&args.only)) {
        let attackers = Attackers::start(&attacking, &ground, attack);
        let probed = bench.phase_with(attack.name(), &checks, pace, seconds, PROBER_CONNECTIONS)?;
        drop(attackers);
        bench.report.nothing_wrong(attack.name(), &probed);
        bench.report.at_most(&format!("{}: refused probes", attack.name()), probed.refused().len() as f64, 0.0, true);
        bench.expect_ms(&format!("{}: p99 of probes, ms", attack.name()), &probed.good(), 0.99, P99_MS);
    }
    let after = bench.phase_with("afterwards", &checks, pace, seconds, PROBER_CONNECTIONS)?;
    bench.report.nothing_wrong("afterwards", &after);
    bench.report.at_most("requests of foreign hosts that were let in", ground.let_in() as f64, 0.0, false);
    bench.must(&Request::bare("ready", Method::GET, Uri::from_static("/readyz"))).context("the server is not ready")?;
    let memory = bench.sampler.since(0.0);
    let most = memory.iter().map(|memory| memory.anonymous).max().unwrap_or(0);
    bench.report.figure("most anonymous memory, MB", most as f64 / 1e6)?;
    bench
        .report
        .figure("anonymous memory afterwards, MB", memory.last().map_or(0.0, |last| last.anonymous as f64 / 1e6))?;
    bench.expect_recall(checks.queries().recall());
    Ok(())
}

/// Allows this process to open as many sockets as the system permits.
fn raise_descriptors() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
        .context("cannot raise the limit on file descriptors")?;
    let enough = limit.maximum.is_none_or(|maximum| maximum >= 4_000 + SPARE_SOCKETS);
    anyhow::ensure!(enough, "this needs 5,000 file descriptors; `ulimit -Hn` says {:?}", limit.maximum);
    Ok(())
}
