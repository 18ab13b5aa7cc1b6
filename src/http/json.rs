//! JSON text -> its fields, taken one by one. Each error names its field.
//! Unknown and repeated fields are refused, nesting is limited, and no field is ignored silently.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use smallvec::SmallVec;

use super::error::{Code, FieldError, Problem};
use crate::types::strict_json::{compact_object, in_plain_words};

/// A JSON object whose fields have not been parsed yet.
#[derive(Debug)]
pub struct Object<'a> {
    fields: Fields<'a>,
    known: SmallVec<[&'static str; 12]>,
}

/// Inline space for as many fields as a document usually has, so that parsing such a document needs no allocation.
type Fields<'a> = SmallVec<[(Cow<'a, str>, &'a RawValue); 4]>;

impl<'a> Object<'a> {
    /// Splits `text` into fields. It must be one JSON object.
    pub fn parse(text: &'a str) -> Result<Self, Problem> {
        if !text.trim_start_matches([' ', '\t', '\r', '\n']).starts_with('{') {
            // Well-formed JSON of another type is an invalid value; anything else is malformed.
            return Err(match serde_json::from_str::<IgnoredAny>(text) {
                Ok(_) => Problem::new(Code::InvalidValue, "the body must be a JSON object"),
                Err(error) => malformed(text, &error),
            });
        }
        let ObjectFields(fields) = serde_json::from_str(text).map_err(|error| malformed(text, &error))?;
        for (at, (name, _)) in fields.iter().enumerate() {
            if fields[..at].iter().any(|(earlier, _)| earlier == name) {
                return Err(Problem::invalid(name.clone().into_owned(), "is given twice"));
            }
        }
        Ok(Self { fields, known: SmallVec::new() })
    }

    /// The raw value of a field. `null` is a value too, and no field accepts it: it could mean "the default", "nothing"
    /// or "remove it".
    pub fn raw(&mut self, name: &'static str) -> Option<&'a RawValue> {
        self.known.push(name);
        let at = self.fields.iter().position(|(field, _)| field == name)?;
        Some(self.fields.remove(at).1)
    }

    /// Returns all fields with their names, for an object whose field names are data.
    pub fn into_fields(self) -> impl Iterator<Item = (Cow<'a, str>, &'a RawValue)> {
        self.fields.into_iter()
    }

    /// A field of type `T`. `expected` completes the error message "must be …".
    pub fn take<T: Deserialize<'a>>(&mut self, name: &'static str, expected: &str) -> Result<Option<T>, Problem> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        serde_json::from_str(raw.get()).map(Some).map_err(|_| Problem::invalid(name, format!("must be {expected}")))
    }

    /// A string field, unescaped.
    pub fn string(&mut self, name: &'static str) -> Result<Option<String>, Problem> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        string(name, raw).map(Some)
    }

    /// A field that is an object.
    pub fn object(&mut self, name: &'static str) -> Result<Option<Object<'a>>, Problem> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        match Object::parse(raw.get()) {
            Ok(object) => Ok(Some(object)),
            Err(problem) if problem.errors.is_empty() => Err(Problem::invalid(name, "must be an object")),
            Err(problem) => Err(problem.within(name)),
        }
    }

    /// Leaves a field out if it is an array without elements. Generated Java clients send an empty array for each array
    /// that their user left out.
    pub fn leave_out_empty_array(&mut self, name: &str) {
        let empty = |raw: &RawValue| {
            let elements = raw.get().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            elements.is_some_and(|elements| elements.trim_ascii().is_empty())
        };
        self.fields.retain(|(field, raw)| field != name || !empty(raw));
    }

    /// Leaves a field out if `is_wanted` returns false for its value.
    pub fn leave_out_unless(&mut self, name: &str, is_wanted: impl Fn(&RawValue) -> bool) {
        self.fields.retain(|(field, raw)| field != name || is_wanted(raw));
    }

    /// Refuses fields that were not read.
    pub fn finish(self) -> Result<(), Problem> {
        if self.fields.is_empty() {
            return Ok(());
        }
        let detail = format!("is unknown; known fields: {}", self.known.join(", "));
        let errors =
            self.fields.into_iter().map(|(name, _)| FieldError { field: name.into_owned(), detail: detail.clone() });
        Err(Problem::invalid_fields(errors.collect()))
    }
}

/// Unescapes the string in `raw`.
pub fn string(name: &'static str, raw: &RawValue) -> Result<String, Problem> {
    // The value is well-formed, so a string without escapes is the text between its quotes.
    if let Some(text) = raw.get().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'))
        && memchr::memchr(b'\\', text.as_bytes()).is_none()
    {
        return Ok(text.to_owned());
    }
    serde_json::from_str(raw.get()).map_err(|error| {
        let unpaired = raw.get().starts_with('"') && !error.is_data();
        Problem::invalid(name, if unpaired { "has an unpaired surrogate escape" } else { "must be a string" })
    })
}

/// Unescapes the string in `raw`, and replaces each unpaired surrogate escape with U+FFFD.
pub fn string_lossy(name: &'static str, raw: &RawValue) -> Result<String, Problem> {
    if let Ok(text) = string(name, raw) {
        return Ok(text);
    }
    struct Wtf8;
    impl<'de> Visitor<'de> for Wtf8 {
        type Value = Vec<u8>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }
        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }
    }
    if !raw.get().starts_with('"') {
        return Err(Problem::invalid(name, "must be a string"));
    }
    // serde_json passes each unpaired surrogate to `visit_bytes` as three bytes that begin with ED A0..BF. No
    // well-formed UTF-8 contains such bytes.
    let bytes = serde_json::Deserializer::from_str(raw.get())
        .deserialize_bytes(Wtf8)
        .map_err(|_| Problem::invalid(name, "must be a string"))?;
    let mut mended = Vec::with_capacity(bytes.len());
    let mut rest = bytes.as_slice();
    while let [first, tail @ ..] = rest {
        if let [0xED, 0xA0..=0xBF, 0x80..=0xBF, tail @ ..] = rest {
            mended.extend_from_slice("\u{FFFD}".as_bytes());
            rest = tail;
        } else {
            mended.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(mended).map_err(|_| Problem::invalid(name, "is not valid UTF-8"))
}

/// Returns the elements of an array without parsing them.
pub fn array<'a>(name: &'static str, raw: &'a RawValue) -> Result<Vec<&'a RawValue>, Problem> {
    serde_json::from_str(raw.get()).map_err(|_| Problem::invalid(name, "must be an array"))
}

/// Returns the compact text of an object, see [`compact_object`].
pub fn compact(name: &'static str, raw: &RawValue) -> Result<String, Problem> {
    compact_object(raw.get()).map_err(|detail| Problem::invalid(name, detail))
}

/// Returns 400 with the position of the error, but without any of the text. A text of one line gets no line number,
/// because it may be any line of a bulk request.
fn malformed(text: &str, error: &serde_json::Error) -> Problem {
    let what = in_plain_words(error).unwrap_or("not well-formed JSON");
    let (line, column) = (error.line(), error.column());
    let detail = if text.trim_ascii().is_empty() {
        "the body is empty; it must be a JSON object".to_owned()
    } else if line > 1 || text.trim_ascii_end().contains('\n') {
        format!("{what} at line {line} column {column}")
    } else {
        format!("{what} at column {column}")
    };
    Problem::new(Code::MalformedJson, detail)
}

struct ObjectFields<'a>(Fields<'a>);

impl<'de> Deserialize<'de> for ObjectFields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsInOrder;
        impl<'de> Visitor<'de> for FieldsInOrder {
            type Value = ObjectFields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Fields::new();
                while let Some((name, value)) = map.next_entry::<FieldName<'de>, &'de RawValue>()? {
                    // Repeated names are found by comparing all pairs, so the number of fields is limited here.
                    if fields.len() == FIELDS_MAX {
                        return Err(A::Error::custom("too many fields"));
                    }
                    fields.push((name.0, value));
                }
                Ok(ObjectFields(fields))
            }
        }
        deserializer.deserialize_map(FieldsInOrder)
    }
}

/// The most fields in an object. Objects of the API have at most a dozen.
const FIELDS_MAX: usize = 64;

#[derive(Deserialize)]
struct FieldName<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn unknown_and_repeated_fields_are_named() {
        let mut object = Object::parse(r#"{"id":"a","txet":"b"}"#).unwrap();
        assert_eq!(object.string("id").unwrap().as_deref(), Some("a"));
        let problem = object.finish().unwrap_err();
        assert_eq!(problem.errors[0].field, "txet");
        assert_eq!(problem.errors[0].detail, "is unknown; known fields: id");
        // Two spellings of the same key are the same key.
        let problem = Object::parse(r#"{"id":"a","\u0069d":"b"}"#).unwrap_err();
        assert_eq!((problem.code, problem.errors[0].field.as_str()), (Code::InvalidValue, "id"));
    }

    #[test]
    fn what_is_not_an_object_is_told_apart_from_what_is_not_json() {
        assert_eq!(Object::parse("[1]").unwrap_err().code, Code::InvalidValue);
        for text in ["", "{", "[1", "{'a':1}", "{\"a\":1}x", "nul"] {
            assert_eq!(Object::parse(text).unwrap_err().code, Code::MalformedJson, "{text}");
        }
    }

    #[test]
    fn malformed_json_does_not_come_back_in_the_answer() {
        let problem = Object::parse(r#"{"id": secret}"#).unwrap_err();
        assert!(!problem.detail.contains("secret"), "{}", problem.detail);
    }

    #[test]
    fn only_a_body_of_several_lines_has_line_numbers() {
        let detail = |text| Object::parse(text).unwrap_err().detail;
        assert_eq!(detail("{\"id\": x}\r\n"), "not well-formed JSON at column 8");
        assert_eq!(detail("{\n\"id\": x}"), "not well-formed JSON at line 2 column 7");
        assert_eq!(detail("{\"id\":"), "the JSON ends too early at column 6");
        assert_eq!(detail("\r\n"), "the body is empty; it must be a JSON object");
        let detail = |text| compact("metadata", &raw(text)).unwrap_err().detail;
        assert_eq!(detail(r#"{"k":1,"k":2}"#), "metadata: has the same key twice");
        assert_eq!(detail(r#"{"k":1e400}"#), "metadata: has a number that is out of range");
        assert_eq!(detail(r#"{"k":"\ud800"}"#), "metadata: has an unpaired surrogate escape");
    }

    #[test]
    fn deep_nesting_is_an_error_not_an_overflow() {
        let deep = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
        let mut object = Object::parse(&deep).unwrap();
        assert!(compact("a", object.raw("a").unwrap()).is_err());
        let text = "[".repeat(1_000_000);
        assert_eq!(Object::parse(&text).unwrap_err().code, Code::MalformedJson);
    }

    #[test]
    fn a_flood_of_fields_is_refused() {
        let fields: Vec<String> = (0..100_000).map(|n| format!("\"f{n}\":1")).collect();
        assert!(Object::parse(&format!("{{{}}}", fields.join(","))).is_err());
    }

    #[test]
    fn unpaired_surrogates_are_refused_or_replaced() {
        let text = raw(r#""a\ud800b \ud83e\udd80 é""#);
        assert!(string("text", &text).unwrap_err().detail.contains("surrogate"));
        assert_eq!(string_lossy("text", &text).unwrap(), "a\u{FFFD}b 🦀 é");
        assert!(string_lossy("text", &raw("5")).is_err());
    }
}
