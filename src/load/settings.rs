//! The settings of a collection in the metadata of a file: its spec, the spec's fingerprint, and the rest as JSON. All
//! files of one load must have the same settings (`builder.rs`).

use std::collections::HashMap;
use std::time::Duration;

use hapax_core::{Banding, Spec};
use serde::{Deserialize, Serialize};

use crate::extract::EXTRACTOR_VERSION;
use crate::types::{Extract, Keep, Verify};
use crate::verdicts::{Settings, SettingsAsked};

const SPEC: &str = "hapax.spec";
pub(crate) const FINGERPRINT: &str = "hapax.fingerprint";
const SETTINGS: &str = "hapax.settings";

/// The settings that a file contains for its collection.
#[derive(Clone, Debug, PartialEq)]
pub struct FileSettings {
    pub spec: Spec,
    /// The version of the extractor with which the collection was created.
    pub extractor: u32,
    /// `None` if the metadata has no settings except the spec.
    settings: Option<Settings>,
}

/// All settings except the spec, as a file stores them. A program that only makes signatures knows only the threshold
/// and the banding, so the other fields have defaults.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Json {
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
        let json = metadata.get(SETTINGS).map(|json| serde_json::from_str(json));
        let json: Option<Json> = json.transpose().map_err(|error| format!("`{SETTINGS}`: {error}"))?;
        let extractor = json.as_ref().map_or(EXTRACTOR_VERSION, |json| json.extractor);
        let settings = json.map(|json| json.settings(&spec)).transpose()?;
        Ok(Self { spec, extractor, settings })
    }

    /// Returns the settings that are written to a file when a collection with these settings is exported.
    pub fn of(settings: &Settings, extractor: u32) -> Self {
        Self { spec: settings.spec.clone(), extractor, settings: Some(settings.clone()) }
    }

    pub(super) fn metadata(&self) -> impl Iterator<Item = (String, String)> {
        let json = self.settings.as_ref().map(|settings| Json::of(settings, self.extractor));
        let json = json.map(|json| serde_json::to_string(&json).expect("numbers and strings serialise"));
        [
            (SPEC, Some(self.spec.to_string())),
            (FINGERPRINT, Some(self.spec.fingerprint().to_string())),
            (SETTINGS, json),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
    }

    /// Returns the settings of the new collection. A file without settings gets those of `default`, except that only
    /// signatures are stored and compared, because such a file has nothing else.
    pub fn settings(&self, default: &Settings) -> Settings {
        self.settings.clone().unwrap_or_else(|| {
            let (keep, verify) = (Some(Keep::Signature), Some(Verify::Estimate));
            Settings::asked(SettingsAsked { keep, verify, ..SettingsAsked::of(self.spec.clone()) }, default)
        })
    }
}

impl Json {
    fn of(settings: &Settings, extractor: u32) -> Self {
        let Settings { spec: _, keep, extract, banding, banding_by_hand, threshold, verify, ttl, touch } = settings;
        Self {
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
        }
    }

    fn settings(self, spec: &Spec) -> Result<Settings, String> {
        let unknown = |name: &str, value: &str| format!("`{SETTINGS}`: {name} `{value}` is unknown");
        let banding = Banding::new(self.bands, self.rows, spec.shape());
        Ok(Settings {
            spec: spec.clone(),
            keep: Keep::parse(&self.keep).ok_or_else(|| unknown("keep", &self.keep))?,
            extract: Extract::parse(&self.extract).ok_or_else(|| unknown("extract", &self.extract))?,
            banding: banding.map_err(|error| format!("`{SETTINGS}`: {error}"))?,
            banding_by_hand: self.banding_by_hand,
            threshold: self.threshold,
            verify: Verify::parse(&self.verify).ok_or_else(|| unknown("verify", &self.verify))?,
            ttl: self.ttl_ms.map(Duration::from_millis),
            touch: self.touch,
        })
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
