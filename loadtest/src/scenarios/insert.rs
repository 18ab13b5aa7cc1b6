//! Durable inserts at a given rate: each is answered when it is on disk.

use anyhow::Result;

use super::import::import;
use crate::bench::Bench;
use crate::options::Args;
use crate::works::Inserts;

pub(crate) fn run(args: &Args) -> Result<bool> {
    let mut bench = Bench::new("insert", args, &[])?;
    import(&bench, "default", args.documents)?;
    load(&mut bench)?;
    bench.report.finish(args)
}

pub(super) fn load(bench: &mut Bench) -> Result<()> {
    let inserts = Inserts::new(&bench.texts, "default", "new");
    let pace = bench.pace(&inserts)?;
    let tally = bench.phase("inserts", &inserts, pace, bench.args.seconds)?;
    bench.report.nothing_wrong("inserts", &tally);
    Ok(())
}
