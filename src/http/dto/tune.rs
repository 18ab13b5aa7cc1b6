//! Targets for a banding as JSON, and the banding that meets them, with its curve.

use hapax_core::tuning::{self, Asked, Choice, CurvePoints, SketchedPair};
use hapax_core::{Banding, SignatureShape, SketchKind};
use serde::Serialize;

use super::collection::{BandingBody, bands_and_rows};
use crate::http::error::Problem;
use crate::http::json::Object;
use crate::types::ratio;
use crate::verdicts::check_threshold;

/// The parsed request.
#[derive(Clone, Copy, Debug)]
pub struct TuneInput {
    asked: Asked,
    /// The banding, if the client does not want another one to be chosen.
    banding: Option<Banding>,
    shape: SignatureShape,
    threshold: f64,
    signed: SketchedPair,
}

impl TuneInput {
    /// Absent targets take the defaults of [`Asked`].
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let mut object = Object::parse(text)?;
        let threshold = check_threshold(object.take::<f64>("threshold", "a number")?.unwrap_or(0.8))?;
        let mut number = |name: &'static str, low: f64, high: f64| {
            let value = object.take::<f64>(name, "a number")?;
            match value {
                Some(value) if !(low..=high).contains(&value) => {
                    Err(Problem::invalid(name, format!("must be from {low} to {high}; it is {value}")))
                }
                value => Ok(value),
            }
        };
        let asked = Asked {
            s_hi: number("s_hi", 0.01, 1.0)?,
            recall: number("recall", 0.5, 0.999_999)?,
            s_lo: number("s_lo", 0.0, 1.0)?,
            documents: number("documents", 1.0, 1e12)?,
            s_bg: number("s_bg", 0.0, 1.0)?,
            candidates_max: number("candidates_max", 0.0, 1e6)?,
            bands_wanted: None,
        };
        let k = object.take::<f64>("k", "a number")?.unwrap_or(256.0);
        let bits = object.take::<f64>("bits", "a number")?.unwrap_or(8.0);
        let bands_wanted = object.take::<u32>("bands_wanted", "a whole number")?;
        let sketch = object.string("sketch")?;
        let banding = object.object("banding")?.map(bands_and_rows).transpose()?;
        let shingles = object.take::<u64>("shingles", "a whole number")?.unwrap_or(1000);
        object.finish()?;
        let asked = Asked { bands_wanted, ..asked };
        let s_hi = asked.targets(threshold).s_hi;
        for (name, value) in [("s_lo", asked.s_lo), ("s_bg", asked.s_bg)] {
            if let Some(value) = value.filter(|value| *value >= s_hi) {
                return Err(Problem::invalid(name, format!("must be less than s_hi, which is {s_hi}; it is {value}")));
            }
        }
        if ![64.0, 128.0, 256.0, 512.0, 1024.0].contains(&k) {
            return Err(Problem::invalid("k", format!("must be 64, 128, 256, 512 or 1024; it is {k}")));
        }
        if ![8.0, 16.0, 32.0, 64.0].contains(&bits) {
            return Err(Problem::invalid("bits", format!("must be 8, 16, 32 or 64; it is {bits}")));
        }
        let sketch = match sketch.as_deref() {
            None if bits == 64.0 => SketchKind::Classic,
            None | Some("fss") => SketchKind::Fss,
            Some("classic") => SketchKind::Classic,
            Some("oph") => SketchKind::Oph,
            Some(_) => return Err(Problem::invalid("sketch", "must be fss, classic or oph")),
        };
        if !(1..=1_000_000).contains(&shingles) {
            return Err(Problem::invalid("shingles", format!("must be from 1 to 1000000; it is {shingles}")));
        }
        if banding.is_some() && bands_wanted.is_some() {
            return Err(Problem::invalid("bands_wanted", "cannot be combined with `banding`, which has the bands"));
        }
        let (shape, signed) = (SignatureShape { k: k as u32, bits: bits as u32 }, SketchedPair { sketch, shingles });
        let banding = banding.map(|(bands, rows)| Banding::new(bands, rows, shape)).transpose();
        let banding = banding.map_err(|error| Problem::invalid("banding", error.to_string()))?;
        Ok(Self { asked, banding, shape, threshold, signed })
    }

    /// Chooses a banding, or returns the reason why none meets the targets. A given banding is only measured.
    pub fn choose(self) -> Result<TuneBody, Problem> {
        let choice = match self.banding {
            Some(banding) => tuning::weigh(self.asked, self.threshold, self.shape, banding),
            None => tuning::choose(self.asked, self.threshold, self.shape),
        };
        choice.map(|choice| self.body(choice)).map_err(|error| Problem::invalid("recall", error.to_string()))
    }

    fn body(self, choice: Choice) -> TuneBody {
        let point = |step: u32| {
            let jaccard = f64::from(step) / 20.0;
            CurvePoint {
                jaccard,
                candidate: ratio(tuning::candidate_probability(jaccard, choice.banding, self.shape)),
                verdict: ratio(tuning::verdict_probability(
                    jaccard,
                    choice.banding,
                    self.shape,
                    self.threshold,
                    self.signed,
                )),
            }
        };
        let index_bytes_per_document = tuning::index_bytes(choice.banding, self.shape);
        TuneBody {
            banding: choice.banding.into(),
            k: self.shape.k,
            bits: self.shape.bits,
            threshold: self.threshold,
            s_hi: choice.targets.s_hi,
            recall_at_s_hi: ratio(choice.recall_at_s_hi),
            candidate_rate_at_s_lo: choice.candidate_rate_at_s_lo,
            documents: choice.targets.documents,
            s_bg: choice.targets.s_bg,
            cost: CostBody {
                background_candidates: choice.background_candidates,
                index_bytes_per_document,
                index_bytes: index_bytes_per_document as f64 * choice.targets.documents,
                estimate_standard_error: ratio(tuning::standard_error(self.threshold, self.shape, self.signed)),
            },
            candidates_at: CurvePoints::of(choice.banding, self.shape).into(),
            curve: (0..=20).map(point).collect(),
        }
    }
}

#[derive(Debug, Serialize)]
pub struct TuneBody {
    banding: BandingBody,
    k: u32,
    bits: u32,
    threshold: f64,
    s_hi: f64,
    recall_at_s_hi: f64,
    candidate_rate_at_s_lo: f64,
    documents: f64,
    s_bg: f64,
    #[serde(flatten)]
    cost: CostBody,
    candidates_at: CandidatesAt,
    curve: Vec<CurvePoint>,
}

/// The cost of lookups, the cost in memory, and the standard error of the estimate.
#[derive(Debug, Serialize)]
struct CostBody {
    background_candidates: f64,
    index_bytes_per_document: u64,
    index_bytes: f64,
    estimate_standard_error: f64,
}

/// For several percentages: the similarity at which this percentage of the pairs are candidates.
#[derive(Debug, Serialize)]
struct CandidatesAt {
    #[serde(skip_serializing_if = "Option::is_none")]
    steepest: Option<f64>,
    width: f64,
    percent_0_1: f64,
    percent_10: f64,
    percent_90: f64,
    percent_99: f64,
}

impl From<CurvePoints> for CandidatesAt {
    fn from(points: CurvePoints) -> Self {
        let CurvePoints { steepest, width, at_0_1_percent, at_10_percent, at_90_percent, at_99_percent } = points;
        Self {
            steepest: steepest.map(ratio),
            width: ratio(width),
            percent_0_1: ratio(at_0_1_percent),
            percent_10: ratio(at_10_percent),
            percent_90: ratio(at_90_percent),
            percent_99: ratio(at_99_percent),
        }
    }
}

#[derive(Debug, Serialize)]
struct CurvePoint {
    jaccard: f64,
    candidate: f64,
    verdict: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_bounded_before_any_work() {
        assert!(TuneInput::parse("{}").is_ok());
        for (text, field) in [
            (r#"{"k":1e9}"#, "k"),
            (r#"{"k":100}"#, "k"),
            (r#"{"bits":7}"#, "bits"),
            (r#"{"bits":9}"#, "bits"),
            (r#"{"recall":1}"#, "recall"),
            (r#"{"s_lo":0.9}"#, "s_lo"),
            (r#"{"threshold":0.3,"s_lo":0.3}"#, "s_lo"),
            (r#"{"bands_wanted":-1}"#, "bands_wanted"),
            (r#"{"documents":-1}"#, "documents"),
            (r#"{"documents":"many"}"#, "documents"),
            (r#"{"threshold":0}"#, "threshold"),
            (r#"{"banding":{"bands":32,"rows":9}}"#, "banding"),
            (r#"{"banding":{"bands":1}}"#, "banding.rows"),
            (r#"{"banding":{"bands":1,"rows":1},"bands_wanted":2}"#, "bands_wanted"),
            (r#"{"speed":1}"#, "speed"),
        ] {
            assert_eq!(TuneInput::parse(text).unwrap_err().errors[0].field, field, "{text}");
        }
    }
}
