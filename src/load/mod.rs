//! A Parquet file of precomputed signatures <-> a whole collection. In: Parquet, with the columns of `columns.rs`. Out:
//! the file of a new collection, complete and checked, under a temporary name that is never opened. `writer.rs` does
//! the reverse. A load trusts the verdicts in its file, and looks for no other matches. Knows nothing of the index, of
//! HTTP, or of the directory of the new collection.

mod builder;
mod columns;
mod error;
mod footer;
mod integer;
mod lists;
mod page_source;
mod pages;
mod parquet_file;
mod reader;
mod row;
mod settings;
mod splice;
mod stored_verdict;
mod thrift;
mod writer;

pub use builder::{LoadProgress, Loaded, Made, Target, build, check_same, read_into};
pub use columns::{COLUMNS, Column, ColumnDoc};
pub use error::LoadError;
pub(crate) use integer::integer;
pub(crate) use page_source::PageSource;
pub use parquet_file::OtherCompression;
pub(crate) use parquet_file::{ParquetFile, catching, check_compression, pairs};
pub use reader::{FileSource, LoadFile};
pub(crate) use settings::FINGERPRINT;
pub use settings::FileSettings;
pub use splice::Splice;
pub(crate) use writer::of_output;
pub use writer::{ExportedRow, ParquetWriter};
