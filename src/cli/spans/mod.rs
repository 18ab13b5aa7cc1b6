//! `hapax spans`: lists or cuts the passages of documents that earlier documents have. It needs no server.

mod documents;
mod finding;
mod output;
mod records;
mod tally;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Result, bail};

use super::corpus::format::{Format, check_name};
use super::corpus::output::{OUTPUT, Snapshot};
use super::corpus::signing::each_made;
use super::exit::ExitStatus;
use super::files::{FieldArgs, check_outputs, look_at_all, matching, read_once};
use super::memory::Memory;
use super::output::unless_read_enough;
use super::progress;
use super::signals::interruption;
use super::summary::summarise;
use super::unseen::{FIELD_FLAGS, warn_unseen};
use crate::input::{Wanted, input_bytes};
use crate::types::Extract;
use documents::{Documents, TextChunk};
use finding::{Finding, Reading};
use output::SpanFile;

/// List or cut the passages of documents that earlier documents have, word for word.
///
/// No server, no data directory and no key is needed. A passage is a run of words, each N of which in a row appear in an
/// earlier document: in the order of the files as they are given, and of the lines, rows or records in each file. Case and
/// punctuation do not count. Passages that a document repeats itself are not listed.
///
/// The windows of N words are in memory. If they need more than --memory, the files are read several times, with the same
/// result.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax spans corpus.jsonl.zst -o spans.jsonl
  hapax spans crawl/ --cut -o cut.jsonl.zst --ngram 100
  zcat pages.jsonl.gz | hapax spans - -o - --memory 8GiB

Exit status: 0 done, 1 some lines could not be used, 2 it failed and there is no output.")]
pub struct Args {
    /// JSON Lines, CSV, TSV, WARC or texts, plain or compressed with gzip or zstd, or Parquet; a folder with such files;
    /// - reads stdin. A quoted pattern such as '*.warc.gz' names the files that match
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write a line of JSON to FILE for each document with such passages; - is stdout. Lines are compressed if the name of
    /// FILE ends in .gz or .zst. FILE appears when it is complete
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Write all documents instead, without these passages. The first document that has a passage keeps it
    #[arg(long)]
    cut: bool,
    /// Least number of words of a passage
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    ngram: u16,
    /// Memory for the windows, such as 512MiB or 4GiB
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = Memory::parse)]
    memory: Memory,
    #[command(flatten)]
    fields: FieldArgs,
    /// Part of an HTML page that is read: article (the main text) or visible (all visible text)
    #[arg(long, value_name = "EXTRACT", default_value = "article", value_parser = documents::extract)]
    extract: Extract,
}

/// A run of the verb.
struct Job {
    files: Vec<PathBuf>,
    wanted: Wanted,
    documents: Documents,
    stop: Arc<AtomicBool>,
    begun: Instant,
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    let is_on_stdout = args.output == Path::new("-");
    unless_read_enough(is_on_stdout, find(args, is_on_stdout))
}

fn find(args: &Args, is_on_stdout: bool) -> Result<ExitStatus> {
    let files = matching(&args.files)?;
    check_outputs(&files, &[(OUTPUT, Some(&args.output))])?;
    check_name(&args.output, OUTPUT, &Format::Objects)?;
    let wanted = Wanted { originals: args.cut, objects: true, ..args.fields.wanted(false) };
    look_at_all(&files, &wanted)?;
    let stop = interruption()?;
    let FieldArgs { text_field, html_field, .. } = &args.fields;
    let output = SpanFile::create(&args.output, OUTPUT, args.cut.then_some((text_field, html_field)))?;
    let documents = Documents::new(usize::from(args.ngram), args.extract);
    let job = Job { files, wanted, documents, stop, begun: Instant::now() };
    let mut finding = Finding::new(args.memory.bytes(), output, args.output.parent());
    job.find(&mut finding)?;
    let (tally, output) = finding.into_parts();
    tally.write_failures(&mut std::io::stderr().lock())?;
    if tally.has_only_failures() {
        bail!("no line is a document; there is no output");
    }
    warn_unseen(&job.wanted.form, FIELD_FLAGS, &mut std::io::stderr().lock())?;
    output.publish()?;
    summarise(is_on_stdout, |mut out| tally.write_summary(job.begun.elapsed(), &mut out))?;
    Ok(if tally.failed() > 0 { ExitStatus::Found } else { ExitStatus::Fine })
}

impl Job {
    /// Finds all spans, and writes them.
    fn find(&self, finding: &mut Finding) -> Result<()> {
        let once = read_once(&self.files);
        let before = once.is_none().then(|| Snapshot::of(&self.files)).transpose()?;
        self.read(finding)?;
        if finding.is_complete() {
            return Ok(());
        }
        if let Some(path) = once {
            bail!(
                "--memory is too small for these documents, and {} can be read only once; give more memory, or a file",
                path.display()
            );
        }
        while finding.begin_next()? != Reading::Done {
            self.read(finding)?;
        }
        if before.is_some_and(|before| Snapshot::of(&self.files).is_ok_and(|now| now != before)) {
            bail!("the files were changed while they were read; there is no output");
        }
        Ok(())
    }

    fn read(&self, finding: &mut Finding) -> Result<()> {
        let bar = progress::of_files(input_bytes(&self.files));
        let (documents, begun) = (self.documents.clone(), Instant::now());
        let make = move |_, chunk| documents.of_chunk(chunk);
        let mut read = 0;
        each_made(&self.files, &self.wanted, make, &self.stop, |chunk: TextChunk| {
            read += chunk.documents().len() as u64;
            bar.inc(chunk.chunk().input_bytes);
            bar.set_message(progress::documents(read, begun));
            finding.take(&chunk)
        })?;
        bar.finish_and_clear();
        Ok(())
    }
}
