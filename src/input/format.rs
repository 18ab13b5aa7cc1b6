//! The first bytes of a file and its name -> its format, or the reason why the file is not read. A file in a format that
//! hapax cannot read is recognised here and refused as a whole. Otherwise, each of its lines would fail. Knows nothing of
//! compression.

use super::lines::BYTE_ORDER_MARK;
use super::reason::InputError;
use super::table_header::{frequent_separator, separator_of};

/// The number of first bytes that show whether a file has a format that hapax can read.
pub(super) const BEGIN_BYTES: usize = 16;
/// The number of first bytes that show the other formats: a tar archive has the name of its format at byte 257.
pub(super) const FORMAT_BYTES: usize = 512;
/// The place and the name of the format in the first header of a tar archive.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// The number of first bytes that contain the header of a table. A longer header is recognised by the file's name only.
pub(super) const HEADER_BYTES: usize = 64 << 10;
/// Parts of names of WARC files, and of the text and metadata files that Common Crawl makes from them.
const WARC_NAMES: [&str; 3] = [".warc", ".wet", ".wat"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Lines,
    Warc,
    /// A table in CSV or TSV, with this separator.
    Table(u8),
    Text,
    Page,
}

/// The format that the name of a file suggests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// The file is a text or a page, whatever its bytes are: any bytes may begin a text.
    Whole(Format),
    Warc,
    Csv,
    Tsv,
    Unknown,
}

impl Named {
    pub(super) fn of(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let packed = [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end));
        match packed.unwrap_or(&name).rsplit_once('.').map(|(_, extension)| extension) {
            Some("txt" | "text" | "md") => Self::Whole(Format::Text),
            Some("html" | "htm") => Self::Whole(Format::Page),
            Some("csv") => Self::Csv,
            Some("tsv") => Self::Tsv,
            _ if WARC_NAMES.iter().any(|part| name.contains(part)) => Self::Warc,
            _ => Self::Unknown,
        }
    }
}

/// Whether these bytes begin a file of a format that can be read.
pub(super) fn is_certain(begin: &[u8]) -> bool {
    let text = text_of(begin);
    text.starts_with(b"{") || text.starts_with(b"WARC/")
}

fn text_of(begin: &[u8]) -> &[u8] {
    begin.strip_prefix(BYTE_ORDER_MARK).unwrap_or(begin).trim_ascii_start()
}

/// Returns the format. The name decides if the bytes begin neither like a WARC record nor like a line of JSON. `columns`:
/// names of which one is in the header of a table.
pub(super) fn told_by(begin: &[u8], named: Named, columns: &[&str]) -> Result<Format, InputError> {
    let text = text_of(begin);
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    if let Some(error) = foreign(begin, text) {
        Err(error)
    } else if text.starts_with(b"{") || text.is_empty() {
        Ok(Format::Lines)
    } else if text.starts_with(b"WARC/") || named == Named::Warc {
        Ok(Format::Warc)
    } else if text.starts_with(b"[") {
        Err(InputError::Array)
    } else if named == Named::Tsv {
        Ok(Format::Table(b'\t'))
    } else if let Some(separator) = separator_of(line, columns) {
        Ok(Format::Table(separator))
    } else if named == Named::Csv {
        Ok(Format::Table(frequent_separator(line)))
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
    } else if begin.starts_with(b"\xFF\xFE") || begin.starts_with(b"\xFE\xFF") {
        Some(InputError::Utf16)
    } else if begin.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1)) && begin[..TAR.0].contains(&0) {
        // A text has no byte 0.
        Some(InputError::Tar)
    } else {
        None
    }
}
