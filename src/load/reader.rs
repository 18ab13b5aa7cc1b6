//! A Parquet file -> rows with the columns of the format, read in a thread. Missing, doubled and wrongly typed columns
//! are refused before the first row is read. A file with false metadata is an error, even if the library panics.

use std::fs::File;
use std::io::{self, Seek};
use std::sync::mpsc::{SyncSender, sync_channel};

use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::ParquetMetaData;

use super::columns::{COLUMNS, Column};
use super::error::LoadError;
use super::page_source::PageSource;
use super::parquet_file::{self, catching, check_compression, pairs};
use super::row::{Row, Wrong, rows};
use super::settings::FileSettings;

/// Rows that were read together, in order. Only the last row may be wrong; if it is, the file is not read further.
type Batch = Vec<Result<Row, Wrong>>;

/// The number of batches that may wait for the builder.
const BATCHES_WAITING: usize = 1;
/// A column of a row group is refused if it decompresses to more than `SUSPECT_BYTES`, and to more than `SUSPECT_RATIO`
/// times its size on disk.
const SUSPECT_BYTES: i64 = 256 << 20;
const SUSPECT_RATIO: i64 = 1000;

/// A file, and its name in errors.
#[derive(Debug)]
pub struct FileSource {
    pub label: String,
    pub file: File,
}

/// A file whose metadata was read and whose columns have the right types.
pub struct LoadFile {
    label: String,
    file: File,
    builder: ParquetRecordBatchReaderBuilder<PageSource>,
    settings: FileSettings,
    rows: u64,
    /// The names of columns that the format does not have.
    ignored: Vec<String>,
}

impl LoadFile {
    pub fn open(source: FileSource) -> Result<Self, LoadError> {
        let FileSource { label, mut file } = source;
        let broken = |detail: String| LoadError::File { file: label.clone(), detail };
        let builder = parquet_file::open(&mut file, is_known)
            .map_err(|detail| broken(format!("it is not Parquet, or it is cut or damaged: {detail}")))?;
        check_compression(builder.metadata(), is_known).map_err(|other| broken(other.to_string()))?;
        let metadata = builder.metadata().file_metadata();
        let settings = FileSettings::read(&pairs(metadata)).map_err(broken)?;
        let rows = u64::try_from(metadata.num_rows()).map_err(|_| broken("it has a negative number of rows".into()))?;
        let ignored = check_columns(&label, builder.schema(), settings.spec.shape().bytes())?;
        let this = Self { label, file, builder, settings, rows, ignored };
        this.check_sizes()?;
        Ok(this)
    }

    pub fn settings(&self) -> &FileSettings {
        &self.settings
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn label(&self) -> &str {
        &self.label
    }

    pub(super) fn metadata(&self) -> &ParquetMetaData {
        self.builder.metadata()
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    /// Returns the file, at its beginning.
    pub fn into_file(mut self) -> io::Result<File> {
        self.file.rewind()?;
        Ok(self.file)
    }

    /// The columns that the load leaves out.
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// Refuses columns that decompress to far more bytes than rows need. This check trusts the metadata of the file.
    /// The header of a page may contradict the metadata; `pages.rs` checks the headers.
    fn check_sizes(&self) -> Result<(), LoadError> {
        let groups = self.builder.metadata().row_groups().iter();
        for chunk in groups.flat_map(|group| group.columns()) {
            let (plain, packed) = (chunk.uncompressed_size(), chunk.compressed_size());
            if plain > SUSPECT_BYTES && plain / SUSPECT_RATIO > packed {
                return Err(LoadError::File {
                    file: self.label.clone(),
                    detail: format!(
                        "column `{}` has {packed} bytes that decompress to {plain}; write it with smaller row groups",
                        chunk.column_path().string()
                    ),
                });
            }
        }
        Ok(())
    }

    /// Reads the file in a thread, and passes each batch to `each` with the number of the batch's first row.
    pub(super) fn read(self, mut each: impl FnMut(u64, Batch) -> Result<(), LoadError>) -> Result<(), LoadError> {
        let label = self.label.clone();
        let broken = |detail| LoadError::File { file: label.clone(), detail };
        let expected = self.rows;
        let (sender, batches) = sync_channel(BATCHES_WAITING);
        std::thread::scope(|scope| {
            scope.spawn(move || self.send(&sender));
            let mut first = 0;
            for batch in batches {
                let batch = batch.map_err(broken)?;
                let count = batch.len() as u64;
                each(first, batch)?;
                first += count;
            }
            if first != expected {
                return Err(broken(format!("its metadata counts {expected} rows, but it has {first}")));
            }
            Ok(())
        })
    }

    fn send(self, batches: &SyncSender<Result<Batch, String>>) {
        let signature_bytes = self.settings.spec.shape().bytes();
        let reader = catching(|| {
            let wanted = self.builder.schema().fields().iter().enumerate();
            let wanted = wanted.filter(|(_, field)| is_known(field.name()));
            let wanted = ProjectionMask::roots(self.builder.parquet_schema(), wanted.map(|(at, _)| at));
            self.builder.with_projection(wanted).build().map_err(|error| error.to_string())
        });
        let mut reader = match reader {
            Ok(reader) => reader,
            Err(detail) => return drop(batches.send(Err(detail))),
        };
        let mut next = || catching(|| reader.next().transpose().map_err(|error| error.to_string())).transpose();
        while let Some(batch) = next() {
            let batch = batch.map(|batch| rows(&batch, signature_bytes));
            let is_last = batch.as_ref().map_or(true, |rows| rows.last().is_some_and(Result::is_err));
            // If the receiver was dropped, the load has stopped.
            if batches.send(batch).is_err() || is_last {
                return;
            }
        }
    }
}

/// Checks the types of the columns, and returns the names of columns that the format does not have.
fn check_columns(label: &str, schema: &SchemaRef, signature_bytes: usize) -> Result<Vec<String>, LoadError> {
    let wrong = |column, detail| Err(LoadError::Column { file: label.to_owned(), column, detail });
    for doc in &COLUMNS {
        let mut named = schema.fields().iter().filter(|field| field.name() == doc.name);
        match (named.next(), named.next()) {
            (Some(field), None) => {
                if !fits(doc.column, field.data_type(), signature_bytes) {
                    let kind = doc.kind;
                    return wrong(doc.name, format!("it must have the type {kind}, but has {}", field.data_type()));
                }
            }
            (Some(_), Some(_)) => return wrong(doc.name, "there are two columns of this name".to_owned()),
            (None, _) if [Column::Id, Column::Signature].contains(&doc.column) => {
                return wrong(doc.name, "it is missing".to_owned());
            }
            (None, _) => {}
        }
    }
    let strange = schema.fields().iter().filter(|field| !is_known(field.name()));
    Ok(strange.map(|field| field.name().clone()).collect())
}

fn is_known(name: &str) -> bool {
    Column::of_name(name).is_some()
}

fn fits(column: Column, kind: &DataType, signature_bytes: usize) -> bool {
    let bytes = |width| match kind {
        DataType::Binary => true,
        DataType::FixedSizeBinary(has) => usize::try_from(*has) == Ok(width),
        _ => false,
    };
    match column {
        Column::Signature => bytes(signature_bytes),
        Column::ContentHash | Column::HtmlHash => bytes(16),
        Column::Payload => *kind == DataType::Binary,
        Column::Shingles | Column::PayloadShingles | Column::Extractor => kind.is_integer(),
        Column::FirstSeen | Column::IdFirstSeen | Column::LastSeen => matches!(kind, DataType::Timestamp(..)),
        Column::Linked => *kind == DataType::Boolean,
        Column::Labels => matches!(kind, DataType::List(of) if *of.data_type() == DataType::Utf8),
        Column::Id
        | Column::Verdict
        | Column::Representative
        | Column::Metadata
        | Column::Date
        | Column::PayloadDigest => *kind == DataType::Utf8,
    }
}
