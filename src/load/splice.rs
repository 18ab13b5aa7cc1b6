//! Several files of signatures -> one, in their order. Column chunks are copied as they are: nothing is decompressed.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;

use super::error::LoadError;
use super::opening::catching;
use super::reader::FileSource;

/// Files with the same columns.
pub struct Splice(Vec<Part>);

struct Part {
    file: File,
    reader: SerializedFileReader<File>,
}

impl Splice {
    /// Checks that the files have the same columns.
    pub fn of(files: Vec<FileSource>) -> Result<Self, LoadError> {
        let mut parts: Vec<Part> = Vec::new();
        for FileSource { label, file } in files {
            let copy = || SerializedFileReader::new(file.try_clone()?);
            let reader = catching(|| copy().map_err(|error| error.to_string()));
            let reader = reader.map_err(|detail| LoadError::File { file: label.clone(), detail })?;
            let columns = |reader: &SerializedFileReader<File>| {
                reader.metadata().file_metadata().schema_descr().root_schema_ptr()
            };
            if parts.first().is_some_and(|first| columns(&first.reader) != columns(&reader)) {
                let detail = "its columns, or their types, are not those of the first file".to_owned();
                return Err(LoadError::File { file: label, detail });
            }
            parts.push(Part { file, reader });
        }
        Ok(Self(parts))
    }

    /// Writes one file with the rows of all.
    pub fn write(self, out: impl Write + Send) -> Result<(), ParquetError> {
        let Some(first) = self.0.first() else { return Ok(()) };
        let metadata = first.reader.metadata().file_metadata();
        let pairs = metadata.key_value_metadata().cloned();
        let properties = WriterProperties::builder().set_key_value_metadata(pairs).build();
        let schema = metadata.schema_descr().root_schema_ptr();
        let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
        for Part { file, reader } in &self.0 {
            for group in reader.metadata().row_groups() {
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
                    to.append_column(file, whole)?;
                }
                to.close()?;
            }
        }
        writer.close().map(drop)
    }
}
