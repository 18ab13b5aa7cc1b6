//! `hapax verify`: a data directory -> whether its files hold what was written; and, asked for, a repair.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::exit::ExitStatus;
use crate::collections::offline::{CollectionFiles, FileCheck, FileDamage, FileRepair};
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
struct ReportLine<'a> {
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
    if !CollectionFiles::folder(&args.data_dir).is_dir() {
        bail!("--data-dir {}: this is not a data directory: it has no folder `collections`", args.data_dir.display());
    }
    let files = CollectionFiles::take(&args.data_dir)?;
    let mut names = files.names()?;
    if let Some(name) = &args.collection {
        let name = CollectionName::new(name).map_err(|error| anyhow!("--collection: {error}"))?;
        names.retain(|known| *known == name);
        if names.is_empty() {
            bail!("there is no collection `{name}` in {}", args.data_dir.display());
        }
    }
    let (mut found, mut failed) = (false, None);
    for name in &names {
        match one(args, &files, name) {
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

fn one(args: &Args, files: &CollectionFiles, name: &CollectionName) -> Result<bool> {
    let bar = progress_bar(name);
    let checked = files.check(name, &|share| bar.set_position((share * STEPS as f64) as u64));
    bar.finish_and_clear();
    let checked = checked?;
    let repaired = if args.repair && !checked.is_sound() { Some(files.repair(name)) } else { None };
    let (repaired, failed) = match repaired {
        Some(Ok(repaired)) => (Some(repaired), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer(&mut out, &report(name, &checked, repaired.as_ref()))?;
        writeln!(out)?;
    } else {
        tell(&mut out, name, &checked, repaired.as_ref())?;
    }
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(checked.is_sound()),
    }
}

fn report<'a>(name: &'a CollectionName, checked: &'a FileCheck, repaired: Option<&'a FileRepair>) -> ReportLine<'a> {
    let line =
        |finding: &'a FileDamage| FindingLine { place: finding.place, record: finding.record, detail: &finding.detail };
    ReportLine {
        collection: name.as_str(),
        sound: checked.is_sound(),
        complete: checked.complete,
        documents: checked.documents,
        damaged: checked.damaged,
        findings_total: checked.damage_total,
        findings: checked.damage.iter().map(line).collect(),
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
    checked: &FileCheck,
    repaired: Option<&FileRepair>,
) -> io::Result<()> {
    if checked.is_sound() {
        return writeln!(out, "{name}: sound, {} documents", checked.documents);
    }
    writeln!(out, "{name}: damaged; {} documents are whole, {} are not", checked.documents, checked.damaged)?;
    for FileDamage { place, record, detail } in checked.damage.iter().take(SHOWN_MAX) {
        match record {
            Some(record) => writeln!(out, "  record {record}, {place}: {detail}")?,
            None => writeln!(out, "  {place}: {detail}")?,
        }
    }
    let more = checked.damage_total.saturating_sub(SHOWN_MAX as u64);
    if more > 0 {
        writeln!(out, "  and {more} more")?;
    }
    if !checked.complete {
        writeln!(out, "  the rest could not be looked at")?;
    }
    let Some(FileRepair { documents, set_aside, lost, kept_as, set_aside_in }) = repaired else { return Ok(()) };
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
