//! The keys of documents, one in each band -> sorted runs in a temporary file -> the documents that share a key.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use anyhow::{Context, Result};
use rayon::prelude::*;

use super::file::{Piece, Pieces, SpillFile};

/// A key and the number of a document: the upper half of the key, its lower half, and the number.
pub(in crate::cli) type Entry = [u32; 3];
const ENTRY_BYTES: usize = size_of::<Entry>();
const READ_BYTES_MIN: usize = 4 << 10;
const READ_BYTES_MAX: usize = 1 << 20;

/// The keys so far.
pub(in crate::cli) struct KeyRuns {
    file: SpillFile,
    bands: Vec<Band>,
    entries_max: usize,
    bytes: Vec<u8>,
}

struct Band {
    entries: Vec<Entry>,
    runs: Vec<Piece>,
}

impl KeyRuns {
    /// `bytes_max`: the memory for the keys that are not written yet.
    pub(in crate::cli) fn create(folder: &Path, bands: u32, bytes_max: usize) -> Result<Self> {
        // The entries of one band are copied when they are written.
        let entries_max = (bytes_max / (bands as usize + 1) / ENTRY_BYTES).max(1);
        let band = || Band { entries: Vec::with_capacity(entries_max), runs: Vec::new() };
        let bands = (0..bands).map(|_| band()).collect();
        Ok(Self { file: SpillFile::create(folder)?, bands, entries_max, bytes: Vec::new() })
    }

    /// Adds the numbers of an entry to the first band. The first two decide about the order, and then the third one.
    pub(in crate::cli) fn add_entry(&mut self, entry: Entry) -> Result<()> {
        self.bands[0].entries.push(entry);
        if self.bands[0].entries.len() >= self.entries_max { self.write() } else { Ok(()) }
    }

    /// Adds the keys of a document, one for each band.
    pub(in crate::cli) fn add(&mut self, document: u32, keys: impl Iterator<Item = u64>) -> Result<()> {
        for (band, key) in self.bands.iter_mut().zip(keys) {
            band.entries.push([(key >> 32) as u32, key as u32, document]);
        }
        let is_full = self.bands.first().is_some_and(|band| band.entries.len() >= self.entries_max);
        if is_full { self.write() } else { Ok(()) }
    }

    /// Writes a run for each band.
    fn write(&mut self) -> Result<()> {
        self.bands.par_iter_mut().for_each(|band| band.entries.sort_unstable());
        for band in &mut self.bands {
            self.bytes.clear();
            self.bytes.extend(band.entries.iter().flatten().flat_map(|number| number.to_ne_bytes()));
            band.runs.push(self.file.append(&self.bytes)?);
            band.entries.clear();
        }
        Ok(())
    }

    /// Writes the last run, and gives the memory of the others back.
    pub(in crate::cli) fn finish(mut self) -> Result<SortedKeys> {
        self.write()?;
        let runs = self.bands.into_iter().map(|band| band.runs).collect();
        Ok(SortedKeys { file: self.file, bands: runs })
    }
}

/// The keys of all documents.
pub(in crate::cli) struct SortedKeys {
    file: SpillFile,
    bands: Vec<Vec<Piece>>,
}

/// The entries of a band, one after another.
pub(in crate::cli) struct Merged {
    runs: Vec<BufReader<Pieces>>,
    /// The next entry of each run, with the number of the run.
    heads: BinaryHeap<Reverse<(Entry, usize)>>,
}

impl SortedKeys {
    /// Passes pairs of documents to `share`, such that a chain of them joins all documents that share a key of a band. Works
    /// on several bands at once, and takes about `bytes_max` bytes of memory.
    pub(in crate::cli) fn each_pair(
        &self,
        bytes_max: usize,
        share: impl Fn(&[(u32, u32)]) -> Result<()> + Sync,
    ) -> Result<()> {
        let bytes_max = bytes_max / rayon::current_num_threads();
        (0..self.bands.len()).into_par_iter().try_for_each(|band| pairs(self.merged(band, bytes_max)?, &share))
    }

    /// Returns the entries of a band in their order. They are read into `bytes_max` bytes of memory.
    pub(in crate::cli) fn merged(&self, band: usize, bytes_max: usize) -> Result<Merged> {
        let runs = &self.bands[band];
        let buffer_bytes = (bytes_max / runs.len().max(1)).clamp(READ_BYTES_MIN, READ_BYTES_MAX);
        let runs: Vec<_> = runs.iter().map(|&run| self.file.pieces([run]).read(buffer_bytes)).collect();
        let mut merged = Merged { heads: BinaryHeap::with_capacity(runs.len()), runs };
        for (number, run) in merged.runs.iter_mut().enumerate() {
            merged.heads.extend(next(run)?.map(|entry| Reverse((entry, number))));
        }
        Ok(merged)
    }
}

impl Merged {
    pub(in crate::cli) fn next(&mut self) -> Result<Option<Entry>> {
        let Some(mut head) = self.heads.peek_mut() else { return Ok(None) };
        let Reverse((entry, number)) = *head;
        match next(&mut self.runs[number])? {
            Some(entry) => *head = Reverse((entry, number)),
            None => drop(PeekMut::pop(head)),
        }
        Ok(Some(entry))
    }
}

/// How many pairs are passed on at once.
const PAIRS_AT_ONCE: usize = 4096;

fn pairs(mut entries: Merged, share: impl Fn(&[(u32, u32)]) -> Result<()>) -> Result<()> {
    let mut pairs = Vec::with_capacity(PAIRS_AT_ONCE);
    let mut before: Option<Entry> = None;
    while let Some(entry) = entries.next()? {
        if let Some([high, low, document]) = before
            && [high, low] == entry[..2]
        {
            pairs.push((document, entry[2]));
            if pairs.len() == PAIRS_AT_ONCE {
                share(&pairs)?;
                pairs.clear();
            }
        }
        before = Some(entry);
    }
    share(&pairs)
}

fn next(run: &mut BufReader<Pieces>) -> Result<Option<Entry>> {
    let mut read = || -> io::Result<Option<Entry>> {
        if run.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let mut bytes = [0; ENTRY_BYTES];
        run.read_exact(&mut bytes)?;
        let number = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Ok(Some([number(0), number(4), number(8)]))
    };
    read().context("a temporary file was damaged")
}
