//! A row of a Parquet file -> a JSON object with the columns that have the name of a field. Knows nothing of files.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value, json};

use crate::load::integer;
use crate::types::strict_json::compact_object;

/// Returns a row as JSON. Values that JSON cannot express are left out.
pub(super) fn object(batch: &RecordBatch, at: usize, fingerprint: Option<&str>) -> Vec<u8> {
    let schema = batch.schema();
    let (mut object, mut is_signed) = (vec![b'{'], false);
    for (field, array) in schema.fields().iter().zip(batch.columns()).filter(|(_, array)| array.is_valid(at)) {
        let name = field.name();
        is_signed |= name == "signature";
        // `metadata` is the text of a JSON object. Only its white space is changed, because a document is one line. If
        // the text is not an object, it is sent as a string, and the server refuses `metadata`.
        let text = (*array.data_type() == DataType::Utf8).then(|| array.as_string::<i32>().value(at));
        let compact = text.filter(|_| name == "metadata").and_then(|text| compact_object(text).ok());
        match (text, compact) {
            (_, Some(json)) => add(&mut object, name, &json),
            // Most bytes of most files are texts, so a text is not copied first.
            (Some(text), None) => add_text(&mut object, name, text),
            (None, None) => {
                if let Some(value) = value(name, array, at) {
                    add(&mut object, name, &value.to_string());
                }
            }
        }
    }
    if let Some(fingerprint) = fingerprint.filter(|_| is_signed) {
        add_text(&mut object, "fingerprint", fingerprint);
    }
    object.push(b'}');
    object
}

fn add(object: &mut Vec<u8>, name: &str, json: &str) {
    add_name(object, name);
    object.extend_from_slice(json.as_bytes());
}

fn add_text(object: &mut Vec<u8>, name: &str, text: &str) {
    add_name(object, name);
    serde_json::to_writer(object, text).expect("a string is JSON");
}

fn add_name(object: &mut Vec<u8>, name: &str) {
    if object.len() > 1 {
        object.push(b',');
    }
    serde_json::to_writer(&mut *object, name).expect("a string is JSON");
    object.push(b':');
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
