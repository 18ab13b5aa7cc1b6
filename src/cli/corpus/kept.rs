//! Documents that are kept -> a file in the format of the output.

use std::fs::File;
use std::path::Path;

use anyhow::{Result, bail};
use arrow_schema::Schema;
use csv_core::{Terminator, WriteResult, Writer, WriterBuilder};

use super::columns::{first_repeated, texts};
use super::format::{Format, without_columns};
use super::output::OutputFile;
use super::table::Table;
use crate::input::{Chunk, Fields, TableHeader};

/// A file of documents that is being written.
pub(in crate::cli) struct KeptFile {
    file: OutputFile,
    form: Form,
}

enum Form {
    /// Lines and records as they were read, or rows that are copied.
    AsRead,
    Objects,
    Cells(Cells),
    Table(TableOfTexts),
}

impl KeptFile {
    /// `flag`: the argument that has given the path.
    pub(in crate::cli) fn create(path: &Path, flag: &str, format: &Format) -> Result<Self> {
        let mut file = OutputFile::create(path, flag)?;
        let form = match format {
            Format::Lines | Format::Parquet => Form::AsRead,
            Format::Objects => Form::Objects,
            Format::Cells { separator, columns } => Form::Cells(Cells::new(*separator, columns.clone())),
            Format::Table => {
                Form::Table(TableOfTexts { file: Some(file.take_file()?), table: None, names: Vec::new() })
            }
        };
        Ok(Self { file, form })
    }

    /// The file, for lines that are no documents.
    pub(in crate::cli) fn file(&mut self) -> &mut OutputFile {
        &mut self.file
    }

    /// Writes these documents of a chunk.
    pub(in crate::cli) fn documents(&mut self, chunk: &Chunk, places: impl IntoIterator<Item = usize>) -> Result<()> {
        let Self { file, form } = self;
        match form {
            Form::AsRead => file.originals(chunk, places),
            Form::Objects => places.into_iter().try_for_each(|at| file.line(&chunk.object(at))),
            Form::Cells(cells) => cells.write(chunk, places, file),
            Form::Table(table) => table.write(chunk, places),
        }
    }

    /// Writes everything to the disk. The file has its name only after [`publish`](Self::publish).
    pub(in crate::cli) fn complete(&mut self) -> Result<()> {
        if let Form::Table(table) = &mut self.form {
            table.finish()?;
        }
        self.file.complete()
    }

    /// Gives the complete file its name.
    pub(in crate::cli) fn publish(self) -> Result<()> {
        self.file.publish()
    }
}

/// Writes records of a table.
struct Cells {
    separator: u8,
    writer: Writer,
    /// The names of the columns. `None`: the header is not known yet.
    columns: Option<Vec<String>>,
    has_header: bool,
    record: Vec<u8>,
}

impl Cells {
    fn new(separator: u8, columns: Option<Vec<String>>) -> Self {
        // The file adds the end of the line.
        let writer = WriterBuilder::new().delimiter(separator).terminator(Terminator::Any(b'\n')).build();
        Self { separator, writer, columns, has_header: false, record: Vec::new() }
    }

    fn write(&mut self, chunk: &Chunk, places: impl IntoIterator<Item = usize>, file: &mut OutputFile) -> Result<()> {
        if self.columns.is_none() {
            self.columns = names(chunk)?;
        }
        let Some(columns) = self.columns.clone() else { return Ok(()) };
        if !std::mem::replace(&mut self.has_header, true) {
            self.record(&columns, file)?;
        }
        for at in places {
            let cells = match &chunk.header {
                Some(header) => table_cells(header, &columns, chunk, at)?,
                None => object_cells(&columns, chunk, at),
            };
            self.record(&cells, file)?;
        }
        Ok(())
    }

    fn record(&mut self, cells: &[String], file: &mut OutputFile) -> Result<()> {
        self.record.clear();
        for (at, cell) in cells.iter().enumerate() {
            if at > 0 {
                self.record.push(self.separator);
            }
            self.add(cell.as_bytes());
        }
        if self.record.is_empty() {
            // An empty line would be no record.
            self.record.extend_from_slice(b"\"\"");
        }
        file.line(&self.record)
    }

    /// Adds a cell, in quotes if it needs them.
    fn add(&mut self, cell: &[u8]) {
        let begin = self.record.len();
        self.record.resize(begin + 2 * cell.len() + 2, 0);
        let needs_quotes = self.writer.should_quote(cell);
        let written = if needs_quotes {
            let (result, _, written) = csv_core::quote(cell, &mut self.record[begin + 1..], b'"', b'"', true);
            assert_eq!(result, WriteResult::InputEmpty, "there is room for twice the bytes");
            self.record[begin] = b'"';
            self.record[begin + 1 + written] = b'"';
            written + 2
        } else {
            self.record[begin..begin + cell.len()].copy_from_slice(cell);
            cell.len()
        };
        self.record.truncate(begin + written);
    }
}

/// Returns the columns of a chunk. `None`: it has no documents and no header, so it may come from an empty file.
fn names(chunk: &Chunk) -> Result<Option<Vec<String>>> {
    match (&chunk.header, chunk.origins.first()) {
        (Some(header), _) => Ok(Some(header.names().to_vec())),
        (None, Some(origin)) => Err(without_columns(&origin.file)),
        (None, None) => Ok(None),
    }
}

fn table_cells(header: &TableHeader, columns: &[String], chunk: &Chunk, at: usize) -> Result<Vec<String>> {
    if header.names() != columns {
        bail!("{}: its columns differ from those of the first table", chunk.origins[at].file);
    }
    Ok(header.cells(chunk.original(at)))
}

/// Returns the fields of a JSON object as cells: strings as they are, and other values as JSON.
fn object_cells(columns: &[String], chunk: &Chunk, at: usize) -> Vec<String> {
    let object = chunk.object(at);
    let fields: Fields<'_> = serde_json::from_slice(&object).expect("a document is an object");
    let cell = |value: &str| serde_json::from_str::<String>(value).unwrap_or_else(|_| value.to_owned());
    let of = |name: &String| fields.present(name).map_or_else(String::new, &cell);
    columns.iter().map(of).collect()
}

/// A Parquet file with the columns of a table. It is begun when the header is known.
struct TableOfTexts {
    file: Option<File>,
    table: Option<Table>,
    names: Vec<String>,
}

impl TableOfTexts {
    fn write(&mut self, chunk: &Chunk, places: impl IntoIterator<Item = usize>) -> Result<()> {
        if let Some(names) = names(chunk)?.filter(|_| self.table.is_none()) {
            if let Some(name) = first_repeated(&names) {
                bail!("the header has the column {name:?} twice; a Parquet file cannot");
            }
            let columns = texts(&names.iter().map(String::as_str).collect::<Vec<_>>());
            let file = self.file.take().expect("a table is begun once");
            self.table = Some(Table::new(file, Schema::new(columns))?);
            self.names = names;
        }
        let Some(table) = &mut self.table else { return Ok(()) };
        for at in places {
            let header = chunk.header.as_deref().ok_or_else(|| without_columns(&chunk.origins[at].file))?;
            table.line(&texts_of(&self.names, &table_cells(header, &self.names, chunk, at)?))?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        match self.table.take() {
            Some(table) => table.finish(),
            None => bail!("the input has no header, so the columns of a Parquet file are not known"),
        }
    }
}

/// Returns a record as an object of strings. An empty cell is a null.
fn texts_of(names: &[String], cells: &[String]) -> Vec<u8> {
    let cell = |cell: &String| if cell.is_empty() { serde_json::Value::Null } else { cell.as_str().into() };
    let fields: serde_json::Map<_, _> = names.iter().cloned().zip(cells.iter().map(cell)).collect();
    serde_json::to_vec(&fields).expect("strings are JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_quoted_if_it_needs_quotes() {
        let mut cells = Cells::new(b',', None);
        for cell in ["a", "a,b", "say \"hi\"", "two\nlines", "a\rb", ""] {
            cells.add(cell.as_bytes());
            cells.record.push(b'|');
        }
        assert_eq!(cells.record, b"a|\"a,b\"|\"say \"\"hi\"\"\"|\"two\nlines\"|\"a\rb\"||");
        let mut cells = Cells::new(b'\t', None);
        cells.add(b"a,b");
        cells.add(b"\t");
        assert_eq!(cells.record, b"a,b\"\t\"");
    }
}
