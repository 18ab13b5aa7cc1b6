//! Turns the section `[default_collection]` into settings of a collection, or names the key that is wrong. It must
//! never know how a collection is opened.

use std::time::Duration;

use hapax_core::{
    Banding, Digits, Fold, Marks, SecretKey, Shingling, SignatureShape, SketchKind, Spec, TextSpec, tuning,
};

use super::error::ConfigError;
use super::ranges::{impossible, word};
use super::raw::RawDefaultCollection;
use crate::types::{Extract, Keep, Verify};
use crate::verdicts::{BandingAsked, CollectionError, KeyAsked, Settings, SettingsAsked, check_threshold};

/// Checks every value. `secret` is the one that `key = "configured"` refers to.
pub(super) fn default_collection(
    raw: &RawDefaultCollection,
    secret: Option<&SecretKey>,
) -> Result<Settings, ConfigError> {
    let (sketch, shape) =
        sketch(&raw.sketch).ok_or_else(|| impossible("default_collection.sketch", &raw.sketch, SKETCHES.into()))?;
    let threshold = check_threshold(raw.threshold).map_err(|_| {
        let allowed = "must be a number above 0 and at most 1".into();
        impossible("default_collection.threshold", raw.threshold, allowed)
    })?;
    let key = key(&raw.key, secret)?;
    let spec = TextSpec {
        fold: word(
            "default_collection.fold",
            &raw.fold,
            &[("nfkc_casefold", Fold::NfkcCasefold), ("nfkc", Fold::Nfkc), ("none", Fold::None)],
        )?,
        marks: word("default_collection.marks", &raw.marks, &[("keep", Marks::Keep), ("strip", Marks::Strip)])?,
        digits: word("default_collection.digits", &raw.digits, &[("keep", Digits::Keep), ("zero", Digits::Zero)])?,
        shingling: shingling(&raw.shingle).ok_or_else(|| {
            let allowed = "must be \"word1\" to \"word32\" or \"char1\" to \"char32\"".into();
            impossible("default_collection.shingle", &raw.shingle, allowed)
        })?,
        sketch,
        shape,
        key,
    };
    let banding = match (raw.bands, raw.rows) {
        (0, 0) => BandingAsked::Automatic,
        (bands, rows) => BandingAsked::ByHand(Banding::new(bands, rows, shape).map_err(|refused| {
            impossible("default_collection.bands and .rows", format!("{bands} and {rows}"), refused.to_string())
        })?),
    };
    let asked = SettingsAsked {
        spec: Spec::Text(spec),
        keep: raw.keep.as_deref().map(keep).transpose()?,
        extract: Some(extract(&raw.extract)?),
        banding: Some(banding),
        threshold: Some(threshold),
        verify: Some(verify(&raw.verify)?),
        ttl: Some((raw.ttl_s > 0).then(|| Duration::from_secs(raw.ttl_s))),
        touch: Some(raw.touch),
    };
    let plain = Settings::new(asked.spec.clone(), tuning::default_banding(shape, threshold), threshold);
    Settings::asked(asked, &plain).checked().map_err(|refused| match refused {
        CollectionError::Invalid { field: "ttl", detail } => impossible("default_collection.ttl_s", raw.ttl_s, detail),
        refused => impossible("default_collection.verify", &raw.verify, refused.to_string()),
    })
}

fn keep(name: &str) -> Result<Keep, ConfigError> {
    word("default_collection.keep", name, &Keep::ALL.map(|keep| (keep.as_str(), keep)))
}

fn extract(name: &str) -> Result<Extract, ConfigError> {
    word("default_collection.extract", name, &Extract::ALL.map(|extract| (extract.as_str(), extract)))
}

fn verify(name: &str) -> Result<Verify, ConfigError> {
    word("default_collection.verify", name, &Verify::ALL.map(|verify| (verify.as_str(), verify)))
}

/// Returns the fingerprint of the secret to hash with.
fn key(name: &str, secret: Option<&SecretKey>) -> Result<Option<u64>, ConfigError> {
    let refuse = |allowed: &str| Err(impossible("default_collection.key", format!("{name:?}"), allowed.into()));
    match (KeyAsked::named(name), secret) {
        (Some(KeyAsked::None), _) => Ok(None),
        (Some(KeyAsked::Configured), Some(secret)) => Ok(Some(secret.fingerprint())),
        (Some(KeyAsked::Configured), None) => refuse("needs a secret; set hashing.secret or hashing.secret_file too"),
        (None, _) => refuse("must be \"none\" or \"configured\""),
    }
}

const SKETCHES: &str = "must be \"fss\", \"classic\" or \"oph\", then the slots (a power of two, 64 to 1024), \"x\" \
                        and the bits (8, 16 or 32), such as \"fss256x8\"";

fn sketch(text: &str) -> Option<(SketchKind, SignatureShape)> {
    let (kind, shape) = SketchKind::split(text)?;
    let (k, bits) = shape.split_once('x')?;
    let (k, bits) = (plain_number(k)?, plain_number(bits)?);
    let fits = k.is_power_of_two() && (64..=1024).contains(&k) && [8, 16, 32].contains(&bits);
    fits.then_some((kind, SignatureShape { k, bits }))
}

fn shingling(text: &str) -> Option<Shingling> {
    let width = |digits: &str| plain_number(digits).filter(|width| (1..=32).contains(width));
    match (text.strip_prefix("word"), text.strip_prefix("char")) {
        (Some(digits), _) => Some(Shingling::Word(width(digits)? as u8)),
        (_, Some(digits)) => Some(Shingling::Char(width(digits)? as u8)),
        _ => None,
    }
}

/// Parses digits without a leading zero. `+5` and `05` parse as numbers too, but they are not canonical.
fn plain_number(digits: &str) -> Option<u32> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    plain.then(|| digits.parse().ok()).flatten()
}
