//! `hapax copy`: fills a new collection in a Redis or Valkey Cluster from a local collection or from files of signatures.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use indicatif::ProgressBar;

use super::cluster::configuration;
use super::exit::ExitStatus;
use super::files::matching;
use super::in_use::advise;
use super::plural::plural;
use super::signals::interruption;
use super::{load, progress};
use crate::collections::copying::{Copied, CopyProgress, CopySource, LeftOut, copy};
use crate::collections::offline::{BackupFolder, StoredCollection};
use crate::cpu::CpuPool;
use crate::types::CollectionName;

/// The number of steps of the bar that shows how many of the postings were written.
const STEPS: u64 = 1000;
/// The advice if a server uses the data directory.
const COPY_A_BACKUP: &str = "stop it, or make a backup, restore it into another directory, and copy from there";

/// Fill a new collection in a Redis or Valkey Cluster, much faster than by inserting.
///
/// SOURCE is a data directory that no server uses, or Parquet files of signatures, which pyhapax or `hapax export --parquet`
/// has written. A copy trusts its source and does not look documents up, so the new collection has the same duplicates.
/// Each document keeps its id, metadata, times and verdict. The collection is visible when all data is written. If the copy
/// fails, no collection is created, and the servers of the cluster remove the data.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax copy --from ./hapax-data --to redis.toml --collection news
  hapax copy --from 'part-*.parquet' --to redis.toml --collection crawl-2026-48
  hapax copy --from ./hapax-data --from-collection news --to redis.toml --collection news-2

To copy a collection of a running server, make a backup, restore it, and copy from there:
  hapax backup for-the-cluster && hapax restore hapax-backups/for-the-cluster --data-dir ./restored
  hapax copy --from ./restored --to redis.toml --collection news

The signatures of all documents must fit into memory. A cluster has no links and labels, and lacks
more that docs/redis.md lists. This is left out, and notes say how much.

Exit status: 0 done; 2 the copy failed; 130 a signal stopped the copy.")]
pub struct Args {
    /// Data directory, or Parquet files of signatures
    #[arg(long, value_name = "SOURCE", required = true, num_args = 1..)]
    from: Vec<PathBuf>,
    /// Collection to copy, if SOURCE is a data directory [default: the name of the new collection]
    #[arg(long, value_name = "NAME")]
    from_collection: Option<String>,
    /// Configuration file of the servers of the cluster
    #[arg(long, value_name = "CONFIG")]
    to: PathBuf,
    /// Name of the new collection
    #[arg(long, value_name = "NAME")]
    collection: String,
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    let name = CollectionName::new(&args.collection).map_err(|error| anyhow!("--collection: {error}"))?;
    let (config, redis) = configuration("--to", &args.to)?;
    let stop = interruption()?;
    let source = source(args, &name)?;
    let bars = Bars::new(source.documents_at_most());
    let begun = Instant::now();
    let runtime = tokio::runtime::Runtime::new().context("cannot start threads")?;
    let cpu = CpuPool::new(config.cpu);
    let cluster = (&config.collections, &redis, cpu);
    let copied = runtime.block_on(copy(cluster, source, name.clone(), &|now| bars.show(now), &stop));
    bars.clear();
    match copied {
        Ok(copied) => tell(&name, copied, begun).map(|()| ExitStatus::Fine),
        Err(error) if error.is_interruption() => {
            writeln!(std::io::stderr().lock(), "hapax: nothing was copied: {error}")?;
            Ok(ExitStatus::Interrupted)
        }
        Err(error) if error.is_uncertain() => Err(anyhow!(error)),
        Err(error) => Err(anyhow!(error).context("nothing was copied")),
    }
}

fn source(args: &Args, name: &CollectionName) -> Result<CopySource> {
    match &args.from[..] {
        [dir] if dir.is_dir() => stored(args, dir, name),
        paths => {
            if let Some(dir) = paths.iter().find(|path| path.is_dir()) {
                bail!("--from {}: a directory must be the only SOURCE", dir.display());
            }
            if args.from_collection.is_some() {
                bail!("--from-collection is only for a data directory; a file has one collection");
            }
            Ok(CopySource::Files(load::open(&matching(paths)?)?))
        }
    }
}

fn stored(args: &Args, dir: &Path, name: &CollectionName) -> Result<CopySource> {
    if BackupFolder::read(dir).is_ok() {
        let shown = dir.display();
        bail!(
            "--from {shown}: this is a backup; restore it with `hapax restore {shown} --data-dir DIR`, and then use --from \
             DIR"
        );
    }
    let from = args.from_collection.as_deref().map(CollectionName::new).transpose();
    let from = from.map_err(|error| anyhow!("--from-collection: {error}"))?;
    let stored = StoredCollection::open(dir, Duration::ZERO, from.as_ref().unwrap_or(name));
    let stored = stored.map_err(|error| advise(error, COPY_A_BACKUP));
    Ok(CopySource::Stored(Box::new(stored.with_context(|| format!("--from {}", dir.display()))?)))
}

/// The progress bars: first for documents, and then for their postings.
struct Bars {
    documents: ProgressBar,
    postings: ProgressBar,
}

impl Bars {
    fn new(documents: u64) -> Self {
        let template = "{bar:30.cyan/dim} {percent:>3} %  {human_pos} documents, {per_sec}  {eta} left";
        let documents = progress::of_steps(documents, template);
        let postings = progress::of_steps(STEPS, "{bar:30.cyan/dim} {percent:>3} %  of the postings  {eta} left");
        Self { documents, postings }
    }

    fn show(&self, now: CopyProgress) {
        match now {
            CopyProgress::Documents(count) => self.documents.set_position(count),
            CopyProgress::Postings(share) => self.postings.set_position((share * STEPS as f64) as u64),
        }
    }

    fn clear(&self) {
        [&self.documents, &self.postings].into_iter().for_each(ProgressBar::finish_and_clear);
    }
}

/// Prints the number of copied documents, and a note for each kind of data that was left out.
fn tell(name: &CollectionName, copied: Copied, begun: Instant) -> Result<()> {
    let mut words = std::io::stderr().lock();
    let rate = progress::documents(copied.documents, begun);
    writeln!(words, "copied into collection `{name}`: {rate}")?;
    let LeftOut { links, empty, labels, dates, payload_digests, html_hashes } = copied.left_out;
    if links > 0 {
        writeln!(words, "note: left out {links} link{}, which a cluster cannot store", plural(links))?;
    }
    if empty > 0 {
        writeln!(words, "note: left out {empty} row{} without a signature", plural(empty))?;
    }
    let parts = [(labels, "labels"), (dates, "date"), (payload_digests, "payload_digest"), (html_hashes, "html_hash")];
    for (count, part) in parts.into_iter().filter(|(count, _)| *count > 0) {
        writeln!(words, "note: left out `{part}` of {count} document{}", plural(count))?;
    }
    Ok(())
}
