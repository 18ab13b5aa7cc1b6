//! A line of JSON -> a document in the form of the API. The id and the text get the API's names, and fields that the
//! API does not know are left out. Knows nothing of files.

use serde_json::value::RawValue;

use super::fields::Fields;
use super::reason::{NoField, Reason};
use super::wanted::LineForm;
use crate::types::{CaptureDate, DOCUMENT_FIELDS};

/// The number of fields that a message lists, and the number of characters that it shows of each name.
const SHOWN_FIELDS: usize = 8;
const SHOWN_CHARS: usize = 40;

/// Turns a line into a document of the API.
pub(super) fn document(line: &[u8], form: &LineForm) -> Result<Vec<u8>, Reason> {
    let text = std::str::from_utf8(line)
        .map_err(|error| Reason::other("not_utf8", format!("not valid UTF-8 (column {})", error.valid_up_to() + 1)))?;
    // serde_json counts lines inside one record, so its "line 1" would contradict the line number in the file.
    let malformed = |detail: String| Reason::other("malformed_json", detail);
    let record: Fields<'_> = serde_json::from_str(text).map_err(|error| match error.is_eof() {
        true => malformed(format!("not a complete JSON object: it ends too early (column {})", error.column())),
        false => malformed(format!("not a JSON object (column {})", error.column().max(1))),
    })?;
    refuse_twice(&record, form)?;
    let mut document = Vec::with_capacity(line.len() + 16);
    let mut add = |name: &str, value: &str| {
        document.extend_from_slice(if document.is_empty() { b"{\"" } else { b",\"" });
        document.extend_from_slice(name.as_bytes());
        document.extend_from_slice(b"\":");
        document.extend_from_slice(value.as_bytes());
    };
    match record.get(&form.id_field).map(RawValue::get) {
        // Ids in data sets are often numbers, but the API accepts only strings.
        Some(id) if id.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') => add("id", &format!("\"{id}\"")),
        Some(id) => add("id", id),
        None if form.id_required => return Err(missing(&record, &form.id_field, true)),
        None => {}
    }
    let text = record.get(&form.text_field);
    if let Some(text) = text {
        add("text", text.get());
    }
    // A document has only one content. If a line has both a text and the field `html`, as in some data sets, `html` is
    // not sent.
    let others = DOCUMENT_FIELDS.iter().filter(|name| !["id", "text"].contains(name));
    let others = others.filter(|name| text.is_none() || **name != "html");
    // Without a signature, `content_hash` and `shingles` are fields of the data set with another meaning. They are not
    // sent.
    let is_signed = record.get("signature").is_some();
    let others = others.filter(|name| is_signed || !["content_hash", "shingles"].contains(name));
    // A `date` that is not a valid capture date is a field of the data set with another meaning. It is not sent.
    let is_other_date = |name: &str, value: &RawValue| name == "date" && CaptureDate::of_json(value.get()).is_none();
    let mut has_content = text.is_some();
    for name in others {
        if let Some(value) = record.get(name).filter(|value| !is_other_date(name, value)) {
            has_content |= ["html", "set", "signature"].contains(name);
            add(name, value.get());
        }
    }
    if !has_content {
        return Err(missing(&record, &form.text_field, false));
    }
    document.push(b'}');
    Ok(document)
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
    let is_string = |value: &RawValue| value.get().starts_with('"');
    let strings = !is_id && record.0.iter().any(|(_, value)| is_string(value));
    let names = record.0.iter().filter(|(_, value)| !strings || is_string(value));
    let mut present: Vec<_> = names.clone().take(SHOWN_FIELDS).map(|(name, _)| shown(name)).collect();
    if names.count() > SHOWN_FIELDS {
        present.push("…".to_owned());
    }
    Reason::NoField(NoField { field: field.to_owned(), is_id, present })
}

fn shown(name: &str) -> String {
    let cut: String = name.chars().take(SHOWN_CHARS).collect();
    if cut.len() == name.len() { format!("{name:?}") } else { format!("{:?}", cut + "…") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(id_required: bool) -> LineForm {
        LineForm { id_field: "url".into(), text_field: "body".into(), id_required }
    }

    fn mapped(line: &str) -> Result<String, String> {
        let document = document(line.as_bytes(), &form(false)).map_err(|reason| reason.to_string());
        document.map(|line| String::from_utf8(line).expect("UTF-8"))
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
        let broken = document(b"{\"body\":\"\xFF\"}", &form(false)).map_err(|reason| reason.to_string());
        assert_eq!(broken, Err("not valid UTF-8 (column 10)".into()));
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
        let error = document(br#"{"id":1,"body":"t"}"#, &form(true)).unwrap_err();
        assert_eq!(error.to_string(), r#"no field "url"; there are "id", "body""#);
    }
}
