//! Documents with their windows -> spans in the output, in one reading or in several.
//!
//! In the first reading, each document is written at once, as long as all windows fit into memory. When they do not, the
//! table gives up a part of the hashes, and the rest of the documents wait: the windows that are found in them go to a temporary file.
//! Each further reading does the same for another part of the hashes. The last reading has the windows of all files, and
//! writes the documents that wait.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};

use super::documents::{TextChunk, TextDocument};
use super::output::SpanFile;
use super::records::{Recorded, Records};
use super::tally::Tally;
use crate::cli::corpus::named::Named;
use crate::corpus::{FirstPlace, FirstPlaces, found_by, spans};

/// What a reading of the files does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Looks for windows, and writes documents while all windows fit into memory.
    First,
    /// Looks for windows with other hashes.
    Further,
    /// Writes the documents that wait.
    Last,
    /// All documents are written.
    Done,
}

pub(super) struct Finding {
    bytes: usize,
    /// The folder of temporary files.
    folder: PathBuf,
    table: FirstPlaces,
    reading: Reading,
    /// The number of the next document of this reading.
    next: u32,
    /// How many documents were written in the first reading.
    written: u32,
    records: Option<Records>,
    recorded: Vec<Recorded>,
    /// The names of all documents.
    names: Vec<Named>,
    output: SpanFile,
    tally: Tally,
}

impl Finding {
    /// `bytes`: the memory for the windows. `folder`: the folder for temporary files.
    pub(super) fn new(bytes: usize, output: SpanFile, folder: Option<&Path>) -> Self {
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Self {
            bytes,
            folder: folder.to_owned(),
            table: FirstPlaces::new(bytes, 0),
            reading: Reading::First,
            next: 0,
            written: 0,
            records: None,
            recorded: Vec::new(),
            names: Vec::new(),
            output,
            tally: Tally::default(),
        }
    }

    pub(super) fn into_parts(self) -> (Tally, SpanFile) {
        (self.tally, self.output)
    }

    /// Whether the first reading has written all documents.
    pub(super) fn is_complete(&self) -> bool {
        self.records.is_none()
    }

    /// Ends a reading, and returns what the next one does.
    pub(super) fn begin_next(&mut self) -> Result<Reading> {
        if self.reading == Reading::Last {
            self.reading = Reading::Done;
            return Ok(self.reading);
        }
        self.next = 0;
        self.tally.read_again();
        let range = self.table.range().clone();
        if let Some(records) = self.records.take() {
            self.recorded.push(records.finish(range.clone()).with_context(|| self.cannot_write())?);
        }
        self.reading = match range.end().checked_add(1) {
            Some(from) => {
                // The memory of the old table is free before the new one takes it.
                self.table = FirstPlaces::new(0, 0);
                self.table = FirstPlaces::new(self.bytes, from);
                self.records = Some(Records::create(&self.folder).with_context(|| self.cannot_write())?);
                Reading::Further
            }
            None => Reading::Last,
        };
        Ok(self.reading)
    }

    pub(super) fn take(&mut self, chunk: &TextChunk) -> Result<()> {
        if self.reading == Reading::First {
            self.tally.read(chunk.chunk().text_bytes, chunk.chunk().skipped);
            for (origin, reason) in chunk.failures() {
                self.tally.fail(origin, &reason);
            }
        }
        for document in chunk.documents() {
            let number = self.next;
            self.next = number.checked_add(1).ok_or_else(|| anyhow!("there are too many documents"))?;
            match self.reading {
                Reading::First => self.first(chunk, document, number)?,
                Reading::Further => {
                    let found = self.look_up(document, number);
                    self.record(number, found)?;
                }
                Reading::Last => self.last(chunk, document, number)?,
                Reading::Done => {}
            }
        }
        Ok(())
    }

    fn first(&mut self, chunk: &TextChunk, document: &TextDocument, number: u32) -> Result<()> {
        self.names.push(Named { origin: document.named.origin.clone(), id: document.named.id.clone() });
        self.tally.document(document.windows.tokens());
        let found = self.look_up(document, number);
        if self.records.is_none() && *self.table.range().end() == u64::MAX {
            self.written = number + 1;
            return self.write(chunk, document, &found);
        }
        if self.records.is_none() {
            self.records = Some(Records::create(&self.folder).with_context(|| self.cannot_write())?);
        }
        self.record(number, found)
    }

    /// Finds the windows of a document that earlier documents have.
    fn look_up(&mut self, document: &TextDocument, number: u32) -> Vec<(u32, FirstPlace)> {
        let windows = &document.windows;
        let mut found = Vec::new();
        for (window, &hash) in windows.hashes().iter().enumerate() {
            let place = || {
                let (from, to) = windows.place(window);
                FirstPlace { document: number, from, to }
            };
            found.extend(self.table.see(hash, place, number).map(|first| (window as u32, first)));
        }
        found
    }

    fn record(&mut self, number: u32, found: Vec<(u32, FirstPlace)>) -> Result<()> {
        // Documents that are written need no records.
        let records = self.records.as_mut().filter(|_| number >= self.written);
        let Some(records) = records else { return Ok(()) };
        let written = found.into_iter().try_for_each(|found| records.add(number, found));
        written.with_context(|| self.cannot_write())
    }

    fn last(&mut self, chunk: &TextChunk, document: &TextDocument, number: u32) -> Result<()> {
        if number < self.written {
            return Ok(());
        }
        let hashes = document.windows.hashes();
        let mut found = Vec::new();
        for recorded in &mut self.recorded {
            recorded
                .of(number, |window| found_by(hashes.get(window as usize).copied().unwrap_or_default()), &mut found)
                .context("cannot read a temporary file")?;
        }
        // If a file was changed meanwhile, the document may have fewer windows. This is noticed at the end.
        found.retain(|&(window, _)| (window as usize) < hashes.len());
        found.sort_unstable_by_key(|(window, _)| *window);
        self.write(chunk, document, &found)
    }

    fn write(&mut self, chunk: &TextChunk, document: &TextDocument, found: &[(u32, FirstPlace)]) -> Result<()> {
        let spans = spans(&document.windows, found);
        self.tally.spans(&spans);
        self.output.document(chunk.chunk(), document, &spans, &self.names)
    }

    fn cannot_write(&self) -> String {
        format!("cannot write a temporary file into {}", self.folder.display())
    }
}
