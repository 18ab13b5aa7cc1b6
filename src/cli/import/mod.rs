//! `hapax import`: sends files to a running server, or stores them in a data directory, with a progress bar for people and counts for scripts.

mod answer;
mod direct;
mod outputs;
mod resume;
mod sending;
mod tally;
mod verdict_file;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::json;

use super::api::Api;
use super::bulk::Order;
use super::client::{Client, ServerArgs, encode};
use super::collection::{CreateArgs, ensure};
use super::duration::duration;
use super::exit::ExitStatus;
use super::files::{DocumentArgs, FieldArgs, check_outputs, look_at_all, matching};
use super::in_process::OwnServer;
use super::progress;
use super::signals::interruption;
use super::unseen::{FIELD_FLAGS, warn_unseen};
use super::usual::usual;
use crate::collections::AskedCollections;
use crate::input::{Wanted, input_bytes};
use crate::types::{CollectionName, Label};
use direct::AHEAD;
use outputs::{KEPT, Outputs};
use resume::{Job, Progress, StateFile, VERDICTS};
use sending::Import;

/// Import documents into a running server, or into a data directory.
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
  hapax import --data-dir ./hapax-data corpus.jsonl.zst      without a server

Exit status: 0 all documents were accepted, 1 some failed, 2 the import could not start or stopped
early, 130 stopped by a second signal.")]
pub struct Args {
    /// JSON Lines, CSV, TSV, WARC or texts, plain or compressed with gzip or zstd, or Parquet; a folder with such files;
    /// - reads stdin. A quoted pattern such as '*.warc.gz' names the files that match
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
    /// Import into this data directory instead of asking a server; no server may be using it
    #[arg(long, value_name = "DIR", conflicts_with_all = ["server", "connections", "patience"])]
    data_dir: Option<PathBuf>,
    /// Configuration file of the server that uses the data directory. A new directory gets a collection `default` with the
    /// settings of its section [default_collection]
    #[arg(long, value_name = "FILE", requires = "data_dir")]
    config: Option<PathBuf>,
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

/// The place to import into.
enum Target {
    Server(Client),
    Directory(OwnServer),
}

impl Target {
    fn api(&self) -> &dyn Api {
        match self {
            Self::Server(client) => client,
            Self::Directory(server) => server,
        }
    }
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

    /// Reaches the server, or opens the data directory.
    fn target(&self) -> Result<Target> {
        let Some(dir) = &self.data_dir else {
            let client = Client::new(&self.server)?;
            client.reach()?;
            return Ok(Target::Server(client));
        };
        let own = CollectionName::new(&self.collection).map_err(|error| anyhow!("--collection: {error}"))?;
        let mut names = match &self.collections {
            Some(listed) => AskedCollections::names(listed, &own).map_err(|error| anyhow!("--collections: {error}"))?,
            None => Vec::new(),
        };
        names.push(own);
        Ok(Target::Directory(OwnServer::open(dir, self.config.as_ref(), &names)?))
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
        if let (Some(Progress { chunks: 1.., .. }), Some(dir)) = (&progress, &self.data_dir)
            && !dir.join("collections").is_dir()
        {
            bail!(
                "--resume: {} has no collections, but the import has stored documents there; put the directory back, or import \
                 again without --resume",
                dir.display()
            );
        }
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

pub fn run(args: &Args) -> Result<ExitStatus> {
    let files = matching(&args.files)?;
    check_outputs(&files, &[(VERDICTS, args.verdicts.as_deref()), (KEPT, args.kept.as_deref())])?;
    if args.resume {
        resume::check(&files, args.verdicts.as_deref(), args.kept.as_deref())?;
    }
    let mut wanted = Wanted { originals: args.kept.is_some(), ..args.fields.wanted(true) };
    args.documents.add_to(&mut wanted);
    look_at_all(&files, &wanted)?;
    let target = args.target()?;
    let api = target.api();
    ensure(api, &args.collection, &args.create)?;
    let state = args.state(&files, &wanted, api.name())?;
    let outputs = (args.verdicts.is_some() || args.kept.is_some())
        .then(|| Outputs::create(args.verdicts.as_deref(), args.kept.as_deref(), state))
        .transpose()?;
    let bar = progress::of_files(input_bytes(&files));
    let connections = args.connections();
    let order = if connections == 1 { Order::Kept } else { Order::Any };
    let import = Import::new(api, (args.path(), order), &bar, outputs, args.patience, interruption()?);
    match &target {
        Target::Server(_) => import.send(&files, &wanted, connections),
        Target::Directory(server) => {
            import.read(&files, &wanted, AHEAD, |take| direct::store(&import, server, take));
        }
    }
    bar.finish_and_clear();
    let status = import.finish()?;
    warn_unseen(&wanted.form, FIELD_FLAGS, &mut std::io::stderr().lock()).context("cannot write a warning")?;
    Ok(status)
}
