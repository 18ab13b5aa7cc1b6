//! `hapax dedup`: keeps one document of each group of duplicates in files. It needs no server.

mod deciding;
mod order;
mod output;
mod report;
mod signing;
mod tally;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Map, Value, json};

use super::collection::{ComparingArgs, SpecArgs};
use super::exit::ExitStatus;
use super::files::{FieldArgs, check_outputs, look_at_all, matching};
use super::progress;
use super::signals::interruption;
use crate::config::{self, Config, Sources};
use crate::corpus::{CorpusSigner, Deduplicator};
use crate::cpu::CpuPool;
use crate::http::dto::collection::settings as settings_of_json;
use crate::input::{Wanted, input_bytes, is_parquet};
use crate::verdicts::Settings;
use deciding::Deciding;
use order::Order;
use output::{Format, OutputFile, Snapshot, write_kept};
use signing::each_signed;
use tally::Tally;

const OUTPUT: &str = "--output";
const REPORT: &str = "--report";

/// Deduplicate files: keep one document of each group of duplicates.
///
/// No server is needed. The kept documents are those that a server would store if it got the documents one after another,
/// each with an id of its own: in the order of the files as they are given, and of the lines, rows or records in each
/// file. The files of a folder are read in the order of their paths. The signatures of the kept documents are in memory.
///
/// The output has the kept documents unchanged: the lines of JSON Lines, the records of CSV after their header, or the rows
/// of Parquet with all columns. For each page of a WARC file and each text file, it has a JSON object. A document needs no id: without one, its file and the number of its line,
/// row or record are its id in the report.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax dedup corpus.jsonl.zst -o kept.jsonl.zst
  hapax dedup crawl/ -o kept.jsonl --report dropped.jsonl --threshold 0.9
  hapax dedup part-*.parquet -o kept.parquet --keep max:score
  zcat results.jsonl.gz | hapax dedup - -o - --shingle char5

Exit status: 0 done, 1 some lines could not be used, 2 it failed and there is no output.")]
pub struct Args {
    /// JSON Lines, CSV, TSV, WARC or texts, plain or compressed with gzip or zstd, or Parquet; a folder with such files;
    /// - reads stdin. A quoted pattern such as '*.warc.gz' names the files that match
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write the kept documents to FILE; - is stdout. Lines are compressed if the name of FILE ends in .gz or .zst. FILE
    /// appears when it is complete
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Write a line of JSON to FILE for each document that is not kept: its place, the kept document that it repeats, and
    /// their similarity
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Document to keep of each group of duplicates: first, longest, or max:FIELD for the largest number in a field or a
    /// column. With the last two, the files are read twice, and the signatures of all documents are in memory
    #[arg(long, value_name = "ORDER", default_value = "first", value_parser = Order::parse)]
    keep: Order,
    /// Configuration file of a server: its default collection has the defaults for the settings below, and its secret is
    /// used by --key configured
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    fields: FieldArgs,
    #[command(flatten)]
    comparing: ComparingArgs,
    #[command(flatten)]
    spec: SpecArgs,
    /// Part of an HTML page that is compared: article (the main text) or visible (all visible text)
    #[arg(long, value_name = "EXTRACT")]
    extract: Option<String>,
}

/// A run of the verb.
struct Job {
    files: Vec<PathBuf>,
    wanted: Wanted,
    order: Order,
    format: Format,
    stop: Arc<AtomicBool>,
    begun: Instant,
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    let files = matching(&args.files)?;
    check_outputs(&files, &[(OUTPUT, Some(&args.output)), (REPORT, args.report.as_deref())])?;
    let wanted = Wanted { originals: true, also: args.keep.field().cloned(), ..args.fields.wanted(false) };
    look_at_all(&files, &wanted)?;
    let format = format(&files)?;
    check_format(args, format)?;
    let stop = interruption()?;
    let deduplicator = deduplicator(args)?;
    let mut output = OutputFile::create(&args.output, OUTPUT)?;
    let mut report = args.report.as_deref().map(|path| OutputFile::create(path, REPORT)).transpose()?;
    let job = Job { files, wanted, order: args.keep.clone(), format, stop, begun: Instant::now() };
    let deciding = job.decide(deduplicator, &mut output, report.as_mut())?;
    let tally = deciding.tally();
    tally.write_failures(&mut std::io::stderr().lock())?;
    if tally.has_only_failures() {
        bail!("no line is a document; there is no output");
    }
    // If one of the files cannot be written, neither appears.
    output.complete()?;
    report.as_mut().map(OutputFile::complete).transpose()?;
    output.publish()?;
    report.map(OutputFile::publish).transpose()?;
    write_summary(tally, &job, args.output == Path::new("-"))?;
    Ok(if tally.failed() > 0 { ExitStatus::Found } else { ExitStatus::Fine })
}

fn write_summary(tally: &Tally, job: &Job, is_output_on_stdout: bool) -> Result<()> {
    let elapsed = job.begun.elapsed();
    // The summary must not follow the documents into the pipe.
    let written = if is_output_on_stdout {
        tally.write_summary(elapsed, &mut std::io::stderr().lock())
    } else {
        tally.write_summary(elapsed, &mut std::io::stdout().lock())
    };
    match written {
        // The reader has read enough. The output is written.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("the output is written, but the summary cannot be"),
    }
}

impl Job {
    /// Decides on all documents, and writes the output and the report.
    fn decide(
        &self,
        deduplicator: Deduplicator,
        output: &mut OutputFile,
        mut report: Option<&mut OutputFile>,
    ) -> Result<Deciding> {
        let before = (!self.streams()).then(|| Snapshot::of(&self.files)).transpose()?;
        let bar = progress::of_files(input_bytes(&self.files));
        let signer = deduplicator.signer().clone();
        let mut deciding = Deciding::new(deduplicator, self.files.len(), report.is_some());
        each_signed(&self.files, &self.wanted, (&signer, &self.order), &self.stop, |mut chunk| {
            if self.order == Order::First {
                let kept = deciding.take(&mut chunk)?;
                if self.streams() {
                    output.originals(chunk.chunk(), kept)?;
                }
                write_report(&mut deciding, report.as_deref_mut())?;
            } else {
                deciding.wait(&mut chunk);
            }
            bar.inc(chunk.chunk().input_bytes);
            bar.set_message(progress::documents(deciding.documents(), self.begun));
            Ok(())
        })?;
        bar.finish_and_clear();
        deciding.decide_waiting(self.order.field(), &self.stop)?;
        write_report(&mut deciding, report)?;
        if let Some(before) = before {
            write_kept(self.format, &self.files, &self.wanted, deciding.kept(), &self.stop, output)?;
            if before != Snapshot::of(&self.files)? {
                bail!("the files were changed while they were read; there is no output");
            }
        }
        Ok(deciding)
    }

    /// Whether kept documents are written while the files are read.
    fn streams(&self) -> bool {
        self.order == Order::First && self.format == Format::Lines
    }
}

fn write_report(deciding: &mut Deciding, report: Option<&mut OutputFile>) -> Result<()> {
    let Some(report) = report else { return Ok(()) };
    deciding.take_report().try_for_each(|line| report.line(&line))
}

/// Returns the format of the output: that of the input.
fn format(files: &[PathBuf]) -> Result<Format> {
    let parquet = |path: &PathBuf| is_parquet(path).with_context(|| format!("cannot read {}", path.display()));
    let are = files.iter().map(parquet).collect::<Result<Vec<_>>>()?;
    if !are.contains(&true) {
        return Ok(Format::Lines);
    }
    match files.iter().zip(are).find(|(_, is_parquet)| !is_parquet) {
        None => Ok(Format::Parquet),
        Some((other, _)) => bail!(
            "{}: this is not Parquet, but other files are; the output has the format of the input, so give them separately",
            other.display()
        ),
    }
}

/// Checks that the output can have the format of the input, and that files are read again only if this is possible.
fn check_format(args: &Args, format: Format) -> Result<()> {
    let output = args.output.display();
    let extension = args.output.extension().and_then(|extension| extension.to_str());
    if format == Format::Parquet && matches!(extension, Some("gz" | "zst")) {
        bail!("--output {output}: Parquet is not compressed as a whole; name a file that ends in .parquet");
    }
    let order = &args.keep;
    // A path that does not exist is a pattern.
    let is_read_once = |path: &&PathBuf| *path == Path::new("-") || path.exists() && !path.is_file() && !path.is_dir();
    match args.files.iter().find(is_read_once) {
        Some(path) if *order != Order::First => {
            bail!("--keep {order} reads the files twice, and {} can be read only once", path.display())
        }
        _ => Ok(()),
    }
}

fn deduplicator(args: &Args) -> Result<Deduplicator> {
    let Config { collections, cpu, .. } = config::load(&Sources::of_process(args.config.clone()))?.config;
    let settings =
        settings(args, &collections.default_settings, collections.secret.as_ref().map(|key| key.fingerprint()))?;
    let signer = CorpusSigner::new(settings, collections.secret.as_ref(), CpuPool::new(cpu))?;
    Ok(Deduplicator::new(signer, &collections.limits))
}

fn settings(args: &Args, default: &Settings, secret: Option<u64>) -> Result<Settings> {
    let mut asked = Map::new();
    args.spec.add_to(&mut asked);
    args.comparing.add_to(&mut asked)?;
    asked.extend(args.extract.as_ref().map(|extract| ("extract".to_owned(), json!(extract))));
    settings_of_json(&Value::from(asked).to_string(), default, secret).map_err(|problem| {
        let told = problem
            .errors
            .iter()
            .map(|error| format!("--{}: {}", error.field.replace("banding", "bands"), error.detail));
        anyhow!("{}", told.collect::<Vec<_>>().join("; "))
    })
}
