//! A secret that is sent to another program.

use std::fmt;

/// A password. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Wraps a password.
    pub fn new(password: impl Into<String>) -> Self {
        Self(password.into())
    }

    /// Returns the password itself.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("********")
    }
}

#[test]
fn a_password_is_never_printed() {
    assert!(!format!("{:?}", Password::new("secret")).contains("secret"));
}
