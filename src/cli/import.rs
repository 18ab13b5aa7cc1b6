//! `hapax import`: sends files to a running server, with a progress bar for people and counts for scripts.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use indicatif::{HumanCount, ProgressBar};
use serde::Deserialize;

use super::bulk::{self, BulkError};
use super::client::{Client, Problem, ServerArgs, encode};
use super::exit::ExitStatus;
use super::input::{Chunk, FieldArgs, Origin, input_bytes, read_chunks};
use super::plural::plural;
use super::progress;

/// Failures that are shown in full. The others are only counted.
const FAILURES_SHOWN: usize = 10;

/// Import documents into a running server.
///
/// Each line of FILE is a JSON object with an `id` and a `text`; other fields are ignored, except `set`, `signature`,
/// `fingerprint` and `metadata`. By default, a document that has a near duplicate is not stored; see --on-duplicate.
/// You can import the same file again: documents that are already stored do not change.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax import corpus.jsonl.zst
  hapax import --id-field url --text-field content part-*.jsonl.gz
  zcat crawl.gz | jq -c '{id: .url, text: .body}' | hapax import -
  hapax import --collection news --on-duplicate store --connections 1 news.jsonl

Exit status: 0 all documents were accepted, 1 some failed, 2 the import could not start or stopped early.")]
pub struct Args {
    /// JSON Lines, plain or compressed with gzip or zstd; - reads stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
    /// Collection to import into
    #[arg(long, value_name = "NAME", default_value = "default")]
    collection: String,
    /// Action for a document that has a duplicate
    #[arg(long, value_enum, default_value = "skip")]
    on_duplicate: OnDuplicate,
    /// Action for a document whose id already holds other content
    #[arg(long, value_enum, default_value = "conflict")]
    on_existing: OnExisting,
    #[command(flatten)]
    fields: FieldArgs,
    /// Number of requests to send at once, 1 to 64. With more than 1, documents may be stored in a different order
    /// than in the file
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    connections: u32,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OnDuplicate {
    /// Do not store it
    Skip,
    /// Store it as a link to the original: it is remembered, but near duplicates of it are not found
    Link,
    /// Store it like any other document
    Store,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OnExisting {
    /// Count the document as failed
    Conflict,
    /// Replace the old content with the new
    Replace,
    /// Keep the old content
    Keep,
}

impl Args {
    fn path(&self) -> String {
        let on_duplicate = match self.on_duplicate {
            OnDuplicate::Skip => "skip",
            OnDuplicate::Link => "link",
            OnDuplicate::Store => "store",
        };
        let on_existing = match self.on_existing {
            OnExisting::Conflict => "conflict",
            OnExisting::Replace => "replace",
            OnExisting::Keep => "keep",
        };
        let collection = encode(&self.collection);
        // The first match names the original. This verb would ignore any others.
        format!(
            "/v1/collections/{collection}/bulk?op=insert&on_duplicate={on_duplicate}&on_existing={on_existing}&limit=1"
        )
    }
}

/// Counts of documents by result. Each document is counted once.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    unique: u64,
    near: u64,
    exact: u64,
    empty: u64,
    unchanged: u64,
    updated: u64,
    failed: u64,
}

impl Counts {
    fn documents(&self) -> u64 {
        self.unique + self.near + self.exact + self.empty + self.unchanged + self.updated + self.failed
    }
}

/// The state that all connections share.
#[derive(Default)]
struct ImportProgress {
    counts: Counts,
    text_bytes: u64,
    failures: Vec<String>,
    error: Option<anyhow::Error>,
}

impl ImportProgress {
    fn fail(&mut self, origin: &Origin, id: Option<&str>, reason: &str) {
        self.counts.failed += 1;
        if self.failures.len() < FAILURES_SHOWN {
            let id = id.map(|id| format!(" (id {id:?})")).unwrap_or_default();
            self.failures.push(format!("{origin}{id}: {reason}"));
        }
    }

    fn answer(&mut self, origin: &Origin, line: &str) {
        #[derive(Deserialize)]
        struct Answer {
            verdict: Option<String>,
            outcome: Option<String>,
            id: Option<String>,
            error: Option<Problem>,
        }
        let Ok(answer) = serde_json::from_str::<Answer>(line) else {
            return self.fail(origin, None, "cannot read the server's answer");
        };
        if let Some(problem) = answer.error {
            return self.fail(origin, answer.id.as_deref(), &problem.detail);
        }
        match (answer.outcome.as_deref(), answer.verdict.as_deref()) {
            (Some("unchanged"), _) => self.counts.unchanged += 1,
            (Some("updated"), _) => self.counts.updated += 1,
            (_, Some("unique")) => self.counts.unique += 1,
            (_, Some("near_duplicate")) => self.counts.near += 1,
            (_, Some("exact_duplicate")) => self.counts.exact += 1,
            (_, Some("empty")) => self.counts.empty += 1,
            _ => self.fail(origin, answer.id.as_deref(), "the server's answer has no verdict"),
        }
    }
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    let client = Client::new(&args.server)?;
    client.reach()?;
    let path = args.path();
    let bar = progress::of_files(input_bytes(&args.files));
    let progress = Mutex::new(ImportProgress::default());
    let begun = Instant::now();
    // The channel holds as many chunks as there are connections: memory stays bounded, and no connection waits for the
    // reader.
    let (give, take) = sync_channel::<Chunk>(args.connections as usize);
    let take = Mutex::new(take);
    std::thread::scope(|scope| {
        for _ in 0..args.connections {
            scope.spawn(|| send_chunks(&client, &path, &take, &progress, &bar, begun));
        }
        for file in &args.files {
            let read =
                read_chunks(file, &args.fields, |chunk| locked(&progress).error.is_none() && give.send(chunk).is_ok());
            if let Err(error) = read {
                let error = anyhow!(error).context(format!("cannot read {}", file.display()));
                locked(&progress).error.get_or_insert(error);
                break;
            }
        }
        drop(give);
    });
    bar.finish_and_clear();
    let progress = progress.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut words = std::io::stderr().lock();
    for failure in &progress.failures {
        writeln!(words, "failed: {failure}")?;
    }
    let hidden = progress.counts.failed - progress.failures.len() as u64;
    if hidden > 0 {
        writeln!(words, "failed: {} more document{}", HumanCount(hidden), plural(hidden))?;
    }
    // If a file or the collection does not exist, nothing was sent, and the error says everything.
    if progress.error.is_none() || progress.counts.documents() > 0 {
        summary(&progress, begun.elapsed()).context("cannot write the summary")?;
    }
    match progress.error {
        Some(error) => Err(error),
        None if progress.counts.failed > 0 => Ok(ExitStatus::Found),
        None => Ok(ExitStatus::Fine),
    }
}

fn locked(progress: &Mutex<ImportProgress>) -> std::sync::MutexGuard<'_, ImportProgress> {
    progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Sends chunks on one connection, until there are none left or any connection meets an error that ends the import.
fn send_chunks(
    client: &Client,
    path: &str,
    take: &Mutex<Receiver<Chunk>>,
    progress: &Mutex<ImportProgress>,
    bar: &ProgressBar,
    begun: Instant,
) {
    let next = || take.lock().unwrap_or_else(std::sync::PoisonError::into_inner).recv();
    while let Ok(chunk) = next() {
        // Chunks that are left after an error are taken and dropped, because the reader waits until there is room for
        // the next.
        if locked(progress).error.is_some() {
            continue;
        }
        for (origin, reason) in &chunk.failures {
            locked(progress).fail(origin, None, reason);
        }
        let sent = bulk::send(client, path, &chunk, |place, line| {
            locked(progress).answer(&chunk.origins[place], line);
        });
        let mut progress = locked(progress);
        progress.text_bytes += chunk.text_bytes;
        if let Err(error) = sent {
            let full = matches!(error, BulkError::Full { .. });
            let again = "the import stopped; make room and run it again: stored documents stay as they are";
            let error = anyhow!(error);
            progress.error.get_or_insert(if full { error.context(again) } else { error });
        }
        bar.inc(chunk.input_bytes);
        bar.set_message(progress::documents(progress.counts.documents(), begun));
    }
}

fn summary(progress: &ImportProgress, elapsed: Duration) -> std::io::Result<()> {
    let counts = &progress.counts;
    let seconds = elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
    let mut out = std::io::stdout().lock();
    for (name, count) in [
        ("documents", counts.documents()),
        ("unique", counts.unique),
        ("near", counts.near),
        ("exact", counts.exact),
        ("empty", counts.empty),
        ("unchanged", counts.unchanged),
        ("updated", counts.updated),
        ("failed", counts.failed),
    ] {
        writeln!(out, "{name:<12}{:>16}", HumanCount(count).to_string())?;
    }
    writeln!(out, "{:<12}{seconds:>16.1}", "seconds")?;
    writeln!(out, "{:<12}{:>16}", "documents/s", HumanCount((counts.documents() as f64 / seconds) as u64).to_string())?;
    writeln!(out, "{:<12}{:>16.1}", "MB/s", progress.text_bytes as f64 / 1e6 / seconds)?;
    out.flush()
}
