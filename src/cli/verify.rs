//! `hapax verify`: checks whether the files of a data directory contain the data that was written, and repairs them
//! with `--repair`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use indicatif::ProgressBar;
use serde::Serialize;

use super::exit::ExitStatus;
use super::in_use::advise;
use super::plural::plural;
use super::progress;
use crate::collections::offline::{CollectionFiles, FileCheck, FileDamage, FileRepair};
use crate::types::CollectionName;

/// The most findings of one collection that are printed. --json prints more.
const SHOWN_MAX: usize = 20;
/// The number of steps of the progress bar.
const STEPS: u64 = 1000;

/// Read and check everything in a data directory.
///
/// For each file, it checks the log, the settings and the ledger. It compares each row of each table with its checksum
/// and with the other rows of its document. It also runs SQLite's own check. A collection whose file is missing counts
/// as damaged. No server may be using the directory. Without --repair, no document is changed, but a file of an older
/// format is upgraded to the format of this version.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax verify --data-dir ./hapax-data
  hapax verify --data-dir ./hapax-data --collection news --json
  hapax verify --data-dir ./hapax-data --collection news --repair

--repair makes a new file for each damaged collection, from the documents that are intact. Rows of
the other documents are written to NAME.sqlite.damaged-1.jsonl, one per line, if they can still be
read. The damaged file is kept as NAME.sqlite.damaged-1. A repair needs free space of the size of
the file, and twice as much if its log is damaged.

Exit status: 0 everything is sound, 1 damage was found (repaired or not), 2 the check or the repair
failed.")]
pub struct Args {
    /// Data directory to check
    #[arg(long, value_name = "DIR", default_value = "./hapax-data")]
    data_dir: PathBuf,
    /// Check only this collection [default: all]
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
    /// Make a new file for each damaged collection, from the documents that are intact
    #[arg(long)]
    repair: bool,
    /// Print one line of JSON for each collection instead of text
    #[arg(long)]
    json: bool,
}

/// A line of `--json`.
#[derive(Serialize)]
struct ReportLine<'a> {
    collection: &'a str,
    sound: bool,
    /// Whether the whole file could be read.
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
    pairs_set_aside: u64,
    jobs_damaged: u64,
    log_damaged: bool,
    /// The number of lost documents; `null` if it is unknown.
    lost: Option<u64>,
    kept_as: &'a Path,
    set_aside_in: &'a Path,
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    // Without this check, taking the lock would create a missing directory. So a mistyped path would not be noticed.
    if !CollectionFiles::folder(&args.data_dir).is_dir() {
        bail!(
            "--data-dir {}: not a data directory, because it has no directory `collections`",
            args.data_dir.display()
        );
    }
    let files = CollectionFiles::take(&args.data_dir).map_err(|error| advise(error, "stop it first"))?;
    let (mut names, mut missing) = (files.names()?, files.missing()?);
    if let Some(name) = &args.collection {
        let name = CollectionName::new(name).map_err(|error| anyhow!("--collection: {error}"))?;
        names.retain(|known| *known == name);
        missing.retain(|known, _| *known == name);
        if names.is_empty() && missing.is_empty() {
            bail!("there is no collection `{name}` in {}", args.data_dir.display());
        }
    }
    for (name, checked) in &missing {
        show(args, name, checked, None)?;
    }
    let (mut found, mut failed) = (!missing.is_empty(), None);
    for name in &names {
        match one(args, &files, name) {
            Ok(sound) => found |= !sound,
            // The other collections are still checked.
            Err(error) => {
                let error = error.context(format!(
                    "cannot check or repair collection `{name}` (if the cause cannot be removed, restore the \
                     collection from a backup)"
                ));
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
    show(args, name, &checked, repaired.as_ref())?;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(checked.is_sound()),
    }
}

fn show(args: &Args, name: &CollectionName, checked: &FileCheck, repaired: Option<&FileRepair>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer(&mut out, &report(name, checked, repaired))?;
        writeln!(out)
    } else {
        tell(&mut out, name, checked, repaired)
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
            pairs_set_aside: repaired.pairs_set_aside,
            jobs_damaged: repaired.jobs_damaged,
            log_damaged: repaired.log_damaged,
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
    let is = |count| if count == 1 { "is" } else { "are" };
    let (documents, damaged) = (checked.documents, checked.damaged);
    let s = plural(documents);
    if checked.is_sound() {
        return writeln!(out, "{name}: sound, {documents} document{s}");
    }
    let (intact_is, damaged_is) = (is(documents), is(damaged));
    writeln!(out, "{name}: damaged; {documents} document{s} {intact_is} intact, {damaged} {damaged_is} not")?;
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
        writeln!(out, "  the rest could not be checked")?;
    }
    repaired.map_or(Ok(()), |repaired| tell_repair(out, repaired))
}

fn tell_repair(out: &mut impl Write, repaired: &FileRepair) -> io::Result<()> {
    let is = |count| if count == 1 { "is" } else { "are" };
    let FileRepair { documents, set_aside, pairs_set_aside, jobs_damaged, log_damaged, lost, kept_as, set_aside_in } =
        repaired;
    let how_many = match *lost {
        Some(lost) => format!("{lost} {} lost", is(lost)),
        None => "it is unknown how many are lost".to_owned(),
    };
    writeln!(
        out,
        "  repaired: it has {documents} document{} now; {set_aside} damaged {} set aside, {how_many}",
        plural(*documents),
        if *set_aside == 1 { "one was" } else { "ones were" },
    )?;
    if *log_damaged {
        writeln!(
            out,
            "  the writes in the damaged part of the log are undone: documents that these writes stored are lost, and \
             documents that they deleted exist again"
        )?;
    }
    if *pairs_set_aside > 0 {
        let were = if *pairs_set_aside == 1 { "pair was" } else { "pairs were" };
        writeln!(out, "  {pairs_set_aside} damaged {were} set aside from the golden set")?;
    }
    if *jobs_damaged > 0 {
        let (parts, is) = (plural(*jobs_damaged), is(*jobs_damaged));
        writeln!(
            out,
            "  {jobs_damaged} part{parts} of the jobs {is} damaged: documents that were deleted by label may exist \
             again; delete them by that label again"
        )?;
    }
    writeln!(out, "  the rows of the damaged documents are in {}", set_aside_in.display())?;
    writeln!(out, "  the damaged file is {}", kept_as.display())
}

fn progress_bar(name: &CollectionName) -> ProgressBar {
    progress::of_steps(STEPS, "{bar:30.cyan/dim} {percent:>3} %  {msg}  {eta} left").with_message(name.to_string())
}
