//! What a new collection is asked to be, by a client or by the configuration. What is left out is filled in by
//! [`Settings::asked`](super::Settings::asked).

use std::time::Duration;

use hapax_core::{Banding, Spec};

use crate::types::{Keep, Verify};

/// What a banding is asked to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BandingAsked {
    /// The default for the shape and the threshold, now and after each change of the threshold.
    Automatic,
    /// This one, whatever the threshold becomes.
    ByHand(Banding),
    /// The present one, whatever the threshold becomes.
    Kept,
}

/// What hashing is asked to be keyed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAsked {
    None,
    /// The secret of the configuration.
    Configured,
}

impl KeyAsked {
    /// By name. `configured` and `secret` are the same; the first is documented.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::None),
            "configured" | "secret" => Some(Self::Configured),
            _ => None,
        }
    }
}

/// What a new collection is asked to be. What is absent is as in another collection's settings, where that is possible.
#[derive(Clone, Debug)]
pub struct SettingsAsked {
    pub spec: Spec,
    /// What is kept beside signatures.
    pub keep: Option<Keep>,
    pub banding: Option<BandingAsked>,
    /// Similarity from which two documents are near-duplicates.
    pub threshold: Option<f64>,
    /// How matches are confirmed.
    pub verify: Option<Verify>,
    /// How long a document stays; `Some(None)`: for ever.
    pub ttl: Option<Option<Duration>>,
    /// Whether a document counts as seen when a duplicate of it is inserted.
    pub touch: Option<bool>,
}
