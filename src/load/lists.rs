//! The lists of a Parquet file -> whether all of them are short. The library builds a whole list in memory, and a page
//! of a few bytes may encode a list of millions of long texts. In: a file whose pages were checked. Out: the first row
//! with a longer list.

use std::sync::Arc;

use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::data_type::ByteArray;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;

use super::page_source::PageSource;

/// The most values of a list, and the most bytes of all of them. A document has at most 8 labels of 321 bytes.
const VALUES_MAX: usize = 1000;
const BYTES_MAX: usize = 64 << 10;
/// The number of rows that are read at once.
const ROWS: usize = 1024;

/// Checks the lists of texts in the columns that `is_read` names.
pub(super) fn check(
    source: PageSource,
    metadata: &ParquetMetaData,
    is_read: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let (source, mut first) = (Arc::new(source), 0);
    for group in metadata.row_groups() {
        let is_list = |column: &&ColumnChunkMetaData| {
            let read = column.column_path().parts().first().is_some_and(|name| is_read(name));
            read && column.column_descr().max_rep_level() > 0
        };
        for column in group.columns().iter().filter(is_list) {
            check_column(&source, group, column, first)?;
        }
        first += group.num_rows();
    }
    Ok(())
}

/// Checks the lists of a column. `first` is the number of the first row.
fn check_column(
    source: &Arc<PageSource>,
    group: &RowGroupMetaData,
    column: &ColumnChunkMetaData,
    first: i64,
) -> Result<(), String> {
    let damaged = |error: parquet::errors::ParquetError| error.to_string();
    let rows = usize::try_from(group.num_rows()).map_err(|error| error.to_string())?;
    let pages = SerializedPageReader::new(Arc::clone(source), column, rows, None).map_err(damaged)?;
    let descriptor = column.column_descr_ptr();
    let with_value = descriptor.max_def_level();
    let ColumnReader::ByteArrayColumnReader(mut reader) = get_column_reader(descriptor, Box::new(pages)) else {
        // The caller refuses the type of this column.
        return Ok(());
    };
    let (mut row, mut list) = (first - 1, List::default());
    let (mut definitions, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::<ByteArray>::new());
    loop {
        let (records, ..) =
            reader.read_records(ROWS, Some(&mut definitions), Some(&mut repetitions), &mut values).map_err(damaged)?;
        let mut texts = values.drain(..);
        for (definition, repetition) in definitions.drain(..).zip(repetitions.drain(..)) {
            if repetition == 0 {
                (row, list) = (row + 1, List::default());
            }
            list.values += 1;
            if definition == with_value {
                list.bytes += texts.next().map_or(0, |text| text.len());
            }
            if list.values > VALUES_MAX || list.bytes > BYTES_MAX {
                return Err(format!(
                    "row {row}, column `{}`: its list has more than {VALUES_MAX} values or {BYTES_MAX} bytes",
                    column.column_path().parts()[0]
                ));
            }
        }
        drop(texts);
        if records == 0 {
            return Ok(());
        }
    }
}

/// The part of a row's list that was read.
#[derive(Default)]
struct List {
    values: usize,
    bytes: usize,
}
