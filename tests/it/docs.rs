//! Everything that the docs name exists: files, links and their anchors, `make` targets, and verbs of `hapax`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use crate::support::command;

/// The pages whose names are checked. A folder means all pages in it.
const PAGES: [&str; 8] = [
    "README.md",
    "docs",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "PROMISES.md",
    "CHANGELOG.md",
    "benches",
    "crates/hapax-core/benches",
];
const SOURCES: [&str; 5] = ["src", "crates", "tests", "loadtest", "benches"];
/// The word after `hapax` in the line that a server prints when it is ready. Docs quote this line.
const SAID: &str = "ready";

static FILE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"`(?:\.\./)*([A-Za-z0-9_][A-Za-z0-9_./-]*\.(?:rs|md|toml|yaml|tsv))`").unwrap());
static FOLDER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"`((?:src|crates|tests|loadtest|benches|config)/[a-z0-9_./-]*)`").unwrap());
/// A link or a picture, in Markdown or in HTML. Addresses with a scheme are not matched.
static LINK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(?:\]\(|\b(?:src|srcset|href)=")([^)":\s]+)[)"]"#).unwrap());
static HEADING: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^#{1,6} +(.*?) *#*$").unwrap());
static LINK_IN_HEADING: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\[([^\]]*)\]\([^)]*\)").unwrap());
static TARGET: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)(?:`|^)make ([a-z][a-z-]*)(?:`|\s*$|\s+[A-Z#])").unwrap());
static VERB: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"`hapax ([a-z]+)").unwrap());

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    File,
    Folder,
    Link,
    Target,
    Verb,
}

/// Returns everything that a text names.
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
    /// The paths of files and folders from the root, each with a slash before it.
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

    /// Returns whether the named thing exists. A path may leave out the folders above it. A link starts at the folder
    /// of its `page`.
    fn has(&self, page: &Path, kind: Kind, name: &str) -> bool {
        match kind {
            Kind::File | Kind::Folder => self.paths.iter().any(|path| path.ends_with(&format!("/{name}"))),
            Kind::Link => self.has_link(page, name),
            Kind::Target => self.targets.contains(name),
            Kind::Verb => name == SAID || command::run(&[name, "--help"]).status.success(),
        }
    }

    /// Returns whether the file exists and has the heading that the link names. A link without a file means its
    /// own page.
    fn has_link(&self, page: &Path, link: &str) -> bool {
        let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
        let target = match file {
            "" => self.root.join(page),
            file => self.root.join(page).with_file_name(file),
        };
        let has = |anchor| fs::read_to_string(&target).is_ok_and(|text| anchors(&text).contains(anchor));
        target.exists() && anchor.is_none_or(has)
    }

    /// Returns the paths of the pages, from the root.
    fn pages(&self) -> Vec<PathBuf> {
        let is_page = |path: &&str| {
            let folder = Path::new(path).parent().expect("a path has a folder");
            path.ends_with(".md") && PAGES.iter().any(|page| path == page || folder == Path::new(page))
        };
        self.paths.iter().map(|path| &path[1..]).filter(is_page).map(PathBuf::from).collect()
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

    /// Returns `page: kind name` for all named things that do not exist.
    fn missing(&self, page: &Path, names: &BTreeSet<(Kind, String)>) -> Vec<String> {
        let missing = names.iter().filter(|(kind, name)| !self.has(page, *kind, name));
        missing.map(|(kind, name)| format!("{}: {kind:?} {name}", page.display())).collect()
    }
}

/// Returns the anchors of a page's headings as code hosts make them: in lower case, with hyphens for spaces, and
/// without other punctuation. The second heading of the same name gets a number.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut in_code = false;
    for line in text.lines() {
        in_code ^= line.trim_start().starts_with("```");
        let Some(heading) = HEADING.captures(line).filter(|_| !in_code) else { continue };
        let heading = LINK_IN_HEADING.replace_all(&heading[1], "$1").to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        let slug = kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>();
        let free = (0..).map(|n| if n == 0 { slug.clone() } else { format!("{slug}-{n}") });
        anchors.insert(free.into_iter().find(|slug| !anchors.contains(slug)).expect("numbers do not end"));
    }
    anchors
}

/// Lists all files and folders below `folder`, except those that git ignores.
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
    let pages = repository.pages();
    assert!(pages.len() >= PAGES.len(), "pages: {pages:?}");
    for page in pages {
        let names = named(&fs::read_to_string(repository.root.join(&page)).unwrap());
        missing.extend(repository.missing(&page, &names));
        all.extend(names);
    }
    assert!(missing.is_empty(), "not there:\n{}", missing.join("\n"));
    for (kind, at_least) in [(Kind::File, 10), (Kind::Link, 3), (Kind::Target, 5), (Kind::Verb, 5)] {
        let count = all.iter().filter(|(found, _)| *found == kind).count();
        assert!(count >= at_least, "the pages name {count} of {kind:?}: are they still understood?");
    }
}

/// A new reader needs three minutes for the README. Everything else has a page in `docs`.
#[test]
fn the_readme_is_short_and_begins_with_two_commands() {
    let text = fs::read_to_string(Repository::read().root.join("README.md")).unwrap();
    let lines = text.lines().count();
    assert!(lines <= 150, "README.md has {lines} lines");
    // The first command runs the server, and the second the tests. `.ci/run` uses the latter.
    for command in ["\ncargo run --release -- serve ", "\nmake test "] {
        assert!(text.contains(command), "README.md lacks {}", command.trim());
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
    let gone = "See `nowhere.rs`, `src/none/`, [this](NONE.md#there), [that](PROMISES.md#none) and <img src=\"a.svg\">.\n\
                make nothing\n`hapax nothing --now`\n";
    let wanted = [
        "File nowhere.rs",
        "Folder src/none",
        "Link NONE.md#there",
        "Link PROMISES.md#none",
        "Link a.svg",
        "Target nothing",
        "Verb nothing",
    ];
    let wanted = wanted.map(|name| format!("README.md: {name}"));
    assert_eq!(repository.missing(page, &named(gone)), wanted);
    let there =
        "`http/error.rs` `tests/it` [a](PROMISES.md) [b](#start) [c](https://example.org) `make test` `hapax serve`";
    assert_eq!(repository.missing(page, &named(there)), [""; 0]);
}

#[test]
fn anchors_are_those_of_forges() {
    let page =
        "# One & two\n\n```sh\n# no heading\n```\n## `hapax serve`: [a link](x.md)!\n## Twice\n### Twice ###\n#none\n";
    let wanted = ["hapax-serve-a-link", "one--two", "twice", "twice-1"].map(str::to_owned);
    assert_eq!(anchors(page), BTreeSet::from(wanted));
}
