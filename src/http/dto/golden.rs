//! A golden set, and how the verdicts agree with its labels, as JSON.

use serde::Serialize;
use serde_json::value::RawValue;

use super::collection::BandingBody;
use super::values;
use crate::collections::{GoldenFailure, GoldenReport, GoldenStretch};
use crate::http::error::Problem;
use crate::http::json::{Object, array};
use crate::types::{CollectionName, GoldenPair, ID_BYTES_MAX, ratio};

/// Parses `{"pairs": [{"a": …, "b": …, "duplicate": …, "name": …}]}`.
pub fn pairs(text: &str) -> Result<Vec<GoldenPair>, Problem> {
    let mut object = Object::parse(text)?;
    let raw = object.raw("pairs");
    object.finish()?;
    let raw = array("pairs", raw.ok_or_else(|| Problem::invalid("pairs", "is required"))?)?;
    if raw.is_empty() || raw.len() > GoldenReport::PAIRS_MAX {
        let detail = format!("has {} pairs; it must have 1 to {}", raw.len(), GoldenReport::PAIRS_MAX);
        return Err(Problem::invalid("pairs", detail));
    }
    let numbered = raw.into_iter().enumerate();
    let pairs: Vec<GoldenPair> = numbered
        .map(|(at, raw)| pair(raw).map_err(|problem| problem.within(&format!("pairs[{at}]"))))
        .collect::<Result<_, _>>()?;
    let bytes: usize = pairs.iter().map(GoldenPair::bytes).sum();
    if bytes > GoldenReport::BYTES_MAX {
        let detail = format!("has {bytes} bytes of texts; at most {} are allowed", GoldenReport::BYTES_MAX);
        return Err(Problem::invalid("pairs", detail));
    }
    Ok(pairs)
}

fn pair(raw: &RawValue) -> Result<GoldenPair, Problem> {
    let mut object = Object::parse(raw.get())?;
    let (a, b, name) = (object.string("a")?, object.string("b")?, object.string("name")?);
    let duplicate = object.take("duplicate", "true or false")?;
    object.finish()?;
    let required = |name: &str| Problem::invalid(name, "is required");
    if name.as_ref().is_some_and(|name| name.is_empty() || name.len() > ID_BYTES_MAX) {
        return Err(Problem::invalid("name", format!("must have 1 to {ID_BYTES_MAX} bytes")));
    }
    Ok(GoldenPair {
        name,
        a: a.ok_or_else(|| required("a"))?,
        b: b.ok_or_else(|| required("b"))?,
        duplicate: duplicate.ok_or_else(|| required("duplicate"))?,
    })
}

#[derive(Debug, Serialize)]
pub struct GoldenBody {
    #[serde(serialize_with = "values::name")]
    collection: CollectionName,
    banding: BandingBody,
    threshold: f64,
    verify: &'static str,
    pairs: u64,
    duplicates: u64,
    reported: u64,
    found: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    recall: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    precision: Option<f64>,
    by_similarity: Vec<StretchBody>,
    failed: Vec<FailureBody>,
}

#[derive(Debug, Serialize)]
struct StretchBody {
    from: f64,
    to: f64,
    pairs: u64,
    duplicates: u64,
    proposed: u64,
    reported: u64,
    found: u64,
    error_mean: f64,
    error_abs_mean: f64,
}

#[derive(Debug, Serialize)]
struct FailureBody {
    pair: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    reason: &'static str,
    estimate: f64,
    jaccard: f64,
}

impl GoldenBody {
    pub fn new(collection: CollectionName, report: GoldenReport) -> Self {
        let (recall, precision) = (report.all.recall().map(ratio), report.all.precision().map(ratio));
        Self {
            collection,
            banding: report.banding.into(),
            threshold: report.threshold,
            verify: report.verify.as_str(),
            pairs: report.all.pairs,
            duplicates: report.all.duplicates,
            reported: report.all.reported,
            found: report.all.found,
            recall,
            precision,
            by_similarity: report.stretches.iter().filter_map(StretchBody::of).collect(),
            failed: report.failed.into_iter().map(FailureBody::from).collect(),
        }
    }
}

impl StretchBody {
    /// `None` if this range of similarities has no pair.
    fn of(stretch: &GoldenStretch) -> Option<Self> {
        let (error_mean, error_abs_mean) = (ratio(stretch.error_mean()?), ratio(stretch.error_abs_mean()?));
        let &GoldenStretch { from, to, pairs, duplicates, proposed, reported, found, .. } = stretch;
        Some(Self { from, to, pairs, duplicates, proposed, reported, found, error_mean, error_abs_mean })
    }
}

impl From<GoldenFailure> for FailureBody {
    fn from(failure: GoldenFailure) -> Self {
        let GoldenFailure { pair, name, reason, estimate, jaccard } = failure;
        Self { pair, name, reason: reason.as_str(), estimate: ratio(estimate), jaccard: ratio(jaccard) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_pair_and_the_field() {
        let field = |text: &str| pairs(text).unwrap_err().errors[0].field.clone();
        assert_eq!(pairs(r#"{"pairs": [{"a": "x", "b": "y", "duplicate": true, "name": "n"}]}"#).unwrap().len(), 1);
        assert_eq!(field("{}"), "pairs");
        assert_eq!(field(r#"{"pairs": []}"#), "pairs");
        assert_eq!(field(r#"{"pairs": 5}"#), "pairs");
        assert_eq!(field(r#"{"pairs": [{"a": "x", "b": "y", "duplicate": true}, {"b": "y"}]}"#), "pairs[1].a");
        assert_eq!(field(r#"{"pairs": [{"a": "x", "b": "y", "duplicate": 1}]}"#), "pairs[0].duplicate");
        assert_eq!(field(r#"{"pairs": [{"a": "x", "b": "y", "duplicate": true, "c": 1}]}"#), "pairs[0].c");
        assert_eq!(field(r#"{"pairs": [{"a": "x", "b": "y", "duplicate": true, "name": ""}]}"#), "pairs[0].name");
    }
}
