//! The order in which documents are decided on: of several duplicates, the first one is kept.

use std::fmt;

use super::rank::Rank;
use crate::input::{Fields, kind_of};

/// Which of several duplicates is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Order {
    First,
    Longest,
    /// The one with the largest number in this field.
    Max(String),
}

impl Order {
    pub(in crate::cli) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "first" => Ok(Self::First),
            "longest" => Ok(Self::Longest),
            _ => match text.strip_prefix("max:") {
                Some(field) if !field.is_empty() => Ok(Self::Max(field.to_owned())),
                _ => Err("must be first, longest or max:FIELD, such as max:score".to_owned()),
            },
        }
    }

    /// Returns the field that decides.
    pub(in crate::cli) fn field(&self) -> Option<&String> {
        match self {
            Self::First | Self::Longest => None,
            Self::Max(field) => Some(field),
        }
    }

    /// Returns the rank of a document with a content of `bytes` bytes, made from this line. Documents with a higher rank
    /// are decided on earlier; those without the field come last. The error names the field.
    pub(in crate::cli) fn rank(&self, bytes: u64, line: &[u8]) -> Result<Rank, String> {
        match self {
            Self::First => Ok(Rank::default()),
            Self::Longest => Ok(Rank::of_length(bytes)),
            Self::Max(field) => number(line, field),
        }
    }
}

fn number(line: &[u8], field: &str) -> Result<Rank, String> {
    let fields: Option<Fields<'_>> = serde_json::from_slice(line).ok();
    match fields.as_ref().and_then(|fields| fields.present(field)) {
        None => Ok(Rank::default()),
        Some(value) if value.starts_with(|first: char| first == '-' || first.is_ascii_digit()) => {
            Rank::of_number(value).map_err(|error| format!("{field}: {error}"))
        }
        Some(value) => Err(format!("{field}: must be a number, but is {}", kind_of(value))),
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("first"),
            Self::Longest => f.write_str("longest"),
            Self::Max(field) => write!(f, "max:{field}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_a_number_of_the_line() {
        let order = Order::parse("max:score").unwrap();
        let rank = |line: &str| order.rank(9, line.as_bytes());
        assert_eq!(rank(r#"{"id":1,"score":-2.5e1}"#), Ok(Rank::of_number("-25").unwrap()));
        assert!([r#"{"id":1}"#, r#"{"score":null}"#].iter().all(|line| rank(line).unwrap().is_missing()));
        assert_eq!(rank(r#"{"score":"7"}"#), Err("score: must be a number, but is a string".to_owned()));
        assert_eq!(Order::Longest.rank(9, b""), Ok(Rank::of_length(9)));
        assert!(["", "last", "max:", "MAX:a"].iter().all(|text| Order::parse(text).is_err()));
    }
}
