//! `hapax restore`: writes a backup into a new data directory, completely or not at all.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::backup::{in_words, watched};
use super::exit::ExitStatus;
use super::in_use::advise;
use crate::collections::offline;

/// Restore a backup into an empty data directory.
///
/// The restore is refused if the backup is damaged, unfinished or made by a later version, or if the data directory is
/// not empty or is in use. If a restore is interrupted, `hapax serve` refuses the data directory until the restore is
/// run again. Collections that were made with a secret need the same `hashing.secret` as before.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax restore /mnt/backups/nightly --data-dir ./restored
  hapax serve --data-dir ./restored

Exit status: 0 the backup was restored, 2 it was not restored.")]
pub struct Args {
    /// Folder of the backup, such as /mnt/backups/nightly
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,
    /// Data directory to create; it must be empty or missing
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    let restored = watched("restored", |progress| offline::restore(&args.backup, &args.data_dir, &progress));
    let contents = restored
        .context("nothing was restored")
        .map_err(|error| advise(error, "stop it, or restore into another directory"))?;
    let held = in_words(contents.collections.len(), contents.documents(), contents.bytes());
    let made = contents.made;
    writeln!(std::io::stderr().lock(), "restored the backup of {made}: {held}")?;
    Ok(ExitStatus::Fine)
}
