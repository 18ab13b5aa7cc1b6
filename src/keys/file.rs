//! The text of a keys file -> its keys, or the reason why it cannot be used. Version 1 of the format:
//!
//! ```toml
//! version = 1
//!
//! [[key]]
//! name = "crawler"
//! id = "k3f9x2ab"
//! sha256 = "64 hexadecimal digits, of the text that a client sends"
//! scopes = ["check", "insert"]
//! collections = ["pages", "crawl-*"]
//! created = "2026-11-22T10:00:00Z"
//! expires = "2027-11-22T10:00:00Z"
//! scores = "full"
//! [key.limits]
//! requests_per_second = 100
//! ```
//!
//! Unknown fields and words are refused: a server that ignored a limit or an expiry would allow more than the file
//! says.

use std::collections::HashSet;
use std::io::{self, Read};
use std::ops::{Range, RangeInclusive};
use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;
use toml_edit::{DocumentMut, Item, Value};

use super::key::{Key, KeyDigest, KeyLimits, Pattern, Rights, Scores, check_name};
use super::scope::{Scope, Scopes};
use crate::plain_file::open_plain_file;

/// The version of the format.
pub(super) const VERSION: i64 = 1;
/// The size of the longest file, in bytes.
pub(super) const BYTES_MAX: u64 = 1 << 20;
/// The most keys in a file, including expired ones.
pub(super) const KEYS_MAX: usize = 1000;
/// The most entries in the list of collections of a key.
const PATTERNS_MAX: usize = 100;
const ID_BYTES_MAX: usize = 32;
/// An error quotes at most this many characters of a name.
const NAME_CHARS_SHOWN: usize = 80;
/// If a detail is cut, this many characters stay at each end.
const DETAIL_CHARS_SHOWN: usize = 250;
/// The values that a limit may have.
pub(super) const LIMIT_RANGE: RangeInclusive<u64> = 1..=1_000_000_000_000;

/// The reason why a file has no usable keys.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error("{0}")]
    Read(#[source] io::Error),
    /// The file as a whole is wrong.
    #[error("{detail}")]
    Format { detail: String },
    /// The file is good, but the new key is not valid.
    #[error("{0}")]
    NewKey(Box<Self>),
    /// Two keys of this name are valid already.
    #[error("two keys named {name} are valid already; revoke one of them first: {older}, or {newer}")]
    NameTaken {
        name: String,
        /// The ids of the two keys.
        older: String,
        newer: String,
    },
    /// No key has this name or id.
    #[error("no key has the name or the id {0:?}; `hapax keys list` shows all")]
    NoSuchKey(String),
    /// One key in the file is wrong.
    #[error("key {at} ({name:?}): {detail}")]
    Key {
        /// The key's place in the file, from 1 on.
        at: usize,
        /// The key's name, as it is in the file.
        name: String,
        detail: String,
    },
}

/// Reads a file of at most [`BYTES_MAX`] bytes.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, KeysError> {
    let mut bytes = Vec::new();
    open_plain_file(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes)).map_err(KeysError::Read)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(format(format!("the file is longer than {BYTES_MAX} bytes; remove old keys")));
    }
    Ok(bytes)
}

/// Parses and checks a whole file.
pub fn parse(bytes: &[u8]) -> Result<Vec<Key>, KeysError> {
    let text = text(bytes)?;
    document(text)?;
    let file: RawFile =
        toml_edit::de::from_str(text).map_err(|error| format(at_line(text, error.message(), error.span())))?;
    if file.key.len() > KEYS_MAX {
        return Err(format(format!("{} keys; at most {KEYS_MAX} are allowed", file.key.len())));
    }
    let (mut keys, mut ids, mut digests) = (Vec::new(), HashSet::new(), HashSet::new());
    for (at, raw) in file.key.into_iter().enumerate() {
        let name = raw.name.clone();
        let refuse = |detail: String| KeysError::Key {
            at: at + 1,
            name: name.chars().take(NAME_CHARS_SHOWN).collect(),
            detail: without_middle(detail),
        };
        let key = key(raw).map_err(refuse)?;
        if !ids.insert(key.id().to_owned()) {
            return Err(refuse(format!("another key has the id {:?} too; each key needs its own", key.id())));
        }
        if !digests.insert(key.digest().to_hex()) {
            return Err(refuse("another key has the same sha256; revoke one of them".to_owned()));
        }
        keys.push(key);
    }
    Ok(keys)
}

/// Checks that a text is TOML, and that this program knows the version of its format.
pub(super) fn document(text: &str) -> Result<DocumentMut, KeysError> {
    let document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| format(at_line(text, error.message(), error.span())))?;
    match document.get("version").and_then(Item::as_value) {
        Some(Value::Integer(version)) if *version.value() == VERSION => Ok(document),
        Some(found) => Err(format(format!(
            "version = {}; this hapax reads version {VERSION}. Upgrade hapax, or make a new file with `hapax keys`",
            found.to_string().trim()
        ))),
        None => Err(format(format!("it has no line version = {VERSION}"))),
    }
}

/// Returns the text of a file, which must not be empty.
pub(super) fn text(bytes: &[u8]) -> Result<&str, KeysError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| format(format!("it is not UTF-8 at byte {}", error.valid_up_to())))?;
    if text.trim().is_empty() {
        return Err(format("the file is empty; make it with `hapax keys add`"));
    }
    Ok(text)
}

pub(super) fn format(detail: impl Into<String>) -> KeysError {
    KeysError::Format { detail: without_middle(detail.into()) }
}

/// Cuts the middle out of a long detail. A detail begins with a value of the file, and ends with the allowed values.
pub(super) fn without_middle(detail: String) -> String {
    let chars: Vec<char> = detail.chars().collect();
    if chars.len() <= 2 * DETAIL_CHARS_SHOWN {
        return detail;
    }
    let (beginning, end) = (&chars[..DETAIL_CHARS_SHOWN], &chars[chars.len() - DETAIL_CHARS_SHOWN..]);
    beginning.iter().chain(&['…']).chain(end).collect()
}

/// Adds the number of the line in the file to a parser's message.
fn at_line(text: &str, message: &str, span: Option<Range<usize>>) -> String {
    let message = message.trim_end().replace('\n', ", ");
    match span.and_then(|span| text.as_bytes().get(..span.start)) {
        Some(before) => format!("line {}: {message}", 1 + before.iter().filter(|byte| **byte == b'\n').count()),
        None => message,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(rename = "version")]
    _version: i64,
    #[serde(default)]
    key: Vec<RawKey>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKey {
    name: String,
    id: String,
    sha256: String,
    scopes: Vec<String>,
    collections: Option<Vec<String>>,
    created: Option<String>,
    expires: Option<String>,
    scores: Option<String>,
    #[serde(default)]
    limits: KeyLimits,
}

fn key(raw: RawKey) -> Result<Key, String> {
    check_name(&raw.name)?;
    check_id(&raw.id)?;
    let digest = KeyDigest::from_hex(&raw.sha256)
        .ok_or("sha256 must be 64 hexadecimal digits: the SHA-256 of the text that clients send")?;
    let scopes = Scopes::parse(raw.scopes.iter().map(String::as_str)).map_err(|detail| format!("scopes: {detail}"))?;
    let scores = raw.scores.map_or(Ok(Scores::Full), |text| scores(&text))?;
    coarse(scopes, scores)?;
    let rights = Rights {
        scopes,
        collections: raw.collections.map(|list| patterns(&list)).transpose()?.flatten(),
        created: raw.created.map(|text| time("created", &text)).transpose()?,
        expires: raw.expires.map(|text| time("expires", &text)).transpose()?,
        scores,
        limits: in_range(raw.limits)?,
    };
    Ok(Key::new(raw.name, raw.id, digest, rights))
}

fn check_id(id: &str) -> Result<(), String> {
    let fits = (1..=ID_BYTES_MAX).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if fits { Ok(()) } else { Err(format!("id {id:?} must be 1 to {ID_BYTES_MAX} of a-z and 0-9")) }
}

/// Reads the list of collections of a key. `None`: the list has `*`, so all collections are allowed.
pub(super) fn patterns(list: &[String]) -> Result<Option<Vec<Pattern>>, String> {
    if !(1..=PATTERNS_MAX).contains(&list.len()) {
        return Err(format!(
            "collections must have 1 to {PATTERNS_MAX} entries; it has {}. Leave it out to allow all collections",
            list.len()
        ));
    }
    let pattern = |text: &String| Pattern::new(text).map_err(|detail| format!("collections: {detail}"));
    let patterns = list.iter().map(pattern).collect::<Result<_, _>>()?;
    Ok(Some(patterns).filter(|_| !are_all(list)))
}

/// Returns whether a list of collections allows all collections.
pub(super) fn are_all(list: &[String]) -> bool {
    list.iter().any(|text| text == "*")
}

/// Checks that a key that sees only verdicts has no scope that shows more. With `sign`, a client could change a
/// signature slot by slot until the verdict changes. That would reveal the number of equal slots.
pub(super) fn coarse(scopes: Scopes, scores: Scores) -> Result<(), String> {
    let allowed = [Scope::Check, Scope::Insert, Scope::Delete];
    match Scope::ALL.into_iter().find(|scope| scopes.contains(*scope) && !allowed.contains(scope)) {
        Some(scope) if scores == Scores::Verdict => Err(format!(
            "scores = \"verdict\" is allowed only with the scopes check, insert and delete; remove the scope \
             `{scope}`, or give this scope to another key"
        )),
        _ => Ok(()),
    }
}

/// Reads how much of a verdict a key sees.
pub(super) fn scores(text: &str) -> Result<Scores, String> {
    [Scores::Full, Scores::Verdict]
        .into_iter()
        .find(|scores| scores.as_str() == text)
        .ok_or_else(|| format!("scores = {text:?}: must be \"full\" or \"verdict\""))
}

fn time(field: &str, text: &str) -> Result<Timestamp, String> {
    text.parse()
        .map_err(|_| format!("{field} = {text:?}: must be a time with its zone, such as \"2027-01-31T00:00:00Z\""))
}

/// Returns the limits if they are neither too small nor too large.
pub(super) fn in_range(limits: KeyLimits) -> Result<KeyLimits, String> {
    match limits.named().find(|(_, value)| !LIMIT_RANGE.contains(value)) {
        Some((field, value)) => Err(format!(
            "{field} = {value}: must be from {} to {}; leave it out for no limit",
            LIMIT_RANGE.start(),
            LIMIT_RANGE.end()
        )),
        None => Ok(limits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::scope::Scope;

    const HASH: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn one(lines: &str) -> String {
        format!("version = 1\n[[key]]\nname = \"n\"\nid = \"i\"\nsha256 = \"{HASH}\"\nscopes = [\"check\"]\n{lines}\n")
    }

    fn refused(text: &str) -> String {
        parse(text.as_bytes()).err().unwrap_or_else(|| panic!("{text}")).to_string()
    }

    #[test]
    fn a_key_has_what_the_file_says() {
        let text = one(
            "collections = [\"pages\", \"crawl-*\"]\ncreated = \"2026-11-22T10:00:00Z\"\nexpires = \"2027-11-22T10:00:00+01:00\"\n\
             scores = \"verdict\"\nlimits = {requests_per_second = 5, documents_per_second = 6}",
        );
        let [key] = &*parse(text.as_bytes()).unwrap() else { panic!("one key") };
        assert_eq!((key.name(), key.id(), key.scores()), ("n", "i", Scores::Verdict));
        assert!(key.may(Scope::Check) && !key.may(Scope::Read));
        assert_eq!(key.collections().unwrap().len(), 2);
        assert_eq!(key.expires().unwrap().to_string(), "2027-11-22T09:00:00Z");
        let limits = KeyLimits { requests_per_second: Some(5), documents_per_second: Some(6), ..KeyLimits::default() };
        assert_eq!(*key.limits(), limits);
        assert!(key.digest().equals(&KeyDigest::of(b"abc")));
        let [plain] = &*parse(one("").as_bytes()).unwrap() else { panic!("one key") };
        assert_eq!((plain.expires(), plain.collections().is_none(), plain.scores()), (None, true, Scores::Full));
        assert!(parse(b"version = 1\n").unwrap().is_empty(), "all keys are revoked");
    }

    #[test]
    fn what_is_unknown_or_wrong_is_refused_by_name() {
        for (text, part) in [
            (String::new(), "empty"),
            (" \n".into(), "empty"),
            ("[[key]]".into(), "no line version = 1"),
            ("version = 2\nnew = 1".into(), "version = 2; this hapax reads version 1"),
            ("version = \"1\"".into(), "this hapax reads version 1"),
            ("version = 1\nnew = 1".into(), "line 2: unknown field `new`"),
            ("version = 1\n[[key]\n".into(), "line 2: "),
            (one("color = 1"), "unknown field `color`"),
            (one("scores = \"some\""), "key 1 (\"n\"): scores = \"some\": must be"),
            (one("expires = \"2027-01-01\""), "expires = \"2027-01-01\": must be a time"),
            (one("collections = []"), "1 to 100 entries"),
            (one("collections = [\"A*\"]"), "\"A*\" must be the name"),
            (one("limits = {requests_per_second = 0}"), "requests_per_second = 0: must be from 1"),
            (one("limits = {requests_per_minute = 1}"), "unknown field `requests_per_minute`"),
            (one("").replace("check", "write"), "there is no scope \"write\""),
            (one("").replace("[\"check\"]", "[]"), "one scope or more"),
            (one("").replace("\"n\"", "\"api_key\""), "is reserved for the key in `auth.api_key`"),
            (one("").replace("\"n\"", "\"N\""), "\"N\" must be 1 to 64"),
            (one("").replace("\"i\"", "\"\""), "id \"\" must be"),
            (one("").replace(HASH, &HASH[1..]), "64 hexadecimal digits"),
            (one("").replace("sha256", "sha512"), "unknown field `sha512`"),
            (one("") + &one("").replace("version = 1\n", ""), "another key has the id \"i\" too"),
            (one("") + &one("").replace("version = 1\n", "").replace("\"i\"", "\"j\""), "the same sha256"),
        ] {
            let refused = refused(&text);
            assert!(refused.contains(part), "{text}\n-> {refused}");
        }
    }

    #[test]
    fn sizes_and_counts_are_bounded() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![b'#'; BYTES_MAX as usize + 1]).unwrap();
        assert!(read(file.path()).unwrap_err().to_string().contains("longer than 1048576 bytes"));
        std::fs::write(file.path(), b"version = 1\n".repeat(3)).unwrap();
        assert_eq!(read(file.path()).unwrap().len(), 36);
        assert!(read(file.path().parent().unwrap()).unwrap_err().to_string().contains("not a file"));
        let keys: String = (0..=KEYS_MAX)
            .map(|at| {
                let hash = KeyDigest::of(&at.to_le_bytes()).to_hex();
                format!("[[key]]\nname = \"n\"\nid = \"i{at}\"\nsha256 = \"{hash}\"\nscopes = [\"check\"]\n")
            })
            .collect();
        assert!(refused(&format!("version = 1\n{keys}")).contains("1001 keys; at most 1000"));
        let long = "x".repeat(9000);
        for (text, part) in [
            (one(&format!("{long} = 1")), "expected one of `name`"),
            (one(&format!("scores = {long:?}")), "must be \"full\" or \"verdict\""),
            (format!("version = {long:?}"), "Upgrade hapax"),
        ] {
            let error = refused(&text);
            assert!(error.len() < 800 && error.contains("xxx…xxx") && error.contains(part), "{error}");
        }
        let deep = format!("version = 1\nkey = {}", "[".repeat(100_000));
        assert!(!refused(&deep).is_empty());
    }
}
