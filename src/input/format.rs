//! The first bytes of a file -> its format, or the reason why the file is not read. A file in a format that hapax
//! cannot read is recognised here and refused as a whole. Otherwise, each of its lines would fail. Knows nothing of
//! compression.

use super::lines::BYTE_ORDER_MARK;
use super::reason::InputError;

/// The number of first bytes that show whether a file has a format that hapax can read.
pub(super) const BEGIN_BYTES: usize = 16;
/// The number of first bytes that show the other formats: a tar archive has the name of its format at byte 257.
pub(super) const FORMAT_BYTES: usize = 512;
/// The place and the name of the format in the first header of a tar archive.
const TAR: (usize, &[u8]) = (257, b"ustar");

#[derive(Clone, Copy, Debug)]
pub(super) enum Format {
    Lines,
    Warc,
}

/// Whether these bytes begin a file of a format that can be read.
pub(super) fn is_certain(begin: &[u8]) -> bool {
    let text = text_of(begin);
    text.starts_with(b"{") || text.starts_with(b"WARC/")
}

fn text_of(begin: &[u8]) -> &[u8] {
    begin.strip_prefix(BYTE_ORDER_MARK).unwrap_or(begin).trim_ascii_start()
}

/// Returns the format. `is_warc_by_name` decides if the bytes begin neither like a WARC record nor like a line of JSON.
/// `text_field` is used to recognise the header of a table.
pub(super) fn told_by(begin: &[u8], is_warc_by_name: bool, text_field: &str) -> Result<Format, InputError> {
    let text = text_of(begin);
    if let Some(error) = foreign(begin, text) {
        Err(error)
    } else if text.starts_with(b"WARC/") || is_warc_by_name && !text.is_empty() && !text.starts_with(b"{") {
        Ok(Format::Warc)
    } else if text.starts_with(b"[") {
        Err(InputError::Array)
    } else if is_header_of_table(text, text_field) {
        Err(InputError::Csv)
    } else {
        Ok(Format::Lines)
    }
}

fn foreign(begin: &[u8], text: &[u8]) -> Option<InputError> {
    if text.starts_with(b"PAR1") {
        Some(InputError::Parquet)
    } else if text.starts_with(b"filedesc:") {
        Some(InputError::Arc)
    } else if begin.starts_with(b"BZh") {
        Some(InputError::Bzip2)
    } else if begin.starts_with(b"\xFD7zXZ\0") {
        Some(InputError::Xz)
    } else if begin.starts_with(b"PK\x03\x04") {
        Some(InputError::Zip)
    } else if begin.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1)) && begin[..TAR.0].contains(&0) {
        // A text has no byte 0.
        Some(InputError::Tar)
    } else {
        None
    }
}

/// Whether the first line is the header of a table with a column for the text. A line of JSON begins with a brace.
fn is_header_of_table(text: &[u8], text_field: &str) -> bool {
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let is_text = |cell: &[u8]| unquoted(cell.trim_ascii()) == text_field.as_bytes();
    !line.starts_with(b"{")
        && b",;\t".iter().any(|separator| line.contains(separator) && line.split(|byte| byte == separator).any(is_text))
}

fn unquoted(cell: &[u8]) -> &[u8] {
    cell.strip_prefix(b"\"").and_then(|cell| cell.strip_suffix(b"\"")).unwrap_or(cell)
}
