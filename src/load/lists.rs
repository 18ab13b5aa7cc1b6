//! The lists of texts in a Parquet file -> how much memory the list of one row may take. A few bytes of a page may
//! encode a list of millions of values, each of which is a long text of the dictionary, and the library builds whole
//! rows in memory. In: a file whose pages were checked. Out: a bound for each row.

use std::slice;
use std::sync::Arc;

use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageReader};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;

use super::page_source::PageSource;
use super::pages::columns_read;

/// The bytes that a value takes in addition to its text: its levels, its number in the dictionary, and its place.
const VALUE_BYTES: u64 = 16;

const DAMAGED: &str = "the lengths of its lists are damaged";

/// Returns the largest number of bytes that a list of a row group may have in memory. Looks at the columns that `is_read`
/// names, if they are lists of texts. The library builds no other lists.
pub(super) fn longest_bytes(
    source: PageSource,
    group: &RowGroupMetaData,
    is_read: impl Fn(&str) -> bool,
) -> Result<u64, String> {
    let source = Arc::new(source);
    let lists = columns_read(slice::from_ref(group), is_read).filter(|column| is_list_of_texts(column));
    lists.map(|column| longest_of(&source, column)).try_fold(0, |longest, bytes| Ok(longest.max(bytes?)))
}

/// Such a column has one or two groups: the list, and in most files its elements. Its repetition levels are 0 or 1.
fn is_list_of_texts(column: &ColumnChunkMetaData) -> bool {
    let is_list = column.column_descr().max_rep_level() == 1 && column.column_path().parts().len() <= 3;
    is_list && column.column_type() == Type::BYTE_ARRAY
}

fn longest_of(source: &Arc<PageSource>, column: &ColumnChunkMetaData) -> Result<u64, String> {
    let damaged = |error: parquet::errors::ParquetError| error.to_string();
    let mut pages = SerializedPageReader::new(Arc::clone(source), column, 0, None).map_err(damaged)?;
    // A text is not longer than its page.
    let (mut lengths, mut text) = (Lengths::default(), 0);
    while let Some(page) = pages.get_next_page().map_err(damaged)? {
        text = text.max(page.buffer().len() as u64);
        let (levels, values) = match &page {
            Page::DictionaryPage { .. } => continue,
            Page::DataPage { buf, num_values, rep_level_encoding: Encoding::RLE, .. } => {
                (with_length(buf), *num_values)
            }
            Page::DataPage { .. } => return Err("its lists have an old encoding; write the file again".to_owned()),
            Page::DataPageV2 { buf, num_values, rep_levels_byte_len, .. } => {
                (buf.get(..*rep_levels_byte_len as usize), *num_values)
            }
        };
        levels.and_then(|levels| lengths.read(levels, values.into())).ok_or(DAMAGED)?;
    }
    Ok(lengths.longest.saturating_mul(text + VALUE_BYTES))
}

/// Returns the levels at the beginning of a page of version 1: first their length, then the levels.
fn with_length(page: &[u8]) -> Option<&[u8]> {
    let (length, rest) = page.split_first_chunk::<4>()?;
    rest.get(..u32::from_le_bytes(*length) as usize)
}

/// The lengths of lists, read from repetition levels: level 0 begins a list, and each level 1 continues it.
#[derive(Default)]
struct Lengths {
    /// The length of the last list. It may continue on the next page.
    last: u64,
    longest: u64,
}

impl Lengths {
    /// Reads levels of one bit, in the hybrid of runs and packed bits. Returns `None` if there are fewer than `left`.
    fn read(&mut self, mut levels: &[u8], mut left: u64) -> Option<()> {
        while left > 0 {
            let header = varint(&mut levels)?;
            let count = header >> 1;
            if count == 0 {
                return None;
            }
            if header & 1 == 0 {
                let count = count.min(left);
                let (level, rest) = levels.split_first()?;
                self.add(*level & 1, count);
                (levels, left) = (rest, left - count);
                continue;
            }
            // Eight levels a byte. The last byte may have more than there are.
            for _ in 0..count {
                let (byte, rest) = levels.split_first()?;
                (0..left.min(8)).for_each(|bit| self.add(byte >> bit & 1, 1));
                (levels, left) = (rest, left.saturating_sub(8));
                if left == 0 {
                    break;
                }
            }
        }
        Some(())
    }

    fn add(&mut self, level: u8, count: u64) {
        self.last = if level == 0 { 1 } else { self.last.saturating_add(count) };
        self.longest = self.longest.max(self.last);
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest(levels: &[u8], values: u64) -> Option<u64> {
        let mut lengths = Lengths::default();
        lengths.read(levels, values).map(|()| lengths.longest)
    }

    #[test]
    fn lengths_are_read_from_runs_and_from_packed_bits() {
        // A run of one 0, and a run of 300 ones: a list of 301 values.
        assert_eq!(longest(&[2, 0, 0xd8, 0x04, 1], 301), Some(301));
        // Lists of 3, 1, 2 and 4 values in two bytes.
        assert_eq!(longest(&[5, 0b0010_0110, 0b0000_0011], 8), Some(3));
        assert_eq!(longest(&[5, 0b1010_0110, 0b0000_0011], 10), Some(4));
        // A run of 1000 lists.
        assert_eq!(longest(&[0xd0, 0x0f, 0], 1000), Some(1));
        assert_eq!(longest(&[], 0), Some(0));
    }

    #[test]
    fn a_list_may_continue_on_the_next_page() {
        let mut lengths = Lengths::default();
        assert!(lengths.read(&[2, 0, 8, 1], 5).is_some());
        assert!(lengths.read(&[8, 1], 4).is_some());
        assert_eq!((lengths.last, lengths.longest), (9, 9));
    }

    #[test]
    fn damaged_levels_are_refused() {
        for levels in [&[0][..], &[1], &[2], &[5, 1], &[0x80], &[0xff; 12]] {
            assert_eq!(longest(levels, 100), None, "{levels:?}");
        }
    }
}
