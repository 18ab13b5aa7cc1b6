//! Some rows of Parquet files -> a Parquet file with these rows, with all their columns.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReaderBuilder, RowSelector};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::reason::InputError;
use crate::load::{PageSource, ParquetFile, catching, check_compression, of_output};

/// The size of a row group, in bytes. A row group is in memory until it is written.
const GROUP_BYTES: usize = 64 << 20;
/// How many batches of rows may wait to be written. They are read while earlier ones are compressed.
const BATCHES_WAITING: usize = 2;

/// Copies rows of Parquet files to one file. All files must have the same columns.
pub struct RowCopier<W: Write + Send> {
    /// `None` once the writer exists.
    out: Option<W>,
    writer: Option<ArrowWriter<W>>,
    schema: Option<SchemaRef>,
}

impl<W: Write + Send> RowCopier<W> {
    pub fn new(out: W) -> Self {
        Self { out: Some(out), writer: None, schema: None }
    }

    /// Copies the rows of a file for which `is_kept` returns true. The first row has the number 0. Stops soon after `stop` is
    /// set.
    pub fn copy(&mut self, path: &Path, is_kept: impl Fn(u64) -> bool, stop: &AtomicBool) -> Result<(), InputError> {
        let damaged = |detail| InputError::DamagedParquet { detail };
        let mut file = File::open(path)?;
        let opened = ParquetFile::open(&mut file, |_| true).map_err(damaged)?;
        check_compression(opened.metadata(), |_| true).map_err(InputError::ParquetCompression)?;
        let schema = opened.schema().clone();
        if self.schema.as_ref().is_some_and(|first| first.fields() != schema.fields()) {
            return Err(InputError::OtherColumns);
        }
        self.begin(&schema, opened.metadata().file_metadata().key_value_metadata())?;
        let (mut groups, mut selectors, mut end) = (Vec::new(), Vec::new(), 0);
        for (number, group) in opened.metadata().row_groups().iter().enumerate() {
            let rows = end..end + u64::try_from(group.num_rows()).unwrap_or_default();
            end = rows.end;
            // A group that is left out need not be readable.
            if !rows.clone().any(&is_kept) {
                continue;
            }
            if let Some(reason) = &opened.refused()[number] {
                return Err(damaged(reason.clone()));
            }
            groups.push(number);
            select(&mut selectors, rows, &is_kept);
        }
        let builder = opened.builder().with_row_groups(groups).with_row_selection(selectors.into());
        let (give, take) = sync_channel(BATCHES_WAITING);
        thread::scope(|scope| {
            scope.spawn(move || {
                if let Err(detail) = read_batches(builder, &give) {
                    // After another error, the receiver is gone, and the damage is not reported.
                    let _ = give.send(Err(detail));
                }
            });
            let writer = self.writer.as_mut().expect("it was made");
            for batch in take {
                writer.write(&batch.map_err(damaged)?).map_err(of_output)?;
                if writer.in_progress_size() >= GROUP_BYTES {
                    writer.flush().map_err(of_output)?;
                }
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Writes the end of the file.
    pub fn finish(self) -> io::Result<()> {
        self.writer.map_or(Ok(()), |writer| writer.close().map(drop).map_err(of_output))
    }

    /// Makes the writer of the columns of the first file.
    fn begin(&mut self, schema: &SchemaRef, pairs: Option<&Vec<KeyValue>>) -> io::Result<()> {
        let Some(out) = self.out.take() else { return Ok(()) };
        let properties = WriterProperties::builder()
            .set_key_value_metadata(pairs.cloned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        // The rows are read with the types of Parquet. The pairs have the schema for Arrow, if there is one.
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(out, schema.clone(), options).map_err(of_output)?;
        self.writer = Some(writer);
        self.schema = Some(schema.clone());
        Ok(())
    }
}

/// Reads rows and passes them on, until they are not taken any more.
fn read_batches(
    builder: ParquetRecordBatchReaderBuilder<PageSource>,
    give: &SyncSender<Result<RecordBatch, String>>,
) -> Result<(), String> {
    let text = |error: ArrowError| error.to_string();
    let mut batches = catching(|| builder.build().map_err(|error| error.to_string()))?;
    while let Some(batch) = catching(|| batches.next().transpose().map_err(text))? {
        if give.send(Ok(batch)).is_err() {
            break;
        }
    }
    Ok(())
}

/// Adds the selection of the rows that are kept.
fn select(selectors: &mut Vec<RowSelector>, rows: Range<u64>, is_kept: impl Fn(u64) -> bool) {
    for row in rows {
        let skip = !is_kept(row);
        match selectors.last_mut() {
            Some(last) if last.skip == skip => last.row_count += 1,
            _ => selectors.push(RowSelector { row_count: 1, skip }),
        }
    }
}
