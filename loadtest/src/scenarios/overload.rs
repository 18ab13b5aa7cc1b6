//! Sends more requests than the server can answer. They are made before the load begins, so each costs the server much
//! more than the client. At the same time, a prober sends a few ordinary checks from a thread with a higher priority.

use std::sync::Arc;

use anyhow::Result;

use super::companion::Companion;
use super::import::import;
use crate::bench::{Bench, counted, runtime};
use crate::client::{Latencies, Pace, Request, Second, Tally};
use crate::options;
use crate::schedule::Arrivals;
use crate::texts::Texts;
use crate::works::{Checks, Prepared, check_body, path};

/// The number of different long texts.
const PREPARED: u64 = 64;
/// A text that is sent compressed repeats one text of this many bytes.
const REPEATED: usize = 2048;
/// The distance between two consecutive batches in the numbers of their first texts.
const BATCHES_APART: u64 = 16;
/// The share of refusals that must be fast.
const REFUSED_QUANTILE: f64 = 0.999;
/// The longest latency of a fast refusal, in milliseconds.
const REFUSED_MS: f64 = 50.0;
/// The largest factor by which accepted requests may be slower at twice the capacity.
const ACCEPTED_RATIO: f64 = 2.0;
/// While most requests are refused, good answers must be at least this share of the capacity.
const GOOD_SHARE: f64 = 0.5;
const PROBER_CONNECTIONS: usize = 16;
const NORMAL_WITHIN_S: f64 = 10.0;
/// The seconds of the phases before and after the overload, which are only used for comparison; fewer in short runs.
const BESIDE_S_MAX: f64 = 20.0;

#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: options::Args,
    /// Bytes of text in each request
    #[arg(long, default_value_t = 262_144)]
    pub(crate) large: usize,
    /// The form in which the text is sent
    #[arg(long, value_enum, default_value = "zstd")]
    pub(crate) form: Form,
    /// Multiples of the capacity, one phase each
    #[arg(long, value_delimiter = ',', default_value = "2,10")]
    pub(crate) times: Vec<f64>,
    /// Connections for the long texts
    #[arg(long, default_value_t = 512)]
    pub(crate) attackers: usize,
    /// Checks of the prober, per second
    #[arg(long, default_value_t = 50.0)]
    pub(crate) probes: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
pub(crate) enum Form {
    /// As a JSON document that compresses to some kilobytes, and is sent so
    Zstd,
    /// As a JSON document
    Json,
    /// As `text/plain`, which the server signs while it arrives
    Text,
    /// As a batch of documents of 2 KB, compressed
    Batch,
}

/// The load of one phase, and the prober's requests during it.
struct Outcome {
    load: Tally,
    probes: Tally,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    let mut bench = Bench::new("overload", &args.common, &[])?;
    // The prober shares the processors of this client, so the attackers have a lower priority.
    bench.runtime = runtime(args.common.threads, 19)?;
    import(&bench, "default", args.common.documents)?;
    load(&mut bench, args)?;
    bench.report.finish(&args.common)
}

pub(super) fn load(bench: &mut Bench, args: &Args) -> Result<()> {
    let attack = attack(bench, args)?;
    let probe = Checks::new(&bench.texts, "default", bench.args.documents);
    let capacity = bench.capacity(&attack)?;
    let seconds = bench.args.seconds;
    let beside = seconds.min(BESIDE_S_MAX);
    let phase = |bench: &mut Bench, name: &str, rate: f64, seconds: f64| {
        let pace = bench.open(rate);
        both(bench, args, name, (&attack, &probe), (pace, seconds))
    };
    let before = phase(bench, "at capacity", capacity, beside)?;
    for &times in &args.times {
        let during = phase(bench, &format!("{times} x capacity"), capacity * times, seconds)?;
        judge(bench, times, &before.load.good(), &during);
        let good = during.load.good().len() as f64 / counted(seconds);
        let what = format!("{times} x capacity: good answers, as a share of the capacity");
        bench.report.at_least(&what, good / capacity, GOOD_SHARE, true);
    }
    let after = phase(bench, "50 % afterwards", capacity * 0.5, beside)?;
    bench.report.nothing_wrong("before", &before.load);
    bench.report.nothing_wrong("afterwards", &after.load);
    let normal = normal_after(&after.load, capacity * 0.5).map_or(beside, |second| second as f64);
    bench.report.at_most("seconds until nothing is refused", normal, NORMAL_WITHIN_S, true);
    let most = bench.sampler.since(0.0).iter().map(|memory| memory.anonymous).max().unwrap_or(0);
    bench.report.figure("most anonymous memory, MB", most as f64 / 1e6)?;
    bench.expect_recall(probe.queries().recall());
    Ok(())
}

/// Requires the conditions that must hold while the load exceeds the capacity.
fn judge(bench: &mut Bench, times: f64, before: &Latencies, during: &Outcome) {
    // Only the prober's refusals are used, because the attackers' requests also wait for a free connection.
    let refused = during.probes.refused();
    bench.report.nothing_wrong(&format!("{times} x capacity"), &during.load);
    bench.report.nothing_wrong(&format!("{times} x capacity, prober"), &during.probes);
    let what = format!("{times} x capacity: p99.9 of the prober's refusals, ms");
    bench.expect_ms(&what, &refused, REFUSED_QUANTILE, REFUSED_MS);
    let good = during.load.good();
    if times <= 2.0 && !good.is_empty() {
        let ratio = good.value_at_quantile(0.99) as f64 / before.value_at_quantile(0.99).max(1) as f64;
        let what = format!("{times} x capacity: p99 of accepted requests, compared with that at capacity");
        bench.report.at_most(&what, ratio, ACCEPTED_RATIO, true);
    }
}

fn attack(bench: &Bench, args: &Args) -> Result<Arc<Prepared>> {
    let to = path("default", if args.form == Form::Batch { "batch" } else { "check" });
    let request = |n: u64| -> Result<Request> {
        Ok(match args.form {
            Form::Json => Request::post("long text", &to, check_body(long(bench, n, args.large).as_bytes())),
            Form::Text => Request::post("long text", &to, long(bench, n, args.large)).of_type("text/plain"),
            Form::Zstd => {
                let text = Texts::new(bench.args.seed, REPEATED).fresh(n).repeat(args.large.div_ceil(REPEATED));
                Request::post("long text", &to, zstd::encode_all(check_body(text.as_bytes()).as_ref(), 3)?)
                    .encoded("zstd")
            }
            Form::Batch => {
                let texts = Texts::new(bench.args.seed, REPEATED);
                let documents: Vec<_> = (0..args.large.div_ceil(REPEATED) as u64)
                    .map(|at| serde_json::json!({ "text": texts.fresh(n * BATCHES_APART + at % 4) }))
                    .collect();
                let body = serde_json::json!({ "op": "check", "documents": documents }).to_string();
                Request::post("batch", &to, zstd::encode_all(body.as_bytes(), 3)?).encoded("zstd")
            }
        })
    };
    Ok(Prepared::new((0..PREPARED).map(request).collect::<Result<_>>()?))
}

fn long(bench: &Bench, n: u64, bytes: usize) -> String {
    Texts::new(bench.args.seed, bytes).fresh(n)
}

/// Sends the load, and the prober's checks at the same time.
fn both(
    bench: &mut Bench,
    args: &Args,
    name: &str,
    (attack, probe): (&Arc<Prepared>, &Arc<Checks>),
    (pace, seconds): (Pace, f64),
) -> Result<Outcome> {
    let probes = Pace::Open { rate: args.probes, arrivals: Arrivals::Poisson, seed: bench.args.seed + 1 };
    let plan = (probes, seconds, PROBER_CONNECTIONS);
    let prober = Companion::start(bench, runtime(Some(1), 0)?, &format!("{name}, prober"), probe, plan);
    let load = bench.phase_with(name, attack, pace, seconds, args.attackers)?;
    Ok(Outcome { load, probes: prober.finish(bench)? })
}

/// Returns the first second from which on no request is refused and the rate is kept.
fn normal_after(tally: &Tally, rate: f64) -> Option<usize> {
    let whole = tally.seconds.len().saturating_sub(1);
    let normal = |second: &Second| second.refused == 0 && second.good as f64 > rate * 0.8;
    let last_bad = tally.seconds[..whole].iter().rposition(|second| !normal(second));
    let first_good = last_bad.map_or(0, |at| at + 1);
    (first_good < whole).then_some(first_good)
}
