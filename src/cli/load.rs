//! `hapax load`: makes a new collection from files of precomputed signatures, in a data directory or through a server.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use indicatif::ProgressBar;
use serde::Deserialize;

use super::client::{Client, ClientError, ServerArgs};
use super::exit::ExitStatus;
use super::files::matching;
use super::in_use::{ASK_THE_SERVER, advise};
use super::plural::plural;
use super::signals::interruption;
use super::{check, import, progress};
use crate::collections::offline;
use crate::config::{self, Sources};
use crate::load::{FileSource, LoadFile, LoadProgress, Loaded, Splice, check_same};
use crate::types::CollectionName;

/// The number of steps of the bar that shows how much of the new file was read again.
const STEPS: u64 = 1000;

/// Make a new collection from files of precomputed signatures.
///
/// FILE is a Parquet file that was written by pyhapax or by `hapax export --parquet`. If the load fails, no collection
/// is created. A load trusts its files and does not look documents up, so the new collection may contain duplicates. A
/// load is several times as fast as `hapax import`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax load signatures.parquet --collection crawl-2026-48
  hapax load 'part-*.parquet' --collection crawl-2026-48 --data-dir ./hapax-data     without a server
  hapax load signatures.parquet --collection crawl-2026-48 --check | jq -c '[.id, .duplicate_of]'
  hapax export --data-dir ./restored --parquet --output all.parquet && hapax load all.parquet --collection copy

The files need the columns \"id\" and \"signature\"; docs/load.md describes the other columns. Several
files become one collection, in the order in which they are given.

Exit status: 0 done; 1 some rows are similar to others (--check), or failed (--decide); 2 the load failed;
130 (with --data-dir) a second signal stopped the load.")]
pub struct Args {
    /// Parquet files of signatures
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Name of the new collection
    #[arg(long, value_name = "NAME")]
    collection: String,
    #[command(flatten)]
    server: ServerArgs,
    /// Write into this data directory instead of asking a server; no server may be using it
    #[arg(long, value_name = "DIR", conflicts_with_all = ["server"])]
    data_dir: Option<PathBuf>,
    /// Configuration file of the server that uses the data directory. Settings that are not in the files are taken from
    /// its section [default_collection]
    #[arg(long, value_name = "FILE", requires = "data_dir")]
    config: Option<PathBuf>,
    /// Afterwards, look each row up in the new collection. Print the rows that are similar to another one, as hapax check
    /// --duplicates-only does
    #[arg(long)]
    check: bool,
    /// Add the rows to a collection that exists: look each row up, and decide on it as hapax import does
    #[arg(long, conflicts_with_all = ["check", "data_dir"])]
    decide: bool,
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    let name = CollectionName::new(&args.collection).map_err(|error| anyhow!("--collection: {error}"))?;
    if args.decide {
        return import::run(&import::Args::usual(&args.files, &args.collection, &args.server));
    }
    let paths = matching(&args.files)?;
    let files = open(&paths)?;
    let begun = Instant::now();
    let loaded = match &args.data_dir {
        Some(dir) => in_directory(args, dir, (&name, files))?,
        None => through_server(args, &name, files)?,
    };
    let Loaded { documents, links, empty } = loaded;
    let rate = progress::documents(documents, begun);
    writeln!(std::io::stderr().lock(), "loaded collection `{name}`: {rate}")?;
    if links > 0 {
        writeln!(std::io::stderr().lock(), "{links} of them {}", if links == 1 { "is a link" } else { "are links" })?;
    }
    if empty > 0 {
        writeln!(std::io::stderr().lock(), "left out {empty} row{} without a signature", plural(empty))?;
    }
    if args.check { report_similar(args, &paths) } else { Ok(ExitStatus::Fine) }
}

/// Opens files that have the same settings. All are opened before anything is sent, so that an error in the last file is
/// found at once. Prints a note about columns that the format does not have.
pub(super) fn open(paths: &[PathBuf]) -> Result<Vec<LoadFile>> {
    let files = paths.iter().map(|path| Ok(LoadFile::open(source(path)?)?)).collect::<Result<Vec<_>>>()?;
    check_same(&files)?;
    for file in &files {
        if !file.ignored().is_empty() {
            let columns = file.ignored().join(", ");
            writeln!(std::io::stderr().lock(), "note: {}: columns that are not loaded: {columns}", file.label())?;
        }
    }
    Ok(files)
}

/// Prints the rows that are similar to another row.
fn report_similar(args: &Args, paths: &[PathBuf]) -> Result<ExitStatus> {
    let mut status = ExitStatus::Fine;
    for path in paths {
        let offline = (args.data_dir.clone(), args.config.clone());
        let check = check::Args::after_load(path, &args.collection, &args.server, offline);
        if check::run(&check).context("the collection was created, but not all rows could be looked up")?
            == ExitStatus::Found
        {
            status = ExitStatus::Found;
        }
    }
    Ok(status)
}

fn source(path: &Path) -> Result<FileSource> {
    let label = path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot read {label}"))?;
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        bail!("{label} is not a file; Parquet is read from its end, so it cannot come through a pipe");
    }
    Ok(FileSource { label, file })
}

fn in_directory(args: &Args, dir: &Path, (name, files): (&CollectionName, Vec<LoadFile>)) -> Result<Loaded> {
    let sources = Sources { file: args.config.clone(), ..Sources::default() };
    let config = config::load(&sources)?.config.collections;
    let rows = files.iter().map(LoadFile::rows).sum();
    let bar = progress::of_steps(rows, "{bar:30.cyan/dim} {percent:>3} %  {human_pos} rows, {per_sec}  {eta} left");
    let checking = progress::of_steps(STEPS, "{bar:30.cyan/dim} {percent:>3} %  of the new file checked");
    let show = |progress: LoadProgress| match progress {
        LoadProgress::Rows(read) => bar.set_position(read),
        LoadProgress::Checked(share) => checking.set_position((share * STEPS as f64) as u64),
    };
    if name.as_str() == "default" && files.iter().any(|file| file.settings().spec != config.default_settings.spec) {
        bail!("the collection `default` must have the spec of [default_collection]; choose another --collection");
    }
    // If a second signal ends the process at once, the next start removes the leftovers of the load.
    let stop = interruption()?;
    let stopped = || stop.load(Ordering::Relaxed);
    let default = &config.default_settings;
    let loaded = offline::load(dir, config.lock_wait, (name, files), default, &show, &stopped);
    [bar, checking].iter().for_each(ProgressBar::finish_and_clear);
    loaded.context("nothing was loaded").map_err(|error| advise(error, ASK_THE_SERVER))
}

fn through_server(args: &Args, name: &CollectionName, files: Vec<LoadFile>) -> Result<Loaded> {
    #[derive(Deserialize)]
    struct Answer {
        documents: u64,
        links: u64,
        empty: u64,
    }
    let client = Client::new(&args.server)?;
    let bytes = files.iter().map(LoadFile::bytes).sum();
    let template = "{bar:30.cyan/dim} {percent:>3} %  {decimal_bytes} sent, {decimal_bytes_per_sec}  {eta} left";
    let bar = progress::of_steps(bytes, template);
    let target = format!("/v1/collections/{name}/load");
    let answer = match <[LoadFile; 1]>::try_from(files) {
        Ok([file]) => client.post_file(&target, bar.wrap_read(file.into_file()?), Some(bytes)),
        // A server accepts only one file, so the files are joined into one while they are sent.
        Err(files) => {
            let splice = Splice::of(files)?;
            let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
            let splicing = std::thread::spawn(move || splice.write(writer));
            let answer = client.post_file(&target, bar.wrap_read(reader), None);
            // If a file could not be read, the server received a truncated file and answers 400. If the server refused
            // earlier, writing to the pipe failed, and the answer has the reason.
            match (splicing.join().expect("it does not panic"), answer) {
                (Err(error), Err(ClientError::Refused { status: 400, .. }))
                    if error.kind() != ErrorKind::BrokenPipe =>
                {
                    bar.finish_and_clear();
                    return Err(anyhow!(error).context("cannot read the files; nothing was loaded"));
                }
                (_, answer) => answer,
            }
        }
    };
    bar.finish_and_clear();
    let answer = answer.map_err(|error| {
        let told = match error {
            ClientError::Broken { .. } => {
                "the server did not answer; `hapax collection list` shows whether the collection exists"
            }
            _ => "nothing was loaded",
        };
        anyhow!(error).context(told)
    })?;
    let Answer { documents, links, empty } =
        serde_json::from_str(&answer).context("the answer is not from a hapax server")?;
    Ok(Loaded { documents, links, empty })
}
