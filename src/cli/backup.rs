//! `hapax backup`: copies every collection to a folder that `hapax restore` reads. The copy is made by a running
//! server, or from a data directory that no server uses.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use indicatif::{HumanBytes, HumanCount, ProgressBar};
use serde::Deserialize;

use super::client::{Client, ServerArgs};
use super::exit::ExitStatus;
use super::in_use::{ASK_THE_SERVER, advise};
use super::plural::plural;
use super::progress;
use super::retry::may_pass;
use crate::collections::BackupContents;
use crate::collections::offline::{self, BackupFolder, BackupProgress, SeriesFolder};

/// The time between two requests for the progress.
const LOOK: Duration = Duration::from_millis(200);
/// How many requests for the progress may fail in a row before the command gives up.
const LOOKS_MAX: u32 = 50;
/// The number of steps of the progress bar.
const STEPS: u64 = 1000;

/// Make a backup: a consistent, checked copy of every collection.
///
/// By default, a running server makes the backup in its backup directory (the setting `backup.dir`, which is
/// ./hapax-backups unless it is set). DIR is then the name of a new folder in that directory.
///
/// If DIR is a path, such as ./nightly or /mnt/backups/1, the finished backup is moved there from the server's backup
/// directory. The server must run on this machine, and DIR must be empty or missing. If the backup cannot be moved, no
/// backup is kept.
///
/// With --data-dir, this command makes the backup itself, without a server.
///
/// Leftovers of an interrupted backup in the same folder are replaced. A finished backup is never replaced. If you
/// interrupt this command, the server still finishes its backup.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax backup nightly-2026-11-21                       by the server, in its backup directory
  hapax backup nightly --keep 7                         as nightly-2026-11-21T020000Z; keeps 7 backups
  hapax backup /mnt/backups/1                           by a server on this machine, then moved
  hapax backup --data-dir ./hapax-data /mnt/backups/1   without a server
  hapax restore /mnt/backups/1 --data-dir ./restored    restore it

The path of the finished backup is printed to stdout.

Exit status: 0 the backup was made; 2 it was not made, or it is unknown whether it was made.")]
pub struct Args {
    /// Destination of the backup: a name in the server's backup directory, or a path
    #[arg(value_name = "DIR")]
    dir: String,
    #[command(flatten)]
    server: ServerArgs,
    /// Make the backup part of a series: the time is added to DIR. When the backup is finished, all backups of the
    /// series except the N newest are removed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    keep: Option<u32>,
    /// Back up this data directory instead of a server's; no server may be using it
    #[arg(long, value_name = "DIR", conflicts_with_all = ["server"])]
    data_dir: Option<PathBuf>,
}

/// A finished backup.
struct MadeBackup {
    path: String,
    collections: usize,
    documents: u64,
    bytes: u64,
    removed: Vec<String>,
}

impl MadeBackup {
    fn of(contents: &BackupContents, dir: &Path) -> Self {
        Self {
            path: dir.display().to_string(),
            collections: contents.collections.len(),
            documents: contents.documents(),
            bytes: contents.bytes(),
            removed: Vec::new(),
        }
    }

    /// Removes the older backups of the series. This backup is the newest one.
    fn prune(mut self, series: &str, keep: u32) -> Self {
        self.removed = offline::prune(Path::new(&self.path), series, keep);
        self
    }
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    let made = match &args.data_dir {
        Some(data_dir) => {
            offline(data_dir, Path::new(&args.dir), args.keep).map_err(|error| advise(error, ASK_THE_SERVER))?
        }
        None => online(args)?,
    };
    let MadeBackup { path, collections, documents, bytes, removed } = made;
    let mut words = std::io::stderr().lock();
    writeln!(words, "backup made: {}", in_words(collections, documents, bytes))?;
    for name in removed {
        writeln!(words, "removed an older backup: {name}")?;
    }
    writeln!(std::io::stdout().lock(), "{path}").context("cannot write the path of the backup")?;
    Ok(ExitStatus::Fine)
}

fn offline(data_dir: &Path, dir: &Path, keep: Option<u32>) -> Result<MadeBackup> {
    // Without this check, taking the lock would create a missing directory. So a mistyped path would not be noticed.
    if !data_dir.is_dir() {
        bail!("--data-dir {}: there is no such directory", data_dir.display());
    }
    let next = keep.map(|keep| next_of_series(dir).map(|next| (next, keep))).transpose()?;
    let (target, series) = match &next {
        Some((next, _)) => (next.path.as_path(), Some(next.series.as_str())),
        None => (dir, None),
    };
    let make = |progress| offline::back_up(data_dir, target, series, progress);
    let contents = watched("copied and checked", make).context("no backup was made")?;
    let made = MadeBackup::of(&contents, target);
    Ok(match &next {
        Some((next, keep)) => made.prune(&next.series, *keep),
        None => made,
    })
}

fn next_of_series(dir: &Path) -> Result<SeriesFolder> {
    SeriesFolder::next(dir)
        .with_context(|| format!("{}: must end in a name, such as /mnt/backups/nightly", dir.display()))
}

/// Describes the contents of a backup in a few words.
pub(super) fn in_words(collections: usize, documents: u64, bytes: u64) -> String {
    let s = plural(collections as u64);
    let (documents, documents_s) = (HumanCount(documents), plural(documents));
    format!("{collections} collection{s}, {documents} document{documents_s}, {}", HumanBytes(bytes))
}

/// Runs the work on a separate thread and shows a progress bar on stderr.
pub(super) fn watched<T: Send>(what: &'static str, work: impl FnOnce(BackupProgress) -> T + Send) -> T {
    let (progress, bar) = (BackupProgress::default(), progress_bar(what));
    let done = std::thread::scope(|scope| {
        let worker = scope.spawn(|| work(progress.clone()));
        while !worker.is_finished() {
            show(&bar, progress.share());
            std::thread::park_timeout(LOOK / 4);
        }
        worker.join()
    });
    bar.finish_and_clear();
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[derive(Deserialize)]
struct Status {
    name: String,
    path: String,
    state: String,
    progress: f64,
    started: String,
    #[serde(default)]
    collections: Vec<StatusEntry>,
    #[serde(default)]
    removed: Vec<String>,
    #[serde(default)]
    detail: String,
}

#[derive(Deserialize)]
struct StatusEntry {
    documents: u64,
    bytes: u64,
}

#[derive(Deserialize)]
struct Statuses {
    latest: Option<Status>,
}

/// Returns the name of the backup on the server. If DIR is a path, also returns the path to which the backup is moved.
fn name_and_target(dir: &str) -> Result<(&str, Option<&Path>)> {
    let path = Path::new(dir);
    if !dir.contains(std::path::is_separator) {
        return Ok((dir, None));
    }
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .with_context(|| format!("{dir}: must end in a name, such as /mnt/backups/nightly"))?;
    Ok((name, Some(path)))
}

/// Moves a finished backup of a server to the path `target`.
fn relocate(made: &MadeBackup, target: &Path) -> Result<MadeBackup> {
    let from = Path::new(&made.path);
    let there = format!("the backup is finished, but is still at {} on the server's machine", made.path);
    let backup = BackupFolder::read(from).with_context(|| there.clone())?;
    let found = MadeBackup::of(&backup.contents(), target);
    if (found.collections, found.documents, found.bytes) != (made.collections, made.documents, made.bytes) {
        bail!(
            "{there}: the machine that runs this command has another backup at that path; move the finished backup \
             yourself"
        );
    }
    if target.canonicalize().is_ok_and(|target| from.canonicalize().is_ok_and(|from| from == target)) {
        return Ok(found);
    }
    // The server's copy must be removed. Otherwise the next backup could not have its name, or a series would leave one
    // more copy each night.
    let both =
        || format!("the backup is at {}, but its original is still at {}; remove the original", found.path, made.path);
    match (backup.relocate(target), backup.remove()) {
        (Ok(()), Ok(true)) => Ok(found),
        (Ok(()), Ok(false)) => bail!(both()),
        (Ok(()), Err(error)) => Err(error).with_context(both),
        (Err(error), Ok(true)) => Err(error).context("no backup was made"),
        (Err(error), Ok(false) | Err(_)) => Err(error).context(there),
    }
}

fn online(args: &Args) -> Result<MadeBackup> {
    let (name, target) = name_and_target(&args.dir)?;
    match (target, args.keep) {
        (None, keep) => by_server(args, name, keep),
        (Some(target), None) => {
            if !BackupFolder::is_free(target) {
                bail!("{}: is not empty; choose an empty or missing directory", args.dir);
            }
            relocate(&by_server(args, name, None)?, target)
        }
        (Some(target), Some(keep)) => {
            // `keep` is 0, so that the server removes no backup from its own directory. The older backups of this
            // series are in the parent directory of `target`, and `prune` removes them.
            let made = by_server(args, name, Some(0))?;
            let next = next_of_series(target)?;
            Ok(relocate(&made, &next.path)?.prune(&next.series, keep))
        }
    }
}

fn by_server(args: &Args, name: &str, keep: Option<u32>) -> Result<MadeBackup> {
    let client = Client::new(&args.server)?;
    let foreign = || format!("the answer from {} is not from a hapax server", client.url());
    let body = match keep {
        Some(keep) => serde_json::json!({ "name": name, "keep": keep }),
        None => serde_json::json!({ "name": name }),
    };
    let body = body.to_string();
    let begun: Status = serde_json::from_str(&client.post_json("/v1/backups", &body)?).with_context(foreign)?;
    let bar = progress_bar("copied and checked");
    let mut looks = 0;
    let ended = loop {
        std::thread::sleep(LOOK);
        let text = match client.get_whole("/v1/backups") {
            Ok(text) => text,
            Err(error) if may_pass(&error) && looks < LOOKS_MAX => {
                looks += 1;
                continue;
            }
            Err(error) => return Err(anyhow!(error).context("cannot find out whether the backup was made")),
        };
        looks = 0;
        let latest = serde_json::from_str::<Statuses>(&text).with_context(foreign)?.latest;
        match latest.filter(|latest| (&latest.name, &latest.started) == (&begun.name, &begun.started)) {
            Some(latest) if latest.state == "running" => show(&bar, latest.progress),
            Some(latest) => break latest,
            None => bail!("no backup was made: the server was restarted meanwhile"),
        }
    };
    bar.finish_and_clear();
    match ended.state.as_str() {
        "done" => Ok(MadeBackup {
            path: ended.path,
            collections: ended.collections.len(),
            documents: ended.collections.iter().map(|entry| entry.documents).sum(),
            bytes: ended.collections.iter().map(|entry| entry.bytes).sum(),
            removed: ended.removed,
        }),
        "cancelled" => bail!("no backup was made: it was cancelled"),
        _ => bail!("no backup was made: {}", ended.detail),
    }
}

fn progress_bar(what: &'static str) -> ProgressBar {
    let template = "{bar:30.cyan/dim} {percent:>3} % {msg}  {elapsed} elapsed, {eta} left";
    progress::of_steps(STEPS, template).with_message(what)
}

fn show(bar: &ProgressBar, share: f64) {
    bar.set_position((share * STEPS as f64) as u64);
}
