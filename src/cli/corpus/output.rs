//! The files that a run writes. A file appears under its name when it is complete.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};

use super::signing::INTERRUPTED;
use crate::cli::files::target;
use crate::cli::line_file::LineFile;
use crate::input::Chunk;

/// The argument that names the output.
pub(in crate::cli) const OUTPUT: &str = "--output";

/// A file that is being written: first under another name, which begins with a dot.
pub(in crate::cli) struct OutputFile {
    path: PathBuf,
    /// `None` for stdout, pipes and devices, which are written directly.
    unfinished: Option<Unfinished>,
    /// `None` when Parquet is written, and when all is written.
    lines: Option<LineFile>,
}

/// A file that is removed unless it gets its name.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // It has its name by now, or the run has failed. A file that cannot be removed is seen by its name.
        let _ = fs::remove_file(&self.0);
    }
}

impl OutputFile {
    /// `flag`: the argument that has given the path.
    pub(in crate::cli) fn create(path: &Path, flag: &str) -> Result<Self> {
        let cannot = || format!("{flag} {}: cannot write it", path.display());
        let directly = if path == Path::new("-") {
            Some(File::from(io::stdout().as_fd().try_clone_to_owned().with_context(cannot)?))
        } else if path.metadata().is_ok_and(|found| !found.is_file()) {
            Some(File::options().write(true).open(path).with_context(cannot)?)
        } else {
            None
        };
        if let Some(file) = directly {
            return Ok(Self { path: path.to_owned(), unfinished: None, lines: Some(LineFile::new(file, path)?) });
        }
        // The file that a link leads to is replaced, not the link.
        let target = target(path);
        let unfinished = target.with_file_name(format!(".hapax{flag}.{}", std::process::id()));
        let folder = || format!("{flag} {}: cannot write into the folder", path.display());
        let file = File::create(&unfinished).with_context(folder)?;
        let unfinished = Unfinished(unfinished);
        if let Ok(old) = target.metadata() {
            file.set_permissions(old.permissions()).with_context(cannot)?;
        }
        Ok(Self { path: target, unfinished: Some(unfinished), lines: Some(LineFile::new(file, path)?) })
    }

    pub(in crate::cli) fn line(&mut self, line: &[u8]) -> Result<()> {
        self.lines.as_mut().expect("it is open").line(line)
    }

    /// Writes these documents of a chunk as they were read.
    pub(in crate::cli) fn originals(&mut self, chunk: &Chunk, places: impl IntoIterator<Item = usize>) -> Result<()> {
        let lines = self.lines.as_mut().expect("it is open");
        lines.begin(chunk)?;
        places.into_iter().try_for_each(|at| lines.line(chunk.original(at)))
    }

    /// Takes the file itself, for a format without lines.
    pub(in crate::cli) fn take_file(&mut self) -> Result<File> {
        self.lines.take().expect("it is open").finish()
    }

    /// Writes everything to the disk. The file has its name only after [`publish`](Self::publish).
    pub(in crate::cli) fn complete(&mut self) -> Result<()> {
        self.lines.take().map(LineFile::finish).transpose()?;
        let Some(Unfinished(unfinished)) = &self.unfinished else { return Ok(()) };
        let synced = File::open(unfinished).and_then(|file| file.sync_all());
        synced.with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Gives the complete file its name.
    pub(in crate::cli) fn publish(self) -> Result<()> {
        let Some(Unfinished(unfinished)) = &self.unfinished else { return Ok(()) };
        fs::rename(unfinished, &self.path).with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// The state of files that are read twice.
#[derive(PartialEq, Eq)]
pub(in crate::cli) struct Snapshot(Vec<(u64, u64, i64, i64)>);

impl Snapshot {
    pub(in crate::cli) fn of(files: &[PathBuf]) -> Result<Self> {
        let state = |path: &PathBuf| {
            let data = path.metadata().with_context(|| format!("cannot read {}", path.display()))?;
            Ok((data.ino(), data.len(), data.mtime(), data.mtime_nsec()))
        };
        files.iter().map(state).collect::<Result<_>>().map(Self)
    }
}

/// Ends a run that a signal has interrupted.
pub(in crate::cli) fn refuse_interrupted(stop: &AtomicBool) -> Result<()> {
    if stop.load(Ordering::Relaxed) {
        bail!("{INTERRUPTED}");
    }
    Ok(())
}
