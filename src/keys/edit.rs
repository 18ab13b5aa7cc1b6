//! Adds keys to a keys file, and removes them. The rest of the file stays as it is, with its comments.
//! A file is replaced as a whole, so a server never reads a half-written file. If two programs change the file at the
//! same time, one of them waits.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, value};

use super::file::{self, BYTES_MAX, KeysError, VERSION};
use super::key::{Key, KeyDigest, KeyLimits, Scores, check_name};
use super::scope::{Scope, Scopes};
use crate::plain_file::lock_within;

/// The largest number of valid keys with the same name: the key in use, and the key that replaces it.
const OF_ONE_NAME_MAX: usize = 2;
/// The beginning of every key. People and programs that look for leaked secrets recognise a key by it.
const BEGINNING: &str = "hapax_";
/// The digits of a key (RFC 4648, section 6, in lower case): five bits each.
const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// How long a change waits for another program that changes a file of the same directory.
const LOCK_WAIT: Duration = Duration::from_secs(10);
/// The header of a new file.
const HEADER: &str =
    "# Keys of hapax: only hashes. `hapax keys add|list|revoke` changes this file; docs/keys.md describes it.\n";

/// A key to add. `None` and empty lists leave a field out.
#[derive(Clone, Debug, Default)]
pub struct NewKey {
    pub name: String,
    pub scopes: Vec<String>,
    pub collections: Vec<String>,
    /// A time, a date, or a number of days or hours from now, such as `90d`.
    pub expires: Option<String>,
    pub scores: Option<String>,
    pub limits: KeyLimits,
}

impl NewKey {
    /// Checks all fields. If one is wrong, the error is its name and the reason.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        // Some details begin with the name of the field, as in a file.
        let named = |name: &'static str| {
            move |detail: String| {
                let own = detail.strip_prefix(name).map(|rest| rest.trim_start_matches([':', '=', ' ']).to_owned());
                (name, file::without_middle(own.unwrap_or(detail)))
            }
        };
        check_name(&self.name).map_err(named("name"))?;
        let scopes = Scopes::parse(self.scopes.iter().map(String::as_str)).map_err(named("scopes"))?;
        if !self.collections.is_empty() {
            file::patterns(&self.collections).map_err(named("collections"))?;
        }
        if let Some(expires) = &self.expires {
            expiry(expires, Timestamp::now()).map_err(named("expires"))?;
        }
        let scores = self.scores.as_deref().map_or(Ok(Scores::Full), file::scores).map_err(named("scores"))?;
        file::coarse(scopes, scores).map_err(named("scores"))?;
        file::in_range(self.limits).map_err(named("limits")).map(drop)
    }
}

/// What to do if there is no file, or an empty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMissing {
    /// Make a new file.
    Create,
    /// Change nothing. A server whose file has disappeared still knows its keys. A new file would end all of them.
    Refuse,
}

/// Adds a key to a file. Returns the key, and the text that its client sends. That text is stored nowhere. If collections,
/// limits or scores are not given, the key gets those of the valid key that it will replace.
pub fn add(path: &Path, new: &NewKey, if_missing: IfMissing) -> Result<(Key, String), KeysError> {
    let (id, text) = (random(5)?, format!("{BEGINNING}{}", random(32)?));
    let keys = change(path, if_missing, |document, keys| {
        let now = Timestamp::now();
        let valid: Vec<_> = keys.iter().filter(|key| key.name() == new.name && !key.is_expired(now)).collect();
        if let [first, second, ..] = valid.as_slice()
            && valid.len() >= OF_ONE_NAME_MAX
        {
            let [older, newer] = [first, second].map(|key| key.id().to_owned());
            return Err(KeysError::NameTaken { name: new.name.clone(), older, newer });
        }
        let tables = document.entry("key").or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        let tables = tables.as_array_of_tables_mut().ok_or_else(|| file::format("write its keys as [[key]] tables"))?;
        let new = like(new, valid.first().copied());
        let limited = !new.collections.is_empty() && !file::are_all(&new.collections);
        if limited && new.scopes.iter().any(|scope| scope == Scope::Metrics.as_str()) {
            return Err(unfit("the scope metrics is for all collections; make a separate key for this scope"));
        }
        tables.push(table(&new, &id, &text, now)?);
        Ok(())
    })?;
    let key = keys.into_iter().find(|key| key.id() == id).expect("the key was added");
    Ok((key, text))
}

/// Returns the new key. If it has no collections, no limits or no `scores`, it gets those of the key that it will
/// replace.
fn like(new: &NewKey, before: Option<&Key>) -> NewKey {
    let mut new = new.clone();
    if let Some(before) = before {
        if new.collections.is_empty() {
            new.collections = before.collections().unwrap_or_default().iter().map(ToString::to_string).collect();
        }
        if new.limits == KeyLimits::default() {
            new.limits = *before.limits();
        }
        if before.scores() == Scores::Verdict {
            new.scores.get_or_insert_with(|| "verdict".to_owned());
        }
    }
    new
}

/// Removes the keys with this name or id from a file. Returns the name and the id of each removed key.
pub fn revoke(path: &Path, name_or_id: &str) -> Result<Vec<(String, String)>, KeysError> {
    remove(path, name_or_id, |key| key.id() == name_or_id || key.name() == name_or_id)
}

/// Removes the key with this id. Returns its name.
pub fn revoke_id(path: &Path, id: &str) -> Result<String, KeysError> {
    let removed = remove(path, id, |key| key.id() == id)?;
    removed.into_iter().next().map(|(name, _)| name).ok_or_else(|| KeysError::NoSuchKey(id.to_owned()))
}

fn remove(path: &Path, named: &str, is_meant: impl Fn(&Key) -> bool) -> Result<Vec<(String, String)>, KeysError> {
    let mut revoked = Vec::new();
    change(path, IfMissing::Refuse, |document, keys| {
        let meant = keys.iter().filter(|key| is_meant(key));
        revoked = meant.map(|key| (key.name().to_owned(), key.id().to_owned())).collect();
        let tables = document.get_mut("key").and_then(Item::as_array_of_tables_mut);
        let Some(tables) = tables.filter(|_| !revoked.is_empty()) else {
            return Err(KeysError::NoSuchKey(named.to_owned()));
        };
        let id = |table: &Table| table.get("id").and_then(Item::as_str).map(str::to_owned);
        tables.retain(|table| !revoked.iter().any(|(_, revoked)| id(table).as_deref() == Some(revoked)));
        Ok(())
    })?;
    Ok(revoked)
}

fn unfit(detail: impl Into<String>) -> KeysError {
    KeysError::NewKey(Box::new(file::format(detail)))
}

fn table(new: &NewKey, id: &str, text: &str, now: Timestamp) -> Result<Table, KeysError> {
    let list = |words: &[String]| value(words.iter().collect::<Array>());
    let seconds = |at: Timestamp| value(Timestamp::from_second(at.as_second()).unwrap_or(at).to_string());
    let mut table = Table::new();
    table.insert("name", value(&new.name));
    table.insert("id", value(id));
    table.insert("sha256", value(KeyDigest::of(text.as_bytes()).to_hex()));
    let scopes = Scopes::parse(new.scopes.iter().map(String::as_str)).map_err(unfit)?;
    table.insert("scopes", value(scopes.words().collect::<Array>()));
    if !new.collections.is_empty() {
        table.insert("collections", list(&new.collections));
    }
    table.insert("created", seconds(now));
    if let Some(expires) = &new.expires {
        table.insert("expires", seconds(expiry(expires, now).map_err(unfit)?));
    }
    if let Some(scores) = &new.scores {
        table.insert("scores", value(scores));
    }
    let limits: InlineTable =
        new.limits.named().map(|(name, limit)| (name, i64::try_from(limit).unwrap_or(i64::MAX))).collect();
    if !limits.is_empty() {
        table.insert("limits", value(limits));
    }
    Ok(table)
}

/// Reads a time, which must be after now.
fn expiry(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let span = |unit: char| text.strip_suffix(unit).and_then(|number| number.parse::<i64>().ok());
    let seconds = |number: i64, unit| number.checked_mul(unit).map(SignedDuration::from_secs);
    let at = match (span('d'), span('h')) {
        (Some(days), _) => seconds(days, 86_400).and_then(|span| now.checked_add(span).ok()),
        (_, Some(hours)) => seconds(hours, 3600).and_then(|span| now.checked_add(span).ok()),
        (None, None) => text.parse().or_else(|_| format!("{text}T00:00:00Z").parse()).ok(),
    };
    at.filter(|at| *at > now).ok_or_else(|| {
        format!(
            "expires = {text:?}: must be a time in the future, such as 90d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z"
        )
    })
}

/// Returns random digits, made from this many random bytes of the system.
fn random(bytes: usize) -> Result<String, KeysError> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).map_err(|error| KeysError::Read(io::Error::other(error)))?;
    let bit = |at: usize| random.get(at / 8).map_or(0, |byte| usize::from(byte >> (at % 8) & 1));
    let digit = |first: usize| char::from(DIGITS[(first..first + 5).fold(0, |digit, at| digit << 1 | bit(at))]);
    Ok((0..bytes * 8).step_by(5).map(digit).collect())
}

/// Changes a file, unless the result would be invalid. Returns the keys that it then has.
fn change(
    path: &Path,
    if_missing: IfMissing,
    change: impl FnOnce(&mut DocumentMut, &[Key]) -> Result<(), KeysError>,
) -> Result<Vec<Key>, KeysError> {
    // A symlink stays; the file to which it leads is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let dir =
        path.parent().filter(|dir| !dir.as_os_str().is_empty()).map_or_else(|| PathBuf::from("."), Path::to_owned);
    let lock = File::open(&dir).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => file::format(format!("there is no directory {}; make it first", dir.display())),
        _ => KeysError::Read(error),
    })?;
    if !lock_within(&lock, LOCK_WAIT).map_err(KeysError::Read)? {
        let detail = format!("another program has locked the directory {}; try again when it has ended", dir.display());
        return Err(KeysError::Read(io::Error::other(detail)));
    }
    let creates = if_missing == IfMissing::Create;
    let bytes = match file::read(&path) {
        Err(KeysError::Read(error)) if creates && error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read?,
    };
    let before = match bytes.trim_ascii() {
        [] if creates => format!("{HEADER}version = {VERSION}\n"),
        _ => file::text(&bytes)?.to_owned(),
    };
    let keys = file::parse(before.as_bytes())?;
    let mut document = file::document(&before)?;
    change(&mut document, &keys)?;
    let after = document.to_string();
    if after.len() as u64 > BYTES_MAX {
        return Err(unfit(format!("the file would be longer than {BYTES_MAX} bytes; revoke old keys first")));
    }
    let keys = file::parse(after.as_bytes()).map_err(|error| KeysError::NewKey(Box::new(error)))?;
    replace(&dir, &path, after.as_bytes()).map_err(KeysError::Read)?;
    lock.sync_all().map_err(KeysError::Read)?;
    Ok(keys)
}

/// Writes the content to a new file, which then replaces the old one. The new file gets the owner and the mode of the
/// old one.
fn replace(dir: &Path, path: &Path, content: &[u8]) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| io::Error::other("it is a directory"))?;
    // The draft of a process that was killed may still be there.
    let mark = random(5).map_err(io::Error::other)?;
    let draft = dir.join(format!(".{}.{mark}", name.to_string_lossy()));
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        if let Ok(old) = fs::metadata(path) {
            let new = file.metadata()?;
            if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
                fchown(&file, Some(old.uid()), Some(old.gid()))?;
            }
            file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o777))?;
        }
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&draft, path)
    };
    write().inspect_err(|_| _ = fs::remove_file(&draft))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::edit::IfMissing::{Create, Refuse};
    use crate::keys::{KeyRing, Shown};

    fn new(name: &str) -> NewKey {
        NewKey { name: name.to_owned(), scopes: vec!["check".to_owned()], ..NewKey::default() }
    }

    #[test]
    fn a_key_is_added_rotated_and_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.toml");
        let (first, text) = add(&path, &new("a"), Create).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(text.starts_with("hapax_") && text.len() == 6 + 52, "{text}");
        assert!(!fs::read_to_string(&path).unwrap().contains(&text), "only its hash is stored");
        fs::write(&path, fs::read_to_string(&path).unwrap() + "# a comment\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let limits = KeyLimits { requests_per_second: Some(5), ..KeyLimits::default() };
        let scores = Some("verdict".to_owned());
        let (second, second_text) = add(
            &path,
            &NewKey { expires: Some("90d".into()), collections: vec!["x-*".into()], limits, scores, ..new("a") },
            Create,
        )
        .unwrap();
        let third = add(&path, &new("a"), Create).unwrap_err().to_string();
        assert!(third.contains("two keys named a are valid") && third.contains(first.id()), "{third}");
        let content = fs::read_to_string(&path).unwrap();
        assert!(
            content.contains("# a comment") && content.contains("limits = { requests_per_second = 5 }"),
            "{content}"
        );
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        let ring = KeyRing::new(None, file::parse(content.as_bytes()).unwrap());
        for text in [&text, &second_text] {
            assert!(matches!(ring.find(text.as_bytes()), Shown::Valid(key) if key.name() == "a"));
        }
        assert_eq!(revoke(&path, first.id()).unwrap(), [("a".to_owned(), first.id().to_owned())]);
        assert_eq!(revoke(&path, "a").unwrap(), [("a".to_owned(), second.id().to_owned())]);
        assert!(revoke(&path, "a").unwrap_err().to_string().contains("no key has the name or the id \"a\""));
        assert!(file::parse(&fs::read(&path).unwrap()).unwrap().is_empty(), "no key is left, and the file is good");
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["keys.toml"], "no draft is left");
    }

    #[test]
    fn a_key_that_replaces_another_gets_what_is_not_given() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.toml");
        let limits = KeyLimits { requests_per_second: Some(5), ..KeyLimits::default() };
        let (one, all) = (|| vec!["x-*".to_owned()], || vec!["*".to_owned()]);
        add(&path, &NewKey { collections: one(), limits, scores: Some("verdict".into()), ..new("a") }, Create).unwrap();
        let added = |next: &NewKey| {
            let (key, _) = add(&path, next, Create).unwrap();
            revoke(&path, key.id()).unwrap();
            let collections: Option<Vec<_>> =
                key.collections().map(|all| all.iter().map(ToString::to_string).collect());
            (collections, *key.limits(), key.scores())
        };
        assert_eq!(added(&new("a")), (Some(one()), limits, Scores::Verdict));
        let full = NewKey { collections: all(), scores: Some("full".into()), ..new("a") };
        assert_eq!(added(&full), (None, limits, Scores::Full));
        assert_eq!(added(&new("b")), (None, KeyLimits::default(), Scores::Full), "another name");
        let metrics = NewKey { scopes: vec!["metrics".into()], ..new("a") };
        assert!(add(&path, &metrics, Create).unwrap_err().to_string().contains("for all collections"));
    }

    #[test]
    fn what_would_be_wrong_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.toml");
        for bad in [
            new("A"),
            NewKey { scopes: Vec::new(), ..new("a") },
            NewKey { expires: Some("2020-01-01".into()), ..new("a") },
            NewKey { expires: Some("soon".into()), ..new("a") },
            NewKey { collections: vec!["A".into()], ..new("a") },
            NewKey { collections: vec!["a".into()], scopes: vec!["metrics".into()], ..new("a") },
            NewKey { scores: Some("none".into()), ..new("a") },
        ] {
            assert!(add(&path, &bad, Create).is_err(), "{bad:?}");
            assert!(!path.exists());
        }
        assert!(matches!(revoke(&path, "a"), Err(KeysError::Read(_))) && !path.exists());
        let lost = add(&dir.path().join("no/keys.toml"), &new("a"), Create).unwrap_err().to_string();
        assert!(lost.contains("there is no directory") && lost.contains("/no;"), "{lost}");
        fs::write(&path, "broken").unwrap();
        assert!(add(&path, &new("a"), Create).is_err() && fs::read_to_string(&path).unwrap() == "broken");
    }

    #[test]
    fn programs_that_add_at_once_lose_no_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.toml");
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    (0..5).for_each(|at| _ = add(path, &new(&format!("k{thread}-{at}")), Create).unwrap())
                });
            }
        });
        assert_eq!(file::parse(&fs::read(&path).unwrap()).unwrap().len(), 40);
    }

    #[test]
    fn a_file_that_is_missing_is_made_only_if_that_is_wanted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.toml");
        assert!(add(&path, &new("a"), Refuse).is_err() && !path.exists());
        fs::write(&path, "").unwrap();
        assert!(add(&path, &new("a"), Refuse).unwrap_err().to_string().contains("empty"));
        assert!(fs::read(&path).unwrap().is_empty());
    }

    #[test]
    fn a_key_that_makes_the_file_too_long_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.toml");
        add(&path, &NewKey { scopes: vec!["check".into(); 100_000], ..new("a") }, Create).unwrap();
        assert!(fs::metadata(&path).unwrap().len() < 1000, "each scope is written once");
        let before = fs::read(&path).unwrap();
        let collections = vec![format!("{}*", "x".repeat(60)); 100];
        let mut number = 0;
        let refused = loop {
            number += 1;
            let name = format!("k{number}");
            if let Err(error) = add(&path, &NewKey { collections: collections.clone(), ..new(&name) }, Create) {
                break error.to_string();
            }
        };
        assert!(refused.contains("longer than") && number > 100, "{number}: {refused}");
        assert!(file::parse(&file::read(&path).unwrap()).is_ok() && before.len() < 1000);
    }

    #[test]
    fn an_id_names_one_key_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.toml");
        let (key, _) = add(&path, &new("a"), Create).unwrap();
        add(&path, &new(key.id()), Create).unwrap();
        assert_eq!(revoke_id(&path, key.id()).unwrap(), "a");
        assert!(matches!(revoke_id(&path, key.id()), Err(KeysError::NoSuchKey(_))));
    }
}
