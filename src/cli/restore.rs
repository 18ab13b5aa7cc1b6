//! `hapax restore`: a backup -> a new data directory, whole or not at all.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::backup::{in_words, watched};
use super::exit::ExitStatus;
use crate::collections::offline;

/// Restore a backup into an empty data directory.
///
/// Refuses a backup that is damaged, was broken off, or is of a later version, and a data directory that is not empty or in
/// use. Broken off at any moment, it leaves nothing to serve: `hapax serve` refuses the directory until the restore was
/// run again. Collections with a secret need the same `hashing.secret` as before.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax restore /mnt/backups/nightly --data-dir ./restored
  hapax serve --data-dir ./restored

Exit status: 0 it is restored, 2 it is not.")]
pub struct Args {
    /// The backup's folder
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,
    /// The data directory to make; missing or empty
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<ExitStatus> {
    let restored = watched("restored", |progress| offline::restore(&args.backup, &args.data_dir, &progress));
    let contents = restored.context("nothing was restored")?;
    let held = in_words(contents.collections.len(), contents.documents(), contents.bytes());
    let made = contents.made;
    writeln!(std::io::stderr().lock(), "restored as of {made}: {held}")?;
    Ok(ExitStatus::Fine)
}
