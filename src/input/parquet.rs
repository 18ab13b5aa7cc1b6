//! A Parquet file -> chunks of documents. Each row becomes a JSON object with the columns that have the name of a
//! field. This object is then treated like a line of JSON Lines. The rows of a file of signatures become documents with
//! signatures.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Number, Value, json};

use super::chunk::{Chunk, Origin, Place};
use super::gather::{Gather, Part};
use super::line;
use super::reason::InputError;
use super::wanted::Wanted;
use crate::load::{FINGERPRINT, PageSource, catching, check_compression, integer, open_parquet, pairs};
use crate::types::strict_json::compact_object;

/// The first bytes of such a file.
pub(super) const BEGIN: &[u8] = b"PAR1";

/// Whether a file begins like Parquet. The file is at its beginning afterwards.
pub(super) fn is_parquet(file: &mut File) -> io::Result<bool> {
    let mut begin = Vec::new();
    file.by_ref().take(BEGIN.len() as u64).read_to_end(&mut begin)?;
    file.rewind()?;
    Ok(begin == BEGIN)
}

/// Passes the documents of a file to `give`, until it returns false.
pub(super) fn read(
    file: File,
    name: &Arc<str>,
    wanted: &Wanted,
    give: &mut dyn FnMut(Chunk) -> bool,
) -> Result<(), InputError> {
    let bytes = file.metadata()?.len();
    let opened = open(file, wanted)?;
    let (total, fingerprint) = (opened.rows, opened.fingerprint.clone());
    let mut rows = Rows { gather: Gather::new(give), read: 0, total, bytes };
    let mut batches = opened.batches()?;
    // The rows before an error are used like all other rows.
    let ended = loop {
        let batch = match catching(|| batches.next().transpose().map_err(|error| error.to_string())) {
            Ok(Some(batch)) => batch,
            Ok(None) => break Ok(()),
            Err(detail) => break Err(InputError::Row { row: rows.read, detail }),
        };
        for at in 0..batch.num_rows() {
            let object = object(&batch, at, fingerprint.as_deref());
            if !rows.add(&object, name, wanted)? {
                return Ok(());
            }
        }
    };
    rows.gather.finish(bytes)?;
    ended
}

/// Reads the metadata of a file, as [`read`] does before the first row.
pub(super) fn look_at(file: File, wanted: &Wanted) -> Result<(), InputError> {
    open(file, wanted).map(drop)
}

struct Opened {
    builder: ParquetRecordBatchReaderBuilder<PageSource>,
    rows: u64,
    /// The fingerprint of the spec of the signatures in the file.
    fingerprint: Option<String>,
}

fn open(mut file: File, wanted: &Wanted) -> Result<Opened, InputError> {
    let is_read = |name: &str| wanted.reads(name);
    let builder = open_parquet(&mut file, is_read).map_err(|detail| InputError::DamagedParquet { detail })?;
    check_compression(builder.metadata(), is_read).map_err(InputError::ParquetCompression)?;
    let metadata = builder.metadata().file_metadata();
    let fingerprint = pairs(metadata).remove(FINGERPRINT);
    let rows = u64::try_from(metadata.num_rows()).unwrap_or_default();
    let columns: Vec<_> = builder.schema().fields().iter().enumerate().collect();
    let columns = columns.into_iter().filter(|(_, field)| is_read(field.name()));
    let columns = ProjectionMask::roots(builder.parquet_schema(), columns.map(|(at, _)| at));
    let builder = builder.with_projection(columns);
    Ok(Opened { builder, rows, fingerprint })
}

impl Opened {
    fn batches(self) -> Result<impl Iterator<Item = Result<RecordBatch, arrow_schema::ArrowError>>, InputError> {
        catching(|| self.builder.build().map_err(|error| error.to_string()))
            .map_err(|detail| InputError::DamagedParquet { detail })
    }
}

/// The rows that are collected into chunks.
struct Rows<'a> {
    gather: Gather<'a>,
    read: u64,
    /// The number of rows of the file.
    total: u64,
    /// The number of bytes of the file.
    bytes: u64,
}

impl Rows<'_> {
    /// Adds a row. Returns false if no further chunks are taken.
    fn add(&mut self, object: &str, name: &Arc<str>, wanted: &Wanted) -> Result<bool, InputError> {
        let origin = Origin { file: Arc::clone(name), place: Place::Row(self.read) };
        let document = line::document(object.as_bytes(), &wanted.form, &origin);
        let original = wanted.originals.then_some(object.as_bytes());
        // The values of a row are spread over the file. So the progress in bytes is computed from the share of the rows
        // that were read.
        let share = self.read as f64 / self.total.max(1) as f64;
        let taken = ((self.bytes as f64 * share) as u64).min(self.bytes);
        self.read += 1;
        let text_bytes = object.len() as u64;
        self.gather.add(Part { origin, document, original, ranked: None, text_bytes }, taken)
    }
}

/// Returns a row as JSON. Values that JSON cannot express are left out.
fn object(batch: &RecordBatch, at: usize, fingerprint: Option<&str>) -> String {
    let schema = batch.schema();
    let (mut object, mut is_signed) = (String::from("{"), false);
    let mut add = |name: &str, value: &str| {
        object.push_str(if object.len() == 1 { "" } else { "," });
        object.push_str(&Value::from(name).to_string());
        object.push(':');
        object.push_str(value);
    };
    for (field, array) in schema.fields().iter().zip(batch.columns()).filter(|(_, array)| array.is_valid(at)) {
        let name = field.name();
        is_signed |= name == "signature";
        // `metadata` is the text of a JSON object. Only its white space is changed, because a document is one line. If
        // the text is not an object, it is sent as a string, and the server refuses `metadata`.
        let object = (name == "metadata" && *array.data_type() == DataType::Utf8)
            .then(|| compact_object(array.as_string::<i32>().value(at)).ok());
        match object.flatten() {
            Some(object) => add(name, &object),
            None => {
                if let Some(value) = value(name, array, at) {
                    add(name, &value.to_string());
                }
            }
        }
    }
    if let Some(fingerprint) = fingerprint.filter(|_| is_signed) {
        add("fingerprint", &Value::from(fingerprint).to_string());
    }
    object + "}"
}

fn value(name: &str, array: &ArrayRef, at: usize) -> Option<Value> {
    let number = |number: f64| Number::from_f64(number).map(Value::Number);
    match array.data_type() {
        DataType::Utf8 => Some(array.as_string::<i32>().value(at).into()),
        DataType::Boolean => Some(array.as_boolean().value(at).into()),
        DataType::Float32 => number(array.as_primitive::<Float32Type>().value(at).into()),
        DataType::Float64 => number(array.as_primitive::<Float64Type>().value(at)),
        DataType::Binary => bytes(name, array.as_binary::<i32>().value(at)),
        DataType::FixedSizeBinary(_) => bytes(name, array.as_fixed_size_binary().value(at)),
        DataType::List(_) => Some(list(name, &array.as_list::<i32>().value(at))),
        kind if kind.is_integer() => Number::from_i128(integer(array, at)).map(Value::Number),
        _ => None,
    }
}

/// Returns bytes as the API takes them: a signature in base64, and a hash in hexadecimal digits. Other bytes are read
/// as text, because some files do not mark their columns of text as UTF-8.
fn bytes(name: &str, bytes: &[u8]) -> Option<Value> {
    match name {
        "signature" => Some(STANDARD.encode(bytes).into()),
        "content_hash" => Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()),
        // The server refuses a null, and its error names the field.
        _ => Some(std::str::from_utf8(bytes).map_or(Value::Null, Value::from)),
    }
}

/// Returns labels of the form `name:value` as an object, and any other list as an array. Labels that cannot form such
/// an object are sent as an array. The server refuses it, and its error names the field.
fn list(name: &str, values: &ArrayRef) -> Value {
    let elements = (0..values.len()).filter(|&at| values.is_valid(at)).filter_map(|at| value("", values, at));
    let elements: Vec<Value> = elements.collect();
    let labels = elements.iter().map(|label| label.as_str()?.split_once(':'));
    match labels.collect::<Option<BTreeMap<&str, &str>>>() {
        Some(labels) if name == "labels" && labels.len() == elements.len() => json!(labels),
        _ => elements.into(),
    }
}
