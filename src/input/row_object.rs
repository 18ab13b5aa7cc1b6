//! The rows of a batch of a Parquet file -> JSON objects. Knows nothing of files.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_json::writer::{EncoderOptions, NullableEncoder, make_encoder};
use arrow_schema::{ArrowError, DataType, FieldRef};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value, json};

use super::json_text::add_json_text;
use super::row_number::number;
use crate::load::integer;
use crate::types::strict_json::compact_object;

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

    /// Returns a row with the fields of a document. A null is a missing field.
    pub(super) fn document(&mut self, at: usize) -> Result<Vec<u8>, NotUtf8> {
        let (mut object, mut is_signed) = (vec![b'{'], false);
        for column in self.columns.iter_mut().filter(|column| column.is_field && column.array.is_valid(at)) {
            is_signed |= column.name == "signature";
            if !column.add(&mut object, at) {
                return Err(NotUtf8 { field: column.name.to_owned() });
            }
        }
        if let Some(fingerprint) = self.fingerprint.filter(|_| is_signed) {
            add_text(&mut object, "fingerprint", fingerprint);
        }
        object.push(b'}');
        Ok(object)
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
    /// Adds the value of a row. Returns false for bytes that are not UTF-8.
    fn add(&mut self, object: &mut Vec<u8>, at: usize) -> bool {
        let (name, array) = (self.name, self.array);
        let float = |object: &mut Vec<u8>, number: f64| {
            // JSON has no NaN, so this field is missing.
            if let Some(number) = Number::from_f64(number) {
                add(object, name, &number.to_string());
            }
        };
        match array.data_type() {
            DataType::Utf8 => self.add_string(object, array.as_string::<i32>().value(at)),
            DataType::Float32 => float(object, array.as_primitive::<Float32Type>().value(at).into()),
            DataType::Float64 => float(object, array.as_primitive::<Float64Type>().value(at)),
            DataType::Binary | DataType::FixedSizeBinary(_) => {
                let Some(text) = self.bytes(at).and_then(|bytes| text_of(name, bytes)) else { return false };
                add_text(object, name, &text);
            }
            DataType::List(_) if self.is_field => {
                add(object, name, &list(name, &array.as_list::<i32>().value(at)).to_string());
            }
            _ => {
                add_name(object, name);
                self.encoder.encode(at, object);
            }
        }
        true
    }

    /// `metadata` is the text of a JSON object. Only its white space is changed, because a document is one line. If the
    /// text is not an object, it is sent as a string, and the server refuses `metadata`.
    fn add_string(&self, object: &mut Vec<u8>, text: &str) {
        match Some(text).filter(|_| self.name == "metadata").and_then(|text| compact_object(text).ok()) {
            Some(json) => add(object, self.name, &json),
            // Most bytes of most files are texts, so a text is not copied first.
            None => add_text(object, self.name, text),
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
