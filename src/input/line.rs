//! A line of JSON -> a document in the form of the API. The id and the text get the API's names, and fields that the
//! API does not know are left out. Knows nothing of files.

use serde_json::Value;

use super::chunk::Origin;
use super::fields::{Fields, kind_of};
use super::reason::{NoField, Reason};
use super::wanted::{Ids, LabelField, LineForm};
use crate::types::{CaptureDate, DOCUMENT_FIELDS};

/// The number of fields that a message lists, and the number of characters that it shows of each name.
const SHOWN_FIELDS: usize = 8;
const SHOWN_CHARS: usize = 40;

/// Turns a line into a document of the API. A field that is `null` is missing.
pub(super) fn document(line: &[u8], form: &LineForm, origin: &Origin) -> Result<Vec<u8>, Reason> {
    let text = std::str::from_utf8(line)
        .map_err(|error| Reason::other("not_utf8", format!("not valid UTF-8 (column {})", error.valid_up_to() + 1)))?;
    // serde_json counts lines inside one record, so its "line 1" would contradict the line number in the file.
    let malformed = |detail: String| Reason::other("malformed_json", detail);
    let record: Fields<'_> = serde_json::from_str(text).map_err(|error| match error.is_eof() {
        true => malformed(format!("not a complete JSON object: it ends too early (column {})", error.column())),
        false => malformed(format!("not a JSON object (column {})", error.column().max(1))),
    })?;
    of_fields(&record, line.len(), form, origin)
}

/// Turns the fields of a record into a document of the API. `bytes`: about how many bytes the record has as JSON.
pub(super) fn of_fields(
    record: &Fields<'_>,
    bytes: usize,
    form: &LineForm,
    origin: &Origin,
) -> Result<Vec<u8>, Reason> {
    refuse_twice(record, form)?;
    form.seen.add(form, |field| record.present(field).is_some());
    let mut document = Document(Vec::with_capacity(bytes + 16));
    match (record.present(&form.id_field), form.ids) {
        // Ids in data sets are often numbers, but the API accepts only strings.
        (Some(id), _) if is_whole_number(id) => document.add("id", &format!("\"{id}\"")),
        (Some(id), _) if id.starts_with('"') => document.add("id", id),
        (Some(id), _) => return Err(other_type(&form.id_field, "a string or a whole number", id)),
        (None, Ids::Made) => document.add("id", &Value::from(origin.made_id()).to_string()),
        (None, Ids::Required) => return Err(missing(record, &form.id_field, true)),
        (None, Ids::Optional) => {}
    }
    // A document has only one content. If a line has both a text and a page, as in some data sets, the page is not sent.
    let text = record.present(&form.text_field).map(|text| ("text", &form.text_field, text));
    let text = text.or_else(|| record.present(&form.html_field).map(|html| ("html", &form.html_field, html)));
    match text {
        Some((name, _, value)) if value.starts_with('"') => document.add(name, value),
        Some((_, field, value)) => return Err(other_type(field, "a string", value)),
        None => {}
    }
    let others = DOCUMENT_FIELDS.iter().filter(|name| !["id", "text", "html"].contains(name));
    // Without a signature, `content_hash` and `shingles` are fields of the data set with another meaning. They are not
    // sent.
    let is_signed = record.present("signature").is_some();
    let others = others.filter(|name| is_signed || !["content_hash", "shingles"].contains(name));
    // A `date` that is not a valid capture date is a field of the data set with another meaning. It is not sent.
    let is_other_date = |name: &str, value: &str| name == "date" && CaptureDate::of_json(value).is_none();
    let mut has_content = text.is_some();
    for name in others {
        if let Some(value) = record.present(name).filter(|value| !is_other_date(name, value)) {
            has_content |= ["set", "signature"].contains(name);
            if *name != "labels" || form.label_fields.is_empty() {
                document.add(name, value);
            }
        }
    }
    if !has_content {
        return Err(missing(record, &form.text_field, false));
    }
    if let Some(labels) = labels(record, &form.label_fields)? {
        document.add("labels", &labels);
    }
    document.0.push(b'}');
    Ok(document.0)
}

/// A document as JSON, without its last brace.
struct Document(Vec<u8>);

impl Document {
    fn add(&mut self, name: &str, value: &str) {
        self.0.extend_from_slice(if self.0.is_empty() { b"{\"" } else { b",\"" });
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
        self.0.extend_from_slice(value.as_bytes());
    }
}

/// The reason for a field that has a value of another type.
fn other_type(field: &str, wanted: &str, value: &str) -> Reason {
    let shown = if kind_of(value) == "a number" { value } else { kind_of(value) };
    Reason::other("invalid_value", format!("{field}: must be {wanted}, but is {shown}"))
}

fn is_whole_number(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// Returns the labels of a line: those of its field `labels`, and the values of the fields that become labels.
fn labels(record: &Fields<'_>, label_fields: &[LabelField]) -> Result<Option<String>, Reason> {
    let given = label_fields.iter().filter_map(|of| Some((of, record.present(&of.field)?)));
    let given: Vec<_> = given.collect();
    let own = record.present("labels").filter(|_| !label_fields.is_empty());
    let Some(own) = own.map_or(Some(Fields(Vec::new())), |own| serde_json::from_str(own).ok()) else {
        // The server refuses labels that are no object, and its error names the field.
        return Ok(own.map(str::to_owned));
    };
    if given.is_empty() && own.0.is_empty() {
        return Ok(None);
    }
    let mut labels = Document(Vec::new());
    for (name, value) in &own.0 {
        labels.add(&escaped(name), value);
    }
    for (LabelField { label, field }, value) in given {
        if own.get(label).is_some() {
            return Err(Reason::other(
                "invalid_value",
                format!("{field}: its label {label} is also in the field labels"),
            ));
        }
        labels.add(&escaped(label), &label_value(field, value)?);
    }
    labels.0.push(b'}');
    Ok(Some(String::from_utf8(labels.0).expect("it was made of strings")))
}

/// Returns the value of a label as JSON. A label has one value, so of a list only its one element can be used.
fn label_value(field: &str, value: &str) -> Result<String, Reason> {
    match serde_json::from_str(value) {
        Ok(Value::String(text)) => Ok(Value::from(text).to_string()),
        // Its digits as they were written.
        Ok(Value::Number(_)) => Ok(format!("\"{value}\"")),
        Ok(Value::Array(list)) if list.len() == 1 && list[0].is_string() => Ok(list[0].to_string()),
        _ => {
            let detail = format!("{field}: a label is a string, a number or a list of one string");
            Err(Reason::other("invalid_value", detail))
        }
    }
}

/// Returns a name as JSON without its quotes.
fn escaped(name: &str) -> String {
    let json = Value::from(name).to_string();
    json[1..json.len() - 1].to_owned()
}

/// Refuses a line with two ids or two texts, as the API does, because programs differ in which of the two they read.
fn refuse_twice(record: &Fields<'_>, form: &LineForm) -> Result<(), Reason> {
    for name in [&form.id_field, &form.text_field] {
        if record.0.iter().filter(|(field, _)| field == name).count() > 1 {
            return Err(Reason::other("invalid_value", format!("{name}: is given twice")));
        }
    }
    Ok(())
}

/// Returns a reason that names the fields that may be meant instead. If the text is missing and the line has strings,
/// only the fields with strings are named.
fn missing(record: &Fields<'_>, field: &str, is_id: bool) -> Reason {
    let is_string = |value: &str| value.starts_with('"');
    let strings = !is_id && record.0.iter().any(|(_, value)| is_string(value));
    let names = record.0.iter().filter(|(_, value)| !strings || is_string(value));
    Reason::NoField(no_field(field, is_id, names.map(|(name, _)| &**name)))
}

/// Returns the absent field, with those that there are.
pub(super) fn no_field<'a>(field: &str, is_id: bool, names: impl Iterator<Item = &'a str>) -> NoField {
    let mut present: Vec<_> = names.take(SHOWN_FIELDS + 1).map(shown).collect();
    if present.len() > SHOWN_FIELDS {
        present[SHOWN_FIELDS] = "…".to_owned();
    }
    NoField { field: field.to_owned(), is_id, present }
}

fn shown(name: &str) -> String {
    let cut: String = name.chars().take(SHOWN_CHARS).collect();
    if cut.len() == name.len() { format!("{name:?}") } else { format!("{:?}", cut + "…") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::chunk::Place;

    fn form(ids: Ids) -> LineForm {
        LineForm { id_field: "url".into(), text_field: "body".into(), ids, ..LineForm::default() }
    }

    fn mapped_by(form: &LineForm, line: &[u8]) -> Result<String, String> {
        let origin = Origin { file: "x".into(), place: Place::Line { number: 7, offset: 99 } };
        let document = document(line, form, &origin).map_err(|reason| reason.to_string());
        document.map(|line| String::from_utf8(line).expect("UTF-8"))
    }

    fn mapped(line: &str) -> Result<String, String> {
        mapped_by(&form(Ids::Optional), line.as_bytes())
    }

    #[test]
    fn records_become_documents() {
        assert_eq!(
            mapped(r#"{"x": 1, "body" : "a\nb", "url": "https://a.example/"}"#),
            Ok(r#"{"id":"https://a.example/","text":"a\nb"}"#.into())
        );
        assert_eq!(mapped("{\"url\": 17, \"body\": \"\"}"), Ok(r#"{"id":"17","text":""}"#.into()));
        assert_eq!(
            mapped(r#"{"url":"a","set":[1, 2],"metadata":{"n": 1}}"#),
            Ok(r#"{"id":"a","set":[1, 2],"metadata":{"n": 1}}"#.into())
        );
        assert_eq!(mapped(r#"{"body":"t"}"#), Ok(r#"{"text":"t"}"#.into()));
        assert!(mapped("{\"\\u0075rl\":\"a\",\"body\":\"t\"}").is_ok_and(|line| line.contains("\"id\":\"a\"")));
        assert_eq!(mapped(r#"{"html":"<p>","body":"t","text":"u"}"#), Ok(r#"{"text":"t"}"#.into()));
        assert_eq!(
            mapped(r#"{"body":"t","date":"2026-11-20","payload_digest":"md5:0"}"#),
            Ok(r#"{"text":"t","date":"2026-11-20","payload_digest":"md5:0"}"#.into())
        );
        assert_eq!(mapped(r#"{"body":"t","date":"20 November"}"#), Ok(r#"{"text":"t"}"#.into()));
        assert_eq!(mapped(r#"{"html":"<p>"}"#), Ok(r#"{"html":"<p>"}"#.into()));
    }

    #[test]
    fn lines_that_are_no_documents_say_why() {
        let twice = "{\"body\":\"t\",\"url\":1,\"n\":1,\"n\":2,\"\\u0075rl\":2}";
        assert_eq!(mapped(twice), Err("url: is given twice".into()));
        assert_eq!(mapped(r#"{"body":"t","body":"u"}"#), Err("body: is given twice".into()));
        assert_eq!(mapped("[1]"), Err("not a JSON object (column 1)".into()));
        assert_eq!(mapped("nonsense"), Err("not a JSON object (column 2)".into()));
        assert_eq!(mapped("{\"url\":"), Err("not a complete JSON object: it ends too early (column 7)".into()));
        let broken = mapped_by(&form(Ids::Optional), b"{\"body\":\"\xFF\"}");
        assert_eq!(broken, Err("not valid UTF-8 (column 10)".into()));
    }

    #[test]
    fn a_null_is_a_missing_field_and_another_type_is_an_error() {
        assert_eq!(mapped(r#"{"body":null,"html":"<p>"}"#), Ok(r#"{"html":"<p>"}"#.into()));
        assert_eq!(mapped(r#"{"url":null,"body":"t","metadata":null,"labels":null}"#), Ok(r#"{"text":"t"}"#.into()));
        assert!(mapped(r#"{"body":null,"set":null}"#).is_err_and(|reason| reason.starts_with("no field \"body\"")));
        let made = mapped_by(&form(Ids::Made), br#"{"url":null,"body":"t"}"#);
        assert_eq!(made, Ok(r#"{"id":"x:7","text":"t"}"#.into()));
        let wrong = |line: &str| mapped(line).unwrap_err();
        assert_eq!(wrong(r#"{"url":1.5,"body":"t"}"#), "url: must be a string or a whole number, but is 1.5");
        assert_eq!(wrong(r#"{"url":["a"],"body":"t"}"#), "url: must be a string or a whole number, but is an array");
        assert_eq!(wrong(r#"{"body":7}"#), "body: must be a string, but is 7");
        assert_eq!(wrong(r#"{"html":{"a":1}}"#), "html: must be a string, but is an object");
    }

    #[test]
    fn a_line_without_a_text_names_the_fields_that_may_be_meant() {
        assert_eq!(
            mapped(r#"{"n":1,"content":"x","url":"y"}"#),
            Err(r#"no field "body"; there are "content", "url""#.into())
        );
        assert_eq!(mapped(r#"{"n":1}"#), Err(r#"no field "body"; there is "n""#.into()));
        assert_eq!(mapped("{}"), Err(r#"no field "body""#.into()));
        let many: Vec<_> = (0..20).map(|n| format!("\"f{n}\":1")).collect();
        assert!(mapped(&format!("{{{}}}", many.join(","))).unwrap_err().ends_with("\"f7\", …"));
        let error = mapped_by(&form(Ids::Required), br#"{"id":1,"body":"t"}"#).unwrap_err();
        assert_eq!(error, r#"no field "url"; there are "id", "body""#);
    }
}
