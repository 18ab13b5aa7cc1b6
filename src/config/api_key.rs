//! The API key: which text can be one, and whether a client has shown it.

use std::fmt;

/// A key with fewer characters draws a warning at start: what people type as a password is guessed within days.
const CHARS_SHORT: usize = 16;

/// The key that clients send. `{:?}` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Printable ASCII characters without spaces, or else what is allowed.
    pub fn new(text: &str) -> Result<Self, String> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(Self(text.to_owned()));
        }
        Err("a key has at least one character, all printable ASCII, and no spaces".to_owned())
    }

    /// Whether it can be guessed.
    pub fn is_short(&self) -> bool {
        self.0.len() < CHARS_SHORT
    }

    /// Whether `shown` is the key, in a time that does not tell how much of it is right.
    pub fn admits(&self, shown: &[u8]) -> bool {
        subtle::ConstantTimeEq::ct_eq(self.0.as_bytes(), shown).into()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(********)")
    }
}
