//! A crawler's mix of requests. Its verdicts are judged: copies must be skipped, and new pages stored.

use anyhow::Result;

use super::import::import;
use crate::bench::Bench;
use crate::options::Args;
use crate::works::{Crawl, Mix};

const MIX: Mix = Mix { new: 40, copy: 15, again: 10, read: 5, delete: 5 };

pub(crate) fn run(args: &Args) -> Result<bool> {
    let mut bench = Bench::new("mixed", args, &[])?;
    import(&bench, "default", args.documents)?;
    load(&mut bench)?;
    bench.report.finish(args)
}

pub(super) fn load(bench: &mut Bench) -> Result<()> {
    let crawl = Crawl::new(&bench.texts, "default", bench.args.documents, MIX);
    let pace = bench.pace(&crawl)?;
    let tally = bench.phase("crawl", &crawl, pace, bench.args.seconds)?;
    bench.report.nothing_wrong("crawl", &tally);
    bench.expect_recall(crawl.checks().queries().recall());
    Ok(())
}
