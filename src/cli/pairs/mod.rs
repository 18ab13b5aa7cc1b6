//! `hapax pairs`: lists all pairs of similar documents in files. It needs no server.

mod finding;
mod output;
mod pair;
mod table;
mod tally;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Result, bail};

use super::corpus::order::Order;
use super::corpus::output::{OUTPUT, OutputFile};
use super::corpus::picture::{PLOT, draw};
use super::corpus::settings::SettingsArgs;
use super::corpus::signing::{SignedChunk, each_signed};
use super::exit::ExitStatus;
use super::files::{FieldArgs, check_outputs, look_at_all, matching, one_of_both};
use super::output::unless_read_enough;
use super::progress;
use super::signals::interruption;
use super::summary::summarise;
use super::unseen::{FIELD_FLAGS, warn_unseen};
use crate::corpus::PairFinder;
use crate::input::{Wanted, input_bytes};
use finding::Finding;
use output::PairFile;

/// List all pairs of similar documents in files, or between two sets of files.
///
/// No server, no data directory and no key is needed. Each document is compared with all earlier ones that share a band
/// with it: in the order of the files as they are given, and of the lines, rows or records in each file. The files of a
/// folder are read in the order of their paths. No limit on a lookup applies. The signatures of all documents are in
/// memory.
///
/// A pair has two ids, the places of the two documents, and their similarity. A document needs no id: without one, its
/// file and the number of its line, row or record are its id.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax pairs corpus.jsonl.zst -o pairs.jsonl.zst
  hapax pairs new/ --against old.parquet -o pairs.parquet --threshold 0.9
  hapax pairs ads.jsonl -o pairs.jsonl --bands 42 --rows 3 --threshold 0.5 --verify exact --plot pairs.svg
  zcat results.jsonl.gz | hapax pairs - -o - --shingle char5

Exit status: 0 done, 1 some lines could not be used, 2 it failed and there is no output.")]
pub struct Args {
    /// JSON Lines, CSV, TSV, WARC or texts, plain or compressed with gzip or zstd, or Parquet; a folder with such files;
    /// - reads stdin. A quoted pattern such as '*.warc.gz' names the files that match
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// List only pairs of a document of these files and a document of the other ones. Give the flag once for each file
    #[arg(long, value_name = "FILE")]
    against: Vec<PathBuf>,
    /// Write the pairs to FILE; - is stdout. They are Parquet if the name of FILE ends in .parquet, and JSON Lines
    /// otherwise, compressed if it ends in .gz or .zst. FILE appears when it is complete
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Draw how many pairs have which similarity, over the S-curve of the banding, to an SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    fields: FieldArgs,
    #[command(flatten)]
    settings: SettingsArgs,
}

/// A run of the verb.
struct Job {
    files: Vec<PathBuf>,
    against: Vec<PathBuf>,
    wanted: Wanted,
    stop: Arc<AtomicBool>,
    begun: Instant,
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    let is_on_stdout = args.output == Path::new("-");
    unless_read_enough(is_on_stdout, list(args, is_on_stdout))
}

fn list(args: &Args, is_on_stdout: bool) -> Result<ExitStatus> {
    let (files, against) = (matching(&args.files)?, matching(&args.against)?);
    if let Some(path) = one_of_both(&files, &against) {
        bail!(
            "{} is also a file of --against, so its documents would be compared with themselves; to list the pairs of one \
             corpus, leave out --against",
            path.display()
        );
    }
    let inputs = [&files[..], &against].concat();
    check_outputs(&inputs, &[(OUTPUT, Some(&args.output)), (PLOT, args.plot.as_deref())])?;
    let wanted = args.fields.wanted(false);
    look_at_all(&inputs, &wanted)?;
    let stop = interruption()?;
    let (signer, _) = args.settings.signer()?;
    let output = PairFile::create(&args.output, OUTPUT)?;
    let mut plot = args.plot.as_deref().map(|path| OutputFile::create(path, PLOT)).transpose()?;
    let job = Job { files, against, wanted, stop, begun: Instant::now() };
    let mut finding = Finding::new(PairFinder::new(signer), output);
    job.find(&mut finding)?;
    finding.tally().write_failures(&mut std::io::stderr().lock())?;
    if finding.tally().has_only_failures() {
        bail!("no line is a document; there is no output");
    }
    warn_unseen(&job.wanted.form, FIELD_FLAGS, &mut std::io::stderr().lock())?;
    let (finder, tally, output) = finding.into_parts();
    if let Some(plot) = &mut plot {
        plot.line(draw(finder.signer().settings(), tally.similarities())?.as_bytes())?;
        plot.complete()?;
    }
    output.publish()?;
    plot.map(OutputFile::publish).transpose()?;
    summarise(is_on_stdout, |mut out| tally.write_summary(job.begun.elapsed(), &mut out))?;
    Ok(if tally.failed() > 0 { ExitStatus::Found } else { ExitStatus::Fine })
}

impl Job {
    /// Finds all pairs, and writes them.
    fn find(&self, finding: &mut Finding) -> Result<()> {
        let inputs = [&self.against[..], &self.files].concat();
        let bar = progress::of_files(input_bytes(&inputs));
        let is_one_corpus = self.against.is_empty();
        self.each(&self.against, finding, &bar, |finding, chunk| finding.add(chunk))?;
        self.each(&self.files, finding, &bar, |finding, chunk| {
            if is_one_corpus { finding.pair_up(chunk, &self.stop) } else { finding.seek(chunk, &self.stop) }
        })?;
        bar.finish_and_clear();
        Ok(())
    }

    fn each(
        &self,
        files: &[PathBuf],
        finding: &mut Finding,
        bar: &indicatif::ProgressBar,
        mut take: impl FnMut(&mut Finding, SignedChunk) -> Result<()>,
    ) -> Result<()> {
        let signer = finding.signer().clone();
        each_signed(files, &self.wanted, (&signer, &Order::First), &self.stop, |chunk| {
            bar.inc(chunk.chunk().input_bytes);
            take(finding, chunk)?;
            bar.set_message(progress::documents(finding.tally().documents(), self.begun));
            Ok(())
        })
    }
}
