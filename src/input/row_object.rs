//! The rows of a batch of a Parquet file -> JSON objects, or the fields of such objects. Knows nothing of files.

use std::borrow::Cow;
use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_json::writer::{EncoderOptions, NullableEncoder, make_encoder};
use arrow_schema::{ArrowError, DataType, FieldRef};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value, json};

use super::fields::Fields;
use super::row_number::number;
use crate::load::integer;
use crate::types::strict_json::compact_object;
use crate::types::write_json_text;

/// The rows of a batch.
pub(super) struct RowObjects<'a> {
    columns: Vec<Column<'a>>,
    /// The fingerprint of the spec of the signatures in the file.
    fingerprint: Option<&'a str>,
}

struct Column<'a> {
    name: &'a str,
    array: &'a ArrayRef,
    /// Whether a document has a field of this name.
    is_field: bool,
    /// Writes the values of most types.
    encoder: NullableEncoder<'a>,
}

/// Whether a value was added to the JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Added {
    /// Yes.
    Value,
    /// No: JSON has no such value.
    Nothing,
    /// No: its bytes are not UTF-8.
    NotUtf8,
}

/// A field has bytes that are not UTF-8.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotUtf8 {
    pub field: String,
}

impl<'a> RowObjects<'a> {
    /// `is_field`: whether a document has a field of this name.
    pub(super) fn new(
        batch: &'a RecordBatch,
        options: &'a EncoderOptions,
        fingerprint: Option<&'a str>,
        is_field: impl Fn(&str) -> bool,
    ) -> Result<Self, ArrowError> {
        let column = |(field, array): (&'a FieldRef, &'a ArrayRef)| {
            let (name, encoder) = (field.name(), make_encoder(field, array, options)?);
            Ok::<_, ArrowError>(Column { name, array, is_field: is_field(name), encoder })
        };
        let columns = batch.schema_ref().fields().iter().zip(batch.columns()).map(column);
        Ok(Self { columns: columns.collect::<Result<_, _>>()?, fingerprint })
    }

    /// Writes the values of a row that are fields of a document into `json`, one after another, and calls `take` with the
    /// fields. A null is a missing field.
    pub(super) fn with_fields<T>(
        &mut self,
        at: usize,
        json: &mut Vec<u8>,
        take: impl FnOnce(Fields<'_>, usize) -> T,
    ) -> Result<T, NotUtf8> {
        json.clear();
        let (mut ends, mut is_signed) = (Vec::with_capacity(self.columns.len() + 1), false);
        for column in self.columns.iter_mut().filter(|column| column.is_field && column.array.is_valid(at)) {
            is_signed |= column.name == "signature";
            match column.add_value(json, at) {
                Added::Value => ends.push((column.name, json.len())),
                Added::Nothing => {}
                Added::NotUtf8 => return Err(NotUtf8 { field: column.name.to_owned() }),
            }
        }
        if let Some(fingerprint) = self.fingerprint.filter(|_| is_signed) {
            add_json_text(json, fingerprint);
            ends.push(("fingerprint", json.len()));
        }
        let text = std::str::from_utf8(json).expect("JSON is written as UTF-8");
        let mut begin = 0;
        let field =
            |&(name, end): &(&'a str, usize)| (Cow::Borrowed(name), &text[std::mem::replace(&mut begin, end)..end]);
        Ok(take(Fields(ends.iter().map(field).collect()), text.len()))
    }

    /// Returns a row with all columns. Bytes that are not UTF-8 are in base64.
    pub(super) fn whole(&mut self, at: usize) -> Vec<u8> {
        let mut object = vec![b'{'];
        for column in self.columns.iter_mut().filter(|column| column.array.is_valid(at)) {
            if !column.add(&mut object, at) {
                add_text(&mut object, column.name, &STANDARD.encode(column.bytes(at).unwrap_or_default()));
            }
        }
        object.push(b'}');
        object
    }

    /// Returns the number that a row is ranked by, as a JSON object. `field`: the name of its column.
    pub(super) fn ranked(&mut self, at: usize, field: &str) -> Vec<u8> {
        let mut object = vec![b'{'];
        let column = self.columns.iter_mut().find(|column| column.name == field);
        if let Some(column) = column.filter(|column| column.array.is_valid(at)) {
            match number(column.array, at) {
                Some(number) => add(&mut object, field, &number),
                None => drop(column.add(&mut object, at)),
            }
        }
        object.push(b'}');
        object
    }
}

impl Column<'_> {
    /// Adds the name and the value of a row. Returns false for bytes that are not UTF-8.
    fn add(&mut self, object: &mut Vec<u8>, at: usize) -> bool {
        let before = object.len();
        add_name(object, self.name);
        let added = self.add_value(object, at);
        if added != Added::Value {
            object.truncate(before);
        }
        added != Added::NotUtf8
    }

    /// Adds the value of a row.
    fn add_value(&mut self, json: &mut Vec<u8>, at: usize) -> Added {
        let (name, array) = (self.name, self.array);
        // JSON has no NaN, so such a field is missing.
        let float = |json: &mut Vec<u8>, number: f64| match Number::from_f64(number) {
            Some(number) => added(json, &number.to_string()),
            None => Added::Nothing,
        };
        match array.data_type() {
            DataType::Utf8 => self.add_string(json, array.as_string::<i32>().value(at)),
            DataType::Float32 => return float(json, array.as_primitive::<Float32Type>().value(at).into()),
            DataType::Float64 => return float(json, array.as_primitive::<Float64Type>().value(at)),
            DataType::Binary | DataType::FixedSizeBinary(_) => {
                match self.bytes(at).and_then(|bytes| text_of(name, bytes)) {
                    Some(text) => add_json_text(json, &text),
                    None => return Added::NotUtf8,
                }
            }
            DataType::List(_) if self.is_field => {
                return added(json, &list(name, &array.as_list::<i32>().value(at)).to_string());
            }
            _ => self.encoder.encode(at, json),
        }
        Added::Value
    }

    /// `metadata` is the text of a JSON object. Only its white space is changed, because a document is one line. If the
    /// text is not an object, it is sent as a string, and the server refuses `metadata`.
    fn add_string(&self, json: &mut Vec<u8>, text: &str) {
        match Some(text).filter(|_| self.name == "metadata").and_then(|text| compact_object(text).ok()) {
            Some(object) => json.extend_from_slice(object.as_bytes()),
            // Most bytes of most files are texts, so a text is not copied first.
            None => add_json_text(json, text),
        }
    }

    fn bytes(&self, at: usize) -> Option<&[u8]> {
        match self.array.data_type() {
            DataType::Binary => Some(self.array.as_binary::<i32>().value(at)),
            DataType::FixedSizeBinary(_) => Some(self.array.as_fixed_size_binary().value(at)),
            _ => None,
        }
    }
}

fn add_json_text(json: &mut Vec<u8>, text: &str) {
    json.reserve(text.len() + 2);
    write_json_text(json, text).expect("a vector takes all bytes");
}

fn added(json: &mut Vec<u8>, value: &str) -> Added {
    json.extend_from_slice(value.as_bytes());
    Added::Value
}

fn add(object: &mut Vec<u8>, name: &str, json: &str) {
    add_name(object, name);
    object.extend_from_slice(json.as_bytes());
}

fn add_text(object: &mut Vec<u8>, name: &str, text: &str) {
    add_name(object, name);
    add_json_text(object, text);
}

fn add_name(object: &mut Vec<u8>, name: &str) {
    if object.len() > 1 {
        object.push(b',');
    }
    serde_json::to_writer(&mut *object, name).expect("a string is JSON");
    object.push(b':');
}

/// Returns bytes as the API takes them: a signature in base64, and a hash in hexadecimal digits. Other bytes are read
/// as text, because some files do not mark their columns of text as UTF-8.
fn text_of(name: &str, bytes: &[u8]) -> Option<String> {
    match name {
        "signature" => Some(STANDARD.encode(bytes)),
        "content_hash" => Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        _ => std::str::from_utf8(bytes).ok().map(str::to_owned),
    }
}

/// Returns an element of a list.
fn value(array: &ArrayRef, at: usize) -> Option<Value> {
    match array.data_type() {
        DataType::Utf8 => Some(array.as_string::<i32>().value(at).into()),
        DataType::Binary => text_of("", array.as_binary::<i32>().value(at)).map(Value::from),
        DataType::Boolean => Some(array.as_boolean().value(at).into()),
        DataType::Float32 => Number::from_f64(array.as_primitive::<Float32Type>().value(at).into()).map(Value::Number),
        DataType::Float64 => Number::from_f64(array.as_primitive::<Float64Type>().value(at)).map(Value::Number),
        kind if kind.is_integer() => Number::from_i128(integer(array, at)).map(Value::Number),
        _ => None,
    }
}

/// Returns labels of the form `name:value` as an object, and any other list as an array. Labels that cannot form such
/// an object are sent as an array. The server refuses it, and its error names the field.
fn list(name: &str, values: &ArrayRef) -> Value {
    let elements = (0..values.len()).filter(|&at| values.is_valid(at)).filter_map(|at| value(values, at));
    let elements: Vec<Value> = elements.collect();
    let labels = elements.iter().map(|label| label.as_str()?.split_once(':'));
    match labels.collect::<Option<BTreeMap<&str, &str>>>() {
        Some(labels) if name == "labels" && labels.len() == elements.len() => json!(labels),
        _ => elements.into(),
    }
}
