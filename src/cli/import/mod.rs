//! `hapax import`: sends files to a running server, with a progress bar for people and counts for scripts.

mod answer;
mod outputs;
mod resume;
mod tally;
mod verdict_file;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use indicatif::ProgressBar;
use serde_json::json;

use super::bulk::{self, BulkError, Order};
use super::client::{Client, ServerArgs, encode};
use super::collection::{CreateArgs, ensure};
use super::duration::duration;
use super::exit::ExitStatus;
use super::files::{DocumentArgs, FieldArgs, check_outputs, look_at_all, matching, read_all_joined};
use super::progress;
use super::retry::{LOOK_EVERY, Patience};
use super::signals::interruption;
use super::unseen::{FIELD_FLAGS, warn_unseen};
use super::usual::usual;
use crate::input::{Chunk, Wanted, input_bytes};
use crate::types::Label;
use outputs::{Answered, KEPT, Outputs};
use resume::{Job, Progress, StateFile, VERDICTS};
use tally::Tally;

/// Import documents into a running server.
///
/// FILE is JSON Lines, CSV or TSV with a header, a WARC file of web pages, Parquet, or a text or a page of HTML. Each line
/// of JSON is an object with an `id` and a `text`. Fields that the API does not know are left out, as in a bulk request
/// with extra=ignore. The columns of a table and of a Parquet file are the fields of its documents. A page of a WARC file
/// has its address as `id`, and the date and the payload digest of its record. Records without a page, such as requests
/// and images, are skipped. A file whose name ends in .txt, .text, .md, .html or .htm is one document with its path as
/// `id`.
///
/// By default, a document that has a near duplicate is not stored; see --on-duplicate. You can import the same file
/// again: documents that are already stored do not change.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax import corpus.jsonl.zst
  hapax import --id-field url --text-field content part-*.jsonl.gz
  hapax import --create --collection crawl --shingle word3 crawl-*.warc.gz
  hapax import --verdicts verdicts.jsonl --kept kept.jsonl.zst corpus.jsonl.zst
  zcat crawl.gz | jq -c '{id: .url, text: .body}' | hapax import -
  hapax import --collection news --on-duplicate store --connections 1 news.jsonl

Exit status: 0 all documents were accepted, 1 some failed, 2 the import could not start or stopped
early, 130 stopped by a second signal.")]
pub struct Args {
    /// JSON Lines, CSV, TSV, WARC or texts, plain or compressed with gzip or zstd, or Parquet; a folder with such files;
    /// - reads stdin. A quoted pattern such as '*.warc.gz' names the files that match
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
    /// Collection to import into
    #[arg(long, value_name = "NAME", default_value = "default")]
    collection: String,
    /// Other collections to look each document up in, separated by commas. They do not affect whether a document is
    /// stored. The verdicts in the file of --verdicts also name the matches in these collections
    #[arg(long, value_name = "NAMES", requires = "verdicts")]
    collections: Option<String>,
    #[command(flatten)]
    decisions: DecisionArgs,
    #[command(flatten)]
    fields: FieldArgs,
    #[command(flatten)]
    documents: DocumentArgs,
    /// Write the verdict on each document to FILE, one per line, in the order of the input. FILE is compressed if its
    /// name ends in .gz or .zst. It is a Parquet file if its name ends in .parquet
    #[arg(long, value_name = "FILE")]
    verdicts: Option<PathBuf>,
    /// Write to FILE the unchanged input line of each document that this import stores or finds already stored. FILE is
    /// compressed if its name ends in .gz or .zst. Pages of WARC files and texts are written as lines of JSON,
    /// and records of CSV after their header
    #[arg(long, value_name = "FILE")]
    kept: Option<PathBuf>,
    /// Go on with an import that was interrupted, with the same files and options. The file FILE.resume next to the
    /// verdicts says how far it has come. An import that was not begun begins
    #[arg(long)]
    resume: bool,
    /// Number of requests to send at once, 1 to 64. With more than 1, documents may be stored in a different order
    /// than in the file [default: 4, or 1 with --on-existing replace]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    connections: Option<u32>,
    /// How long to wait for a server that does not answer, for example because it restarts
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    patience: Duration,
    // This field is last, because its heading also applies to all arguments after it.
    #[command(flatten)]
    create: CreateArgs,
}

#[derive(Debug, clap::Args)]
struct DecisionArgs {
    /// Action for a document that has a duplicate
    #[arg(long, value_enum, default_value = "skip")]
    on_duplicate: OnDuplicate,
    /// Action for a document whose id is already stored with other content
    #[arg(long, value_enum, default_value = "conflict")]
    on_existing: OnExisting,
    /// Label for each document, such as crawl:2026-48, in addition to the labels in its line; can be repeated
    #[arg(long, value_name = "NAME:VALUE", value_parser = Label::parse)]
    label: Vec<Label>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OnDuplicate {
    /// Do not store it
    Skip,
    /// Store it as a link to the original: later, only its exact copies match it
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
    /// Returns the arguments of an import with the default options.
    pub(super) fn usual(files: &[PathBuf], collection: &str, server: &ServerArgs) -> Self {
        Self { collection: collection.to_owned(), server: server.clone(), ..usual(files) }
    }

    fn connections(&self) -> u32 {
        let usual = match self.decisions.on_existing {
            // If several documents have the same id, the last one must remain, so the order matters.
            OnExisting::Replace => 1,
            OnExisting::Conflict | OnExisting::Keep => 4,
        };
        self.connections.unwrap_or(usual)
    }

    /// Returns the file with the state of the import, if it can be resumed, and how far the import has come.
    fn state(&self, files: &[PathBuf], wanted: &Wanted, server: &str) -> Result<(Option<StateFile>, Option<Progress>)> {
        let Some(verdicts) = self.verdicts.as_deref() else { return Ok((None, None)) };
        let kept = self.kept.as_deref();
        if resume::check(files, Some(verdicts), kept).is_err() {
            // The verdicts of another import are overwritten.
            StateFile::remove_of(verdicts)?;
            return Ok((None, None));
        }
        let form = &wanted.form;
        let labels: Vec<_> = form.label_fields.iter().map(|label| &label.field).collect();
        let fields = json!([form.id_field, form.text_field, form.html_field, labels]).to_string();
        let job =
            Job::new(files, &format!("{server}{}", self.path()), fields, kept).context("cannot read the files")?;
        let state = StateFile::new(verdicts, job);
        let progress = if self.resume { state.read(verdicts)? } else { None };
        Ok((Some(state), progress))
    }

    fn path(&self) -> String {
        let on_duplicate = match self.decisions.on_duplicate {
            OnDuplicate::Skip => "skip",
            OnDuplicate::Link => "link",
            OnDuplicate::Store => "store",
        };
        let on_existing = match self.decisions.on_existing {
            OnExisting::Conflict => "conflict",
            OnExisting::Replace => "replace",
            OnExisting::Keep => "keep",
        };
        let collection = encode(&self.collection);
        let mut path = format!(
            "/v1/collections/{collection}/bulk?op=insert&on_duplicate={on_duplicate}&on_existing={on_existing}"
        );
        for label in &self.decisions.label {
            path.push_str("&label=");
            path.push_str(&encode(label.as_str()));
        }
        // The first match names the original, and the counts need no other matches. Only the file of verdicts needs all
        // matches that the server returns.
        if self.verdicts.is_none() {
            path.push_str("&limit=1");
        }
        if let Some(names) = &self.collections {
            path.push_str("&collections=");
            path.push_str(&encode(names));
        }
        path
    }
}

/// One import. All connections share it.
struct Import<'a> {
    client: &'a Client,
    path: String,
    order: Order,
    bar: &'a ProgressBar,
    begun: Instant,
    outputs: Option<Outputs>,
    tally: Mutex<Tally>,
    /// The error that ends the import.
    error: Mutex<Option<anyhow::Error>>,
    /// How long to wait for a server that does not answer.
    patience: Duration,
    /// Set by SIGINT or SIGTERM.
    interrupted: Arc<AtomicBool>,
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    let files = matching(&args.files)?;
    check_outputs(&files, &[(VERDICTS, args.verdicts.as_deref()), (KEPT, args.kept.as_deref())])?;
    if args.resume {
        resume::check(&files, args.verdicts.as_deref(), args.kept.as_deref())?;
    }
    let mut wanted = Wanted { originals: args.kept.is_some(), ..args.fields.wanted(true) };
    args.documents.add_to(&mut wanted);
    look_at_all(&files, &wanted)?;
    let client = Client::new(&args.server)?;
    client.reach()?;
    ensure(&client, &args.collection, &args.create)?;
    let state = args.state(&files, &wanted, client.url())?;
    let outputs = (args.verdicts.is_some() || args.kept.is_some())
        .then(|| Outputs::create(args.verdicts.as_deref(), args.kept.as_deref(), state))
        .transpose()?;
    let bar = progress::of_files(input_bytes(&files));
    let connections = args.connections();
    let import = Import {
        client: &client,
        path: args.path(),
        order: if connections == 1 { Order::Kept } else { Order::Any },
        bar: &bar,
        begun: Instant::now(),
        outputs,
        tally: Mutex::default(),
        error: Mutex::default(),
        patience: args.patience,
        interrupted: interruption()?,
    };
    import.send(&files, &wanted, connections);
    bar.finish_and_clear();
    let status = import.finish()?;
    warn_unseen(&wanted.form, FIELD_FLAGS, &mut std::io::stderr().lock()).context("cannot write a warning")?;
    Ok(status)
}

impl Import<'_> {
    /// Reads all files and sends their documents on this many connections.
    fn send(&self, files: &[PathBuf], wanted: &Wanted, connections: u32) {
        // The channel holds as many chunks as there are connections. So memory stays bounded, and connections need not
        // wait for the reader.
        let (give, take) = sync_channel(connections as usize);
        let first = self.outputs.as_ref().map_or(0, Outputs::chunks);
        let reader = read_beside(files.to_vec(), wanted.clone(), first, give);
        let take = Mutex::new(take);
        std::thread::scope(|scope| {
            for _ in 0..connections {
                scope.spawn(|| self.send_chunks(&take));
            }
        });
        // After a failure, the reader may still be waiting for input. Its thread is not joined, but ends with the
        // process.
        if !self.has_failed()
            && let Some(error) = reader.join().expect("the reader does not panic")
        {
            self.fail(error);
        }
    }

    /// Sends chunks on one connection, until there are no chunks left, or until an error on any connection ends the
    /// import.
    fn send_chunks(&self, take: &Mutex<Receiver<(u64, Chunk)>>) {
        while !self.has_failed() {
            let (number, chunk) = match locked(take).recv_timeout(LOOK_EVERY) {
                Ok(next) => next,
                Err(RecvTimeoutError::Timeout) => {
                    self.look_for_interruption();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let turn = self.outputs.as_ref().map(|outputs| outputs.turn_of(number));
            let answers = self.send_chunk(&chunk);
            self.look_for_interruption();
            if let Some(turn) = turn
                && let Err(error) = turn.write(&chunk, &answers)
            {
                self.fail(error);
            }
            self.bar.inc(chunk.input_bytes);
            self.bar.set_message(progress::documents(locked(&self.tally).documents(), self.begun));
        }
    }

    /// Sends a chunk and counts the answers. Returns the answers if they will be written to a file.
    fn send_chunk(&self, chunk: &Chunk) -> Vec<Option<Answered>> {
        for (origin, reason) in &chunk.failures {
            locked(&self.tally).unreadable(origin, reason);
        }
        let mut answers = Vec::new();
        if self.outputs.is_some() {
            answers.resize_with(chunk.lines.len(), || None);
        }
        let patience = Patience::new(self.patience, Some(&*self.interrupted));
        let sent = bulk::send(self.client, &self.path, chunk, self.order, patience, |place, line| {
            let answer = serde_json::from_str(line).ok();
            locked(&self.tally).answer(&chunk.origins[place], answer.as_ref());
            if let Some(slot) = answers.get_mut(place) {
                *slot = Some((line.to_owned(), answer));
            }
        });
        locked(&self.tally).read(chunk.text_bytes, chunk.skipped);
        if let Err(error) = sent {
            let full = matches!(error, BulkError::Full { .. });
            let again = "the import stopped; make room and run it again: stored documents stay as they are";
            let error = anyhow!(error);
            self.fail(if full { error.context(again) } else { error });
        }
        answers
    }

    /// Finishes the output files, and reports the results.
    fn finish(self) -> Result<ExitStatus> {
        let is_complete = locked(&self.error).is_none();
        if let Some(Err(error)) = self.outputs.map(|outputs| outputs.finish(is_complete)) {
            locked(&self.error).get_or_insert(error);
        }
        let tally = self.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
        let error = self.error.into_inner().unwrap_or_else(PoisonError::into_inner);
        tally.write_failures(&mut std::io::stderr().lock())?;
        // If a file or the collection does not exist, nothing was sent, and the error alone is enough.
        if error.is_none() || tally.documents() > 0 {
            let written = tally.write_summary(self.begun.elapsed(), &mut std::io::stdout().lock());
            // The reader of the summary may have closed the pipe early. The documents stay stored.
            if let Err(error) = written
                && error.kind() != std::io::ErrorKind::BrokenPipe
            {
                return Err(error).context("cannot write the summary");
            }
        }
        match error {
            Some(error) => Err(error),
            None if tally.failed() > 0 => Ok(ExitStatus::Found),
            None => Ok(ExitStatus::Fine),
        }
    }

    /// Ends the import if it was interrupted. Chunks that are being sent are still sent completely, and files are
    /// finished.
    fn look_for_interruption(&self) {
        if self.interrupted.load(Ordering::Relaxed) && !self.has_failed() {
            self.fail(match self.outputs.as_ref().is_some_and(Outputs::has_state) {
                true => anyhow!("interrupted; run the import again with --resume to continue"),
                false => anyhow!("interrupted; stored documents stay stored, so run the import again to continue"),
            });
        }
    }

    fn fail(&self, error: anyhow::Error) {
        locked(&self.error).get_or_insert(error);
    }

    fn has_failed(&self) -> bool {
        locked(&self.error).is_some()
    }
}

/// Reads all files on a thread of its own, until the receiver of the chunks is dropped. The chunks before `first` are left
/// out. Returns the error that ended the reading of a file.
fn read_beside(
    files: Vec<PathBuf>,
    wanted: Wanted,
    first: u64,
    give: SyncSender<(u64, Chunk)>,
) -> JoinHandle<Option<anyhow::Error>> {
    std::thread::spawn(move || {
        let mut numbers = 0..;
        read_all_joined(&files, &wanted, |chunk| {
            let number = numbers.next().expect("they do not end");
            number < first || give.send((number, chunk)).is_ok()
        })
    })
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
