//! Records -> Parquet that can be loaded again.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, FixedSizeBinaryBuilder, ListBuilder, StringBuilder, TimestampMillisecondBuilder,
    UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::columns::{Column, schema};
use super::settings::FileSettings;
use super::stored_verdict;
use crate::store::Record;
use crate::types::{CaptureDate, DocId, PayloadDigest};

/// The size of a row group, in bytes. A row group is in memory until it is written.
const GROUP_BYTES: usize = 16 << 20;

/// A record with the ids that its row names.
pub struct ExportedRow {
    pub record: Record,
    /// The id of the representative of the record's cluster, unless the record is the representative.
    pub representative: Option<DocId>,
    /// The ids of the matches of the record's verdict; `None` for documents that no longer exist.
    pub matches: Vec<Option<DocId>>,
}

/// A file that is being written.
pub struct ParquetWriter<W: Write + Send> {
    schema: SchemaRef,
    signature_bytes: i32,
    writer: ArrowWriter<W>,
}

impl<W: Write + Send> ParquetWriter<W> {
    pub fn new(out: W, settings: &FileSettings) -> io::Result<Self> {
        let signature_bytes = i32::try_from(settings.spec.shape().bytes()).expect("a signature has at most 32 KiB");
        let schema = schema(signature_bytes);
        let pairs = settings.metadata().map(|(key, value)| KeyValue::new(key, value));
        let properties = WriterProperties::builder()
            .set_key_value_metadata(Some(pairs.collect()))
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            // Signatures are like random bytes: neither a dictionary nor compression makes them shorter.
            .set_column_dictionary_enabled(Column::Signature.name().into(), false)
            .set_column_compression(Column::Signature.name().into(), Compression::UNCOMPRESSED)
            .build();
        let writer = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties)).map_err(of_output)?;
        Ok(Self { schema, signature_bytes, writer })
    }

    pub fn write(&mut self, rows: &[ExportedRow]) -> io::Result<()> {
        self.try_write(rows).map_err(of_output)
    }

    fn try_write(&mut self, rows: &[ExportedRow]) -> Result<(), ParquetError> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns(rows, self.signature_bytes)?)?;
        self.writer.write(&batch)?;
        if self.writer.in_progress_size() >= GROUP_BYTES { self.writer.flush() } else { Ok(()) }
    }

    /// Writes the end of the file, and returns the output.
    pub fn finish(self) -> io::Result<W> {
        self.writer.into_inner().map_err(of_output)
    }
}

/// Returns the error of a file or of the output itself, if there is one. So its kind is known, as if the library were
/// not in between.
pub(crate) fn of_output(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(cause) => io::Error::other(cause),
        },
        other => io::Error::other(other),
    }
}

fn columns(rows: &[ExportedRow], signature_bytes: i32) -> Result<Vec<ArrayRef>, ParquetError> {
    let mut made = Builders::new(signature_bytes);
    rows.iter().try_for_each(|row| made.add(row))?;
    Ok(made.finish())
}

struct Builders {
    id: StringBuilder,
    signature: FixedSizeBinaryBuilder,
    content: FixedSizeBinaryBuilder,
    /// The columns `shingles` and `payload_shingles`.
    counts: [UInt64Builder; 2],
    /// The columns `verdict`, `representative`, `metadata`, `date` and `payload_digest`.
    texts: [StringBuilder; 5],
    linked: BooleanBuilder,
    /// The columns `first_seen`, `id_first_seen` and `last_seen`.
    times: [TimestampMillisecondBuilder; 3],
    labels: ListBuilder<StringBuilder>,
    payload: BinaryBuilder,
    html_hash: FixedSizeBinaryBuilder,
    extractor: UInt32Builder,
}

impl Builders {
    fn new(signature_bytes: i32) -> Self {
        let time = || TimestampMillisecondBuilder::new().with_timezone("UTC");
        let element = Field::new("element", DataType::Utf8, false);
        Self {
            id: StringBuilder::new(),
            signature: FixedSizeBinaryBuilder::new(signature_bytes),
            content: FixedSizeBinaryBuilder::new(16),
            counts: Default::default(),
            texts: Default::default(),
            linked: BooleanBuilder::new(),
            times: [time(), time(), time()],
            labels: ListBuilder::new(StringBuilder::new()).with_field(element),
            payload: BinaryBuilder::new(),
            html_hash: FixedSizeBinaryBuilder::new(16),
            extractor: UInt32Builder::new(),
        }
    }

    fn add(&mut self, row: &ExportedRow) -> Result<(), ParquetError> {
        let record = &row.record;
        self.id.append_value(record.id.as_str());
        self.signature.append_value(&record.signature)?;
        if record.given {
            self.content.append_null();
        } else {
            self.content.append_value(record.content.0.to_be_bytes())?;
        }
        let payload = record.payload.as_ref();
        let counts = [record.shingles, payload.map(|payload| payload.shingles)];
        self.counts.iter_mut().zip(counts).for_each(|(column, count)| column.append_option(count));
        let verdict = stored_verdict::to_json(&record.verdict, &row.matches);
        let texts = [
            Some(verdict.as_str()),
            row.representative.as_ref().map(DocId::as_str),
            record.metadata.as_ref().map(|metadata| metadata.as_str()),
            record.capture.date.as_ref().map(CaptureDate::as_str),
            record.capture.digest.as_ref().map(PayloadDigest::as_str),
        ];
        self.texts.iter_mut().zip(texts).for_each(|(column, text)| column.append_option(text));
        self.linked.append_value(record.linked);
        let times = [record.first_seen, record.id_first_seen, record.seen];
        self.times.iter_mut().zip(times).for_each(|(column, time)| column.append_value(time.0));
        let labels = record.labels.iter().flat_map(|labels| labels.as_str().lines());
        labels.for_each(|label| self.labels.values().append_value(label));
        self.labels.append(record.labels.is_some());
        self.payload.append_option(payload.map(|payload| &payload.bytes));
        match record.page {
            Some(page) => self.html_hash.append_value(page.hash.to_be_bytes())?,
            None => self.html_hash.append_null(),
        }
        self.extractor.append_option(record.page.map(|page| page.extractor));
        Ok(())
    }

    /// Returns the columns in the order of the schema.
    fn finish(mut self) -> Vec<ArrayRef> {
        let [mut shingles, mut payload_shingles] = self.counts;
        let [mut verdict, mut representative, mut metadata, mut date, mut payload_digest] = self.texts;
        let [mut first_seen, mut id_first_seen, mut last_seen] = self.times;
        vec![
            Arc::new(self.id.finish()),
            Arc::new(self.signature.finish()),
            Arc::new(self.content.finish()),
            Arc::new(shingles.finish()),
            Arc::new(verdict.finish()),
            Arc::new(representative.finish()),
            Arc::new(self.linked.finish()),
            Arc::new(first_seen.finish()),
            Arc::new(id_first_seen.finish()),
            Arc::new(last_seen.finish()),
            Arc::new(metadata.finish()),
            Arc::new(self.labels.finish()),
            Arc::new(self.payload.finish()),
            Arc::new(payload_shingles.finish()),
            Arc::new(self.html_hash.finish()),
            Arc::new(self.extractor.finish()),
            Arc::new(date.finish()),
            Arc::new(payload_digest.finish()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_pipe_is_of_the_pipe_and_no_other_is() {
        let (reader, mut writer) = io::pipe().unwrap();
        drop(reader);
        let error = writer.write_all(b"PAR1").unwrap_err();
        assert_eq!(of_output(ParquetError::from(error)).kind(), io::ErrorKind::BrokenPipe);
        let cut = of_output(ParquetError::from(io::Error::from(io::ErrorKind::UnexpectedEof)));
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
        assert_ne!(of_output(ParquetError::EOF("it is cut".to_owned())).kind(), io::ErrorKind::BrokenPipe);
    }
}
