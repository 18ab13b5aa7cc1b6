//! Files -> documents in the form of the API, in chunks that fit into one bulk request. In: files or stdin of JSON
//! Lines, CSV, TSV or WARC, and files of text, plain or compressed with gzip or zstd; files of Parquet. Out: [`Chunk`]s.
//! Some rows of Parquet files -> a file with these rows. This module must never know how chunks are sent or answered.

mod ahead;
mod buffered;
mod chunk;
mod fields;
mod file;
mod format;
mod frame;
mod gather;
mod line;
mod lines;
mod parquet;
mod parquet_rows;
mod reason;
mod rewinding;
mod row_number;
mod row_object;
mod table;
mod table_cell;
mod table_header;
mod table_records;
mod text;
mod units;
mod wanted;
mod warc;

pub use chunk::{Chunk, Origin, Place};
pub use fields::{Fields, kind_of};
pub use file::{columns_of_parquet, input_bytes, is_parquet, look_at, read, read_chunks};
pub use parquet_rows::RowCopier;
pub use reason::{InputError, NoField, Reason};
pub use table_header::TableHeader;
pub use wanted::{Ids, LabelField, LineForm, SeenFields, Wanted};
