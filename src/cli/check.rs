//! `hapax check`: looks documents up on a running server or in a data directory, and prints verdicts.

use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use serde::Serialize;

use super::bulk::{self, Order};
use super::client::{Client, ServerArgs, encode};
use super::exit::ExitStatus;
use super::files::{DocumentArgs, FieldArgs, unreadable};
use super::in_use::{ASK_THE_SERVER, advise};
use super::placed::{ErrorLine, PlaceFields, Unreadable, placed};
use super::plural::plural;
use super::retry::Patience;
use super::usual::usual;
use crate::collections::{
    AskedCollections, CheckOptions, Collection, CollectionError, Collections, JointVerdict, PrepareOptions, Purpose,
};
use crate::config::{self, Sources};
use crate::cpu::{CpuPool, WhenFull};
use crate::extract::decode;
use crate::http::Caller;
use crate::http::dto::document::{Invalid, from_json};
use crate::http::dto::verdict::VerdictBody;
use crate::http::error::Problem;
use crate::input::{Chunk, Fields, Origin, Place, Reason, read_chunks};
use crate::types::{CollectionName, Content, DocId, Html, Scope, ScopeTerm, Verdict};
use crate::verdicts::check_threshold;

/// Look documents up, without storing anything.
///
/// FILE is JSON Lines, CSV or TSV with a header, a WARC file, a Parquet file, or a text or a page of HTML. Each line of
/// JSON is an object with a `text`, an `html`, a `set` or a `signature`. A table has columns with these names. A page of a
/// WARC file has its address as `id`. The output has one line of JSON for each document, in the same order: the verdict,
/// with the number of the input line or record. If a document has an `id`, the stored document with that id does not count
/// as its duplicate.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax check new.jsonl.gz > verdicts.jsonl
  hapax check --text page.txt && echo new
  hapax check --html page.html | jq .page
  hapax check --html page.html --extracted              print the text; look nothing up
  jq -c '{id: .url, text: .body}' crawl.jsonl | hapax check - | jq -r 'select(.duplicate_of) | .id'
  hapax check --duplicates-only new.jsonl | jq -c '[.id, .duplicate_of]'
  hapax check --collection crawl --collections main,archive new.jsonl
  hapax check --data-dir ./hapax-data new.jsonl         without a server

Exit status: 0 no duplicate was found, 1 at least one was found, 2 something failed.")]
pub struct Args {
    /// JSON Lines, CSV, TSV, WARC or a text, plain or compressed with gzip or zstd, or Parquet; - reads stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    server: ServerArgs,
    /// Look in this data directory instead of asking a server; no server may be using it
    #[arg(long, value_name = "DIR", conflicts_with_all = ["server"])]
    data_dir: Option<PathBuf>,
    /// Configuration file of the server that created the data directory
    #[arg(long, value_name = "FILE", requires = "data_dir")]
    config: Option<PathBuf>,
    /// Collection to look in
    #[arg(long, value_name = "NAME", default_value = "default")]
    collection: String,
    /// Other collections to look in too, separated by commas. The matches of all collections are in one list, and each
    /// match names its collection
    #[arg(long, value_name = "NAMES")]
    collections: Option<String>,
    /// Smallest similarity of documents to report, above 0 and at most 1, such as 0.9 [default: the collection's
    /// threshold]
    #[arg(long, value_name = "J")]
    threshold: Option<f64>,
    /// Report only documents with this label, such as crawl:2026-48. With ! before the label, report only documents
    /// without it. Can be repeated
    #[arg(long, value_name = "NAME:VALUE", value_parser = ScopeTerm::parse)]
    scope: Vec<ScopeTerm>,
    /// Largest number of matches to report for each document, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    #[command(flatten)]
    fields: FieldArgs,
    #[command(flatten)]
    documents: DocumentArgs,
    /// Read FILE as one plain text instead of documents
    #[arg(long)]
    text: bool,
    /// Read FILE as one page of HTML instead of JSON Lines
    #[arg(long, conflicts_with = "text")]
    html: bool,
    /// Print the text of the page that would be compared, and look nothing up
    #[arg(long, requires = "html")]
    extracted: bool,
    /// Print only the verdicts on documents that have a duplicate, and the errors
    #[arg(long)]
    duplicates_only: bool,
    /// Rows without a content were left out by a load, so they are no errors.
    #[arg(skip)]
    after_load: bool,
}

/// The counts so far, and the output for the verdicts.
struct Report {
    out: BufWriter<io::StdoutLock<'static>>,
    duplicates: u64,
    failed: u64,
    /// The lines that are not documents. Each is reported at its place in the input.
    unreadable: VecDeque<(Origin, Reason)>,
    duplicates_only: bool,
    broken: Option<io::Error>,
}

impl Args {
    /// Returns the arguments that look up each row of a loaded file in the new collection. The collection is on the
    /// server, or in the data directory `offline`, which is read with this configuration file.
    pub(super) fn after_load(
        file: &Path,
        collection: &str,
        server: &ServerArgs,
        (offline, config): (Option<PathBuf>, Option<PathBuf>),
    ) -> Self {
        Self {
            collection: collection.to_owned(),
            server: server.clone(),
            data_dir: offline,
            config,
            duplicates_only: true,
            after_load: true,
            ..usual(&[file])
        }
    }

    fn scope(&self) -> Result<Scope> {
        Scope::new(self.scope.clone()).map_err(|error| anyhow!("--scope: {error}"))
    }
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    args.scope()?;
    if let Some(threshold) = args.threshold.filter(|threshold| check_threshold(*threshold).is_err()) {
        bail!("--threshold {threshold}: must be a number above 0 and at most 1");
    }
    if args.extracted {
        return print_extracted(args);
    }
    let mut report = Report {
        out: BufWriter::new(io::stdout().lock()),
        duplicates: 0,
        failed: 0,
        unreadable: VecDeque::new(),
        duplicates_only: args.duplicates_only,
        broken: None,
    };
    match &args.data_dir {
        Some(dir) => {
            let offline = Offline::open(args, dir).map_err(|error| advise(error, ASK_THE_SERVER))?;
            each_chunk(args, &mut report, |chunk, report| offline.check(args, chunk, report))?;
        }
        None => {
            let client = Client::new(&args.server)?;
            client.reach()?;
            let path = bulk_path(args);
            each_chunk(args, &mut report, |chunk, report| online(&client, &path, chunk, report))?;
        }
    }
    report.out.flush().context("cannot write the verdicts")?;
    if report.failed > 0 {
        let (failed, s) = (report.failed, plural(report.failed));
        bail!("{failed} document{s} could not be checked; the error lines of the output say why");
    }
    Ok(if report.duplicates > 0 { ExitStatus::Found } else { ExitStatus::Fine })
}

fn each_chunk(
    args: &Args,
    report: &mut Report,
    mut check: impl FnMut(&Chunk, &mut Report) -> Result<()>,
) -> Result<()> {
    let mut outcome = Ok(());
    let mut give = |chunk: Chunk| {
        let is_error = |reason: &Reason| !(args.after_load && matches!(reason, Reason::NoField(_)));
        report.unreadable.extend(chunk.failures.iter().filter(|(_, reason)| is_error(reason)).cloned());
        outcome = check(&chunk, report);
        report.unreadable_before(u64::MAX);
        if let Some(error) = report.broken.take() {
            outcome = Err(anyhow!(error).context("cannot write the verdicts"));
        }
        outcome.is_ok()
    };
    let read = if args.text || args.html {
        let read = if args.html { read_page } else { read_text };
        let read = read(&args.file).with_context(|| format!("cannot read {}", args.file.display()));
        read.map(|chunk| {
            give(chunk);
        })
    } else {
        let mut wanted = args.fields.wanted(false);
        args.documents.add_to(&mut wanted);
        read_chunks(&args.file, &wanted, give).map_err(|error| unreadable(error, &args.file))
    };
    read?;
    outcome
}

fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    if path != Path::new("-") {
        return Ok(std::fs::read(path)?);
    }
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::stdin().lock(), &mut bytes)?;
    Ok(bytes)
}

fn read_page(path: &Path) -> Result<Chunk> {
    let origin = Origin { file: path.to_string_lossy().into(), place: Place::Line { number: 1, offset: 0 } };
    Ok(Chunk::single(origin, document("html", &decode(&read_bytes(path)?, None))))
}

/// Prints the text that the collection extracts from a page. The collection is on a server or in a data directory.
fn print_extracted(args: &Args) -> Result<ExitStatus> {
    let page = read_bytes(&args.file).with_context(|| format!("cannot read {}", args.file.display()))?;
    let html = decode(&page, None);
    let text = match &args.data_dir {
        Some(dir) => {
            let offline = Offline::open(args, dir).map_err(|error| advise(error, ASK_THE_SERVER))?;
            let html = Html::untyped(html);
            offline.runtime.block_on(offline.collection.extract(html, None, WhenFull::Wait))?.text
        }
        None => {
            let client = Client::new(&args.server)?;
            client.reach()?;
            let path = format!("/v1/collections/{}/extract", encode(&args.collection));
            let body = String::from_utf8(document("html", &html)).expect("JSON is UTF-8");
            let answer: serde_json::Value = serde_json::from_str(&client.post_json(&path, &body)?)?;
            answer.get("text").and_then(|text| text.as_str()).context("the answer has no text")?.to_owned()
        }
    };
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").context("cannot write the text")?;
    Ok(ExitStatus::Fine)
}

fn read_text(path: &Path) -> Result<Chunk> {
    let bytes = read_bytes(path)?;
    let text = String::from_utf8(bytes)
        .map_err(|error| anyhow!("not valid UTF-8 at byte {}", error.utf8_error().valid_up_to()))?;
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
    let origin = Origin { file: path.to_string_lossy().into(), place: Place::Line { number: 1, offset: 0 } };
    Ok(Chunk::single(origin, document("text", text)))
}

/// Returns a document that has only this content.
fn document(field: &str, content: &str) -> Vec<u8> {
    serde_json::to_vec(&serde_json::json!({ field: content })).expect("a string is JSON")
}

fn bulk_path(args: &Args) -> String {
    let threshold = args.threshold.map(|threshold| format!("&threshold={threshold}")).unwrap_or_default();
    let scope: String = args.scope.iter().map(|term| format!("&scope={}", encode(&term.to_string()))).collect();
    let others = args.collections.as_deref().map(|names| format!("&collections={}", encode(names))).unwrap_or_default();
    let (collection, limit) = (encode(&args.collection), args.limit);
    format!("/v1/collections/{collection}/bulk?op=check&limit={limit}{threshold}{scope}{others}")
}

fn online(client: &Client, path: &str, chunk: &Chunk, report: &mut Report) -> Result<()> {
    // A line that was sent again is answered after the lines that follow it. Meanwhile, their answers are stored here,
    // so that the output has the order of the input.
    let mut answers: Vec<Option<String>> = vec![None; chunk.lines.len()];
    let mut next = 0;
    bulk::send(client, path, chunk, Order::Any, Patience::usual(), |place, line| {
        answers[place] = Some(line.to_owned());
        while let Some(line) = answers.get_mut(next).and_then(Option::take) {
            report.answer(&chunk.origins[next], &line);
            next += 1;
        }
    })?;
    Ok(())
}

impl Report {
    /// Writes one line of a bulk answer. The place in the chunk is replaced by the place in the file.
    fn answer(&mut self, origin: &Origin, line: &str) {
        let Ok(fields) = serde_json::from_str::<Fields<'_>>(line) else {
            return self.failure(origin, Unreadable::answer());
        };
        let is = |name: &str, values: &[&str]| fields.get(name).is_some_and(|value| values.contains(&value));
        let is_error = is("kind", &["\"error\""]);
        let is_duplicate = is("verdict", &["\"near_duplicate\"", "\"exact_duplicate\""]);
        self.failed += u64::from(is_error);
        self.duplicates += u64::from(is_duplicate);
        if is_error || self.shows(is_duplicate) {
            let place = PlaceFields::in_file(origin);
            let place = if is_error { place.with_offset(origin) } else { place };
            self.write(origin, placed(&fields, &place).as_bytes());
        }
    }

    /// Returns whether a verdict is printed.
    fn shows(&self, is_duplicate: bool) -> bool {
        is_duplicate || !self.duplicates_only
    }

    fn failure(&mut self, origin: &Origin, error: Unreadable) {
        self.failed += 1;
        self.write_line(origin, &ErrorLine::new(PlaceFields::in_file(origin).with_offset(origin), error));
    }

    fn write_line(&mut self, origin: &Origin, line: &impl Serialize) {
        match serde_json::to_vec(line) {
            Ok(bytes) => self.write(origin, &bytes),
            Err(error) => self.broken = Some(error.into()),
        }
    }

    fn write(&mut self, origin: &Origin, bytes: &[u8]) {
        self.unreadable_before(origin.number());
        if let Err(error) = self.out.write_all(bytes).and_then(|()| self.out.write_all(b"\n")) {
            self.broken.get_or_insert(error);
        }
    }

    /// Reports the unreadable lines and records that come before the line or record with this number.
    fn unreadable_before(&mut self, number: u64) {
        while let Some((origin, reason)) = self.unreadable.pop_front_if(|(origin, _)| origin.number() < number) {
            self.failure(&origin, Unreadable::from(&reason));
        }
    }
}

/// A data directory that this process has opened.
struct Offline {
    runtime: tokio::runtime::Runtime,
    collections: Collections,
    collection: Collection,
    /// Present if other collections are asked too.
    asked: Option<AskedCollections>,
}

/// An output line with a verdict. It has the form of a line in the bulk route's answer.
#[derive(Serialize)]
struct VerdictLine<'a> {
    kind: &'static str,
    #[serde(flatten)]
    place: PlaceFields<'a>,
    #[serde(flatten)]
    verdict: VerdictBody,
}

impl Offline {
    fn open(args: &Args, dir: &Path) -> Result<Self> {
        // Without this check, opening would create a missing directory. So a mistyped path would not be noticed.
        if !dir.is_dir() {
            bail!("--data-dir {}: there is no such directory", dir.display());
        }
        let name = CollectionName::new(&args.collection).map_err(|error| anyhow!("--collection: {error}"))?;
        let flags = vec![("--data-dir", "data.dir", dir.to_string_lossy().into_owned())];
        let sources = Sources { flags, ..Sources::of_process(args.config.clone()) };
        let config = config::load(&sources)?.config;
        let runtime = tokio::runtime::Runtime::new().context("cannot start threads")?;
        let collections = Collections::open(config.collections, CpuPool::new(config.cpu), Arc::default())?;
        let collection = runtime.block_on(collections.get(&name))?;
        let asked = match &args.collections {
            Some(listed) => {
                let names =
                    AskedCollections::names(listed, &name).map_err(|error| anyhow!("--collections: {error}"))?;
                let others = names.iter().map(|name| runtime.block_on(collections.get(name)));
                Some(AskedCollections::new(collection.clone(), others.collect::<Result<_, _>>()?))
            }
            None => None,
        };
        Ok(Self { runtime, collections, collection, asked })
    }

    fn check(&self, args: &Args, chunk: &Chunk, report: &mut Report) -> Result<()> {
        let options = CheckOptions {
            threshold: args.threshold,
            limit: args.limit as usize,
            with_metadata: false,
            explain: false,
            payload_digest: None,
            scope: Some(Arc::new(args.scope()?)).filter(|scope| !scope.terms().is_empty()),
        };
        for (line, origin) in chunk.lines.iter().zip(&chunk.origins) {
            let (text, place) =
                (std::str::from_utf8(line).expect("lines are made of UTF-8"), PlaceFields::in_file(origin));
            let verdict = from_json(text, Invalid::Refuse, &Caller::anyone()).and_then(|document| {
                let payload_digest = document.attached.capture.digest;
                let options = CheckOptions { payload_digest, ..options.clone() };
                self.runtime.block_on(self.verdict(document.id, document.content, options)).map_err(Problem::from)
            });
            match verdict {
                Ok(verdict) => {
                    let is_duplicate = verdict.verdict().kind.is_duplicate();
                    report.duplicates += u64::from(is_duplicate);
                    if !report.shows(is_duplicate) {
                        continue;
                    }
                    let verdict = VerdictBody::joint(self.collection.name(), verdict, String::new);
                    report.write_line(origin, &VerdictLine { kind: "verdict", place, verdict });
                }
                Err(problem) => {
                    report.failed += 1;
                    // Without a server there is no request, so there is no request id.
                    let error = problem.into_body("");
                    report.write_line(origin, &ErrorLine::new(place, error));
                }
            }
        }
        Ok(())
    }

    async fn verdict(
        &self,
        id: Option<DocId>,
        content: Content,
        options: CheckOptions,
    ) -> Result<JointVerdict, CollectionError> {
        let Some(asked) = &self.asked else {
            let mut prepared = self.collection.prepare(content).await?;
            let page = prepared.take_page();
            let verdict = self.collection.check(id, prepared, options).await?;
            return Ok(Verdict { page, ..verdict }.into());
        };
        let prepare = PrepareOptions { purpose: Purpose::Check, ..PrepareOptions::default() };
        let mut prepared = asked.prepare(content, prepare).await?;
        let page = prepared[0].take_page();
        let mut joint = asked.check(id, prepared, options, usize::MAX, |_, _, _| {}).await?;
        joint.verdict_mut().page = page;
        Ok(joint)
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        self.collections.close();
    }
}
