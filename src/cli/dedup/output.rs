//! The files that a run writes. A file appears under its name when it is complete.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};

use super::signing::{INTERRUPTED, original};
use crate::cli::files::{read_all, unreadable};
use crate::cli::line_file::LineFile;
use crate::input::{RowCopier, Wanted};

/// The format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Lines,
    Parquet,
}

/// A file that is being written: first under another name, which begins with a dot.
pub(super) struct OutputFile {
    path: PathBuf,
    /// `None` for stdout, pipes and devices, which are written directly.
    unfinished: Option<Unfinished>,
    /// `None` only while Parquet is written.
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
    pub(super) fn create(path: &Path, flag: &str) -> Result<Self> {
        let cannot = || format!("{flag} {}: cannot write it", path.display());
        if path == Path::new("-") {
            let file = File::from(io::stdout().as_fd().try_clone_to_owned().with_context(cannot)?);
            return Ok(Self { path: path.to_owned(), unfinished: None, lines: Some(LineFile::new(file, path)?) });
        }
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            let file = File::options().write(true).open(path).with_context(cannot)?;
            return Ok(Self { path: path.to_owned(), unfinished: None, lines: Some(LineFile::new(file, path)?) });
        }
        let name = path.file_name().with_context(cannot)?.to_string_lossy();
        let unfinished = path.with_file_name(format!(".{name}.{}", std::process::id()));
        let file = File::create(&unfinished).with_context(cannot)?;
        let unfinished = Some(Unfinished(unfinished));
        Ok(Self { path: path.to_owned(), unfinished, lines: Some(LineFile::new(file, path)?) })
    }

    pub(super) fn line(&mut self, line: &[u8]) -> Result<()> {
        self.lines.as_mut().expect("it is open").line(line)
    }

    /// Takes the file itself, for a format without lines.
    fn take_file(&mut self) -> Result<File> {
        self.lines.take().expect("it is open").finish()
    }

    /// Gives the file its name.
    pub(super) fn finish(self) -> Result<()> {
        let cannot = || format!("cannot write {}", self.path.display());
        let file = self.lines.map(LineFile::finish).transpose()?;
        let Some(Unfinished(unfinished)) = &self.unfinished else { return Ok(()) };
        let synced = file.map_or_else(|| File::open(unfinished)?.sync_all(), |file| file.sync_all());
        synced.and_then(|()| fs::rename(unfinished, &self.path)).with_context(cannot)
    }
}

/// The records that are kept, by the number of the file and of the line, row or record. A bit each.
pub(super) struct KeptRecords {
    files: Vec<Vec<u64>>,
}

impl KeptRecords {
    pub(super) fn new(files: usize) -> Self {
        Self { files: vec![Vec::new(); files] }
    }

    pub(super) fn add(&mut self, file: usize, number: u64) {
        let (bits, word) = (&mut self.files[file], (number / 64) as usize);
        if bits.len() <= word {
            bits.resize(word + 1, 0);
        }
        bits[word] |= 1 << (number % 64);
    }

    fn has(&self, file: usize, number: u64) -> bool {
        self.files[file].get((number / 64) as usize).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    fn count(&self) -> u64 {
        self.files.iter().flatten().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// Reads the files again, and writes the records that are kept.
pub(super) fn write_kept(
    format: Format,
    files: &[PathBuf],
    wanted: &Wanted,
    kept: &KeptRecords,
    stop: &AtomicBool,
    output: &mut OutputFile,
) -> Result<()> {
    if format == Format::Parquet {
        return write_rows(files, kept, stop, output);
    }
    let (mut written, mut count) = (Ok(()), 0);
    let read = read_all(files, wanted, |file, chunk| {
        for (at, origin) in chunk.origins.iter().enumerate() {
            if written.is_ok() && kept.has(file, origin.number()) {
                count += 1;
                written = output.line(original(&chunk, at));
            }
        }
        written.is_ok() && !stop.load(Ordering::Relaxed)
    });
    written?;
    if let Some(error) = read {
        return Err(error);
    }
    refuse_interrupted(stop)?;
    refuse_changed(count, kept)
}

fn write_rows(files: &[PathBuf], kept: &KeptRecords, stop: &AtomicBool, output: &mut OutputFile) -> Result<()> {
    let mut copier = RowCopier::new(output.take_file()?);
    let mut count = 0;
    for (file, path) in files.iter().enumerate() {
        refuse_interrupted(stop)?;
        count += copier.copy(path, |row| kept.has(file, row)).map_err(|error| unreadable(error, path))?;
    }
    copier.finish().context("cannot write the rows")?;
    refuse_changed(count, kept)
}

fn refuse_interrupted(stop: &AtomicBool) -> Result<()> {
    if stop.load(Ordering::Relaxed) {
        bail!("{INTERRUPTED}");
    }
    Ok(())
}

fn refuse_changed(count: u64, kept: &KeptRecords) -> Result<()> {
    if count != kept.count() {
        bail!("the files were changed while they were read; there is no output");
    }
    Ok(())
}
