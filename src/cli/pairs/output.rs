//! Pairs -> lines of JSON, or rows of Parquet. The file appears under its name when it is complete.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use super::pair::Pair;
use super::table::PairTable;
use crate::cli::corpus::output::OutputFile;
use crate::cli::placed::PlaceFields;
use crate::types::{Similarity, ratio};

#[derive(Serialize)]
struct Line<'a> {
    a: String,
    b: String,
    similarity: f64,
    low: f64,
    high: f64,
    method: &'static str,
    a_place: PlaceFields<'a>,
    b_place: PlaceFields<'a>,
}

/// The file of a run.
pub(super) struct PairFile {
    file: OutputFile,
    /// `None` for lines.
    table: Option<PairTable<File>>,
    line: Vec<u8>,
}

impl PairFile {
    /// `flag`: the argument that has given the path.
    pub(super) fn create(path: &Path, flag: &str) -> Result<Self> {
        let mut file = OutputFile::create(path, flag)?;
        let is_table = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("parquet"));
        let table = if is_table { Some(PairTable::new(file.take_file()?)?) } else { None };
        Ok(Self { file, table, line: Vec::new() })
    }

    pub(super) fn pair(&mut self, pair: &Pair<'_>) -> Result<()> {
        if let Some(table) = &mut self.table {
            return table.add(pair).context("cannot write the pairs");
        }
        self.line.clear();
        let Pair { a, b, similarity: Similarity { value, low, high, method } } = *pair;
        let line = Line {
            a: a.id(),
            b: b.id(),
            similarity: ratio(value),
            low: ratio(low),
            high: ratio(high),
            method: method.as_str(),
            a_place: PlaceFields::of(&a.origin),
            b_place: PlaceFields::of(&b.origin),
        };
        serde_json::to_writer(&mut self.line, &line).expect("a pair is JSON");
        self.file.line(&self.line)
    }

    /// Writes everything, and gives the file its name.
    pub(super) fn publish(mut self) -> Result<()> {
        if let Some(table) = self.table.take() {
            table.finish().context("cannot write the pairs")?;
        }
        self.file.complete()?;
        self.file.publish()
    }
}
