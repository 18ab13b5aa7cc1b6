//! Most scenarios, each for a short time, against one server. `cold`, `latency`, `durable` and `soak` are left out.

use anyhow::Result;

use super::import::import;
use super::{bulk, check, hostile, hot, insert, mixed, overload, sink};
use crate::bench::{Bench, runtime};

/// The duration of the phases of attacks relative to other phases. It is shorter because there are many of them.
const ATTACK: f64 = 0.4;

#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) overload: overload::Args,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    let options = &args.overload.common;
    let limit = sink::limit(options)?;
    let mut bench = Bench::new("tour", options, &[])?;
    bench.report.figure("limit of this client, requests/s", limit)?;
    import(&bench, "default", options.documents)?;
    check::load(&mut bench)?;
    insert::load(&mut bench)?;
    mixed::load(&mut bench)?;
    hot::load(&mut bench)?;
    bulk::load(&mut bench, &bulk::Args::of(options))?;
    bench.runtime = runtime(options.threads, 19)?;
    overload::load(&mut bench, &args.overload)?;
    bench.args.seconds = options.seconds * ATTACK;
    hostile::load(&mut bench, &hostile::Args::of(options))?;
    bench.report.finish(options)
}
