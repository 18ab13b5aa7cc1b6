//! Opens a Parquet file that may be damaged or hostile: a file with false metadata is an error, even if the library
//! panics.

use std::collections::HashMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_schema::SchemaRef;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::parquet_to_arrow_schema;
use parquet::basic::Compression;
use parquet::file::metadata::{FileMetaData, ParquetMetaData, RowGroupMetaData};

use super::page_source::PageSource;
use super::{footer, lists, pages};
use crate::telemetry::logs::without_panic_logs;

/// The largest number of rows in a batch.
const BATCH_ROWS: usize = 4096;
/// The approximate largest number of bytes in a batch.
const BATCH_BYTES: i64 = 16 << 20;
/// The largest number of bytes that one column of a batch takes if all rows have the longest value.
const EXPANDED_BYTES: i64 = 64 << 20;
/// The largest number of bytes that the lists of a batch take if all rows have the longest list.
const LIST_BYTES_MAX: u64 = 256 << 20;

/// A file that is read in batches of a suitable size. Columns have the types of Parquet, whichever library wrote the
/// file.
pub(crate) struct ParquetFile {
    source: PageSource,
    metadata: ArrowReaderMetadata,
    batch_rows: usize,
    /// For each row group, the reason why it cannot be read, if there is one.
    refused: Vec<Option<String>>,
}

impl ParquetFile {
    /// Opens a file. Checks its metadata, and the pages and lists of the columns that `is_read` names.
    pub(crate) fn open(file: &mut File, is_read: impl Fn(&str) -> bool) -> Result<Self, String> {
        footer::check(file)?;
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let source = PageSource::new(file.try_clone().map_err(|error| error.to_string())?);
        let metadata = catching(|| ArrowReaderMetadata::load(&source, options).map_err(|error| error.to_string()))?;
        // Many files may be open before the first one is read, and metadata may be long. So the buffers that the metadata
        // was read into are not kept until then.
        source.free_buffers();
        let groups = metadata.metadata().row_groups();
        let counted: i64 = groups.iter().map(RowGroupMetaData::num_rows).fold(0, i64::saturating_add);
        if counted != metadata.metadata().file_metadata().num_rows() {
            return Err("its metadata contradicts itself about the number of rows".to_owned());
        }
        // The callers refuse other compressions.
        let has_lists = check_compression(metadata.metadata(), &is_read).is_ok();
        let (mut refused, mut longest, mut list) = (Vec::with_capacity(groups.len()), 0, 0);
        for group in groups {
            let checked = pages::check(file, group, &is_read).and_then(|page| {
                let bytes = if has_lists { longest_list(file, group, &is_read)? } else { 0 };
                (longest, list) = (longest.max(page), list.max(bytes));
                Ok(())
            });
            refused.push(checked.err());
        }
        let batch_rows = batch_rows(groups, longest, list);
        Ok(Self { source, metadata, batch_rows, refused })
    }

    pub(crate) fn metadata(&self) -> &Arc<ParquetMetaData> {
        self.metadata.metadata()
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// For each row group, the reason why it cannot be read, if there is one.
    pub(crate) fn refused(&self) -> &[Option<String>] {
        &self.refused
    }

    /// Returns a reader of the file. Several readers may be used at the same time.
    pub(crate) fn builder(&self) -> ParquetRecordBatchReaderBuilder<PageSource> {
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.source.clone(), self.metadata.clone());
        builder.with_batch_size(self.batch_rows)
    }
}

/// Opens a file, of which all row groups can be read.
pub(super) fn open(
    file: &mut File,
    is_read: impl Fn(&str) -> bool,
) -> Result<ParquetRecordBatchReaderBuilder<PageSource>, String> {
    let file = ParquetFile::open(file, is_read)?;
    match file.refused.iter().flatten().next() {
        Some(reason) => Err(reason.clone()),
        None => Ok(file.builder()),
    }
}

/// Returns the key-value pairs in the metadata of a file. Some libraries write the pairs of a table only into the
/// schema for Arrow, so these pairs are included.
pub(crate) fn pairs(metadata: &FileMetaData) -> HashMap<String, String> {
    let own = metadata.key_value_metadata();
    let schema = catching(|| parquet_to_arrow_schema(metadata.schema_descr(), own).map_err(|error| error.to_string()));
    let of_schema = schema.map(|schema| schema.metadata().clone()).unwrap_or_default();
    let own = own.into_iter().flatten().filter_map(|pair| Some((pair.key.clone(), pair.value.clone()?)));
    of_schema.into_iter().map(|(key, value)| (key.to_string(), value.to_string())).chain(own).collect()
}

/// Returns the largest number of bytes that the list of a row may have in memory. Refuses a group with a longer list.
fn longest_list(file: &File, group: &RowGroupMetaData, is_read: impl Fn(&str) -> bool) -> Result<u64, String> {
    let source = PageSource::new(file.try_clone().map_err(|error| error.to_string())?);
    let list = catching(|| lists::longest_bytes(source, group, is_read))?;
    if list > LIST_BYTES_MAX {
        return Err("a row has a list that may take more than 256 MiB; write shorter lists or smaller pages".to_owned());
    }
    Ok(list)
}

/// Returns how many rows are read at once, so that a batch of long rows does not take more memory than a batch of short
/// rows. A few bytes of the file may be decoded to a value of `longest` bytes and a list of `list` bytes in each row.
fn batch_rows(groups: &[RowGroupMetaData], longest: i64, list: u64) -> usize {
    let row_bytes = |group: &RowGroupMetaData| group.total_byte_size() / group.num_rows().max(1);
    let usual = groups.iter().map(row_bytes).max().unwrap_or_default();
    let rows = (BATCH_BYTES / usual.max(1)).min(EXPANDED_BYTES / longest.max(1));
    let lists = usize::try_from(LIST_BYTES_MAX / list.max(1)).unwrap_or(usize::MAX);
    usize::try_from(rows).unwrap_or(1).min(lists).clamp(1, BATCH_ROWS)
}

/// A column that is read, with a compression that is not. The library decompresses a page of gzip or brotli without a
/// limit, whatever size the page has by its header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column `{column}` is compressed with {compression}; write the file again with Snappy, zstd or LZ4")]
pub struct OtherCompression {
    column: String,
    compression: &'static str,
}

/// Checks the compression of the columns that `is_read` names.
pub(crate) fn check_compression(
    metadata: &ParquetMetaData,
    is_read: impl Fn(&str) -> bool,
) -> Result<(), OtherCompression> {
    for chunk in pages::columns_read(metadata.row_groups(), is_read) {
        let compression = match chunk.compression() {
            Compression::UNCOMPRESSED
            | Compression::SNAPPY
            | Compression::ZSTD(_)
            | Compression::LZ4
            | Compression::LZ4_RAW => continue,
            Compression::GZIP(_) => "gzip",
            Compression::BROTLI(_) => "brotli",
            Compression::LZO => "LZO",
        };
        return Err(OtherCompression { column: chunk.column_path().string(), compression });
    }
    Ok(())
}

/// Turns a panic of the library into an error.
pub(crate) fn catching<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    without_panic_logs(|| catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err("it is damaged".to_owned())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::file::metadata::ColumnChunkMetaData;
    use parquet::schema::parser::parse_message_type;
    use parquet::schema::types::SchemaDescriptor;

    use super::*;

    fn metadata(compressions: [Compression; 2]) -> ParquetMetaData {
        let schema = parse_message_type("message m { required binary id; required binary note; }").unwrap();
        let schema = Arc::new(SchemaDescriptor::new(Arc::new(schema)));
        let chunks = compressions.into_iter().enumerate().map(|(at, compression)| {
            ColumnChunkMetaData::builder(schema.column(at)).set_compression(compression).build().unwrap()
        });
        let group =
            RowGroupMetaData::builder(Arc::clone(&schema)).set_column_metadata(chunks.collect()).build().unwrap();
        ParquetMetaData::new(FileMetaData::new(2, 0, None, None, schema, None), vec![group])
    }

    #[test]
    fn columns_that_are_read_have_a_compression_that_is() {
        let (gzip, zstd) = (Compression::GZIP(Default::default()), Compression::ZSTD(Default::default()));
        let check = |compressions| check_compression(&metadata(compressions), |name| name == "id");
        assert_eq!(check([zstd, gzip]), Ok(()));
        assert_eq!(check([Compression::UNCOMPRESSED, Compression::SNAPPY]), Ok(()));
        let told = check([gzip, zstd]).unwrap_err().to_string();
        assert!(told.starts_with("column `id` is compressed with gzip; "), "{told}");
    }
}
