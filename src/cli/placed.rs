//! An answer line of a bulk request -> the same line with the place in the file instead of the place in the request.

use serde::Serialize;

use crate::input::{Fields, Origin, Place, Reason};

/// The place in a file from which a document came, as fields of an output line.
#[derive(Debug, Default, Serialize)]
pub(super) struct PlaceFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
}

impl<'a> PlaceFields<'a> {
    /// Returns the place in the file, without the file's name.
    pub(super) fn in_file(origin: &Origin) -> Self {
        match origin.place {
            Place::Line { number, .. } => Self { line: Some(number), ..Self::default() },
            Place::Row(number) => Self { row: Some(number), ..Self::default() },
            Place::Record { number, offset } => Self { record: Some(number), offset: Some(offset), ..Self::default() },
            Place::File => Self::default(),
        }
    }

    /// Returns the place with the file's name.
    pub(super) fn of(origin: &'a Origin) -> Self {
        Self { file: Some(&origin.file), ..Self::in_file(origin) }
    }

    /// Adds the byte at which a line begins. It is shown only for lines that cannot be used.
    pub(super) fn with_offset(self, origin: &Origin) -> Self {
        match origin.place {
            Place::Line { offset, .. } => Self { offset: Some(offset), ..self },
            Place::Row(_) | Place::Record { .. } | Place::File => self,
        }
    }
}

/// Replaces the field `line` by the place.
pub(super) fn placed(fields: &Fields<'_>, place: &PlaceFields<'_>) -> String {
    let place = serde_json::to_string(place).expect("a place is JSON");
    // Empty for a document that is a whole file, if the file is not named.
    let place = &place[1..place.len() - 1];
    let mut text = String::new();
    for (name, value) in &fields.0 {
        if name == "line" && place.is_empty() {
            continue;
        }
        text.push(if text.is_empty() { '{' } else { ',' });
        if name == "line" {
            text.push_str(place);
            continue;
        }
        text.push_str(&serde_json::Value::from(&**name).to_string());
        text.push(':');
        text.push_str(value);
    }
    text.push('}');
    text
}

/// An output line for a document without a verdict. It has the form of a line in the bulk route's answer.
#[derive(Serialize)]
pub(super) struct ErrorLine<'a, E> {
    kind: &'static str,
    #[serde(flatten)]
    place: PlaceFields<'a>,
    error: E,
}

impl<'a, E> ErrorLine<'a, E> {
    pub(super) fn new(place: PlaceFields<'a>, error: E) -> Self {
        Self { kind: "error", place, error }
    }
}

/// The reason why a line or a record could not be read as a document.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Unreadable {
    code: &'static str,
    detail: String,
}

/// The code for an answer that is not from hapax, or is from a later version.
pub(super) const FOREIGN_ANSWER: &str = "foreign_answer";

impl Unreadable {
    pub(super) fn answer() -> Self {
        Self { code: FOREIGN_ANSWER, detail: "cannot read the server's answer".to_owned() }
    }

    pub(super) fn new(code: &'static str, detail: String) -> Self {
        Self { code, detail }
    }

    /// A sentence for people.
    pub(super) fn detail(&self) -> &str {
        &self.detail
    }
}

impl From<&Reason> for Unreadable {
    fn from(reason: &Reason) -> Self {
        Self { code: reason.code(), detail: reason.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_in_the_file_replaces_the_one_in_the_request() {
        let answer = r#"{"kind":"verdict","line":7,"id":"a\"b","matches":[{"line":1}]}"#;
        let fields: Fields<'_> = serde_json::from_str(answer).unwrap();
        let line = Origin { file: "p\"q".into(), place: Place::Line { number: 1001, offset: 90 } };
        assert_eq!(
            placed(&fields, &PlaceFields::in_file(&line)),
            r#"{"kind":"verdict","line":1001,"id":"a\"b","matches":[{"line":1}]}"#
        );
        let record = Origin { file: "x}.warc".into(), place: Place::Record { number: 3, offset: 784 } };
        assert_eq!(
            placed(&fields, &PlaceFields::of(&record)),
            r#"{"kind":"verdict","file":"x}.warc","record":3,"offset":784,"id":"a\"b","matches":[{"line":1}]}"#
        );
        assert_eq!(
            serde_json::to_string(&ErrorLine::new(PlaceFields::of(&line).with_offset(&line), Unreadable::answer()))
                .unwrap(),
            r#"{"kind":"error","file":"p\"q","line":1001,"offset":90,"error":{"code":"foreign_answer","detail":"cannot read the server's answer"}}"#
        );
    }
}
