//! The text of a JSON object -> its compact text. The order of keys and the spelling of numbers do not change. An
//! object that has a key twice or is nested too deeply is refused, and the error is in the words of the API.

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// The fault of an object that has the same key twice.
const TWICE: &str = "has the same key twice";

/// Removes the white space between the tokens of an object. Refuses repeated keys, also in inner objects.
pub fn compact_object(json: &str) -> Result<String, &'static str> {
    let json = json.trim_ascii();
    if !json.starts_with('{') {
        return Err("must be an object");
    }
    let mut tokens = serde_json::Deserializer::from_str(json);
    let read = Strict.deserialize(&mut tokens).and_then(|()| tokens.end());
    // The position is left out: it would be relative to the value, which may be a part of a body.
    read.map_err(|error| in_plain_words(&error).unwrap_or("has a value that is not valid JSON"))?;
    let mut text = String::with_capacity(json.len());
    let (mut quoted, mut escaped) = (false, false);
    for character in json.chars() {
        if quoted || !matches!(character, ' ' | '\t' | '\n' | '\r') {
            text.push(character);
        }
        if character == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = quoted && character == '\\' && !escaped;
    }
    Ok(text)
}

/// Returns the fault that serde_json found, in the words of the API.
pub fn in_plain_words(error: &serde_json::Error) -> Option<&'static str> {
    let known = [
        ("recursion limit exceeded", "nested too deeply"),
        ("EOF while parsing", "the JSON ends too early"),
        ("trailing characters", "something follows the JSON object"),
        ("too many fields", "too many fields"),
        (TWICE, TWICE),
        ("number out of range", "has a number that is out of range"),
        ("hex escape", "has an unpaired surrogate escape"),
    ];
    let text = error.to_string();
    known.into_iter().find(|(of_library, _)| text.contains(of_library)).map(|(_, ours)| ours)
}

/// Visits any JSON value and refuses repeated keys. serde_json limits the depth.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = ();
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any value")
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Strict)?.is_some() {}
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names = std::collections::HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            map.next_value_seed(Strict)?;
            if !names.insert(name) {
                return Err(A::Error::custom(TWICE));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_keeps_order_numbers_and_quoted_space() {
        let text = "{ \"b\" : 1.10 ,\n \"a b\":[ \"x \\\" y\\\\\" , 1e400 , null ] }";
        assert_eq!(compact_object(text), Err("has a number that is out of range"));
        let text = "{ \"b\" : 1.10 ,\n \"a b\":[ \"x \\\" y\\\\\" , 1e40 , null ] }";
        assert_eq!(compact_object(text).unwrap(), r#"{"b":1.10,"a b":["x \" y\\",1e40,null]}"#);
        assert_eq!(compact_object(r#"{"a":{"k":1,"k":2}}"#), Err(TWICE));
        assert_eq!(compact_object("[1]"), Err("must be an object"));
        for text in ["", "{", "{} {}", "{\"a\"}"] {
            assert!(compact_object(text).is_err(), "{text}");
        }
    }
}
