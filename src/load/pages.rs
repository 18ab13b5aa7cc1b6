//! The headers of a Parquet file's pages -> whether the pages have a usual size. A page of some bytes may say that it
//! decompresses to two GiB, and the library makes room for them before it looks.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use parquet::file::metadata::ParquetMetaData;

use super::thrift::{ThriftWalk, kind};

/// The longest page, after decompression. Libraries begin a new page after one MiB, or after a longer value.
const PAGE_BYTES_MAX: i64 = 256 << 20;
/// How many bytes of a header are read at first, and at the most. Statistics in it may be long.
const HEADER_BYTES: [u64; 2] = [512, 1 << 20];
/// The fields of a header that have the lengths of its page.
const UNPACKED: i16 = 2;
const PACKED: i16 = 3;

/// Checks the pages of the columns that `is_read` names. The file is at its beginning afterwards.
pub(crate) fn check(file: &mut File, metadata: &ParquetMetaData, is_read: impl Fn(&str) -> bool) -> Result<(), String> {
    for group in metadata.row_groups() {
        let columns = group
            .columns()
            .iter()
            .filter(|column| column.column_path().parts().first().is_some_and(|name| is_read(name)));
        for column in columns {
            let first = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let range = u64::try_from(first).ok().zip(u64::try_from(column.compressed_size()).ok());
            let wrong = || format!("the pages of column `{}` have impossible sizes", column.column_path().string());
            let (begin, bytes) = range.ok_or_else(wrong)?;
            check_pages(file, begin, bytes).ok_or_else(wrong)?;
        }
    }
    file.rewind().map_err(|error| error.to_string())
}

fn check_pages(file: &mut File, begin: u64, bytes: u64) -> Option<()> {
    let end = begin.checked_add(bytes)?;
    let mut at = begin;
    while at < end {
        let (header, packed) = HEADER_BYTES.into_iter().find_map(|window| header(file, at, window.min(end - at)))?;
        at = at.checked_add(header)?.checked_add(packed).filter(|&at| at <= end)?;
    }
    Some(())
}

/// Returns the length of a page's header, and that of the page in the file.
fn header(file: &mut File, at: u64, window: u64) -> Option<(u64, u64)> {
    file.seek(SeekFrom::Start(at)).ok()?;
    let mut bytes = Vec::new();
    file.take(window).read_to_end(&mut bytes).ok()?;
    let (mut unpacked, mut packed) = (None, None);
    let mut walk = ThriftWalk::new(&bytes);
    walk.fields(0, &mut |walk, field, of| match (field, of) {
        (UNPACKED, kind::I16..=kind::I64) => walk.integer().map(|number| unpacked = Some(number)),
        (PACKED, kind::I16..=kind::I64) => walk.integer().map(|number| packed = Some(number)),
        (_, of) => walk.skip(of, 1),
    })?;
    unpacked.filter(|unpacked| (0..=PAGE_BYTES_MAX).contains(unpacked))?;
    Some(((bytes.len() - walk.left()) as u64, u64::try_from(packed?).ok()?))
}
