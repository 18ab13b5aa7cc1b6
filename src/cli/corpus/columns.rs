//! The columns of Parquet files that have the fields of output lines.

use arrow_schema::{DataType, Field, Fields, Schema};

/// Returns the first name that stands before it too.
pub(in crate::cli) fn first_repeated(names: &[String]) -> Option<&String> {
    (1..names.len()).find(|&at| names[..at].contains(&names[at])).map(|at| &names[at])
}

/// A column that a row may lack.
pub(in crate::cli) fn optional(name: &str, kind: DataType) -> Field {
    Field::new(name, kind, true)
}

/// Columns of texts.
pub(in crate::cli) fn texts(names: &[&str]) -> Vec<Field> {
    names.iter().map(|name| optional(name, DataType::Utf8)).collect()
}

/// Columns of whole numbers.
pub(in crate::cli) fn counts(names: &[&str]) -> Vec<Field> {
    names.iter().map(|name| optional(name, DataType::UInt64)).collect()
}

/// Columns of numbers.
pub(in crate::cli) fn numbers(names: &[&str]) -> Vec<Field> {
    names.iter().map(|name| optional(name, DataType::Float64)).collect()
}

/// The columns of a place in a file.
pub(in crate::cli) fn place() -> Vec<Field> {
    [texts(&["file"]), counts(&["line", "row", "record", "offset"])].concat()
}

/// A column with several fields.
pub(in crate::cli) fn group(name: &str, fields: Vec<Field>) -> Field {
    optional(name, DataType::Struct(Fields::from(fields)))
}

/// The columns of a report: a kind, a place, `fields`, and an error.
pub(in crate::cli) fn report(fields: Vec<Vec<Field>>) -> Schema {
    let kind = vec![Field::new("kind", DataType::Utf8, false)];
    let error = vec![group("error", texts(&["code", "detail"]))];
    Schema::new([vec![kind, place()], fields, vec![error]].concat().concat())
}
