//! Checks by one client, then by many at a given rate. For half of the checks, the nearest document and its similarity
//! are known.

use anyhow::Result;

use super::import::import;
use crate::bench::Bench;
use crate::client::Pace;
use crate::options::Args;
use crate::scrape::sum;
use crate::works::Checks;

pub(crate) fn run(args: &Args) -> Result<bool> {
    let mut bench = Bench::new("check", args, &[])?;
    measured_import(&mut bench)?;
    load(&mut bench)?;
    bench.report.finish(args)
}

/// Imports documents, and reports the speed of the import and the memory that the documents take.
fn measured_import(bench: &mut Bench) -> Result<()> {
    let documents = bench.args.documents;
    let resident = |bench: &Bench| Ok::<_, anyhow::Error>(sum(&bench.scrape()?, "process_resident_memory_bytes"));
    let before = resident(bench)?;
    let seconds = import(bench, "default", documents)?;
    let scrape = bench.scrape()?;
    let stored = sum(&scrape, "hapax_documents").max(1.0);
    bench.report.figure("import, documents/s", documents as f64 / seconds)?;
    bench.report.figure("resident memory, bytes a document", (resident(bench)? - before) / stored)?;
    let ids = sum(&scrape, r#"hapax_index_bytes{collection="default",part="id_cache"}"#);
    bench.report.figure("index, bytes a document", (sum(&scrape, "hapax_index_bytes") - ids) / stored)?;
    bench.report.figure("ids in memory, bytes a document", ids / stored)
}

/// Sends checks, and requires that every answer is right.
pub(super) fn load(bench: &mut Bench) -> Result<()> {
    let checks = Checks::new(&bench.texts, "default", bench.args.documents);
    let seconds = bench.args.seconds;
    let alone = bench.phase_with("one client", &checks, Pace::Closed, seconds / 2.0, 1)?;
    let pace = bench.pace(&checks)?;
    let tally = bench.phase("checks", &checks, pace, seconds)?;
    bench.report.nothing_wrong("one client", &alone);
    bench.report.nothing_wrong("checks", &tally);
    bench.expect_recall(checks.queries().recall());
    Ok(())
}
