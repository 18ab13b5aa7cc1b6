//! The file of the report: lines of JSON, or a Parquet file with a column for each field.

use std::path::Path;

use anyhow::Result;
use arrow_schema::{DataType, Field, Schema};

use crate::cli::corpus::output::OutputFile;
use crate::cli::corpus::table::Table;

/// The end of the name of a Parquet file.
const PARQUET: &str = "parquet";

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
        let is_table = path.extension().is_some_and(|extension| extension == PARQUET);
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
    let optional = |name: &str, kind: DataType| Field::new(name, kind, true);
    let place = || {
        let number = |name: &str| optional(name, DataType::UInt64);
        vec![optional("file", DataType::Utf8), number("line"), number("row"), number("record"), number("offset")]
    };
    let placed = |name: &str| optional(name, DataType::Struct(place().into()));
    let texts = |names: &[&str]| names.iter().map(|name| optional(name, DataType::Utf8)).collect::<Vec<_>>();
    let numbers = ["similarity", "low", "high"].map(|name| optional(name, DataType::Float64));
    let error = optional("error", DataType::Struct(texts(&["code", "detail"]).into()));
    let kind = Field::new("kind", DataType::Utf8, false);
    let documents = [
        texts(&["id", "verdict", "duplicate_of"]),
        vec![placed("original")],
        texts(&["similar_to"]),
        vec![placed("similar")],
    ];
    let rest = [optional("method", DataType::Utf8), optional("unread", DataType::UInt64), error];
    Schema::new([vec![kind], place(), documents.concat(), numbers.to_vec(), rest.to_vec()].concat())
}
