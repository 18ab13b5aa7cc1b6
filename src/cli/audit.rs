//! `hapax audit`: reads the audit log of a server, and compares the logged evidence with the documents that are still
//! stored.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use super::audit_compare::Comparer;
use super::audit_table::Table;
use super::client::{Client, ServerArgs};
use super::exit::ExitStatus;
use super::output::{is_broken_pipe, is_of_files};
use super::plural::plural;
use crate::audit::{self, AuditLine, Filter, MOMENT_FORMS, OPS, ReadLine, moment};
use crate::types::VerdictKind;

/// Read the audit log of a server.
///
/// If `audit.dir` is set, a server writes a line of JSON for each decision. The line contains the evidence, but no text
/// of a document. This verb prints the lines that meet all conditions, in the order of the files. It needs no running
/// server, except with --compare.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax audit /var/lib/hapax/audit --id https://a.example/1 --table
  hapax audit /var/lib/hapax/audit --verdict near_duplicate --since 2h | jq -r .duplicate_of
  hapax audit /var/lib/hapax/audit --matched https://a.example/1 --compare

--compare asks a server about each match, and prints a line of JSON with the logged
\"similarity\", the similarity \"now\", and the \"state\". The API key needs the scopes check and read.

  same                 both documents are unchanged, and their similarity is the same
  changed              both documents are unchanged, but their similarity is different
  match_deleted        the match is no longer stored
  match_replaced       the id of the match was stored again later, so its content may be different
  document_deleted, document_replaced    the same for the document itself
  document_not_stored  the decision did not store the document, so there is nothing to compare
  collection_gone      the collection was dropped

Exit status: 0 all lines were read, and no evidence is gone or has changed; 1 some lines could not be
read, or some evidence is gone or has changed; 2 something failed.")]
pub struct Args {
    /// Files of the audit log, or directories that contain such files
    #[arg(value_name = "PATH", required = true, env = "HAPAX__AUDIT__DIR")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    conditions: Conditions,
    /// Print columns for people instead of JSON Lines
    #[arg(long)]
    table: bool,
    /// Compare the evidence with the documents that the server stores now
    #[arg(long)]
    compare: bool,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, clap::Args)]
struct Conditions {
    /// Only decisions in this collection
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
    /// Only decisions on the document with this id
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Only decisions whose evidence names this id
    #[arg(long, value_name = "ID")]
    matched: Option<String>,
    /// Only decisions for the API key with this name
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// Only decisions with this verdict
    #[arg(long, value_name = "VERDICT", value_parser = VerdictKind::ALL.map(VerdictKind::as_str))]
    verdict: Option<String>,
    /// Only decisions of this operation
    #[arg(long, value_name = "OP", value_parser = OPS)]
    op: Option<String>,
    /// Only decisions of the request with this id
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
    /// Only decisions at TIME or later. TIME is a time such as 2026-11-23T21:00:00Z, a date, or a duration before now
    /// such as 2h or 7d
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only decisions before TIME, which has the same form as for --since
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

impl Conditions {
    fn filter(&self) -> Result<Filter> {
        let at = |flag: &str, text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => moment(text).map(Some).ok_or_else(|| anyhow!("{flag} {text}: {MOMENT_FORMS}")),
        };
        Ok(Filter {
            collection: self.collection.clone(),
            id: self.id.clone(),
            matched: self.matched.clone(),
            key: self.key.clone(),
            verdict: self.verdict.clone(),
            op: self.op.clone(),
            request_id: self.request_id.clone(),
            since: at("--since", &self.since)?,
            until: at("--until", &self.until)?,
        })
    }
}

/// The output of the command, and its counts so far.
struct Printer {
    out: BufWriter<io::StdoutLock<'static>>,
    filter: Filter,
    table: Option<Table>,
    comparer: Option<Comparer>,
    /// The number of lines that could not be read.
    unreadable: u64,
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    let filter = args.conditions.filter()?;
    let files = files(&args.paths)?;
    let comparer = if args.compare { Some(Comparer::new(Client::new(&args.server)?)?) } else { None };
    let table = args.table.then(|| Table::new(args.compare));
    let out = BufWriter::new(io::stdout().lock());
    let mut printer = Printer { out, filter, table, comparer, unreadable: 0 };
    match printer.print(&files) {
        // The reader of the pipe, for example `head`, has read enough.
        Err(error) if is_broken_pipe(&error) => return Ok(ExitStatus::Fine),
        printed => printed?,
    }
    let evidence_differs = printer.comparer.as_ref().is_some_and(Comparer::found_differences);
    Ok(if printer.unreadable > 0 || evidence_differs { ExitStatus::Found } else { ExitStatus::Fine })
}

/// Returns the files of all paths, in the order of the paths.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in paths {
        if !path.exists() {
            bail!("{}: there is no such file or directory; give the audit.dir of the server", path.display());
        }
        let found = audit::files(path).with_context(|| format!("cannot list {}", path.display()))?;
        if found.is_empty() {
            note(&format!("{} has no files of an audit log", path.display()));
        }
        all.extend(found);
    }
    Ok(all)
}

impl Printer {
    fn print(&mut self, files: &[PathBuf]) -> Result<()> {
        if let Some(table) = &self.table {
            table.head(&mut self.out)?;
        }
        for file in files {
            let read = audit::lines::<anyhow::Error>(file, |number, line| self.line(file, number, line));
            match read {
                // The server has removed the file since the directory was listed.
                Err(error) if is_missing(&error) => note(&format!("{} was removed meanwhile", file.display())),
                read => read.with_context(|| format!("cannot read {}", file.display()))?,
            }
        }
        self.out.flush().context("cannot write to stdout")?;
        if self.unreadable > 0 {
            note(&format!("{} line{} could not be read", self.unreadable, plural(self.unreadable)));
        }
        Ok(())
    }

    fn line(&mut self, file: &Path, number: u64, line: ReadLine<'_>) -> Result<()> {
        let place = || format!("{} line {number}", file.display());
        match line {
            ReadLine::Decision(line, text) if self.filter.takes(&line) => self.decision(&line, text)?,
            ReadLine::Decision(..) => {}
            ReadLine::Torn => note(&format!("{}: the last line is incomplete, and is left out", place())),
            ReadLine::Unreadable(why) => {
                self.unreadable += 1;
                note(&format!("{}: not a line of an audit log: {why}", place()));
            }
        }
        Ok(())
    }

    fn decision(&mut self, line: &AuditLine<'_>, text: &str) -> Result<()> {
        let Some(comparer) = &mut self.comparer else {
            match &self.table {
                Some(table) => table.decision(&mut self.out, line)?,
                None => writeln!(self.out, "{text}")?,
            }
            return Ok(());
        };
        for found in line.matches.iter().flatten() {
            let compared = comparer.compare(line, found)?;
            match &self.table {
                Some(table) => table.compared(&mut self.out, &compared)?,
                None => {
                    serde_json::to_writer(&mut self.out, &compared).map_err(io::Error::from)?;
                    writeln!(self.out)?;
                }
            }
        }
        Ok(())
    }
}

fn note(text: &str) {
    // If stderr is closed, there is no other place for a note.
    let _ = writeln!(io::stderr().lock(), "note: {text}");
}

fn is_missing(error: &anyhow::Error) -> bool {
    is_of_files(error, io::ErrorKind::NotFound)
}
