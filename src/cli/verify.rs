//! `hapax verify`: a data directory -> whether its files hold what was written; and, asked for, a repair.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::ExitStatus;
use crate::store::lock::DataDirLock;
use crate::store::{self, Finding, Inspection, Repaired};
use crate::types::CollectionName;

/// Findings of one collection that are shown to people; --json has all.
const SHOWN_MAX: usize = 20;
/// Steps of the bar.
const STEPS: u64 = 1000;

/// Read everything that a data directory holds, and check it.
///
/// Each file's log, settings and ledger, every row of every table against its own checksum and against the other rows of
/// its document, the index of clusters, and SQLite's own check. No server may be using the directory, and nothing in it
/// is changed without --repair.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax verify --data-dir ./hapax-data
  hapax verify --data-dir ./hapax-data --collection news --json
  hapax verify --data-dir ./hapax-data --collection news --repair

--repair makes a new file of each damaged collection, from its documents that are whole. What could
be read of the others is put into NAME.sqlite.damaged-1.jsonl, a line for each row. The damaged file
is kept as NAME.sqlite.damaged-1.

Exit status: 0 all is sound, 1 damage was found (repaired or not), 2 it could not be checked, or not be repaired.")]
pub struct Args {
    /// The data directory
    #[arg(long, value_name = "DIR", default_value = "./hapax-data")]
    data_dir: PathBuf,
    /// Only this collection
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
    /// Make new files of damaged collections, from what is whole
    #[arg(long)]
    repair: bool,
    /// One line of JSON for each collection
    #[arg(long)]
    json: bool,
}

/// A line of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    collection: &'a str,
    sound: bool,
    /// Whether all of it could be looked at.
    complete: bool,
    documents: u64,
    damaged: u64,
    findings_total: u64,
    findings: Vec<FindingLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repaired: Option<RepairLine<'a>>,
}

#[derive(Serialize)]
struct FindingLine<'a> {
    place: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<u64>,
    detail: &'a str,
}

#[derive(Serialize)]
struct RepairLine<'a> {
    documents: u64,
    set_aside: u64,
    lost: u64,
    kept_as: &'a Path,
    set_aside_in: &'a Path,
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<ExitStatus> {
    // Locking makes what is missing; here that would only hide a mistyped path.
    let dir = args.data_dir.join("collections");
    if !dir.is_dir() {
        bail!("--data-dir {}: this is not a data directory: it has no folder `collections`", args.data_dir.display());
    }
    let _lock = DataDirLock::acquire(&args.data_dir, Duration::ZERO)?;
    let unreadable = || format!("cannot read {}", dir.display());
    store::finish_repairs(&dir).with_context(unreadable)?;
    let mut names = store::list(&dir).with_context(unreadable)?;
    if let Some(name) = &args.collection {
        let name = CollectionName::new(name).map_err(|error| anyhow!("--collection: {error}"))?;
        names.retain(|known| *known == name);
        if names.is_empty() {
            bail!("there is no collection `{name}` in {}", args.data_dir.display());
        }
    }
    let (mut found, mut failed) = (false, None);
    for name in &names {
        match one(args, &dir, name) {
            Ok(sound) => found |= !sound,
            // The others are looked at all the same.
            Err(error) => {
                let error = error.context(format!("collection `{name}` could not be dealt with"));
                if let Some(earlier) = failed.replace(error) {
                    writeln!(io::stderr().lock(), "hapax: {earlier:#}")?;
                }
            }
        }
    }
    match failed {
        Some(error) => Err(error),
        None if found => Ok(ExitStatus::Found),
        None => Ok(ExitStatus::Fine),
    }
}

fn one(args: &Args, dir: &Path, name: &CollectionName) -> Result<bool> {
    let path = store::path_of(dir, name);
    let bar = progress_bar(name);
    let inspection = store::inspect(&path, &|share| bar.set_position((share * STEPS as f64) as u64));
    bar.finish_and_clear();
    let inspection = inspection?;
    let repaired = if args.repair && !inspection.is_sound() { Some(store::repair(&path)) } else { None };
    let (repaired, failed) = match repaired {
        Some(Ok(repaired)) => (Some(repaired), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer(&mut out, &report(name, &inspection, repaired.as_ref()))?;
        writeln!(out)?;
    } else {
        tell(&mut out, name, &inspection, repaired.as_ref())?;
    }
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(inspection.is_sound()),
    }
}

fn report<'a>(name: &'a CollectionName, inspection: &'a Inspection, repaired: Option<&'a Repaired>) -> Report<'a> {
    let line = |finding: &'a Finding| FindingLine {
        place: finding.place,
        record: finding.record.map(|seq| seq.0),
        detail: &finding.detail,
    };
    Report {
        collection: name.as_str(),
        sound: inspection.is_sound(),
        complete: inspection.complete,
        documents: inspection.documents,
        damaged: inspection.damaged,
        findings_total: inspection.findings_total,
        findings: inspection.findings.iter().map(line).collect(),
        repaired: repaired.map(|repaired| RepairLine {
            documents: repaired.documents,
            set_aside: repaired.set_aside,
            lost: repaired.lost,
            kept_as: &repaired.kept_as,
            set_aside_in: &repaired.set_aside_in,
        }),
    }
}

fn tell(
    out: &mut impl Write,
    name: &CollectionName,
    inspection: &Inspection,
    repaired: Option<&Repaired>,
) -> io::Result<()> {
    if inspection.is_sound() {
        return writeln!(out, "{name}: sound, {} documents", inspection.documents);
    }
    writeln!(out, "{name}: damaged; {} documents are whole, {} are not", inspection.documents, inspection.damaged)?;
    for Finding { place, record, detail } in inspection.findings.iter().take(SHOWN_MAX) {
        match record {
            Some(seq) => writeln!(out, "  record {}, {place}: {detail}", seq.0)?,
            None => writeln!(out, "  {place}: {detail}")?,
        }
    }
    let more = inspection.findings_total.saturating_sub(SHOWN_MAX as u64);
    if more > 0 {
        writeln!(out, "  and {more} more")?;
    }
    if !inspection.complete {
        writeln!(out, "  the rest could not be looked at")?;
    }
    let Some(Repaired { documents, set_aside, lost, kept_as, set_aside_in }) = repaired else { return Ok(()) };
    writeln!(out, "  repaired: it holds {documents} documents now; {set_aside} were set aside, {lost} are lost")?;
    writeln!(out, "  set aside in {}", set_aside_in.display())?;
    writeln!(out, "  the damaged file is {}", kept_as.display())
}

fn progress_bar(name: &CollectionName) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30.cyan/dim} {percent:>3} %  {msg}  {eta} to go");
    let bar = ProgressBar::new(STEPS).with_style(style.expect("the template is valid")).with_message(name.to_string());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
