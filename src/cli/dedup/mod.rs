//! `hapax dedup`: keeps one document of each group of duplicates in files. It needs no server.

mod deciding;
mod in_batches;
mod joining;
mod listing;
mod on_shelves;
mod report;
mod report_file;
mod results;
mod settings;
mod star;
mod tally;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::corpus::format::{Asked, Format, check_name, format};
use super::corpus::kept::KeptFile;
use super::corpus::kept_records::write_kept;
use super::corpus::order::Order;
use super::corpus::output::{OUTPUT, OutputFile, Snapshot};
use super::corpus::picture::{PLOT, draw};
use super::corpus::signing::each_signed;
use super::exit::ExitStatus;
use super::files::{FieldArgs, check_outputs, look_at_all, matching, read_once};
use super::memory::Memory;
use super::output::unless_read_enough;
use super::progress;
use super::signals::interruption;
use super::spill::line_runs::LineRuns;
use super::summary::summarise;
use super::unseen::{FIELD_FLAGS, warn_unseen};
use crate::corpus::{Components, Deduplicator, SearchLimits};
use crate::input::{Wanted, input_bytes};
use deciding::{Clusters, Deciding};
use in_batches::InBatches;
use joining::Joining;
use report::Report;
use report_file::ReportFile;
use results::Results;
use settings::{ClusterKind, DedupArgs, Ways};
use star::Star;
use tally::Tally;

const REPORT: &str = "--report";

/// Deduplicate files: keep one document of each group of duplicates.
///
/// No server is needed. The kept documents are those that a server would store if it got the documents one after another,
/// each with an id of its own: in the order of the files as they are given, and of the lines, rows or records in each
/// file. The files of a folder are read in the order of their paths. The signatures of the kept documents are in memory.
///
/// The output has the kept documents unchanged: the lines of JSON Lines, the records of CSV after their header, or the rows
/// of Parquet with all columns. For each page of a WARC file and each text file, it has a JSON object. A document needs no
/// id: without one, its file and the number of its line, row or record are its id in the report.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax dedup corpus.jsonl.zst -o kept.jsonl.zst
  hapax dedup crawl/ -o kept.jsonl --report dropped.jsonl --threshold 0.9
  hapax dedup part-*.parquet -o kept.parquet --keep max:score
  zcat corpus.jsonl.gz | hapax dedup - -o - --shingle char5
  hapax dedup results.jsonl                          list the kept documents with their duplicates

Exit status: 0 done, 1 some lines could not be used, 2 it failed and there is no output.")]
pub struct Args {
    /// JSON Lines, CSV, TSV, WARC or texts, plain or compressed with gzip or zstd, or Parquet; a folder with such files;
    /// - reads stdin. A quoted pattern such as '*.warc.gz' names the files that match
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write the kept documents to FILE; - is stdout. Lines are compressed if the name of FILE ends in .gz or .zst. FILE
    /// appears when it is complete. Without this option, the kept documents are listed on stdout: a line of JSON for each,
    /// with its duplicates. They are in memory until the end
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format of the kept documents, if it is not that of the input. jsonl: a JSON object with all fields of each document,
    /// of any input. csv, tsv, parquet: only of tables and of Parquet, because other documents may have any fields
    #[arg(long, value_name = "FORMAT", requires = "output")]
    format: Option<Asked>,
    /// Write a line of JSON to FILE for each document that is not kept: its place, the kept document that it repeats, and
    /// their similarity
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Draw how many near duplicates have which similarity, over the S-curve of the bands, to an SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Document to keep of each group of duplicates: first, longest, or max:FIELD for the largest number in a field or a
    /// column. With the last two, the files are read twice, and the signatures of all documents are in memory
    #[arg(long, value_name = "ORDER", default_value = "first", value_parser = Order::parse)]
    keep: Order,
    /// Memory that the documents may take, such as 512MiB or 4GiB. The others wait in temporary files, with the same
    /// result. The files are read twice. The program takes about 100MiB more. Without this option, everything is in memory:
    /// about 600 bytes for each kept document, or 1,100 for each document with another --keep or --clusters
    #[arg(long, value_name = "SIZE", value_parser = bounded, requires = "output")]
    memory: Option<Memory>,
    /// Folder for the temporary files of --memory [default: TMPDIR if it is set, or else the folder of the output]
    #[arg(short = 'T', long, value_name = "DIR", requires = "memory")]
    temporary_directory: Option<PathBuf>,
    #[command(flatten)]
    fields: FieldArgs,
    #[command(flatten)]
    settings: DedupArgs,
}

/// The least memory of a run whose memory is bounded.
const MEMORY_MIN: usize = 1 << 20;
/// The part of the memory that lines of the report may take.
const REPORT_SHARE: usize = 8;

fn bounded(text: &str) -> Result<Memory, String> {
    let memory = Memory::parse(text)?;
    if memory.bytes() < MEMORY_MIN {
        return Err("must be at least 1MiB".to_owned());
    }
    Ok(memory)
}

/// A run of the verb.
struct Job {
    files: Vec<PathBuf>,
    wanted: Wanted,
    order: Order,
    clusters: ClusterKind,
    format: Format,
    /// Whether the kept documents are listed with their duplicates.
    lists: bool,
    is_bounded: bool,
    stop: Arc<AtomicBool>,
    begun: Instant,
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    let is_on_stdout = args.output.as_deref().is_none_or(|path| path == Path::new("-"));
    unless_read_enough(is_on_stdout, deduplicate(args, is_on_stdout))
}

fn deduplicate(args: &Args, is_on_stdout: bool) -> Result<ExitStatus> {
    let files = matching(&args.files)?;
    let outputs = [(OUTPUT, args.output.as_deref()), (REPORT, args.report.as_deref()), (PLOT, args.plot.as_deref())];
    check_outputs(&files, &outputs)?;
    let mut wanted = Wanted { originals: true, also: args.keep.field().cloned(), ..args.fields.wanted(false) };
    wanted.objects = args.output.is_none() || args.format == Some(Asked::Jsonl);
    let header = look_at_all(&files, &wanted)?;
    let format = match &args.output {
        Some(output) => {
            let format = format(args.format, &files, header.as_ref())?;
            check_format(args, &files, output, &format).map(|()| format)?
        }
        None => Format::Objects,
    };
    // Rows of Parquet are copied from the file.
    wanted.originals = format != Format::Parquet;
    let stop = interruption()?;
    let mut deciding = deciding(args, files.len())?;
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    let mut output = KeptFile::create(path, OUTPUT, &format)?;
    let mut report = args.report.as_deref().map(|path| ReportFile::create(path, REPORT)).transpose()?;
    let mut plot = args.plot.as_deref().map(|path| OutputFile::create(path, PLOT)).transpose()?;
    let clusters = args.settings.cluster_kind();
    let (order, lists) = (args.keep.clone(), args.output.is_none());
    let is_bounded = args.memory.is_some();
    let job = Job { files, wanted, order, clusters, format, lists, is_bounded, stop, begun: Instant::now() };
    job.decide(&mut deciding, &mut output, report.as_mut())?;
    let tally = deciding.results().tally();
    tally.write_failures(&mut std::io::stderr().lock())?;
    if tally.has_only_failures() {
        bail!("no line is a document; there is no output");
    }
    // If one of the files cannot be written, neither appears.
    output.complete()?;
    report.as_mut().map(ReportFile::complete).transpose()?;
    if let Some(plot) = &mut plot {
        plot.line(draw(deciding.signer().settings(), tally.similarities())?.as_bytes())?;
        plot.complete()?;
    }
    output.publish()?;
    report.map(ReportFile::publish).transpose()?;
    plot.map(OutputFile::publish).transpose()?;
    warn_unseen(&job.wanted.form, FIELD_FLAGS, &mut std::io::stderr().lock())?;
    if let Some(warning) = tally.warning() {
        writeln!(std::io::stderr().lock(), "warning: {warning}")
            .context("the output is written, but a warning cannot be")?;
    }
    write_summary(tally, &job, is_on_stdout)?;
    Ok(if tally.failed() > 0 { ExitStatus::Found } else { ExitStatus::Fine })
}

fn write_summary(tally: &Tally, job: &Job, is_output_on_stdout: bool) -> Result<()> {
    summarise(is_output_on_stdout, |mut out| tally.write_summary(job.begun.elapsed(), &mut out))
}

impl Job {
    /// Decides on all documents, and writes the output and the report.
    fn decide(
        &self,
        deciding: &mut Deciding,
        output: &mut KeptFile,
        mut report: Option<&mut ReportFile>,
    ) -> Result<()> {
        let before = (!self.streams() && !self.lists).then(|| Snapshot::of(&self.files)).transpose()?;
        let bar = progress::of_files(input_bytes(&self.files));
        let signer = deciding.signer().clone();
        // Lines that are neither written now nor ranked only take memory.
        let originals = !self.is_bounded || self.order.field().is_some();
        let wanted = Wanted { originals, ..self.wanted.clone() };
        each_signed(&self.files, &wanted, (&signer, &self.order), &self.stop, |mut chunk| {
            let kept = deciding.take(&mut chunk, &self.order)?;
            if self.streams() {
                output.documents(chunk.chunk(), kept)?;
            }
            if self.decides_at_once() {
                write_report(deciding, report.as_deref_mut())?;
            }
            bar.inc(chunk.chunk().input_bytes);
            bar.set_message(progress::documents(deciding.documents(), self.begun));
            Ok(())
        })?;
        bar.finish_and_clear();
        deciding.finish(&self.order, &self.stop)?;
        write_report(deciding, report)?;
        if let Some(listing) = deciding.results().listing() {
            listing.lines().try_for_each(|line| output.file().line(&line))?;
        }
        if let Some(before) = before {
            let kept = deciding.results().kept_records();
            write_kept(&self.format, &self.files, &self.wanted, kept, &self.stop, output)?;
            if before != Snapshot::of(&self.files)? {
                bail!("the files were changed while they were read; there is no output");
            }
        }
        Ok(())
    }

    /// Whether a document is decided on when it is read.
    fn decides_at_once(&self) -> bool {
        self.order == Order::First && self.clusters == ClusterKind::Star && !self.is_bounded
    }

    /// Whether kept documents are written while the files are read.
    fn streams(&self) -> bool {
        self.decides_at_once() && self.format != Format::Parquet && !self.lists
    }
}

fn write_report(deciding: &mut Deciding, report: Option<&mut ReportFile>) -> Result<()> {
    let Some(report) = report else { return Ok(()) };
    deciding.each_line(|line| report.line(line))
}

/// Checks that the output can have its name, and that files are read again only if this is possible.
fn check_format(args: &Args, files: &[PathBuf], output: &Path, format: &Format) -> Result<()> {
    check_name(output, OUTPUT, format)?;
    let Some(path) = read_once(files) else { return Ok(()) };
    let (order, path) = (&args.keep, path.display());
    if args.settings.cluster_kind() == ClusterKind::Components {
        bail!("--clusters components reads the files twice, and {path} can be read only once");
    }
    if *order != Order::First {
        bail!("--keep {order} reads the files twice, and {path} can be read only once");
    }
    if let Some(memory) = args.memory {
        bail!("--memory {memory} reads the files twice, and {path} can be read only once");
    }
    Ok(())
}

/// Returns a run that has seen no document.
fn deciding(args: &Args, files: usize) -> Result<Deciding> {
    let (signer, limits) = args.settings.signer()?;
    let (matching, limits) = (args.settings.matching(), SearchLimits::from(&limits));
    let clusters = args.settings.cluster_kind();
    let mut runs = None;
    let clusters = match (args.memory, clusters) {
        (Some(memory), clusters) => {
            let folder = temporary_directory(args);
            if args.report.is_some() {
                runs = Some(LineRuns::create(&folder, memory.bytes() / REPORT_SHARE)?);
            }
            Clusters::InBatches(InBatches::new(Ways { signer, matching, limits, clusters }, memory, &folder)?)
        }
        (None, ClusterKind::Star) => Clusters::Star(Star::new(Deduplicator::new(signer, matching, limits))),
        (None, ClusterKind::Components) => {
            Clusters::Components(Joining::new(Components::new(signer, matching, limits)))
        }
    };
    let report = Report::new(args.report.is_some(), runs);
    Ok(Deciding::new(clusters, Results::new(files, report, args.output.is_none())))
}

/// Returns the folder of temporary files.
fn temporary_directory(args: &Args) -> PathBuf {
    let named = args.temporary_directory.clone().or_else(|| std::env::var_os("TMPDIR").map(PathBuf::from));
    let of_output = || args.output.as_deref().and_then(Path::parent).map(Path::to_owned).unwrap_or_default();
    let folder = named.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(of_output);
    if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder }
}
