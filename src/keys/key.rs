//! One key: its name, the hash of its text, and its rights. Decides which names of collections a key may use. Knows
//! nothing of files and requests.

use std::fmt;

use jiff::Timestamp;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;
use tokio_util::sync::CancellationToken;

use super::scope::{Scope, Scopes};
use crate::types::CollectionName;

/// The name of the key from the settings (`auth.api_key`). A key in a file cannot have this name.
pub const CONFIGURED: &str = "api_key";
/// The longest name of a key.
const NAME_BYTES_MAX: usize = 64;

/// The SHA-256 of a key's text. Texts of keys are random, so no slower hash is needed.
#[derive(Clone, Copy)]
pub struct KeyDigest([u8; 32]);

impl KeyDigest {
    pub fn of(text: &[u8]) -> Self {
        Self(Sha256::digest(text).into())
    }

    /// Reads 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    pub fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the first bytes of the hash. A key is looked up by these bytes, which reveal nothing about the other
    /// bytes.
    pub(super) fn beginning(&self) -> u64 {
        u64::from_le_bytes(self.0[..8].try_into().expect("eight bytes"))
    }

    /// Compares all bytes, in a time that does not depend on the position of a difference.
    pub fn equals(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

/// One entry in the list of collections that a key may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    Name(CollectionName),
    /// All names that begin with this text.
    Prefix(String),
}

impl Pattern {
    /// Reads the name of a collection, or the beginning of names followed by `*`.
    pub fn new(text: &str) -> Result<Self, String> {
        let refuse = || {
            format!(
                "{text:?} must be the name of a collection, such as \"pages\", or the beginning of names followed by \
                 *, such as \"crawl-*\""
            )
        };
        match text.strip_suffix('*') {
            // A valid beginning becomes a valid name when a letter follows it.
            Some(prefix) if CollectionName::new(&format!("{prefix}a")).is_ok() => Ok(Self::Prefix(prefix.to_owned())),
            Some(_) => Err(refuse()),
            None => CollectionName::new(text).map(Self::Name).map_err(|_| refuse()),
        }
    }

    fn admits(&self, name: &CollectionName) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Prefix(prefix) => name.as_str().starts_with(prefix),
        }
    }

    /// Whether this pattern admits every name that `other` admits.
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Name(own), Self::Name(other)) => own == other,
            (Self::Prefix(own), Self::Prefix(other)) => other.starts_with(own),
            (Self::Prefix(_), Self::Name(other)) => self.admits(other),
            (Self::Name(_), Self::Prefix(_)) => false,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Prefix(prefix) => write!(f, "{prefix}*"),
        }
    }
}

/// How much of a verdict a key sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scores {
    /// The whole verdict.
    Full,
    /// Only the verdict itself: no similarity, and no match.
    Verdict,
}

impl Scores {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Verdict => "verdict",
        }
    }
}

/// How much work a key may cause. `None`: the key does not have this limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyLimits {
    pub requests_per_second: Option<u64>,
    pub bytes_per_second: Option<u64>,
    pub documents_per_second: Option<u64>,
    pub requests_in_flight: Option<u64>,
}

impl KeyLimits {
    /// Returns the limits that are set, with their names in a keys file.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let Self { requests_per_second, bytes_per_second, documents_per_second, requests_in_flight } = *self;
        let all = [
            ("requests_per_second", requests_per_second),
            ("bytes_per_second", bytes_per_second),
            ("documents_per_second", documents_per_second),
            ("requests_in_flight", requests_in_flight),
        ];
        all.into_iter().filter_map(|(name, limit)| Some((name, limit?)))
    }
}

/// The rights of a key, and when they end.
#[derive(Clone)]
pub(super) struct Rights {
    pub scopes: Scopes,
    /// `None`: all collections.
    pub collections: Option<Vec<Pattern>>,
    pub created: Option<Timestamp>,
    pub expires: Option<Timestamp>,
    pub scores: Scores,
    pub limits: KeyLimits,
}

/// One key. `{:?}` shows neither its text nor its hash.
#[derive(Clone)]
pub struct Key {
    name: String,
    id: String,
    digest: KeyDigest,
    rights: Rights,
    /// The limits that apply: those of the newest key with this name.
    limits: KeyLimits,
    revoked: CancellationToken,
}

impl Key {
    pub(super) fn new(name: String, id: String, digest: KeyDigest, rights: Rights) -> Self {
        Self { name, id, digest, limits: rights.limits, rights, revoked: CancellationToken::new() }
    }

    /// Returns the key from the settings, which may do everything.
    pub(super) fn configured(digest: KeyDigest) -> Self {
        let rights = Rights {
            scopes: Scopes::all(),
            collections: None,
            created: None,
            expires: None,
            scores: Scores::Full,
            limits: KeyLimits::default(),
        };
        Self::new(CONFIGURED.to_owned(), CONFIGURED.to_owned(), digest, rights)
    }

    /// Takes over the token of `before` if that token is not cancelled, so that the open requests of the key's clients
    /// continue.
    pub(super) fn continuing(self, before: &Self) -> Self {
        let revoked = if before.revoked.is_cancelled() { self.revoked } else { before.revoked.clone() };
        Self { revoked, ..self }
    }

    /// Sets the limits that apply.
    pub(super) fn limit(&mut self, limits: KeyLimits) {
        self.limits = limits;
    }

    /// The limits that the file gives to this key.
    pub(super) fn own_limits(&self) -> &KeyLimits {
        &self.rights.limits
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// A public word that distinguishes two keys with the same name.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn digest(&self) -> &KeyDigest {
        &self.digest
    }

    pub fn scopes(&self) -> Scopes {
        self.rights.scopes
    }

    /// The collections that the key may use; `None` if it may use all.
    pub fn collections(&self) -> Option<&[Pattern]> {
        self.rights.collections.as_deref()
    }

    pub fn created(&self) -> Option<Timestamp> {
        self.rights.created
    }

    pub fn expires(&self) -> Option<Timestamp> {
        self.rights.expires
    }

    pub fn scores(&self) -> Scores {
        self.rights.scores
    }

    /// The limits that apply to the key.
    pub fn limits(&self) -> &KeyLimits {
        &self.limits
    }

    /// The token that is cancelled once the key is revoked, has expired, or has lost a right.
    pub fn revoked(&self) -> &CancellationToken {
        &self.revoked
    }

    pub fn may(&self, scope: Scope) -> bool {
        self.rights.scopes.contains(scope)
    }

    pub fn may_use(&self, name: &CollectionName) -> bool {
        self.rights.collections.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| pattern.admits(name)))
    }

    /// Whether the key has expired. A key that has expired stays expired even if the clock is set back.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.rights.expires.is_some_and(|at| at <= now || self.revoked.is_cancelled())
    }

    /// Whether this key may do everything that `other` may do.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let collections = match (&self.rights.collections, &other.rights.collections) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(others)) => others.iter().all(|other| own.iter().any(|own| own.covers(other))),
        };
        let scores = self.rights.scores == Scores::Full || other.rights.scores == Scores::Verdict;
        collections && scores && self.rights.scopes.covers(other.rights.scopes)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("name", &self.name).field("id", &self.id).finish_non_exhaustive()
    }
}

/// Checks the name of a key, because it is shown in logs and metrics.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let head = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    let fits = (1..=NAME_BYTES_MAX).contains(&bytes.len())
        && head(bytes[0])
        && bytes.iter().all(|&byte| head(byte) || b"-_.".contains(&byte));
    match (fits, name) {
        (_, CONFIGURED) => {
            Err(format!("the name {CONFIGURED} is reserved for the key in `auth.api_key`; choose another name"))
        }
        (false, _) => Err(format!(
            "{name:?} must be 1 to {NAME_BYTES_MAX} of a-z, 0-9, -, _ and ., and begin with a letter or digit"
        )),
        (true, _) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> CollectionName {
        CollectionName::new(text).unwrap()
    }

    #[test]
    fn a_prefix_admits_what_begins_so() {
        let crawl = Pattern::new("crawl-*").unwrap();
        assert!(crawl.admits(&name("crawl-1")) && crawl.admits(&name("crawl-")));
        assert!(!crawl.admits(&name("crawl")) && !crawl.admits(&name("a-crawl-1")));
        assert!(Pattern::new("*").unwrap().admits(&name("x")));
        assert!(Pattern::new("pages").unwrap().admits(&name("pages")));
        assert!(!Pattern::new("pages").unwrap().admits(&name("pages2")));
        for text in ["", "Pages", "a*b", "**", "-a*", "a b", "a/*"] {
            assert!(Pattern::new(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_wider_pattern_covers_a_narrower_one() {
        let covers = |own: &str, other: &str| Pattern::new(own).unwrap().covers(&Pattern::new(other).unwrap());
        for (own, other) in [("*", "a*"), ("a*", "ab*"), ("a*", "a*"), ("a*", "abc"), ("a", "a")] {
            assert!(covers(own, other), "{own} {other}");
        }
        for (own, other) in [("a*", "*"), ("ab*", "a*"), ("a", "a*"), ("a", "b"), ("a*", "b")] {
            assert!(!covers(own, other), "{own} {other}");
        }
    }

    #[test]
    fn digests_are_read_and_compared_whole() {
        let digest = KeyDigest::of(b"hapax");
        let hex = digest.to_hex();
        assert!(KeyDigest::from_hex(&hex).unwrap().equals(&digest));
        let mut other = hex.clone().into_bytes();
        other[63] = if other[63] == b'0' { b'1' } else { b'0' };
        assert!(!KeyDigest::from_hex(std::str::from_utf8(&other).unwrap()).unwrap().equals(&digest));
        assert!(KeyDigest::from_hex(&hex[1..]).is_none());
        assert!(KeyDigest::from_hex(&hex.replacen(&hex[..1], "g", 1)).is_none());
        // The example in FIPS 180-4 with one block.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(KeyDigest::of(b"abc").to_hex(), abc);
    }

    #[test]
    fn names_fit_into_logs_and_labels() {
        for good in ["a", "crawler-1", "0.x_y", &"a".repeat(64)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", "A", "-a", "a b", "a\"", "api_key", &"a".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
