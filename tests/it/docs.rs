//! What the docs name exists: files, links, `make` targets and verbs of `hapax`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use crate::support::command;

const PAGES: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "PROMISES.md"];
const SOURCES: [&str; 5] = ["src", "crates", "tests", "loadtest", "benches"];
/// A folder that the docs name as the place of what is not there yet.
const PLANNED: &str = "src/extract";
/// What stands behind `hapax` in the line of a server that is ready, which docs quote.
const SAID: &str = "ready";

static FILE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"`(?:\.\./)*([A-Za-z0-9_][A-Za-z0-9_./-]*\.(?:rs|md|toml|yaml|tsv))`").unwrap());
static FOLDER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"`((?:src|crates|tests|loadtest|benches|config)/[a-z0-9_./-]*)`").unwrap());
static LINK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)").unwrap());
static TARGET: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?m)(?:`|^)make ([a-z][a-z-]*)").unwrap());
static VERB: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"`hapax ([a-z]+)").unwrap());

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    File,
    Folder,
    Link,
    Target,
    Verb,
}

/// What a text names.
fn named(text: &str) -> BTreeSet<(Kind, String)> {
    let kinds = [
        (Kind::File, &FILE),
        (Kind::Folder, &FOLDER),
        (Kind::Link, &LINK),
        (Kind::Target, &TARGET),
        (Kind::Verb, &VERB),
    ];
    let found = kinds.iter().flat_map(|(kind, pattern)| {
        pattern.captures_iter(text).map(|found| (*kind, found[1].trim_end_matches('/').to_owned()))
    });
    found.collect()
}

struct Repository {
    root: PathBuf,
    /// Paths of files and folders from the root, each behind a slash.
    paths: Vec<String>,
    targets: BTreeSet<String>,
}

impl Repository {
    fn read() -> Self {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let mut paths = Vec::new();
        list(&root, &root, &mut paths);
        let makefile = fs::read_to_string(root.join("Makefile")).unwrap();
        let target = Regex::new(r"(?m)^([a-z][a-z-]*):").unwrap();
        let targets = target.captures_iter(&makefile).map(|found| found[1].to_owned()).collect();
        Self { root, paths, targets }
    }

    /// Whether it exists; a path may leave out the folders above it, a link starts at the folder of its `page`.
    fn has(&self, page: &Path, kind: Kind, name: &str) -> bool {
        match kind {
            Kind::File | Kind::Folder => {
                name == PLANNED || self.paths.iter().any(|path| path.ends_with(&format!("/{name}")))
            }
            Kind::Link => self.root.join(page).with_file_name(name).exists(),
            Kind::Target => self.targets.contains(name),
            Kind::Verb => name == SAID || command::run(&[name, "--help"]).status.success(),
        }
    }

    /// The comments of all sources, by path.
    fn comments(&self) -> Vec<(PathBuf, String)> {
        let sources =
            self.paths.iter().map(|path| &path[1..]).filter(|path| {
                path.ends_with(".rs") && SOURCES.iter().any(|folder| Path::new(path).starts_with(folder))
            });
        let comments = sources.map(|path| {
            let text = fs::read_to_string(self.root.join(path)).unwrap();
            let lines = text.lines().map(str::trim_start).filter_map(|line| line.strip_prefix("//"));
            (
                PathBuf::from(path),
                lines.map(|line| line.trim_start_matches(['/', '!', ' '])).collect::<Vec<_>>().join("\n"),
            )
        });
        comments.collect()
    }

    /// `page: kind name` for all that is named and does not exist.
    fn missing(&self, page: &Path, names: &BTreeSet<(Kind, String)>) -> Vec<String> {
        let missing = names.iter().filter(|(kind, name)| !self.has(page, *kind, name));
        missing.map(|(kind, name)| format!("{}: {kind:?} {name}", page.display())).collect()
    }
}

/// All files and folders below `folder`, except what git does not keep.
fn list(root: &Path, folder: &Path, paths: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if ["target", ".git"].contains(&name) {
            continue;
        }
        paths.push(format!("/{}", path.strip_prefix(root).unwrap().to_str().unwrap()));
        if path.is_dir() {
            list(root, &path, paths);
        }
    }
}

#[test]
fn what_the_pages_name_exists() {
    let repository = Repository::read();
    let (mut all, mut missing) = (BTreeSet::new(), Vec::new());
    for page in PAGES.map(Path::new) {
        let names = named(&fs::read_to_string(repository.root.join(page)).unwrap());
        assert!(!names.is_empty(), "{} names nothing", page.display());
        missing.extend(repository.missing(page, &names));
        all.extend(names);
    }
    assert!(missing.is_empty(), "not there:\n{}", missing.join("\n"));
    for (kind, at_least) in [(Kind::File, 10), (Kind::Link, 3), (Kind::Target, 5), (Kind::Verb, 5)] {
        let count = all.iter().filter(|(found, _)| *found == kind).count();
        assert!(count >= at_least, "the pages name {count} of {kind:?}: are they still understood?");
    }
}

#[test]
fn what_comments_name_exists() {
    let repository = Repository::read();
    let (mut files, mut missing) = (0, Vec::new());
    for (path, comments) in repository.comments() {
        let mut names = named(&comments);
        // Links of Rust's documentation are paths of items, which rustdoc checks.
        names.retain(|(kind, _)| *kind != Kind::Link);
        files += names.iter().filter(|(kind, _)| *kind == Kind::File).count();
        missing.extend(repository.missing(&path, &names));
    }
    assert!(missing.is_empty(), "not there:\n{}", missing.join("\n"));
    assert!(files >= 20, "comments name {files} files: are they still understood?");
}

#[test]
fn what_does_not_exist_is_found() {
    let repository = Repository::read();
    let page = Path::new("README.md");
    let gone = "See `nowhere.rs`, `src/none/` and [this](NONE.md#there).\nmake nothing\n`hapax nothing --now`\n";
    let wanted = ["File nowhere.rs", "Folder src/none", "Link NONE.md", "Target nothing", "Verb nothing"];
    let wanted = wanted.map(|name| format!("README.md: {name}"));
    assert_eq!(repository.missing(page, &named(gone)), wanted);
    let there = "`http/error.rs` `tests/it` [a](PROMISES.md#b) [c](https://example.org) `make test` `hapax serve`";
    assert_eq!(repository.missing(page, &named(there)), [""; 0]);
}
