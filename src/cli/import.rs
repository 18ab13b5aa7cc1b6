//! `hapax import`: files -> a running server, with a bar for people and counts for scripts.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use serde::Deserialize;

use super::bulk::{self, BulkError};
use super::client::{Client, Problem, ServerArgs, encode};
use super::exit::ExitStatus;
use super::input::{Chunk, FieldArgs, Origin, input_bytes, read_chunks};

/// Failures shown in full; the rest is counted.
const FAILURES_SHOWN: usize = 10;
/// How often words replace the bar where there is no terminal.
const WORDS_PERIOD: Duration = Duration::from_secs(10);

/// Stream documents into a running server.
///
/// Each line of a FILE is a JSON object with an id and a text. Documents that have a near duplicate are not stored,
/// unless --on-duplicate says otherwise. Importing the same file again changes nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax import corpus.jsonl.zst
  hapax import --id-field url --text-field content part-*.jsonl.gz
  zcat crawl.gz | jq -c '{id: .url, text: .body}' | hapax import -
  hapax import --collection news --on-duplicate store --connections 1 news.jsonl

Exit status: 0 all documents were taken, 1 some failed, 2 the import could not be done.")]
pub struct Args {
    /// JSON lines, plain, gzip or zstd; - is stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
    /// Collection to import into
    #[arg(long, value_name = "NAME", default_value = "default")]
    collection: String,
    /// What to do with a document that has a duplicate
    #[arg(long, value_enum, default_value = "skip")]
    on_duplicate: OnDuplicate,
    /// What to do when the id holds other content
    #[arg(long, value_enum, default_value = "conflict")]
    on_existing: OnExisting,
    #[command(flatten)]
    fields: FieldArgs,
    /// Requests at once. With more than 1, documents of one file may be taken out of order
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    connections: u32,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OnDuplicate {
    /// Store nothing
    Skip,
    /// Keep the id as a link to the original
    Link,
    /// Store it all the same
    Store,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OnExisting {
    /// Fail the document
    Conflict,
    /// Put the new content in place of the old
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
        // One match names the original; more would only be thrown away here.
        format!(
            "/v1/collections/{collection}/bulk?op=insert&on_duplicate={on_duplicate}&on_existing={on_existing}&limit=1"
        )
    }
}

/// What became of the documents. Each is counted in exactly one of these.
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

/// What all connections write to.
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
            return self.fail(origin, None, "the server's answer could not be read");
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
            _ => self.fail(origin, answer.id.as_deref(), "the server's answer holds no verdict"),
        }
    }
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<ExitStatus> {
    let client = Client::new(&args.server)?;
    client.reach()?;
    let path = args.path();
    let bar = progress_bar(input_bytes(&args.files));
    let progress = Mutex::new(ImportProgress::default());
    let begun = Instant::now();
    // As many chunks wait as are under way: memory stays bounded, and no connection waits for the reader.
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
        writeln!(words, "failed: {} more", HumanCount(hidden))?;
    }
    // A file that is not there, or a collection: nothing was sent, and the error says all.
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

/// One connection: takes chunks until there are none, or until any connection met an error that ends the import.
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
        // Others may still be sending when one meets an error: their chunks are drained, so that the reader ends.
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
            let again = "the import stopped; make room and run it again, which passes over what is stored";
            let error = anyhow!(error);
            progress.error.get_or_insert(if full { error.context(again) } else { error });
        }
        bar.inc(chunk.input_bytes);
        let (documents, seconds) = (progress.counts.documents(), begun.elapsed().as_secs_f64());
        bar.set_message(format!(
            "{} documents, {}/s",
            HumanCount(documents),
            HumanCount((documents as f64 / seconds) as u64)
        ));
    }
}

/// A bar on a terminal; elsewhere a line every [`WORDS_PERIOD`], for logs.
fn progress_bar(total: Option<u64>) -> ProgressBar {
    let style = |template| ProgressStyle::with_template(template).expect("the template is valid");
    let terminal = std::io::stderr().is_terminal();
    let bar = match total {
        Some(total) => ProgressBar::new(total).with_style(style(
            "{bar:30.cyan/dim} {percent:>3} %  {msg}  {decimal_bytes_per_sec}  {elapsed} gone, {eta} to go",
        )),
        None => ProgressBar::no_length()
            .with_style(style("{spinner} {decimal_bytes} read  {msg}  {decimal_bytes_per_sec}  {elapsed} gone")),
    };
    if terminal {
        bar.enable_steady_tick(Duration::from_millis(200));
        return bar;
    }
    bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
    let watched = bar.clone();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(WORDS_PERIOD);
            if watched.is_finished() {
                return;
            }
            let share = watched.length().map(|total| {
                let percent = 100 * watched.position() / total.max(1);
                format!("{percent} %, {} to go, ", indicatif::HumanDuration(watched.eta()))
            });
            let _ = writeln!(std::io::stderr(), "{}{}", share.unwrap_or_default(), watched.message());
        }
    });
    bar
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
