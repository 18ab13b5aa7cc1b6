//! The API key of the settings: checks its text.

use std::fmt;

use crate::keys::KeyDigest;

/// A shorter key causes a warning at the start: short keys are usually typed passwords, which can be guessed within
/// days.
const CHARS_SHORT: usize = 16;

/// The key that clients must send. `{:?}` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Accepts printable ASCII characters without spaces. The error says what is allowed.
    pub fn new(text: &str) -> Result<Self, String> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(Self(text.to_owned()));
        }
        Err("must be one or more printable ASCII characters, without spaces".to_owned())
    }

    /// Whether the key is short enough to be guessed.
    pub fn is_short(&self) -> bool {
        self.0.len() < CHARS_SHORT
    }

    /// Returns the hash of the key. The text that a client sends is compared with it.
    pub fn digest(&self) -> KeyDigest {
        KeyDigest::of(self.0.as_bytes())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(********)")
    }
}
