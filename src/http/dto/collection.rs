//! Collections as JSON: settings, changes and descriptions.

use std::time::Duration;

use hapax_core::{Banding, SignatureShape, SketchKind, Spec, TextSpec};
use serde::Serialize;

use super::values::timestamp;
use crate::collections::{BandingAsked, Changes, CollectionError, Description, Settings};
use crate::http::error::Problem;
use crate::http::json::Object;
use crate::http::query::choice;
use crate::types::{CollectionName, Extract, IndexKind, Keep, Verify, ratio};
use crate::verdicts::{KeyAsked, SettingsAsked, check_threshold};

/// The shingles of a containment collection, unless others are given.
const NGRAMS: &str = "word13";

/// The parts of the canonical spec that can be given as fields.
const NAMED_PARTS: [&str; 5] = ["fold", "marks", "digits", "shingle", "sketch"];

/// Parses the body of `PUT`. Absent fields take their values from `defaults`.
pub fn settings(text: &str, defaults: &Settings, secret_fingerprint: Option<u64>) -> Result<Settings, Problem> {
    let mut object = Object::parse(text)?;
    let given = object.string("spec")?;
    let mut parts = Vec::new();
    for name in NAMED_PARTS {
        if let Some(value) = object.string(name)? {
            parts.push((name, value));
        }
    }
    let index = object.string("index")?;
    let index = index.map(|name| choice("index", &name, &IndexKind::ALL.map(|one| (one.as_str(), one)))).transpose()?;
    let key = object.string("key")?;
    let banding = BandingFields::take(&mut object)?;
    let threshold = object.take::<f64>("threshold", "a number")?;
    let verify = verify(&mut object)?;
    let keep = object.string("keep")?.map(|keep| choice("keep", &keep, &Keep::ALL.map(|keep| (keep.as_str(), keep))));
    let extract = object.string("extract")?;
    let extract =
        extract.map(|name| choice("extract", &name, &Extract::ALL.map(|one| (one.as_str(), one)))).transpose()?;
    let ttl = ttl(&mut object)?;
    let touch = object.take::<bool>("touch", "true or false")?;
    object.finish()?;

    if index == Some(IndexKind::Containment) && given.is_none() {
        let has = |parts: &[(&str, String)], name| parts.iter().any(|(part, _)| *part == name);
        if !has(&parts, "shingle") {
            // It comes first, because a spec without a sketch has no shingles of characters.
            parts.insert(0, ("shingle", NGRAMS.to_owned()));
        }
        if !has(&parts, "sketch") {
            parts.push(("sketch", SketchKind::None.name().to_owned()));
        }
    }
    let spec = match given {
        Some(_) if !parts.is_empty() || key.is_some() => {
            return Err(Problem::invalid(
                "spec",
                "cannot be combined with fold, marks, digits, shingle, sketch or key: `spec` contains them all",
            ));
        }
        Some(text) => {
            // Users write `external:ours:128x64`; the canonical text begins with the version.
            let text = if text.starts_with("external:") { format!("hapax1;{text}") } else { text };
            Spec::parse(&text).map_err(|error| Problem::invalid("spec", error.to_string()))?
        }
        None if parts.is_empty() && key.is_none() => defaults.spec.clone(),
        None => Spec::Text(named(&defaults.spec, &parts, key.as_deref(), secret_fingerprint)?),
    };
    if let Some(index) = index.filter(|index| *index != IndexKind::of(&spec)) {
        let detail = match index {
            IndexKind::Containment => "cannot be `containment` with a sketch: `sketch` must be `none`, or left out",
            IndexKind::Similarity => "cannot be `similarity` without a sketch: `sketch` must not be `none`",
        };
        return Err(Problem::invalid("index", detail));
    }
    let threshold = threshold.map(check_threshold).transpose()?;
    let banding = banding.asked(spec.shape())?;
    let keep = keep.transpose()?;
    Ok(Settings::asked(SettingsAsked { spec, keep, extract, banding, threshold, verify, ttl, touch }, defaults))
}

fn verify(object: &mut Object<'_>) -> Result<Option<Verify>, Problem> {
    let Some(name) = object.string("verify")? else { return Ok(None) };
    choice("verify", &name, &Verify::ALL.map(|verify| (verify.as_str(), verify))).map(Some)
}

/// Reads a number of seconds; 0 means for ever and becomes `Some(None)`.
fn ttl(object: &mut Object<'_>) -> Result<Option<Option<Duration>>, Problem> {
    const EXPECTED: &str = "a number of seconds, 0 for ever";
    let Some(seconds) = object.take::<f64>("ttl", EXPECTED)? else { return Ok(None) };
    let ttl = Duration::try_from_secs_f64(seconds);
    let ttl = ttl.map_err(|_| Problem::invalid("ttl", format!("must be {EXPECTED}")))?;
    Ok(Some((!ttl.is_zero()).then_some(ttl)))
}

/// Returns the default spec with some of its parts replaced.
fn named(
    default: &Spec,
    parts: &[(&str, String)],
    key: Option<&str>,
    secret_fingerprint: Option<u64>,
) -> Result<TextSpec, Problem> {
    let base = match default {
        Spec::Text(spec) => Spec::Text(spec.clone()),
        Spec::External { .. } => Spec::default(),
    };
    let mut spec = base;
    for (name, value) in parts {
        // The part is replaced in the canonical text, so that only the core defines the names and the valid values.
        let canonical = spec.to_string();
        let replaced: Vec<_> = canonical
            .split(';')
            .map(|part| match part.split_once('=') {
                Some((known, _)) if known == *name => format!("{name}={value}"),
                _ => part.to_owned(),
            })
            .collect();
        spec = Spec::parse(&replaced.join(";")).map_err(|error| {
            let detail = error.to_string();
            // The value of one part may not go with that of another one.
            match detail.split_once(": ").filter(|(field, _)| NAMED_PARTS.contains(field)) {
                Some((field, detail)) => Problem::invalid(field, detail),
                None => Problem::invalid(*name, detail),
            }
        })?;
    }
    let Spec::Text(mut spec) = spec else {
        unreachable!("parts were replaced in the spec of texts");
    };
    let Some(key) = key else { return Ok(spec) };
    match KeyAsked::named(key) {
        Some(KeyAsked::None) => spec.key = None,
        Some(KeyAsked::Configured) => {
            let missing = || {
                Problem::invalid(
                    "key",
                    "cannot be `configured`: this server has no secret; set `hashing.secret` or `hashing.secret_file`",
                )
            };
            spec.key = Some(secret_fingerprint.ok_or_else(missing)?);
        }
        None => return Err(Problem::invalid("key", "must be one of none, configured")),
    }
    Ok(spec)
}

/// The fields `banding` and `banding_by_hand`, kept until the signature's shape is known.
struct BandingFields {
    bands_and_rows: Option<(u32, u32)>,
    by_hand: Option<bool>,
}

impl BandingFields {
    fn take(object: &mut Object<'_>) -> Result<Self, Problem> {
        let bands_and_rows = object.object("banding")?.map(bands_and_rows).transpose()?;
        Ok(Self { bands_and_rows, by_hand: object.take::<bool>("banding_by_hand", "true or false")? })
    }

    fn asked(self, shape: SignatureShape) -> Result<Option<BandingAsked>, Problem> {
        match (self.bands_and_rows, self.by_hand) {
            (Some(_), Some(false)) => {
                Err(Problem::invalid("banding_by_hand", "must be true or absent if `banding` is given"))
            }
            (Some((bands, rows)), _) => match Banding::new(bands, rows, shape) {
                Ok(banding) => Ok(Some(BandingAsked::ByHand(banding))),
                Err(error) => Err(Problem::invalid("banding", error.to_string())),
            },
            (None, Some(true)) => Ok(Some(BandingAsked::Kept)),
            (None, Some(false)) => Ok(Some(BandingAsked::Automatic)),
            (None, None) => Ok(None),
        }
    }
}

/// Reads the fields `bands` and `rows`.
pub(super) fn bands_and_rows(mut object: Object<'_>) -> Result<(u32, u32), Problem> {
    let mut whole = |name| {
        object
            .take::<u32>(name, "a whole number")
            .and_then(|value| value.ok_or_else(|| Problem::invalid(name, "is required")))
            .map_err(|problem| problem.within("banding"))
    };
    let both = (whole("bands")?, whole("rows")?);
    object.finish().map_err(|problem| problem.within("banding"))?;
    Ok(both)
}

/// Parses the body of `PATCH`.
pub fn changes(text: &str, shape: SignatureShape) -> Result<Changes, Problem> {
    let mut object = Object::parse(text)?;
    let threshold = object.take::<f64>("threshold", "a number")?.map(check_threshold).transpose()?;
    let banding = BandingFields::take(&mut object)?.asked(shape)?;
    let verify = verify(&mut object)?;
    let ttl = ttl(&mut object)?;
    let touch = object.take::<bool>("touch", "true or false")?;
    object.finish()?;
    let changes = Changes { banding, threshold, verify, ttl, touch };
    if changes.is_empty() {
        return Err(Problem::invalid(
            "threshold",
            "threshold, banding, banding_by_hand, verify, ttl or touch must be given",
        ));
    }
    Ok(changes)
}

/// A banding as JSON.
#[derive(Debug, Serialize)]
pub struct BandingBody {
    bands: u32,
    rows: u32,
}

impl From<Banding> for BandingBody {
    fn from(banding: Banding) -> Self {
        Self { bands: banding.bands(), rows: banding.rows() }
    }
}

/// A signature's shape as JSON.
#[derive(Debug, Serialize)]
struct ShapeBody {
    slots: u32,
    bits: u32,
    bytes: usize,
}

/// The probabilities that a document exactly at the threshold becomes a candidate, and that it is in the verdict.
#[derive(Debug, Serialize)]
struct RecallBody {
    candidate: f64,
    verdict: f64,
}

/// A collection as JSON.
#[derive(Debug, Serialize)]
pub struct DescriptionBody {
    name: String,
    index: &'static str,
    spec: String,
    fingerprint: String,
    signature: ShapeBody,
    banding: BandingBody,
    banding_by_hand: bool,
    threshold: f64,
    verify: &'static str,
    keep: &'static str,
    extract: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<f64>,
    touch: bool,
    documents: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    linked: Option<u64>,
    created: String,
    expected_recall: RecallBody,
}

impl From<Description> for DescriptionBody {
    fn from(description: Description) -> Self {
        let settings = description.settings;
        let shape = settings.spec.shape();
        Self {
            name: description.name.as_str().to_owned(),
            index: settings.index().as_str(),
            spec: settings.spec.to_string(),
            fingerprint: description.fingerprint.to_string(),
            signature: ShapeBody { slots: shape.k, bits: shape.bits, bytes: shape.bytes() },
            banding: settings.banding.into(),
            banding_by_hand: settings.banding_by_hand,
            threshold: settings.threshold,
            verify: settings.verify.as_str(),
            keep: settings.keep.as_str(),
            extract: settings.extract.as_str(),
            ttl: settings.ttl.map(|ttl| ttl.as_secs_f64()),
            touch: settings.touch,
            documents: description.documents,
            linked: description.linked,
            created: timestamp(description.created),
            expected_recall: RecallBody {
                candidate: ratio(description.candidate_recall_at_threshold),
                verdict: ratio(description.verdict_recall_at_threshold),
            },
        }
    }
}

#[derive(Debug, Serialize)]
pub struct CollectionList {
    /// Sorted by name.
    pub collections: Vec<DescriptionBody>,
    /// The collections that are not served, sorted by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedBody>,
}

#[derive(Debug, Serialize)]
pub struct DamagedBody {
    name: String,
    detail: String,
}

impl From<(CollectionName, CollectionError)> for DamagedBody {
    fn from((name, error): (CollectionName, CollectionError)) -> Self {
        Self { name: name.as_str().to_owned(), detail: error.to_string() }
    }
}

/// The answer of `DELETE`: the name of the dropped collection.
#[derive(Debug, Serialize)]
pub struct Dropped {
    pub dropped: String,
}
