//! The headers of a Parquet file's pages -> whether the pages have a usual size. The header of a small page may claim
//! that the page decompresses to two GiB, and the library allocates this memory before it decompresses anything.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::slice;

use parquet::basic::Type;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use super::thrift::{PAGE_HEADER, ThriftWalk};

/// The longest page, after decompression. Libraries begin a new page after one MiB, or after a longer value.
const PAGE_BYTES_MAX: i64 = 64 << 20;
/// The largest number of values in a page of lists. A row of such a page may have any number of values.
const LIST_VALUES_MAX: i64 = 4_000_000;
/// How many bytes are read to parse a header. If a header is longer than one of these numbers, the next number is
/// tried. Statistics in a header may be long: for a column of signatures, they contain four signatures.
const HEADER_BYTES: [u64; 3] = [512, 8 << 10, 1 << 20];
/// The field of a page header with the length of the page after decompression.
const UNPACKED: [i16; 1] = [2];
/// The field with the length of the page in the file.
const PACKED: [i16; 1] = [3];
/// The paths to the number of the page's values: in data pages of version 1, in dictionaries, and in data pages of
/// version 2.
const VALUES: [[i16; 2]; 3] = [[5, 1], [7, 1], [8, 1]];

/// Checks the pages of the columns of a row group that `is_read` names. Returns the length of the longest page of texts or
/// bytes. No text or byte string in the group is longer than this. The file is at its beginning afterwards.
pub(super) fn check(file: &mut File, group: &RowGroupMetaData, is_read: impl Fn(&str) -> bool) -> Result<i64, String> {
    let mut longest = 0;
    for column in columns_read(slice::from_ref(group), is_read) {
        let first = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        let range = u64::try_from(first).ok().zip(u64::try_from(column.compressed_size()).ok());
        let wrong = || {
            let column = column.column_path().string();
            format!("the pages of column `{column}` have impossible sizes, or more than 64 MiB; write smaller pages")
        };
        let (begin, bytes) = range.ok_or_else(wrong)?;
        let is_list = column.column_descr().max_rep_level() > 0;
        let page = longest_page(file, begin, bytes, is_list).ok_or_else(wrong)?;
        if column.column_type() == Type::BYTE_ARRAY {
            longest = longest.max(page);
        }
    }
    file.rewind().map_err(|error| error.to_string())?;
    Ok(longest)
}

/// Returns the columns that `is_read` names, of each row group.
pub(super) fn columns_read(
    groups: &[RowGroupMetaData],
    is_read: impl Fn(&str) -> bool,
) -> impl Iterator<Item = &ColumnChunkMetaData> {
    let columns = groups.iter().flat_map(RowGroupMetaData::columns);
    columns.filter(move |column| column.column_path().parts().first().is_some_and(|name| is_read(name)))
}

/// Returns the length of the longest page, after decompression. Returns `None` if a page has an impossible size.
fn longest_page(file: &mut File, begin: u64, bytes: u64, is_list: bool) -> Option<i64> {
    let end = begin.checked_add(bytes)?;
    let (mut at, mut longest) = (begin, 0);
    while at < end {
        let page = HEADER_BYTES.into_iter().find_map(|window| Page::read(file, at, window.min(end - at)))?;
        if !(0..=PAGE_BYTES_MAX).contains(&page.unpacked) || is_list && page.values > LIST_VALUES_MAX {
            return None;
        }
        longest = longest.max(page.unpacked);
        at = at.checked_add(page.header)?.checked_add(u64::try_from(page.packed).ok()?).filter(|&at| at <= end)?;
    }
    Some(longest)
}

/// Numbers from the header of a page, and the length of the header.
struct Page {
    header: u64,
    unpacked: i64,
    packed: i64,
    values: i64,
}

impl Page {
    fn read(file: &mut File, at: u64, window: u64) -> Option<Self> {
        file.seek(SeekFrom::Start(at)).ok()?;
        let mut bytes = Vec::new();
        file.take(window).read_to_end(&mut bytes).ok()?;
        let (mut unpacked, mut packed, mut values) = (None, None, 0);
        let integers = |path: &[i16], number| match path {
            path if *path == UNPACKED => unpacked = Some(number),
            path if *path == PACKED => packed = Some(number),
            path if VALUES.iter().any(|of| path == of) => values = number,
            _ => {}
        };
        let left = ThriftWalk::new(&bytes, integers).walk(PAGE_HEADER)?;
        Some(Self { header: (bytes.len() - left) as u64, unpacked: unpacked?, packed: packed?, values })
    }
}
