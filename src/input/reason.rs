//! The reasons why a line, a record or a whole file has no documents.

use std::{fmt, io};

use crate::load::OtherCompression;

/// The reason why there is no document.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Reason {
    /// A field is absent. Often all lines of a file lack it, so the reason need not be shown for each line.
    #[error(transparent)]
    NoField(NoField),
    #[error("{detail}")]
    Other {
        /// The stable name of the problem. It is the API's name, if the API has one.
        code: &'static str,
        detail: String,
    },
}

impl Reason {
    pub(super) fn other(code: &'static str, detail: impl Into<String>) -> Self {
        Self::Other { code, detail: detail.into() }
    }

    /// The stable name of the problem.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoField(_) => "no_field",
            Self::Other { code, .. } => code,
        }
    }
}

/// A field that a line lacks, and the fields that may be meant instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoField {
    /// The name of the absent field.
    pub field: String,
    /// True if the absent field is the id; false if it is the text.
    pub is_id: bool,
    /// The names of the fields that may be meant instead, as JSON.
    pub present: Vec<String>,
}

impl std::error::Error for NoField {}

impl fmt::Display for NoField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no field {:?}", self.field)?;
        match self.present.as_slice() {
            [] => Ok(()),
            [one] => write!(f, "; there is {one}"),
            several => write!(f, "; there are {}", several.join(", ")),
        }
    }
}

/// The reason why a file has no documents.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    #[error(transparent)]
    Read(#[from] io::Error),
    /// The file is damaged, or the rest of it cannot be read. The lines before this place are used.
    #[error("{error}, in line {line} at byte {offset}")]
    Cut { line: u64, offset: u64, error: io::Error },
    /// Like [`Cut`](Self::Cut), for a table. The records before this place are used.
    #[error("{error}, in record {number} at byte {offset}")]
    CutRecord { number: u64, offset: u64, error: io::Error },
    /// A Parquet file is damaged, or the rest of it cannot be read. The rows before this one are used.
    #[error("{detail}, at row {row} or soon after it")]
    Row { row: u64, detail: String },
    #[error("this is Parquet, but it is cut or damaged: {detail}")]
    DamagedParquet { detail: String },
    #[error("this is Parquet, but {0}")]
    ParquetCompression(OtherCompression),
    #[error("this is Parquet, which is read from its end: it cannot come from a pipe, or be compressed as a whole")]
    Parquet,
    #[error(
        "this is ARC, the format before WARC; the formats are JSON Lines, CSV, text, WARC and Parquet. warcio converts it: \
         warcio recompress file.arc.gz file.warc.gz"
    )]
    Arc,
    #[error("this is bzip2; the compressions are gzip and zstd. Decompress it first: bunzip2 file.bz2")]
    Bzip2,
    #[error("this is xz; the compressions are gzip and zstd. Decompress it first: unxz file.xz")]
    Xz,
    #[error(
        "this is a zip archive; the formats are JSON Lines, CSV, text, WARC and Parquet. Extract its files first: unzip file.zip"
    )]
    Zip,
    #[error(
        "this is a tar archive; the formats are JSON Lines, CSV, text, WARC and Parquet. Extract its files first: tar -xf file.tar"
    )]
    Tar,
    #[error(
        "this is a JSON array; the formats are JSON Lines, CSV, text, WARC and Parquet. jq converts it: \
         jq -c '.[]' file.json > file.jsonl"
    )]
    Array,
    #[error("this is UTF-16; files must be UTF-8. Convert it first: iconv -f UTF-16 -t UTF-8 file > file.csv")]
    Utf16,
    /// A table without a usable header.
    #[error("this is CSV, but its header cannot be used: {detail}")]
    Header { detail: String },
    #[error("its columns differ from those of the first file; all Parquet files must have the same columns")]
    OtherColumns,
    /// A required field is missing in each line that was read at the beginning of the file.
    #[error("{0}")]
    NoField(NoField),
}
