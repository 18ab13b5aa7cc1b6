//! `hapax export`: writes a collection as JSON Lines, from a running server or from a data directory. It reads one page
//! at a time, so memory stays bounded even for a large collection or cluster.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::client::{Client, ServerArgs, encode};
use super::exit::ExitStatus;
use super::export_parquet;
use super::in_use::{ASK_THE_SERVER, advise};
use super::output::is_broken_pipe;
use super::retry::patiently;
use crate::collections::Cursor;
use crate::collections::offline::StoredCollection;
use crate::http::dto::document::DocumentRecord;
use crate::types::{CollectionName, ratio};

/// The number of documents in one page.
const PAGE: usize = 1000;
/// The most ids in one line of `--clusters`. A larger cluster takes several lines.
const MEMBERS_PER_LINE: usize = 1000;
/// Printed if --pairs or --clusters finds nothing.
const NO_DUPLICATES: &str = "no stored document is a duplicate of another. Duplicates are stored only if they are \
                             inserted with on_duplicate=link or on_duplicate=store (hapax import --on-duplicate link); \
                             with on_duplicate=skip, the default, they are not stored.";

/// Write the documents of a collection as JSON Lines, or with their signatures as Parquet.
///
/// By default, it writes every stored document, in the order in which the documents were stored and in the form in
/// which the server returns them. If documents are stored or deleted during the export, each page of up to 1,000
/// documents is consistent, but the export as a whole is not.
///
/// A cluster is a document together with its stored duplicates. Its representative is the document that has been stored
/// the longest. Duplicates are stored only if they were inserted with on_duplicate=link or on_duplicate=store. The
/// default is on_duplicate=skip. Then duplicates are not stored, so there are no clusters and no pairs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax export > documents.jsonl
  hapax export --pairs --output pairs.jsonl
  hapax export --clusters | jq -r '.members[1:][]'        the ids of all stored duplicates
  hapax export --data-dir ./hapax-data --collection news  without a server
  hapax export --data-dir ./hapax-data --parquet --output all.parquet

A line of --pairs has \"id\", \"representative\", \"similarity\", \"low\", \"high\" and \"method\".
A line of --clusters has \"representative\" and \"members\"; the representative is the first member.
A cluster of more than 1,000 members takes several lines; all lines except the first have
\"continued\": true.

--pairs writes one line for each stored duplicate, with its representative. Other pairs of a cluster
are not written. If a representative was deleted, the similarity of the next representative to some
members may be below the threshold. Such pairs are left out, and a note on stderr says how many.

Exit status: 0 everything was written, or the reader of the pipe closed the pipe; 2 something failed.")]
pub struct Args {
    /// Write pairs: each stored or linked duplicate, with the representative of its cluster
    #[arg(long, conflicts_with = "clusters")]
    pairs: bool,
    /// Write clusters: each cluster that has more than one document
    #[arg(long)]
    clusters: bool,
    /// Write a Parquet file with the signatures. `hapax load` makes a collection from such a file
    #[arg(long, requires = "data_dir", conflicts_with_all = ["pairs", "clusters", "server"])]
    parquet: bool,
    /// File to write to; - writes to stdout
    #[arg(long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Collection to export
    #[arg(long, value_name = "NAME", default_value = "default")]
    collection: String,
    #[command(flatten)]
    server: ServerArgs,
    /// Read this data directory instead of asking a server; no server may be using it
    #[arg(long, value_name = "DIR", conflicts_with_all = ["server"])]
    data_dir: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    let mut source: Box<dyn Pages> = match &args.data_dir {
        Some(dir) => {
            let source = OfflineSource::open(dir, &args.collection);
            let source = source.map_err(|error| advise(error, ASK_THE_SERVER))?;
            if args.parquet {
                return parquet(args, &source.stored);
            }
            Box::new(source)
        }
        None => Box::new(OnlineSource::new(args)?),
    };
    // The file is created last, so that a mistyped collection name does not empty an existing file.
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
        // The reader of the pipe, for example `head`, has read enough.
        Err(error) if is_broken_pipe(&error) => Ok(ExitStatus::Fine),
        Err(error) => Err(error.context("the export is incomplete")),
        Ok(note) => {
            if let Some(note) = note {
                writeln!(io::stderr().lock(), "note: {note}")?;
            }
            Ok(ExitStatus::Fine)
        }
    }
}

fn parquet(args: &Args, stored: &StoredCollection) -> Result<ExitStatus> {
    let to_stdout = args.output == Path::new("-");
    if to_stdout && io::stdout().is_terminal() {
        bail!("--parquet writes bytes that a terminal cannot show; name a file with --output");
    }
    let bar = progress_bar(args, to_stdout, Some(stored.documents_total()));
    let written = export_parquet::write(stored, &args.output, &bar);
    bar.finish_and_clear();
    match written {
        Err(error) if is_broken_pipe(&error) => Ok(ExitStatus::Fine),
        written => written.map(|()| ExitStatus::Fine).context("the export is incomplete"),
    }
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

/// Writes pairs, and returns a note about pairs that were left out.
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
            "left out {below} duplicates whose similarity to their representative is below the threshold: they were \
             stored as duplicates of another document, or when the threshold was lower. --clusters lists them."
        )),
    })
}

/// Writes clusters, and returns a note if there are none.
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
                // A part that does not begin with its representative continues the cluster of an earlier line.
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

/// The output, with its progress bar.
struct Lines {
    out: BufWriter<Box<dyn Write>>,
    bar: ProgressBar,
}

impl Lines {
    fn write(&mut self, line: &impl Serialize) -> Result<()> {
        // Serialise to a buffer first: serde_json would wrap the error of a failed write, and `is_broken_pipe` would
        // not recognise it.
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        Ok(self.out.write_all(&bytes)?)
    }
}

/// Shows a bar on a terminal, unless the data is written to the terminal too.
fn progress_bar(args: &Args, to_stdout: bool, total: Option<u64>) -> ProgressBar {
    if !io::stderr().is_terminal() || to_stdout && io::stdout().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = |template| ProgressStyle::with_template(template).expect("the template is valid");
    // The number of documents in clusters is not known in advance.
    let bar = match total.filter(|_| !args.pairs && !args.clusters) {
        Some(total) => ProgressBar::new(total)
            .with_style(style("{bar:30.cyan/dim} {percent:>3} %  {human_pos} documents, {per_sec}  {eta} left")),
        None => ProgressBar::no_length()
            .with_style(style("{spinner} {human_pos} documents in clusters, {per_sec}  {elapsed} elapsed")),
    };
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A document of a cluster, with the fields that are exported.
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

/// A collection that is read page by page. `None` means that there are no further pages.
trait Pages {
    /// Returns the number of documents, if it is known.
    fn documents_total(&self) -> Option<u64>;
    /// Returns the next page of documents.
    fn documents(&mut self) -> Result<Option<Vec<Box<RawValue>>>>;
    /// Returns the next page of documents that are in clusters.
    fn members(&mut self) -> Result<Option<Vec<Member>>>;
}

/// A running server.
struct OnlineSource {
    client: Client,
    /// The URL path of the collection.
    path: String,
    total: Option<u64>,
    at: At<String>,
}

/// The position that the export has reached.
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

fn read<T: serde::de::DeserializeOwned>(client: &Client, path: &str) -> Result<T> {
    let text = patiently(|| client.get_whole(path))?;
    serde_json::from_str(&text)
        .with_context(|| format!("the answer from {}{path} is not from a hapax server", client.url()))
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
        // Without this check, opening would create a missing directory. So a mistyped path would not be noticed.
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
