//! Two documents to compare, and the result, as JSON.

use hapax_core::{TextSpec, TokenPlace};
use serde::Serialize;

use super::document::{self, Invalid};
use crate::collections::{Comparand, Comparison};
use crate::corpus::shared_passages;
use crate::http::caller::Caller;
use crate::http::error::Problem;
use crate::http::json::Object;
use crate::keys::Scope;
use crate::types::{DocId, json_bytes, ratio};

/// Parses `{"a": {...}, "b": {...}}`.
pub fn comparands(text: &str, caller: &Caller) -> Result<(Comparand, Comparand), Problem> {
    let mut object = Object::parse(text)?;
    let a = object.object("a")?;
    let b = object.object("b")?;
    object.finish()?;
    let one = |name: &str, object: Option<Object<'_>>| {
        let object = object.ok_or_else(|| Problem::invalid(name, "is required"))?;
        comparand(object, caller).map_err(|problem| problem.within(name))
    };
    Ok((one("a", a)?, one("b", b)?))
}

fn comparand(mut object: Object<'_>, caller: &Caller) -> Result<Comparand, Problem> {
    const CHOICES: &str = "text, html, id, set and signature";
    let id = object.string("id")?.map(DocId::new).transpose()?;
    if id.is_some() {
        object.leave_out_empty_array("set");
    }
    let content = document::content(&mut object, Invalid::Refuse, caller)?;
    object.finish()?;
    match (id, content) {
        (Some(id), None) => {
            caller.require_for(Scope::Read, "an `id` of a stored document")?;
            Ok(Comparand::Id(id))
        }
        (None, Some(content)) => Ok(Comparand::Content(content)),
        (None, None) => Err(document::nothing(CHOICES)),
        (Some(_), Some(_)) => Err(Problem::invalid("id", format!("exactly one of {CHOICES} must be given"))),
    }
}

#[derive(Debug, Serialize)]
pub struct ComparisonBody {
    estimate: EstimateBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    exact: Option<ExactBody>,
    /// Present if the request asks for it, and both sides have a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    passages: Option<PassagesBody>,
}

/// The texts of both sides, and the passages that both have.
#[derive(Debug, Serialize)]
pub struct PassagesBody {
    a: PassageBody,
    b: PassageBody,
}

#[derive(Debug, Serialize)]
struct PassageBody {
    text: String,
    /// Half-open ranges of bytes of the text.
    shared: Vec<TokenPlace>,
}

impl PassagesBody {
    /// The most bytes of JSON of a passage: two numbers and their brackets.
    const PASSAGE_BYTES: usize = 28;

    /// Finds the passages.
    pub fn find(spec: &TextSpec, [a, b]: [String; 2]) -> Self {
        let [in_a, in_b] = shared_passages(spec, [&a, &b]);
        Self { a: PassageBody { text: a, shared: in_a }, b: PassageBody { text: b, shared: in_b } }
    }

    /// Returns the most bytes that it takes as JSON.
    pub fn json_bytes(&self) -> usize {
        let of = |side: &PassageBody| json_bytes(&side.text) + side.shared.len() * Self::PASSAGE_BYTES;
        of(&self.a) + of(&self.b)
    }
}

#[derive(Debug, Serialize)]
struct EstimateBody {
    similarity: f64,
    low: f64,
    high: f64,
    method: &'static str,
}

#[derive(Debug, Serialize)]
struct ExactBody {
    jaccard: f64,
    containment_a_in_b: f64,
    containment_b_in_a: f64,
    intersection: u64,
    shingles_a: u64,
    shingles_b: u64,
}

impl ComparisonBody {
    pub fn new(comparison: Comparison, passages: Option<PassagesBody>) -> Self {
        let estimate = comparison.estimate;
        Self {
            estimate: EstimateBody {
                similarity: ratio(estimate.value),
                low: ratio(estimate.low),
                high: ratio(estimate.high),
                method: estimate.method.as_str(),
            },
            exact: comparison.exact.map(|exact| ExactBody {
                jaccard: ratio(exact.jaccard),
                containment_a_in_b: ratio(exact.containment_a_in_b),
                containment_b_in_a: ratio(exact.containment_b_in_a),
                intersection: exact.intersection,
                shingles_a: exact.shingles_a,
                shingles_b: exact.shingles_b,
            }),
            passages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_set_counts_only_alone() {
        let (a, b) = comparands(r#"{"a":{"id":"x","set":[]},"b":{"set":[]}}"#, &Caller::anyone()).unwrap();
        assert!(matches!(a, Comparand::Id(_)) && matches!(b, Comparand::Content(_)), "{a:?} {b:?}");
        assert!(comparands(r#"{"a":{"id":"x","set":[1]},"b":{"id":"y"}}"#, &Caller::anyone()).is_err());
    }

    #[test]
    fn each_side_is_one_thing() {
        assert!(comparands(r#"{"a":{"text":"x"},"b":{"id":"y"}}"#, &Caller::anyone()).is_ok());
        let field = |text: &str| comparands(text, &Caller::anyone()).err().unwrap().errors[0].field.clone();
        assert_eq!(field(r#"{"a":{"text":"x"}}"#), "b");
        assert_eq!(field(r#"{"a":{"text":"x"},"b":{}}"#), "b.text");
        assert_eq!(field(r#"{"a":{"text":"x","id":"y"},"b":{"id":"y"}}"#), "a.id");
        assert_eq!(field(r#"{"a":{"text":"x"},"b":{"txt":"y"}}"#), "b.txt");
        assert_eq!(field(r#"{"a":{"text":"x"},"b":5}"#), "b");
    }
}
