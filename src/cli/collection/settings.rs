//! Arguments for the settings of a collection -> JSON for the API. The server checks the values, so a new value of a
//! setting needs no change here.

use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};

use crate::cli::duration::duration;

/// The way in which documents are signed.
#[derive(Clone, Debug, Default, clap::Args)]
pub(in crate::cli) struct SpecArgs {
    /// Unit of comparison: word1 to word32, or char1 to char32
    #[arg(long, value_name = "SHINGLE")]
    shingle: Option<String>,
    /// Kind and size of the signature, such as fss256x8
    #[arg(long, value_name = "SKETCH")]
    sketch: Option<String>,
    /// Folding of characters: nfkc_casefold, nfkc or none
    #[arg(long, value_name = "FOLD")]
    fold: Option<String>,
    /// Accents and vowel signs: keep or strip
    #[arg(long, value_name = "MARKS")]
    marks: Option<String>,
    /// Digits: keep, or zero to read each digit as 0
    #[arg(long, value_name = "DIGITS")]
    digits: Option<String>,
    /// Keyed hashing: none, or configured to hash with the secret of the server
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// The six settings above in one line, or external:NAME:KxBITS
    #[arg(long, value_name = "SPEC", conflicts_with_all = ["shingle", "sketch", "fold", "marks", "digits", "key"])]
    spec: Option<String>,
}

impl SpecArgs {
    pub(in crate::cli) fn add_to(&self, settings: &mut Map<String, Value>) {
        let Self { shingle, sketch, fold, marks, digits, key, spec } = self;
        for (name, value) in [
            ("shingle", shingle),
            ("sketch", sketch),
            ("fold", fold),
            ("marks", marks),
            ("digits", digits),
            ("key", key),
            ("spec", spec),
        ] {
            settings.extend(value.as_ref().map(|value| (name.to_owned(), json!(value))));
        }
    }
}

/// The settings that are chosen when a collection is created.
#[derive(Clone, Debug, Default, clap::Args)]
pub(in crate::cli) struct FrozenArgs {
    /// How documents are found: similarity, or containment for the items that other texts may contain
    #[arg(long, value_name = "INDEX")]
    index: Option<String>,
    #[command(flatten)]
    spec: SpecArgs,
    /// Stored part of each document: signature, shingles or text
    #[arg(long, value_name = "KEEP")]
    keep: Option<String>,
    /// Part of an HTML page that is compared: article (the main text) or visible (all visible text)
    #[arg(long, value_name = "EXTRACT")]
    extract: Option<String>,
}

impl FrozenArgs {
    pub(super) fn add_to(&self, settings: &mut Map<String, Value>) {
        let Self { index, spec, keep, extract } = self;
        spec.add_to(settings);
        for (name, value) in [("index", index), ("keep", keep), ("extract", extract)] {
            settings.extend(value.as_ref().map(|value| (name.to_owned(), json!(value))));
        }
    }
}

/// The threshold, and the banding that finds candidates for it.
#[derive(Clone, Debug, Default, clap::Args)]
pub(in crate::cli) struct BandingArgs {
    /// Smallest similarity of near duplicates, above 0 and at most 1
    #[arg(long, value_name = "J")]
    threshold: Option<f64>,
    /// Number of bands. The banding then no longer changes with the threshold
    #[arg(long, value_name = "N")]
    bands: Option<u32>,
    /// Number of rows of each band
    #[arg(long, value_name = "N")]
    rows: Option<u32>,
}

impl BandingArgs {
    /// Returns the threshold, if there is one.
    pub(in crate::cli) fn threshold(&self) -> Option<f64> {
        self.threshold
    }

    pub(in crate::cli) fn add_to(&self, settings: &mut Map<String, Value>) -> Result<()> {
        let Self { threshold, bands, rows } = self;
        if let Some(threshold) = threshold.filter(|threshold| !threshold.is_finite()) {
            bail!("--threshold {threshold}: must be a number above 0 and at most 1");
        }
        settings.extend(threshold.map(|threshold| ("threshold".to_owned(), json!(threshold))));
        if bands.is_none() && rows.is_none() {
            return Ok(());
        }
        // A preset has both, and each of them can be replaced alone.
        let mut banding = settings.remove("banding").unwrap_or_else(|| json!({}));
        for (name, number, other) in [("bands", bands, "--rows"), ("rows", rows, "--bands")] {
            match number {
                Some(number) => banding[name] = json!(number),
                None if banding[name].is_null() => bail!("{other} is given without --{name}; give both"),
                None => {}
            }
        }
        settings.insert("banding".to_owned(), banding);
        Ok(())
    }
}

/// The way in which documents are compared.
#[derive(Clone, Debug, Default, clap::Args)]
pub(in crate::cli) struct ComparingArgs {
    #[command(flatten)]
    banding: BandingArgs,
    /// Way to decide which candidates are matches: estimate, borderline or exact
    #[arg(long, value_name = "VERIFY")]
    verify: Option<String>,
}

impl ComparingArgs {
    pub(in crate::cli) fn add_to(&self, settings: &mut Map<String, Value>) -> Result<()> {
        let Self { banding, verify } = self;
        banding.add_to(settings)?;
        settings.extend(verify.as_ref().map(|verify| ("verify".to_owned(), json!(verify))));
        Ok(())
    }
}

/// The settings that can be changed later.
#[derive(Clone, Debug, Default, clap::Args)]
pub(in crate::cli) struct ChangeArgs {
    #[command(flatten)]
    comparing: ComparingArgs,
    /// Time after which a document expires, such as 12h or 30d; with `never`, documents do not expire
    #[arg(long, value_name = "TIME")]
    ttl: Option<String>,
    /// Whether the expiry of a document is postponed if a duplicate of it is inserted: true or false
    #[arg(long, value_name = "BOOL")]
    touch: Option<bool>,
}

impl ChangeArgs {
    pub(super) fn add_to(&self, settings: &mut Map<String, Value>) -> Result<()> {
        let Self { comparing, ttl, touch } = self;
        comparing.add_to(settings)?;
        let mut add = |name: &str, value: Option<Value>| settings.extend(value.map(|value| (name.to_owned(), value)));
        if let Some(ttl) = ttl {
            let time = if ttl == "never" { Ok(Duration::ZERO) } else { duration(ttl) };
            match time {
                Ok(time) => add("ttl", Some(json!(time.as_secs_f64()))),
                Err(detail) => bail!("--ttl {ttl}: {detail}, or never"),
            }
        }
        add("touch", touch.map(|touch| json!(touch)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;

    fn changes(arguments: &[&str]) -> Result<Value, String> {
        let command = ChangeArgs::augment_args(clap::Command::new("set").no_binary_name(true));
        let matches = command.try_get_matches_from(arguments).map_err(|error| error.to_string())?;
        let mut settings = Map::new();
        ChangeArgs::from_arg_matches(&matches).unwrap().add_to(&mut settings).map_err(|error| error.to_string())?;
        Ok(Value::from(settings))
    }

    #[test]
    fn arguments_become_the_fields_of_the_api() {
        assert_eq!(changes(&[]), Ok(json!({})));
        assert_eq!(
            changes(&["--threshold", "0.7", "--bands", "16", "--rows", "8", "--ttl", "30d", "--touch", "true"]),
            Ok(json!({"threshold": 0.7, "banding": {"bands": 16, "rows": 8}, "ttl": 2_592_000.0, "touch": true}))
        );
        assert_eq!(changes(&["--ttl", "never"]), Ok(json!({"ttl": 0.0})));
        assert!(
            changes(&["--ttl", "30"]).unwrap_err().contains("--ttl 30: must be a whole number with ms, s, m, h or d")
        );
        assert!(changes(&["--bands", "3"]).unwrap_err().contains("--rows"));
        assert!(changes(&["--threshold", "nan"]).unwrap_err().contains("--threshold NaN"));
    }
}
