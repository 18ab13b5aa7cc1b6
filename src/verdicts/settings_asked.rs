//! The settings that a client or the configuration requests for a new collection.
//! [`Settings::asked`](super::Settings::asked) fills in those that are absent.

use std::time::Duration;

use hapax_core::{Banding, Spec};

use crate::types::{Extract, Keep, Verify};

/// A requested banding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BandingAsked {
    /// The default for the shape and the threshold. It is chosen again after each change of the threshold.
    Automatic,
    /// This banding, even if the threshold changes.
    ByHand(Banding),
    /// The present banding, even if the threshold changes.
    Kept,
}

/// A requested key of the hashing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAsked {
    None,
    /// The secret of the configuration.
    Configured,
}

impl KeyAsked {
    /// Parses a name. `configured` and `secret` mean the same; only the first is documented.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::None),
            "configured" | "secret" => Some(Self::Configured),
            _ => None,
        }
    }
}

/// The settings that are requested for a new collection. An absent setting is taken from the default settings, if that
/// is possible.
#[derive(Clone, Debug)]
pub struct SettingsAsked {
    pub spec: Spec,
    /// The data to store with signatures.
    pub keep: Option<Keep>,
    /// The part of a page's text to compare.
    pub extract: Option<Extract>,
    pub banding: Option<BandingAsked>,
    /// The least similarity of two documents that count as near duplicates.
    pub threshold: Option<f64>,
    /// How a candidate is confirmed as a match.
    pub verify: Option<Verify>,
    /// How long a document stays after it was last seen. `Some(None)`: for ever.
    pub ttl: Option<Option<Duration>>,
    /// Whether a document counts as seen when a duplicate of it is inserted.
    pub touch: Option<bool>,
}

impl SettingsAsked {
    /// Requests only this spec.
    pub fn of(spec: Spec) -> Self {
        let (keep, extract, banding, threshold, verify, ttl, touch) = Default::default();
        Self { spec, keep, extract, banding, threshold, verify, ttl, touch }
    }
}
