//! The file of the verdicts: lines of JSON, or a Parquet file with a column for each of their usual fields.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use arrow_schema::{DataType, Field, Schema};

use crate::cli::corpus::columns::{counts, group, numbers, optional, report, texts};
use crate::cli::corpus::table::{Table, is_table};
use crate::cli::line_file::LineFile;

/// The file that is being written.
pub(super) enum VerdictFile {
    Lines(LineFile),
    Table(Box<Table>),
}

impl VerdictFile {
    /// Writes to a file that is open and empty.
    pub(super) fn new(file: File, path: &Path) -> Result<Self> {
        Ok(match is_table(path) {
            true => Self::Table(Box::new(Table::new(file, columns())?)),
            false => Self::Lines(LineFile::new(file, path)?),
        })
    }

    pub(super) fn line(&mut self, line: &[u8]) -> Result<()> {
        match self {
            Self::Lines(lines) => lines.line(line),
            Self::Table(table) => table.line(line),
        }
    }

    /// The lines, if it is no Parquet file.
    pub(super) fn lines(&mut self) -> Option<&mut LineFile> {
        match self {
            Self::Lines(lines) => Some(lines),
            Self::Table(_) => None,
        }
    }

    /// Writes the end of the file.
    pub(super) fn finish(self) -> Result<()> {
        match self {
            Self::Lines(lines) => lines.finish().map(drop),
            Self::Table(table) => table.finish(),
        }
    }
}

/// Returns the usual fields of a verdict.
fn columns() -> Schema {
    let booleans =
        |names: &[&str]| -> Vec<Field> { names.iter().map(|name| optional(name, DataType::Boolean)).collect() };
    let found = [texts(&["id"]), numbers(&["similarity", "low", "high"]), texts(&["method"])].concat();
    let matches = DataType::List(Arc::new(group("item", found)));
    report(vec![
        texts(&["id", "verdict", "outcome"]),
        booleans(&["stored"]),
        texts(&["collection", "duplicate_of"]),
        numbers(&["similarity"]),
        texts(&["representative"]),
        numbers(&["threshold"]),
        vec![optional("matches", matches)],
        counts(&["candidates"]),
        booleans(&["complete"]),
        counts(&["unread", "shingles"]),
        numbers(&["expected_recall"]),
        texts(&["warning"]),
    ])
}
