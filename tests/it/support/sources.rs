//! Source files, parsed. In: a checkout, or texts of a test. Out: syntax trees with the names of their files.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

pub struct Source {
    /// The path from the root of the checkout: `src/store/mod.rs`.
    pub path: String,
    pub text: String,
    pub syntax: syn::File,
}

impl Source {
    pub fn parse(path: &str, text: &str) -> Self {
        let syntax = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        Self { path: path.to_owned(), text: text.to_owned(), syntax }
    }
}

/// Returns the checkout that is examined: this one, or the one that `HAPAX_FLOORS_ROOT` names.
pub fn root() -> PathBuf {
    env::var_os("HAPAX_FLOORS_ROOT").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
}

/// Parses all Rust files below a folder of the checkout.
pub fn below(folder: &str) -> Vec<Source> {
    let root = root();
    let files = walk(&root.join(folder));
    files
        .iter()
        .map(|path| {
            let name = path.strip_prefix(&root).expect("below the root").to_str().expect("UTF-8");
            Source::parse(name, &fs::read_to_string(path).expect("UTF-8"))
        })
        .collect()
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            // Build results are not sources.
            if path.file_name().is_some_and(|name| name != "target") {
                files.extend(walk(&path));
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}
