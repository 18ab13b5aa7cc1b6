//! A settings file and environment variables -> settings, or an error that can be read. Settings that are printed are
//! the same when they are read again.

use std::cell::RefCell;
use std::io::{Seek, Write};

use hapax::config::{Sources, load};
use tempfile::NamedTempFile;

thread_local! {
    static FILE: RefCell<NamedTempFile> = RefCell::new(NamedTempFile::new().unwrap());
}

/// Loads a file with this text, and these variables.
fn loaded(text: &[u8], environment: Vec<(String, String)>) -> Result<String, String> {
    let path = FILE.with_borrow_mut(|file| {
        file.as_file().set_len(0).unwrap();
        file.rewind().unwrap();
        file.write_all(text).unwrap();
        file.path().to_owned()
    });
    let environment = environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    let sources = Sources { file: Some(path), environment, flags: Vec::new() };
    load(&sources).map(|loaded| loaded.effective).map_err(|error| error.to_string())
}

/// The lines without comments, which name the origin of each value.
fn values(effective: &str) -> toml::Table {
    effective.parse().expect("printed settings are TOML")
}

pub fn run(data: &[u8]) {
    // The lines before the first `----` are the file. The lines after it are variables.
    let text = String::from_utf8_lossy(data);
    let (file, variables) = text.split_once("----\n").unwrap_or((&text, ""));
    // With a path in a setting, the target would read a file, and some devices never end.
    if text.contains("_file") || text.contains("_FILE") {
        return;
    }
    let variables = variables.lines().filter_map(|line| line.split_once('='));
    let variables = variables.map(|(name, value)| (format!("HAPAX__{name}"), value.to_owned())).collect();
    match loaded(file.as_bytes(), variables) {
        Err(error) => assert!(!error.is_empty()),
        // Secrets are masked.
        Ok(effective) if effective.contains("***") => {}
        Ok(effective) => {
            let again =
                loaded(effective.as_bytes(), Vec::new()).unwrap_or_else(|error| panic!("{error}:\n{effective}"));
            assert_eq!(values(&effective), values(&again));
        }
    }
}
