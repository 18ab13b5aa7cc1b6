//! A keys file for a test.

use std::path::{Path, PathBuf};

use hapax::keys::KeyDigest;

use crate::support;

/// One key: its text, which is also its name and id; its scopes; and further lines.
pub type Line<'a> = (&'a str, &'a [&'a str], &'a str);

/// Returns the text of a file with these keys.
pub fn text(keys: &[Line<'_>]) -> String {
    let mut text = String::from("version = 1\n");
    for (key, scopes, more) in keys {
        let hash = KeyDigest::of(key.as_bytes()).to_hex();
        text +=
            &format!("\n[[key]]\nname = \"{key}\"\nid = \"{key}\"\nsha256 = \"{hash}\"\nscopes = {scopes:?}\n{more}\n");
    }
    text
}

/// Writes a file with these keys into a folder, in one step, and returns its path.
pub fn write(dir: &Path, keys: &[Line<'_>]) -> PathBuf {
    let path = dir.join("keys.toml");
    let draft = dir.join("keys.toml.draft");
    std::fs::write(&draft, text(keys)).unwrap();
    std::fs::rename(&draft, &path).unwrap();
    path
}

/// Waits until the server has read a new file, which takes one to two seconds.
pub fn until(it_is_so: impl FnMut() -> bool) {
    support::until::until("the server has seen the new file", it_is_so);
}
