//! Several files of signatures -> one file with all rows, in the order of the files. Column chunks are copied as they
//! are: nothing is decompressed.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use super::error::LoadError;
use super::reader::LoadFile;
use super::writer::of_output;

/// Files with the same columns.
pub struct Splice(Vec<LoadFile>);

impl Splice {
    /// Checks that the files have the same columns.
    pub fn of(files: Vec<LoadFile>) -> Result<Self, LoadError> {
        let columns = |file: &LoadFile| file.metadata().file_metadata().schema_descr().root_schema_ptr();
        let first = files.first().map(columns);
        match files.iter().find(|file| Some(columns(file)) != first) {
            None => Ok(Self(files)),
            Some(other) => Err(LoadError::File {
                file: other.label().to_owned(),
                detail: "its columns, or their types, are not those of the first file".to_owned(),
            }),
        }
    }

    /// Writes one file with the rows of all files.
    pub fn write(self, out: impl Write + Send) -> io::Result<()> {
        self.try_write(out).map_err(of_output)
    }

    fn try_write(self, out: impl Write + Send) -> Result<(), ParquetError> {
        let Some(first) = self.0.first() else { return Ok(()) };
        let metadata = first.metadata().file_metadata();
        let pairs = metadata.key_value_metadata().cloned();
        let properties = WriterProperties::builder().set_key_value_metadata(pairs).build();
        let schema = metadata.schema_descr().root_schema_ptr();
        let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
        for file in &self.0 {
            for group in file.metadata().row_groups() {
                let mut to = writer.next_row_group()?;
                for column in group.columns() {
                    let whole = ColumnCloseResult {
                        bytes_written: u64::try_from(column.compressed_size()).unwrap_or_default(),
                        rows_written: group.num_rows() as u64,
                        metadata: column.clone(),
                        bloom_filter: None,
                        column_index: None,
                        offset_index: None,
                    };
                    to.append_column(file.file(), whole)?;
                }
                to.close()?;
            }
        }
        writer.close().map(drop)
    }
}
