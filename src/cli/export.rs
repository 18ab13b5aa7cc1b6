//! `hapax export`: a collection -> NDJSON, from a running server or from its data directory.
//! A page at a time: memory stays bounded however large the collection, or one of its clusters, is.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::client::{Client, ClientError, ServerArgs, encode};
use super::exit::ExitStatus;
use crate::collections::Cursor;
use crate::collections::offline::StoredCollection;
use crate::http::dto::document::DocumentRecord;
use crate::http::dto::ratio;
use crate::types::CollectionName;

/// Documents asked for at once.
const PAGE: usize = 1000;
/// Ids in one line of `--clusters`; a larger cluster takes several.
const MEMBERS_PER_LINE: usize = 1000;
/// How often one page is asked for at most.
const ATTEMPTS_MAX: u32 = 10;
/// First pause before asking again; doubled each time.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// Longest pause, whatever the server asks for.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Said where people expect pairs and there is none.
const NO_DUPLICATES: &str = "no stored document is a duplicate of another. Duplicates are stored only if they are \
                             inserted with on_duplicate=link or on_duplicate=store (hapax import --on-duplicate link); \
                             with on_duplicate=skip, the default, they are not stored.";

/// Write what a collection holds, a line of JSON each.
///
/// Without --pairs and --clusters: every stored document, in the order of storing, as the server shows it. If others
/// write meanwhile, each page of up to 1,000 documents is of one moment; the whole export is not.
///
/// A cluster is a document and the duplicates of it that are stored. Its representative is the document that has been
/// stored the longest. Duplicates are stored only if they were inserted with on_duplicate=link or on_duplicate=store;
/// the default, skip, stores none, and then there are no clusters and no pairs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax export > documents.jsonl
  hapax export --pairs --output pairs.jsonl
  hapax export --clusters | jq -r '.members[1:][]'        ids of all duplicates that are stored
  hapax export --data-dir ./hapax-data --collection news  without a server

A line of --pairs: {\"id\", \"representative\", \"similarity\", \"low\", \"high\", \"method\"}
A line of --clusters: {\"representative\", \"members\"}, the representative first. A cluster of more
than 1,000 members takes several lines; those after the first say \"continued\": true.

--pairs writes one line for each stored duplicate, with its representative: not every pair of a
cluster. If the first representative was deleted, the next one may be less like the others than
the threshold. Such pairs are left out, and their number is told on stderr.

Exit status: 0 all was written, or the reader of a pipe closed it; 2 something failed.")]
pub struct Args {
    /// Write each stored or linked duplicate with the representative of its cluster
    #[arg(long, conflicts_with = "clusters")]
    pairs: bool,
    /// Write each cluster of more than one document
    #[arg(long)]
    clusters: bool,
    /// Where to write; - is stdout
    #[arg(long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Collection to export
    #[arg(long, value_name = "NAME", default_value = "default")]
    collection: String,
    #[command(flatten)]
    server: ServerArgs,
    /// Read this data directory instead; no server may be using it
    #[arg(long, value_name = "DIR", conflicts_with_all = ["server"])]
    data_dir: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<ExitStatus> {
    let mut source: Box<dyn Pages> = match &args.data_dir {
        Some(dir) => Box::new(OfflineSource::open(dir, &args.collection)?),
        None => Box::new(OnlineSource::new(args)?),
    };
    // After that, so that a mistyped name empties no file.
    let to_stdout = args.output == Path::new("-");
    let out: Box<dyn Write> = if to_stdout {
        Box::new(io::stdout().lock())
    } else {
        Box::new(File::create(&args.output).with_context(|| format!("cannot write {}", args.output.display()))?)
    };
    let mut lines = Lines { out: BufWriter::new(out), bar: progress_bar(args, to_stdout, source.documents_total()) };
    let written = if args.pairs {
        pairs(&mut *source, &mut lines)
    } else if args.clusters {
        clusters(&mut *source, &mut lines)
    } else {
        documents(&mut *source, &mut lines).map(|()| None)
    };
    let written = written.and_then(|note| Ok((lines.out.flush()?, note).1));
    lines.bar.finish_and_clear();
    match written {
        // Whoever read has seen enough, as `head` has.
        Err(error) if is_broken_pipe(&error) => Ok(ExitStatus::Fine),
        Err(error) => Err(error.context("not all was written")),
        Ok(note) => {
            if let Some(note) = note {
                writeln!(io::stderr().lock(), "note: {note}")?;
            }
            Ok(ExitStatus::Fine)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn documents(source: &mut dyn Pages, lines: &mut Lines) -> Result<()> {
    while let Some(page) = source.documents()? {
        for document in &page {
            lines.write(document)?;
        }
        lines.bar.inc(page.len() as u64);
    }
    Ok(())
}

/// Writes pairs; returns what to tell about those that are not there.
fn pairs(source: &mut dyn Pages, lines: &mut Lines) -> Result<Option<String>> {
    let (mut written, mut below) = (0_u64, 0_u64);
    while let Some(page) = source.members()? {
        for member in page.iter().filter(|member| member.representative.is_some()) {
            if member.below_threshold {
                below += 1;
            } else {
                lines.write(&Pair::from(member))?;
                written += 1;
            }
        }
        lines.bar.inc(page.len() as u64);
    }
    Ok(match (written, below) {
        (0, 0) => Some(NO_DUPLICATES.to_owned()),
        (_, 0) => None,
        _ => Some(format!(
            "left out {below} duplicates that are less like their representative than the threshold: they were stored as \
             duplicates of another document, or while the threshold was lower. --clusters lists them."
        )),
    })
}

/// Writes clusters; returns what to tell if there are none.
fn clusters(source: &mut dyn Pages, lines: &mut Lines) -> Result<Option<String>> {
    let mut cluster: Option<Cluster> = None;
    while let Some(page) = source.members()? {
        lines.bar.inc(page.len() as u64);
        for Member { id, representative, .. } in page {
            let stands = representative.as_ref().unwrap_or(&id);
            let same = cluster.as_ref().is_some_and(|cluster| cluster.representative == *stands);
            let full = cluster.as_ref().is_some_and(|cluster| cluster.members.len() == MEMBERS_PER_LINE);
            if !same || full {
                if let Some(cluster) = cluster.take() {
                    lines.write(&cluster)?;
                }
                // One that does not begin with its representative began in an earlier line.
                let continued = representative.is_some();
                cluster = Some(Cluster { representative: stands.clone(), members: Vec::new(), continued });
            }
            cluster.iter_mut().for_each(|cluster| cluster.members.push(id.clone()));
        }
    }
    match cluster {
        Some(cluster) => lines.write(&cluster).map(|()| None),
        None => Ok(Some(NO_DUPLICATES.to_owned())),
    }
}

/// A line of `--pairs`.
#[derive(Serialize)]
struct Pair<'a> {
    id: &'a str,
    representative: Option<&'a str>,
    similarity: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    method: Option<&'a str>,
}

impl<'a> From<&'a Member> for Pair<'a> {
    fn from(member: &'a Member) -> Self {
        let &Member { similarity, low, high, .. } = member;
        let (representative, method) = (member.representative.as_deref(), member.method.as_deref());
        Self { id: &member.id, representative, similarity, low, high, method }
    }
}

/// A line of `--clusters`.
#[derive(Serialize)]
struct Cluster {
    representative: String,
    members: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    continued: bool,
}

/// Where lines go.
struct Lines {
    out: BufWriter<Box<dyn Write>>,
    bar: ProgressBar,
}

impl Lines {
    fn write(&mut self, line: &impl Serialize) -> Result<()> {
        // To a buffer first: serde_json hides what kind of error a failed write is.
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        Ok(self.out.write_all(&bytes)?)
    }
}

/// A bar on a terminal, unless the data goes there as well.
fn progress_bar(args: &Args, to_stdout: bool, total: Option<u64>) -> ProgressBar {
    if !io::stderr().is_terminal() || to_stdout && io::stdout().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = |template| ProgressStyle::with_template(template).expect("the template is valid");
    // How many are in clusters nobody knows beforehand.
    let bar = match total.filter(|_| !args.pairs && !args.clusters) {
        Some(total) => ProgressBar::new(total)
            .with_style(style("{bar:30.cyan/dim} {percent:>3} %  {human_pos} documents, {per_sec}  {eta} to go")),
        None => ProgressBar::no_length()
            .with_style(style("{spinner} {human_pos} documents in clusters, {per_sec}  {elapsed} gone")),
    };
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A document of a cluster, as far as it is exported.
#[derive(Deserialize)]
struct Member {
    id: String,
    representative: Option<String>,
    similarity: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    method: Option<String>,
    #[serde(default)]
    below_threshold: bool,
}

/// A collection, page by page. `None`: there are no more.
trait Pages {
    /// How many documents there are, where that is known.
    fn documents_total(&self) -> Option<u64>;
    /// The next documents.
    fn documents(&mut self) -> Result<Option<Vec<Box<RawValue>>>>;
    /// The next documents of clusters.
    fn members(&mut self) -> Result<Option<Vec<Member>>>;
}

/// A running server.
struct OnlineSource {
    client: Client,
    /// Path of the collection.
    path: String,
    total: Option<u64>,
    at: At<String>,
}

/// How far the reading is.
enum At<T> {
    Begin,
    Behind(T),
    End,
}

impl<T> At<T> {
    fn after(next: Option<T>) -> Self {
        next.map_or(Self::End, Self::Behind)
    }
}

impl OnlineSource {
    fn new(args: &Args) -> Result<Self> {
        #[derive(Deserialize)]
        struct Description {
            documents: Option<u64>,
        }
        let client = Client::new(&args.server)?;
        client.reach()?;
        let path = format!("/v1/collections/{}", encode(&args.collection));
        let description: Description = read(&client, &path)?;
        Ok(Self { client, path, total: description.documents, at: At::Begin })
    }

    fn page<T: serde::de::DeserializeOwned>(&self, of: &str) -> Result<Option<T>> {
        let cursor = match &self.at {
            At::Begin => String::new(),
            At::Behind(cursor) => format!("&cursor={}", encode(cursor)),
            At::End => return Ok(None),
        };
        read(&self.client, &format!("{}/{of}?limit={PAGE}{cursor}", self.path)).map(Some)
    }
}

/// Asks again where that helps: a server may be restarted in the middle of an export.
fn read<T: serde::de::DeserializeOwned>(client: &Client, path: &str) -> Result<T> {
    let mut pause = PAUSE_FIRST;
    let mut attempt = 1;
    let text = loop {
        match client.get_whole(path) {
            Ok(text) => break text,
            Err(error) if error.is_passing() && attempt < ATTEMPTS_MAX => {
                let wanted = if let ClientError::Refused { retry_after, .. } = error { retry_after } else { None };
                std::thread::sleep(wanted.unwrap_or(pause).min(PAUSE_MAX));
                pause *= 2;
                attempt += 1;
            }
            Err(error) => return Err(error.into()),
        }
    };
    serde_json::from_str(&text).with_context(|| format!("{}{path} answers what is not from hapax", client.url()))
}

impl Pages for OnlineSource {
    fn documents_total(&self) -> Option<u64> {
        self.total
    }

    fn documents(&mut self) -> Result<Option<Vec<Box<RawValue>>>> {
        #[derive(Deserialize)]
        struct Page {
            documents: Vec<Box<RawValue>>,
            next_cursor: Option<String>,
        }
        let Some(Page { documents, next_cursor }) = self.page("documents")? else { return Ok(None) };
        self.at = At::after(next_cursor);
        Ok(Some(documents))
    }

    fn members(&mut self) -> Result<Option<Vec<Member>>> {
        #[derive(Deserialize)]
        struct Page {
            members: Vec<Member>,
            next_cursor: Option<String>,
        }
        let Some(Page { members, next_cursor }) = self.page("clusters")? else { return Ok(None) };
        self.at = At::after(next_cursor);
        Ok(Some(members))
    }
}

/// A data directory.
struct OfflineSource {
    stored: StoredCollection,
    at: At<Cursor>,
}

impl OfflineSource {
    fn open(dir: &Path, collection: &str) -> Result<Self> {
        // Opening makes what is missing; for an export that would only hide a mistyped path.
        if !dir.is_dir() {
            bail!("--data-dir {}: there is no such directory", dir.display());
        }
        let name = CollectionName::new(collection).map_err(|error| anyhow!("--collection: {error}"))?;
        let stored = StoredCollection::open(dir, Duration::ZERO, &name)?;
        Ok(Self { stored, at: At::Begin })
    }
}

impl Pages for OfflineSource {
    fn documents_total(&self) -> Option<u64> {
        Some(self.stored.documents_total())
    }

    fn documents(&mut self) -> Result<Option<Vec<Box<RawValue>>>> {
        let after = match &self.at {
            At::Begin => None,
            At::Behind(cursor) => Some(cursor),
            At::End => return Ok(None),
        };
        let page = self.stored.documents(after, PAGE)?;
        self.at = At::after(page.next);
        let line = |document| Ok(serde_json::value::to_raw_value(&DocumentRecord::from(document))?);
        page.documents.into_iter().map(line).collect::<Result<_>>().map(Some)
    }

    fn members(&mut self) -> Result<Option<Vec<Member>>> {
        let after = match &self.at {
            At::Begin => None,
            At::Behind(cursor) => Some(cursor),
            At::End => return Ok(None),
        };
        let page = self.stored.clusters(after, PAGE)?;
        self.at = At::after(page.next);
        let text = |id: crate::types::DocId| id.as_str().to_owned();
        let members = page.members.into_iter().map(|member| Member {
            id: text(member.id),
            representative: member.representative.map(text),
            similarity: member.similarity.map(|similarity| ratio(similarity.value)),
            low: member.similarity.map(|similarity| ratio(similarity.low)),
            high: member.similarity.map(|similarity| ratio(similarity.high)),
            method: member.similarity.map(|similarity| similarity.method.as_str().to_owned()),
            below_threshold: member.below_threshold,
        });
        Ok(Some(members.collect()))
    }
}
