//! A raw query string -> checked parameters.
//! Decoding is strict, because ids are parameters. A malformed `%` or ill-formed UTF-8 is refused: a repaired id could
//! be the id of another document. Knows only the types of parameters, not their meaning.

use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;

use super::beginning::beginning;
use super::error::{FieldError, Problem};
use crate::types::{CollectionName, DocId};
use crate::verdicts::check_threshold;

/// The longest part of a value that an error message repeats, in characters.
const SHOWN_CHARS_MAX: usize = 40;

/// The parameters that may be given more than once.
const REPEATED: [&str; 2] = ["label", "scope"];
/// A query may have this many parameters in addition to one for each allowed name. Labels and scopes also have smaller
/// limits of their own.
const REPEATED_MAX: usize = 64;
/// The number of errors after which the rest of a query is not read. An answer shows fewer errors.
const ERRORS_MAX: usize = 32;

/// The parameters of one request. Each of them is in the table of routes, and most may be given only once.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(&'static str, String)>);

impl Query {
    /// Decodes `raw` (`application/x-www-form-urlencoded`) and refuses every name that is not in `allowed`.
    pub fn parse(raw: &str, allowed: &'static [&'static str]) -> Result<Self, Problem> {
        let mut pairs: Vec<(&'static str, String)> = Vec::new();
        let mut errors = Vec::new();
        for part in raw.split('&').filter(|part| !part.is_empty()) {
            if errors.len() == ERRORS_MAX {
                break;
            }
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let name = match decode(name) {
                Ok(name) => name,
                Err(detail) => {
                    errors.push(FieldError { field: name.to_owned(), detail: detail.to_owned() });
                    continue;
                }
            };
            let detail = match (allowed.iter().find(|allowed| **allowed == name), decode(value)) {
                (None, _) if allowed.is_empty() => "is unknown; this route has no parameters".to_owned(),
                (None, _) => format!("is unknown; the parameters of this route are {}", allowed.join(", ")),
                (Some(_), Err(detail)) => detail.to_owned(),
                (Some(known), Ok(_)) if !REPEATED.contains(known) && pairs.iter().any(|(name, _)| name == known) => {
                    "is given twice".to_owned()
                }
                (Some(_), Ok(_)) if pairs.len() >= allowed.len() + REPEATED_MAX => "is given too often".to_owned(),
                (Some(known), Ok(value)) => {
                    pairs.push((known, value));
                    continue;
                }
            };
            errors.push(FieldError { field: name, detail });
        }
        if errors.is_empty() { Ok(Self(pairs)) } else { Err(Problem::invalid_fields(errors)) }
    }

    /// Attaches the parameters to a request, for its handler.
    pub(super) fn attach(self, extensions: &mut Extensions) {
        // Most requests have no parameters, and attaching them allocates a box.
        if !self.0.is_empty() {
            extensions.insert(self);
        }
    }

    /// Returns the names of the parameters that were given.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(name, _)| *name)
    }

    /// Returns the decoded value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the decoded values of a parameter that may be given more than once.
    pub fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.0.iter().filter(move |(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    pub fn id(&self) -> Result<Option<DocId>, Problem> {
        Ok(self.get("id").map(DocId::new).transpose()?)
    }

    /// Returns a number in `range`; `default` if the parameter is absent.
    pub fn integer(
        &self,
        name: &str,
        default: usize,
        range: std::ops::RangeInclusive<usize>,
    ) -> Result<usize, Problem> {
        let Some(text) = self.get(name) else { return Ok(default) };
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match usize::from_str(text) {
            Ok(value) if digits && range.contains(&value) => Ok(value),
            _ => {
                let (low, high) = (range.start(), range.end());
                let detail = format!("must be a whole number from {low} to {high}; it is `{}`", shown(text));
                Err(Problem::invalid(name, detail))
            }
        }
    }

    /// Returns a number in `range`, which need not be whole; `default` if the parameter is absent.
    pub fn number(&self, name: &str, default: f64, range: std::ops::RangeInclusive<f64>) -> Result<f64, Problem> {
        let Some(text) = self.get(name) else { return Ok(default) };
        f64::from_str(text).ok().filter(|number| range.contains(number)).ok_or_else(|| {
            let (low, high) = (range.start(), range.end());
            Problem::invalid(name, format!("must be a number from {low} to {high}; it is `{}`", shown(text)))
        })
    }

    /// Returns a threshold: above 0 and at most 1.
    pub fn threshold(&self) -> Result<Option<f64>, Problem> {
        let Some(text) = self.get("threshold") else { return Ok(None) };
        match f64::from_str(text) {
            Ok(number) => Ok(Some(check_threshold(number)?)),
            Err(_) => {
                let detail = format!("must be a number above 0 and at most 1; it is `{}`", shown(text));
                Err(Problem::invalid("threshold", detail))
            }
        }
    }

    /// Returns `true` or `false`; false if the parameter is absent.
    pub fn flag(&self, name: &str) -> Result<bool, Problem> {
        self.choice(name, &[("false", false), ("true", true)])
    }

    /// Returns one of the named values. The first is the default.
    pub fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<T, Problem> {
        self.get(name).map_or(Ok(choices[0].1), |text| choice(name, text, choices))
    }
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        // `admit` has parsed the parameters and attached them.
        Ok(parts.extensions.remove::<Self>().unwrap_or_default())
    }
}

/// Returns the value whose name is `text`.
pub fn choice<T: Copy>(name: &str, text: &str, choices: &[(&str, T)]) -> Result<T, Problem> {
    choices.iter().find(|(known, _)| *known == text).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|(known, _)| *known).collect();
        Problem::invalid(name, format!("must be one of {}; it is `{}`", names.join(", "), shown(text)))
    })
}

pub(super) fn shown(text: &str) -> String {
    beginning(text, SHOWN_CHARS_MAX)
}

/// Returns the collection in a path such as `/v1/collections/{collection}/golden`.
pub(super) fn collection(path: &str) -> Option<CollectionName> {
    let name = path.strip_prefix("/v1/collections/")?.split('/').next()?;
    CollectionName::new(&decode(name).ok()?).ok()
}

/// Percent-decodes one name or value. `+` means a space.
pub(super) fn decode(text: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
                match (digit(rest.next()), digit(rest.next())) {
                    (Some(high), Some(low)) => (high * 16 + low) as u8,
                    _ => return Err("has a % that is not followed by two hex digits"),
                }
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| "is not valid UTF-8 after percent-decoding")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(result: Result<Query, Problem>) -> Vec<String> {
        result.unwrap_err().errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn values_are_decoded_once() {
        let query = Query::parse("id=a%252Fb+c%26%3D%F0%9F%A6%80", &["id"]).unwrap();
        assert_eq!(query.get("id"), Some("a%2Fb c&=🦀"));
    }

    #[test]
    fn unknown_names_are_refused_and_the_allowed_are_listed() {
        let problem = Query::parse("id=1&treshold=0.5&x", &["id", "threshold"]).unwrap_err();
        assert_eq!(problem.errors.len(), 2);
        assert!(problem.errors[0].detail.contains("id, threshold"));
    }

    #[test]
    fn broken_encoding_is_refused_not_mended() {
        for raw in ["id=%", "id=%2", "id=%zz", "id=%+1", "id=%ff", "id=%ED%A0%80"] {
            assert_eq!(fields(Query::parse(raw, &["id"])), ["id"], "{raw}");
        }
    }

    #[test]
    fn a_parameter_given_twice_is_refused() {
        assert_eq!(fields(Query::parse("id=1&id=1", &["id"])), ["id"]);
    }

    #[test]
    fn parameters_that_come_thousands_of_times_are_read_in_part() {
        for part in ["scope=a:b&", "id&", "x&", "%&"] {
            let problem = Query::parse(&part.repeat(30_000), &["id", "scope"]).unwrap_err();
            assert_eq!(problem.errors.len(), 16, "{part}");
        }
        let eight = Query::parse(&"scope=a:b&".repeat(8), &["id", "scope"]).unwrap();
        assert_eq!(eight.all("scope").count(), 8);
    }

    #[test]
    fn an_error_shows_the_value_up_to_a_bound() {
        let query = Query::parse("limit=10x&with=metdata", &["limit", "with"]).unwrap();
        let detail = query.integer("limit", 10, 1..=1000).unwrap_err().detail;
        assert_eq!(detail, "limit: must be a whole number from 1 to 1000; it is `10x`");
        let detail = query.choice("with", &[("none", false), ("metadata", true)]).unwrap_err().detail;
        assert_eq!(detail, "with: must be one of none, metadata; it is `metdata`");
        let query = |text: &str| Query(vec![("threshold", text.to_owned())]).threshold().unwrap_err().detail;
        assert_eq!(query("1.5"), "threshold: must be a number above 0 and at most 1; it is 1.5");
        assert_eq!(query("high"), "threshold: must be a number above 0 and at most 1; it is `high`");
        let long = Query::parse(&format!("limit={}", "9".repeat(5000)), &["limit"]).unwrap();
        assert!(long.integer("limit", 10, 1..=1000).unwrap_err().detail.len() < 200);
    }

    #[test]
    fn numbers_and_choices_are_checked() {
        let query = Query::parse("limit=1001&threshold=0&with=all", &["limit", "threshold", "with"]).unwrap();
        assert!(query.integer("limit", 10, 1..=1000).is_err());
        assert!(query.threshold().is_err());
        assert!(query.choice("with", &[("", false), ("metadata", true)]).is_err());
        for text in ["+5", "-1", "", "5.0", "NaN"] {
            let query = Query(vec![("limit", text.to_owned()), ("threshold", "NaN".to_owned())]);
            assert!(query.integer("limit", 10, 1..=1000).is_err(), "{text}");
            assert!(query.threshold().is_err());
        }
    }
}
