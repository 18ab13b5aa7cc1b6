//! Lines with the keys of their records -> sorted runs in a temporary file -> the lines in the order of their keys.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use anyhow::{Context, Result};

use super::file::{Piece, Pieces, SpillFile};

/// The numbers by which lines are sorted.
pub(in crate::cli) type LineKey = [u64; 3];

/// The memory that a line takes besides its bytes.
const LINE_BYTES: usize = size_of::<(LineKey, Vec<u8>)>() + 16;
const READ_BYTES_MIN: usize = 4 << 10;
const READ_BYTES_MAX: usize = 1 << 20;
const DAMAGED: &str = "a temporary file was damaged";

/// The lines so far. Lines of the same key stay in the order in which they were added.
pub(in crate::cli) struct LineRuns {
    file: SpillFile,
    runs: Vec<Piece>,
    lines: Vec<(LineKey, Vec<u8>)>,
    bytes: usize,
    bytes_max: usize,
}

impl LineRuns {
    /// `bytes_max`: the memory for lines that are not written yet.
    pub(in crate::cli) fn create(folder: &Path, bytes_max: usize) -> Result<Self> {
        Ok(Self { file: SpillFile::create(folder)?, runs: Vec::new(), lines: Vec::new(), bytes: 0, bytes_max })
    }

    pub(in crate::cli) fn add(&mut self, lines: impl IntoIterator<Item = (LineKey, Vec<u8>)>) -> Result<()> {
        for line in lines {
            self.bytes += line.1.len() + LINE_BYTES;
            self.lines.push(line);
            // One half of the memory is for the copy that is written.
            if self.bytes > self.bytes_max / 2 {
                self.write()?;
            }
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let mut lines = std::mem::take(&mut self.lines);
        lines.sort_by_key(|(key, _)| *key);
        let mut run = Vec::with_capacity(self.bytes);
        for (key, line) in lines {
            for number in key.into_iter().chain([line.len() as u64]) {
                run.extend_from_slice(&number.to_ne_bytes());
            }
            run.extend_from_slice(&line);
        }
        self.runs.push(self.file.append(&run)?);
        self.bytes = 0;
        Ok(())
    }

    /// Passes all lines to `take`, in the order of their keys.
    pub(in crate::cli) fn each(mut self, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.write()?;
        let buffer_bytes = (self.bytes_max / self.runs.len()).clamp(READ_BYTES_MIN, READ_BYTES_MAX);
        let mut runs: Vec<_> = self.runs.iter().map(|&run| self.file.pieces([run]).read(buffer_bytes)).collect();
        let mut heads = BinaryHeap::with_capacity(runs.len());
        for (number, run) in runs.iter_mut().enumerate() {
            heads.extend(next(run).context(DAMAGED)?.map(|(key, line)| Reverse((key, number, line))));
        }
        while let Some(Reverse((_, number, line))) = heads.pop() {
            take(&line)?;
            heads.extend(next(&mut runs[number]).context(DAMAGED)?.map(|(key, line)| Reverse((key, number, line))));
        }
        Ok(())
    }
}

fn next(run: &mut BufReader<Pieces>) -> io::Result<Option<(LineKey, Vec<u8>)>> {
    if run.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let mut number = || {
        let mut bytes = [0; size_of::<u64>()];
        run.read_exact(&mut bytes).map(|()| u64::from_ne_bytes(bytes))
    };
    let (key, length) = ([number()?, number()?, number()?], number()?);
    let mut line = vec![0; length as usize];
    run.read_exact(&mut line)?;
    Ok(Some((key, line)))
}
