//! Pairs -> a file of Parquet.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::pair::Pair;
use crate::cli::corpus::named::Named;
use crate::load::of_output;
use crate::types::{Similarity, ratio};

/// The number of pairs that are written at once.
const BATCH_ROWS: usize = 1 << 13;
/// The size of a row group, in bytes. A row group is in memory until it is written.
const GROUP_BYTES: usize = 16 << 20;

/// The file that is being written.
pub(super) struct PairTable<W: Write + Send> {
    schema: SchemaRef,
    a: Side,
    b: Side,
    /// The columns `similarity`, `low` and `high`.
    numbers: [Float64Builder; 3],
    method: StringBuilder,
    rows: usize,
    writer: ArrowWriter<W>,
}

/// The columns of one document of each pair: its id, its file, and the number of its line, row or record.
#[derive(Default)]
struct Side {
    id: StringBuilder,
    file: StringBuilder,
    number: UInt64Builder,
}

impl Side {
    fn add(&mut self, named: &Named) {
        self.id.append_value(named.id());
        self.file.append_value(&named.origin.file);
        self.number.append_value(named.origin.number());
    }

    fn finish(&mut self) -> [ArrayRef; 3] {
        [Arc::new(self.id.finish()), Arc::new(self.file.finish()), Arc::new(self.number.finish())]
    }
}

impl<W: Write + Send> PairTable<W> {
    pub(super) fn new(out: W) -> io::Result<Self> {
        let fields = [
            ("a", DataType::Utf8),
            ("a_file", DataType::Utf8),
            ("a_number", DataType::UInt64),
            ("b", DataType::Utf8),
            ("b_file", DataType::Utf8),
            ("b_number", DataType::UInt64),
            ("similarity", DataType::Float64),
            ("low", DataType::Float64),
            ("high", DataType::Float64),
            ("method", DataType::Utf8),
        ];
        let fields = fields.map(|(name, data_type)| Field::new(name, data_type, false));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let writer = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties)).map_err(of_output)?;
        Ok(Self {
            schema,
            a: Side::default(),
            b: Side::default(),
            numbers: Default::default(),
            method: StringBuilder::new(),
            rows: 0,
            writer,
        })
    }

    pub(super) fn add(&mut self, pair: &Pair<'_>) -> io::Result<()> {
        let Similarity { value, low, high, method } = pair.similarity;
        self.a.add(pair.a);
        self.b.add(pair.b);
        for (column, number) in self.numbers.iter_mut().zip([value, low, high]) {
            column.append_value(ratio(number));
        }
        self.method.append_value(method.as_str());
        self.rows += 1;
        if self.rows < BATCH_ROWS { Ok(()) } else { self.write().map_err(of_output) }
    }

    /// Writes the end of the file.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.write().map_err(of_output)?;
        self.writer.close().map(drop).map_err(of_output)
    }

    fn write(&mut self) -> Result<(), ParquetError> {
        self.rows = 0;
        let mut columns = [self.a.finish(), self.b.finish()].concat();
        columns.extend(self.numbers.iter_mut().map(|numbers| Arc::new(numbers.finish()) as ArrayRef));
        columns.push(Arc::new(self.method.finish()));
        self.writer.write(&RecordBatch::try_new(Arc::clone(&self.schema), columns)?)?;
        if self.writer.in_progress_size() >= GROUP_BYTES { self.writer.flush() } else { Ok(()) }
    }
}
