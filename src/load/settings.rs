//! The settings of a collection in the metadata of a file: its spec, the spec's fingerprint, and the rest as JSON.

use std::collections::HashMap;
use std::time::Duration;

use hapax_core::{Banding, Spec};
use serde::{Deserialize, Serialize};

use crate::extract::EXTRACTOR_VERSION;
use crate::types::{Extract, Keep, Verify};
use crate::verdicts::{Settings, SettingsAsked};

const SPEC: &str = "hapax.spec";
const FINGERPRINT: &str = "hapax.fingerprint";
const SETTINGS: &str = "hapax.settings";

/// The settings that a file gives for its collection.
#[derive(Clone, Debug, PartialEq)]
pub struct FileSettings {
    pub spec: Spec,
    /// The version of the extractor with which the collection was created.
    pub extractor: u32,
    /// The other settings; `None` in a file that only has signatures.
    rest: Option<Rest>,
}

/// All settings except the spec. A program that only makes signatures knows the threshold and the banding alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rest {
    #[serde(default = "keep_signature")]
    keep: String,
    #[serde(default = "extract_article")]
    extract: String,
    #[serde(default = "extractor_now")]
    extractor: u32,
    bands: u32,
    rows: u32,
    #[serde(default)]
    banding_by_hand: bool,
    threshold: f64,
    #[serde(default = "verify_estimate")]
    verify: String,
    #[serde(default)]
    ttl_ms: Option<u64>,
    #[serde(default)]
    touch: bool,
}

fn keep_signature() -> String {
    Keep::Signature.as_str().to_owned()
}

fn extract_article() -> String {
    Extract::Article.as_str().to_owned()
}

fn extractor_now() -> u32 {
    EXTRACTOR_VERSION
}

fn verify_estimate() -> String {
    Verify::Estimate.as_str().to_owned()
}

impl FileSettings {
    /// Reads the metadata of a file.
    pub(super) fn read(metadata: &HashMap<String, String>) -> Result<Self, String> {
        let missing = |key: &str| {
            format!("its metadata has no `{key}`; write it with pyhapax or `hapax export --parquet`, see docs/load.md")
        };
        let spec = metadata.get(SPEC).ok_or_else(|| missing(SPEC))?;
        let spec = Spec::parse(spec).map_err(|error| format!("`{SPEC}`: {error}"))?;
        let told = metadata.get(FINGERPRINT).ok_or_else(|| missing(FINGERPRINT))?;
        let own = spec.fingerprint().to_string();
        if *told != own {
            return Err(format!("`{FINGERPRINT}` is {told}, but `{SPEC}` has fingerprint {own}"));
        }
        let rest = metadata.get(SETTINGS).map(|json| serde_json::from_str(json));
        let rest: Option<Rest> = rest.transpose().map_err(|error| format!("`{SETTINGS}`: {error}"))?;
        let extractor = rest.as_ref().map_or(EXTRACTOR_VERSION, |rest| rest.extractor);
        let this = Self { spec, extractor, rest };
        this.rest().map(|_| this)
    }

    /// Returns the metadata of a file of this collection.
    pub fn of(settings: &Settings, extractor: u32) -> Self {
        let Settings { spec, keep, extract, banding, banding_by_hand, threshold, verify, ttl, touch } = settings;
        let rest = Rest {
            keep: keep.as_str().to_owned(),
            extract: extract.as_str().to_owned(),
            extractor,
            bands: banding.bands(),
            rows: banding.rows(),
            banding_by_hand: *banding_by_hand,
            threshold: *threshold,
            verify: verify.as_str().to_owned(),
            ttl_ms: ttl.map(|ttl| ttl.as_millis() as u64),
            touch: *touch,
        };
        Self { spec: spec.clone(), extractor, rest: Some(rest) }
    }

    pub(super) fn metadata(&self) -> impl Iterator<Item = (String, String)> {
        let rest = self.rest.as_ref().map(|rest| serde_json::to_string(rest).expect("numbers and strings serialise"));
        [
            (SPEC, Some(self.spec.to_string())),
            (FINGERPRINT, Some(self.spec.fingerprint().to_string())),
            (SETTINGS, rest),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
    }

    /// Returns the settings of the new collection. A file of signatures alone takes those of `default`, but it has
    /// nothing to compare except signatures.
    pub fn settings(&self, default: &Settings) -> Settings {
        match self.rest() {
            Ok(Some(settings)) => settings,
            _ => {
                let (keep, verify) = (Some(Keep::Signature), Some(Verify::Estimate));
                Settings::asked(SettingsAsked { keep, verify, ..SettingsAsked::of(self.spec.clone()) }, default)
            }
        }
    }

    fn rest(&self) -> Result<Option<Settings>, String> {
        let Some(rest) = &self.rest else { return Ok(None) };
        let unknown = |name: &str, value: &str| format!("`{SETTINGS}`: {name} `{value}` is unknown");
        let keep = Keep::ALL.into_iter().find(|keep| keep.as_str() == rest.keep);
        let extract = Extract::ALL.into_iter().find(|extract| extract.as_str() == rest.extract);
        let verify = Verify::ALL.into_iter().find(|verify| verify.as_str() == rest.verify);
        let banding = Banding::new(rest.bands, rest.rows, self.spec.shape());
        Ok(Some(Settings {
            spec: self.spec.clone(),
            keep: keep.ok_or_else(|| unknown("keep", &rest.keep))?,
            extract: extract.ok_or_else(|| unknown("extract", &rest.extract))?,
            banding: banding.map_err(|error| format!("`{SETTINGS}`: {error}"))?,
            banding_by_hand: rest.banding_by_hand,
            threshold: rest.threshold,
            verify: verify.ok_or_else(|| unknown("verify", &rest.verify))?,
            ttl: rest.ttl_ms.map(Duration::from_millis),
            touch: rest.touch,
        }))
    }
}

#[cfg(test)]
mod tests {
    use hapax_core::TextSpec;

    use super::*;

    fn made(banding_by_hand: bool) -> Settings {
        let spec = Spec::Text(TextSpec::default());
        let banding = Banding::new(20, 5, spec.shape()).unwrap();
        Settings { banding_by_hand, ..Settings::new(spec, banding, 0.7) }
    }

    fn read(settings: &str) -> Result<Settings, String> {
        let default = made(true);
        let (spec, fingerprint) = (default.spec.to_string(), default.spec.fingerprint().to_string());
        let metadata = [(SPEC, spec), (FINGERPRINT, fingerprint), (SETTINGS, settings.to_owned())];
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value)).into();
        FileSettings::read(&metadata).map(|file| file.settings(&default))
    }

    #[test]
    fn a_writer_of_signatures_gives_only_the_threshold_and_the_banding() {
        assert_eq!(read(r#"{"threshold": 0.7, "bands": 20, "rows": 5}"#), Ok(made(false)));
        for missing in [r#"{"threshold": 0.7, "bands": 20}"#, r#"{"bands": 20, "rows": 5}"#] {
            assert!(read(missing).unwrap_err().contains("missing field"), "{missing}");
        }
        let unknown = read(r#"{"threshold": 0.7, "bands": 20, "rows": 5, "more": 1}"#);
        assert!(unknown.unwrap_err().contains("unknown field"));
    }
}
