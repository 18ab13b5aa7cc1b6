//! Descriptions of collections, as the server sends them -> lines for people. Fields that this version does not know
//! are shown too.

use std::fmt::Write;

use crate::input::Fields;

/// The columns of a list, and the fields that they show.
const COLUMNS: [(&str, &str); 8] = [
    ("NAME", "name"),
    ("INDEX", "index"),
    ("DOCUMENTS", "documents"),
    ("THRESHOLD", "threshold"),
    ("VERIFY", "verify"),
    ("KEEP", "keep"),
    ("TTL", "ttl"),
    ("SPEC", "spec"),
];

/// Returns one line for each field.
pub(super) fn description(fields: &Fields<'_>) -> String {
    let width = fields.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    fields.0.iter().fold(String::new(), |mut text, (name, value)| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<width$}  {}", shown(value));
        text
    })
}

/// Returns a table with a row for each collection.
pub(super) fn table(collections: &[Fields<'_>]) -> String {
    let mut rows = vec![COLUMNS.map(|(title, _)| title.to_owned())];
    let cell = |fields: &Fields<'_>, name| fields.get(name).map_or_else(|| "-".to_owned(), shown);
    rows.extend(collections.iter().map(|fields| COLUMNS.map(|(_, name)| cell(fields, name))));
    let widths: [usize; COLUMNS.len()] =
        std::array::from_fn(|at| rows.iter().map(|row| row[at].len()).max().unwrap_or(0));
    let line = |row: &[String; COLUMNS.len()]| {
        let cells: Vec<_> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// Returns a value without the punctuation of JSON: `{"bands": 31, "rows": 8}` -> `bands 31, rows 8`.
fn shown(value: &str) -> String {
    if let Ok(text) = serde_json::from_str::<String>(value) {
        return text;
    }
    match serde_json::from_str::<Fields<'_>>(value) {
        Ok(fields) => {
            let parts: Vec<_> = fields.0.iter().map(|(name, value)| format!("{name} {}", shown(value))).collect();
            parts.join(", ")
        }
        Err(_) => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_fields_are_shown_in_their_order() {
        let one = r#"{"name":"poems","spec":"s","banding":{"bands":31,"rows":8},"threshold":0.8,"new":[1]}"#;
        let fields: Fields<'_> = serde_json::from_str(one).unwrap();
        assert_eq!(
            description(&fields),
            "name       poems\nspec       s\nbanding    bands 31, rows 8\nthreshold  0.8\nnew        [1]\n"
        );
        assert_eq!(
            table(&[fields]),
            "NAME   INDEX  DOCUMENTS  THRESHOLD  VERIFY  KEEP  TTL  SPEC\npoems  -      -          0.8        -       -     -    s\n"
        );
    }
}
