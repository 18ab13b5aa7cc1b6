//! Lines of JSON -> the rows of a Parquet file, whose columns are known before. A line may lack any column.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use arrow_json::ReaderBuilder;
use arrow_json::reader::Decoder;
use arrow_schema::Schema;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::load::of_output;

/// The number of lines that are converted at once.
const LINES_AT_ONCE: usize = 1024;

/// Whether a file of this name is a Parquet file.
pub(in crate::cli) fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "parquet")
}

/// A Parquet file that is being written.
pub(in crate::cli) struct Table {
    decoder: Decoder,
    writer: ArrowWriter<File>,
}

impl Table {
    pub(in crate::cli) fn new(file: File, columns: Schema) -> Result<Self> {
        let columns = Arc::new(columns);
        let decoder = ReaderBuilder::new(Arc::clone(&columns)).with_batch_size(LINES_AT_ONCE).build_decoder()?;
        let compression = Compression::ZSTD(ZstdLevel::default());
        let properties = WriterProperties::builder().set_compression(compression).build();
        Ok(Self { decoder, writer: ArrowWriter::try_new(file, columns, Some(properties))? })
    }

    /// Adds a row. Fields that are no columns are left out.
    pub(in crate::cli) fn line(&mut self, line: &[u8]) -> Result<()> {
        if self.decoder.len() >= LINES_AT_ONCE {
            self.write()?;
        }
        let taken = self.decoder.decode(line).context("cannot make a row of a line")?;
        ensure!(taken == line.len(), "cannot make a row of a line: it has more than one object");
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let Some(rows) = self.decoder.flush()? else { return Ok(()) };
        self.writer.write(&rows).map_err(of_output).context("cannot write the rows")
    }

    /// Writes the end of the file.
    pub(in crate::cli) fn finish(mut self) -> Result<()> {
        self.write()?;
        self.writer.close().map(drop).map_err(of_output).context("cannot write the rows")
    }
}
