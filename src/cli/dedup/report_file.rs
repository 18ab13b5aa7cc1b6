//! The file of the report: lines of JSON, or a Parquet file with a column for each field.

use std::path::Path;

use anyhow::Result;
use arrow_schema::Schema;

use crate::cli::corpus::columns::{counts, group, numbers, place, report, texts};
use crate::cli::corpus::output::OutputFile;
use crate::cli::corpus::table::{Table, is_table};

/// The report that is being written.
pub(super) struct ReportFile {
    file: OutputFile,
    /// The rows, if the report is a Parquet file.
    table: Option<Table>,
}

impl ReportFile {
    /// `flag`: the argument that has given the path.
    pub(super) fn create(path: &Path, flag: &str) -> Result<Self> {
        let mut file = OutputFile::create(path, flag)?;
        let is_table = is_table(path);
        let table = is_table.then(|| Table::new(file.take_file()?, columns())).transpose()?;
        Ok(Self { file, table })
    }

    pub(super) fn line(&mut self, line: &[u8]) -> Result<()> {
        match &mut self.table {
            Some(table) => table.line(line),
            None => self.file.line(line),
        }
    }

    /// Writes everything to the disk. The file has its name only after [`publish`](Self::publish).
    pub(super) fn complete(&mut self) -> Result<()> {
        self.table.take().map(Table::finish).transpose()?;
        self.file.complete()
    }

    /// Gives the complete file its name.
    pub(super) fn publish(self) -> Result<()> {
        self.file.publish()
    }
}

/// Returns the fields of a line of the report.
fn columns() -> Schema {
    report(vec![
        texts(&["id", "verdict", "duplicate_of"]),
        vec![group("original", place())],
        texts(&["similar_to"]),
        vec![group("similar", place())],
        numbers(&["similarity", "low", "high"]),
        texts(&["method"]),
        counts(&["unread"]),
    ])
}
