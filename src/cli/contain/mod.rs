//! `hapax contain`: finds the documents in files that contain items of benchmarks. It needs no server.

mod benchmarks;
mod checking;
mod report;
mod tally;
mod words;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::ArgGroup;

use super::corpus::columns::first_repeated;
use super::corpus::format::{Format, check_name, format_of};
use super::corpus::kept::KeptFile;
use super::corpus::kept_records::{KeptRecords, write_kept};
use super::corpus::output::{OUTPUT, OutputFile, Snapshot};
use super::corpus::signing::each_made;
use super::exit::ExitStatus;
use super::files::{FieldArgs, check_outputs, look_at_all, matching, refuse_stdin_twice};
use super::progress;
use super::signals::interruption;
use super::summary::summarise;
use super::unseen::{FIELD_FLAGS, warn_unseen};
use crate::grams::{GramIndex, GramSize};
use crate::input::{Wanted, input_bytes};
use crate::types::Extract;
use benchmarks::{Benchmarks, ItemFields};
use checking::Checked;
use tally::Tally;
use words::Words;

const DROPPED: &str = "--dropped";
const ITEMS: &str = "--items";

/// Find the documents in files that contain items of benchmarks.
///
/// No server is needed. A document is contaminated if it has at least a given share of the word n-grams of an item. The
/// items are in memory, and the documents are read once, so a corpus may have any size. Write the contaminated documents
/// with --dropped, or the other ones with --output, or both.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("outputs").args(["output", "dropped", "items"]).multiple(true).required(true))]
#[command(after_help = "Examples:
  hapax contain corpus.jsonl.zst --benchmarks gsm8k.jsonl --dropped contaminated.jsonl
  hapax contain crawl/ --benchmarks bench/*.jsonl -o clean.jsonl --items items.jsonl
  hapax contain part-*.parquet --benchmarks mmlu.parquet --benchmark-text-field question -o clean.parquet
  zcat corpus.jsonl.gz | hapax contain - --benchmarks bench.jsonl -o - --min-containment 0.8

Exit status: 0 done, 1 some lines could not be used, 2 it failed and there is no output.")]
pub struct Args {
    /// JSON Lines, CSV, TSV, WARC or texts, plain or compressed with gzip or zstd, or Parquet; a folder with such files;
    /// - reads stdin. A quoted pattern such as '*.warc.gz' names the files that match
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Files with the items to look for, one in each line, row or record
    #[arg(long, required = true, num_args = 1.., value_name = "FILE")]
    benchmarks: Vec<PathBuf>,
    /// Write the documents that are not contaminated to FILE; - is stdout. Lines are compressed if the name of FILE ends
    /// in .gz or .zst. FILE appears when it is complete
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write a line of JSON to FILE for each contaminated document: its place, and the items that it contains
    #[arg(long, value_name = "FILE")]
    dropped: Option<PathBuf>,
    /// Write a line of JSON to FILE for each item of the benchmarks: its place, and how many documents contain it
    #[arg(long, value_name = "FILE")]
    items: Option<PathBuf>,
    /// Number of words of an n-gram, from 8 to 32. An item of 8 words or more, but fewer than this, is one n-gram of all its
    /// words
    #[arg(long, value_name = "WORDS", default_value_t = GramSize::DEFAULT.tokens(), value_parser = gram_size)]
    ngram: usize,
    /// Smallest share of an item's n-grams that makes a document contaminated: above 0, and at most 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = share)]
    min_containment: f64,
    /// Largest number of items to read for one n-gram. If more items have it, the lookup is not complete
    #[arg(long, value_name = "ITEMS", default_value_t = GramIndex::ITEMS_PER_GRAM_MAX, value_parser = items_per_gram)]
    items_per_gram: usize,
    #[command(flatten)]
    fields: FieldArgs,
    /// Field with the id of an item, if it differs from --id-field
    #[arg(long, value_name = "FIELD")]
    benchmark_id_field: Option<String>,
    /// Field with the text of an item, if it differs from --text-field. If it is given several times, the text in each of
    /// these fields is an item of its own, with the id ID#FIELD
    #[arg(long, value_name = "FIELD")]
    benchmark_text_field: Vec<String>,
    /// Field with the page of an item, if it differs from --html-field. It is used if the item has no text. If several fields
    /// with texts are given, no pages are read
    #[arg(long, value_name = "FIELD")]
    benchmark_html_field: Option<String>,
    /// Part of an HTML page that is read: article (the main text) or visible (all visible text)
    #[arg(long, value_name = "EXTRACT", default_value = Extract::default().as_str(), value_parser = extract)]
    extract: Extract,
}

fn gram_size(text: &str) -> Result<usize, String> {
    let size = text.parse().ok().and_then(GramSize::new);
    size.map(GramSize::tokens).ok_or_else(|| "must be a whole number from 8 to 32".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "must be a number above 0 and at most 1".to_owned())
}

fn items_per_gram(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|items| *items > 0).ok_or_else(|| "must be a whole number of at least 1".to_owned())
}

fn extract(text: &str) -> Result<Extract, String> {
    Extract::parse(text).ok_or_else(|| "must be article or visible".to_owned())
}

impl Args {
    fn read(&self, benchmarks: &[PathBuf]) -> Result<Benchmarks> {
        let words = Words::new(GramSize::new(self.ngram).expect("it was checked"), self.extract);
        let texts = &self.benchmark_text_field;
        if let Some(field) = first_repeated(texts) {
            bail!("--benchmark-text-field {field}: is given twice; each field makes an item of its own");
        }
        let fields = ItemFields {
            id: self.benchmark_id_field.as_ref().unwrap_or(&self.fields.id_field),
            texts: if texts.is_empty() { std::slice::from_ref(&self.fields.text_field) } else { texts },
            html: self.benchmark_html_field.as_ref().unwrap_or(&self.fields.html_field),
        };
        Benchmarks::read(benchmarks, fields, words, self.items_per_gram)
    }

    /// The outputs with their flags.
    fn outputs(&self) -> [(&str, Option<&Path>); 3] {
        [(OUTPUT, self.output.as_deref()), (DROPPED, self.dropped.as_deref()), (ITEMS, self.items.as_deref())]
    }
}

/// A run of the verb.
struct Job {
    files: Vec<PathBuf>,
    wanted: Wanted,
    /// The format of the documents that are kept, if they are wanted.
    format: Option<Format>,
    containment_min: f64,
    stop: Arc<AtomicBool>,
    begun: Instant,
}

/// The files that are written.
struct Outputs {
    kept: Option<KeptFile>,
    dropped: Option<OutputFile>,
    items: Option<OutputFile>,
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    let begun = Instant::now();
    let (files, benchmarks) = (matching(&args.files)?, matching(&args.benchmarks)?);
    let inputs = [files.clone(), benchmarks.clone()].concat();
    check_outputs(&inputs, &args.outputs())?;
    refuse_stdin_twice(&inputs)?;
    let mut wanted = args.fields.wanted(false);
    // Benchmarks may have other fields. They are read before an output is made.
    look_at_all(&files, &wanted)?;
    let format = args.output.as_ref().map(|output| {
        let format = format_of(&files)?;
        check_name(output, OUTPUT, &format).map(|()| format)
    });
    let format = format.transpose()?;
    for (flag, path) in args.outputs().into_iter().skip(1) {
        path.map_or(Ok(()), |path| check_name(path, flag, &Format::Lines))?;
    }
    // Rows of Parquet are copied from the file.
    wanted.originals = format == Some(Format::Lines);
    let stop = interruption()?;
    let benchmarks = Arc::new(args.read(&benchmarks)?);
    benchmarks.write_warnings(&mut io::stderr().lock())?;
    let mut outputs = Outputs::create(args, format.as_ref())?;
    let job = Job { files, wanted, format, containment_min: args.min_containment, stop, begun };
    let tally = job.check(&benchmarks, &mut outputs)?;
    tally.write_failures(&mut io::stderr().lock())?;
    if tally.has_only_failures() {
        bail!("no line is a document; there is no output");
    }
    if let Some(items) = &mut outputs.items {
        benchmarks
            .items()
            .iter()
            .zip(tally.found())
            .try_for_each(|(item, found)| items.line(&report::item(item, *found)))?;
    }
    warn_unseen(&job.wanted.form, FIELD_FLAGS, &mut io::stderr().lock())?;
    outputs.publish()?;
    let is_output_on_stdout = args.outputs().iter().any(|(_, path)| *path == Some(Path::new("-")));
    summarise(is_output_on_stdout, |mut out| tally.write_summary(&benchmarks, begun.elapsed(), &mut out))?;
    Ok(if tally.failed() + benchmarks.failed() > 0 { ExitStatus::Found } else { ExitStatus::Fine })
}

impl Outputs {
    fn create(args: &Args, format: Option<&Format>) -> Result<Self> {
        let [(flag, kept), lines @ ..] = args.outputs();
        let kept = kept.zip(format).map(|(path, format)| KeptFile::create(path, flag, format)).transpose()?;
        let [dropped, items] = lines.map(|(flag, path)| path.map(|path| OutputFile::create(path, flag)).transpose());
        Ok(Self { kept, dropped: dropped?, items: items? })
    }

    /// Gives all files their names. If one of them cannot be written, none appears.
    fn publish(self) -> Result<()> {
        let Self { mut kept, dropped, items } = self;
        let mut lines: Vec<_> = [dropped, items].into_iter().flatten().collect();
        kept.as_mut().map_or(Ok(()), KeptFile::complete)?;
        lines.iter_mut().try_for_each(OutputFile::complete)?;
        kept.map_or(Ok(()), KeptFile::publish)?;
        lines.into_iter().try_for_each(OutputFile::publish)
    }
}

impl Job {
    /// Looks up all documents, and writes the kept ones and the contaminated ones.
    fn check(&self, benchmarks: &Arc<Benchmarks>, outputs: &mut Outputs) -> Result<Tally> {
        let before = (self.format == Some(Format::Parquet)).then(|| Snapshot::of(&self.files)).transpose()?;
        let bar = progress::of_files(input_bytes(&self.files));
        let (mut tally, mut kept) = (Tally::new(benchmarks.items().len()), KeptRecords::new(self.files.len()));
        let make = {
            let (benchmarks, containment_min) = (Arc::clone(benchmarks), self.containment_min);
            move |file, chunk| Checked::new(file, chunk, &benchmarks, containment_min)
        };
        each_made(&self.files, &self.wanted, make, &self.stop, |checked: Checked| {
            if before.is_some() {
                let numbers = checked.kept().map(|at| checked.chunk().origins[at].number());
                numbers.for_each(|number| kept.add(checked.file(), number));
            } else if let Some(output) = &mut outputs.kept {
                output.documents(checked.chunk(), checked.kept())?;
            }
            if let Some(dropped) = &mut outputs.dropped {
                report::lines(&checked, benchmarks).try_for_each(|line| dropped.line(&line))?;
            }
            tally.add(&checked);
            bar.inc(checked.chunk().input_bytes);
            bar.set_message(progress::documents(tally.documents(), self.begun));
            Ok(())
        })?;
        bar.finish_and_clear();
        if let (Some(before), Some(output)) = (before, &mut outputs.kept) {
            write_kept(&Format::Parquet, &self.files, &self.wanted, &kept, &self.stop, output)?;
            if before != Snapshot::of(&self.files)? {
                bail!("the files were changed while they were read; there is no output");
            }
        }
        Ok(tally)
    }
}
