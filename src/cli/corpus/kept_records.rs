//! The records that are kept, and their files -> the output. The files are read again.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use super::format::Format;
use super::kept::KeptFile;
use super::output::{OutputFile, refuse_interrupted};
use crate::cli::files::{read_all, unreadable};
use crate::input::{RowCopier, Wanted};

/// The records that are kept, by the number of the file and of the line, row or record. A bit each.
pub(in crate::cli) struct KeptRecords {
    files: Vec<Vec<u64>>,
}

impl KeptRecords {
    pub(in crate::cli) fn new(files: usize) -> Self {
        Self { files: vec![Vec::new(); files] }
    }

    pub(in crate::cli) fn add(&mut self, file: usize, number: u64) {
        let (bits, word) = (&mut self.files[file], (number / 64) as usize);
        if bits.len() <= word {
            bits.resize(word + 1, 0);
        }
        bits[word] |= 1 << (number % 64);
    }

    fn has(&self, file: usize, number: u64) -> bool {
        self.files[file].get((number / 64) as usize).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }
}

/// Reads the files again, and writes the records that are kept.
pub(in crate::cli) fn write_kept(
    format: &Format,
    files: &[PathBuf],
    wanted: &Wanted,
    kept: &KeptRecords,
    stop: &AtomicBool,
    output: &mut KeptFile,
) -> Result<()> {
    if *format == Format::Parquet {
        return write_rows(files, kept, stop, output.file());
    }
    let mut written = Ok(());
    let read = read_all(files, wanted, |file, chunk| {
        let is_kept = |at: &usize| kept.has(file, chunk.origins[*at].number());
        written = output.documents(&chunk, (0..chunk.lines.len()).filter(is_kept));
        written.is_ok() && !stop.load(Ordering::Relaxed)
    });
    written?;
    match read {
        Some(error) => Err(error),
        None => refuse_interrupted(stop),
    }
}

fn write_rows(files: &[PathBuf], kept: &KeptRecords, stop: &AtomicBool, output: &mut OutputFile) -> Result<()> {
    let mut copier = RowCopier::new(output.take_file()?);
    for (file, path) in files.iter().enumerate() {
        copier.copy(path, |row| kept.has(file, row), stop).map_err(|error| unreadable(error, path))?;
        refuse_interrupted(stop)?;
    }
    copier.finish().context("cannot write the rows")
}
