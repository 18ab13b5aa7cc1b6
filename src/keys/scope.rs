//! The names of the rights that a key may have.

use std::fmt;

/// One right that a key may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Look documents up.
    Check,
    /// Read records, pages, clusters and buckets.
    Read,
    /// Store documents.
    Insert,
    /// Delete documents.
    Delete,
    /// Create, change and drop collections; make backups.
    Admin,
    /// Read `/metrics`.
    Metrics,
    /// Get signatures, and send signatures or sets instead of texts. With this right, a client can craft documents that
    /// share bands with any other document.
    Sign,
    /// See how hapax reached a verdict: the sizes of buckets, and documents below the threshold.
    Explain,
    /// Send signatures together with facts about the texts that they were made from. With this right, a client can pass
    /// a document off as a copy of any text.
    Load,
    /// List, add and revoke keys. With this right, a client can give itself every other right.
    Keys,
}

impl Scope {
    pub const ALL: [Self; 10] = [
        Self::Check,
        Self::Read,
        Self::Insert,
        Self::Delete,
        Self::Admin,
        Self::Metrics,
        Self::Sign,
        Self::Explain,
        Self::Load,
        Self::Keys,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Read => "read",
            Self::Insert => "insert",
            Self::Delete => "delete",
            Self::Admin => "admin",
            Self::Metrics => "metrics",
            Self::Sign => "sign",
            Self::Explain => "explain",
            Self::Load => "load",
            Self::Keys => "keys",
        }
    }

    fn bit(self) -> u16 {
        1 << self as u8
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scopes(u16);

impl Scopes {
    /// Returns all scopes.
    pub fn all() -> Self {
        Self(Scope::ALL.iter().fold(0, |all, scope| all | scope.bit()))
    }

    /// Reads a list of words. The error names the wrong word, and the allowed ones.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let allowed = || Scope::ALL.map(Scope::as_str).join(", ");
        let mut scopes = Self(0);
        for word in words {
            let scope = Scope::ALL.into_iter().find(|scope| scope.as_str() == word);
            let scope = scope.ok_or_else(|| format!("there is no scope {word:?}; the scopes are {}", allowed()))?;
            scopes.0 |= scope.bit();
        }
        if scopes.0 == 0 { Err(format!("must name one scope or more of {}", allowed())) } else { Ok(scopes) }
    }

    pub fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Whether this set has every scope of `other`.
    pub fn covers(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub fn words(self) -> impl Iterator<Item = &'static str> {
        Scope::ALL.into_iter().filter(move |scope| self.contains(*scope)).map(Scope::as_str)
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back() {
        for scope in Scope::ALL {
            let one = Scopes::parse([scope.as_str()]).unwrap();
            assert_eq!(one.words().collect::<Vec<_>>(), [scope.as_str()]);
            assert!(Scopes::all().covers(one) && one.contains(scope) && !one.covers(Scopes::all()));
        }
        assert_eq!(Scopes::parse(["sign", "check"]).unwrap().to_string(), "check, sign");
        assert!(Scopes::parse([]).unwrap_err().starts_with("must name one scope or more of check, "));
        assert!(Scopes::parse(["Check"]).unwrap_err().contains("no scope \"Check\""));
    }
}
