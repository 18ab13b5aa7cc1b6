//! Texts are in plain English. Texts for users have none of the habits that [`tics`] lists, and comments have few.
//! `cargo test --test it english::report -- --ignored --nocapture` prints each habit with its line.

mod tics;

use std::fs;
use std::path::Path;

use tics::{TICS, Tic};

use crate::support::sources;

/// The texts for users: pages, settings, the description of the interface, and every message.
const TEXTS: [&str; 6] =
    ["README.md", "docs", "config/default.toml", "openapi.yaml", "tests/it/messages/messages.txt", "CHANGELOG.md"];
/// The pages for people who change hapax. CONTRIBUTING.md is left out, because it quotes the habits.
const PAGES: [&str; 6] = [
    "ARCHITECTURE.md",
    "PROMISES.md",
    "benches/README.md",
    "crates/hapax-core/benches/README.md",
    "loadtest/RESULTS.md",
    "Makefile",
];
const SOURCES: [&str; 5] = ["src", "crates", "tests", "loadtest", "benches"];
/// The limit on the share of comment lines that have a habit, in percent.
const IN_COMMENTS_MAX: f64 = 1.0;

/// The lines of prose in one file. The index gives the line number; other lines are empty.
struct Prose {
    path: String,
    lines: Vec<String>,
}

impl Prose {
    /// Reads a page, without blocks of code and without inline code.
    fn of_page(path: &str, text: &str) -> Self {
        let (mut in_code, mut lines) = (false, Vec::new());
        for line in text.lines() {
            let fence = line.trim_start().starts_with("```");
            lines.push(if fence || in_code { String::new() } else { without_code(line) });
            in_code ^= fence;
        }
        Self { path: path.to_owned(), lines }
    }

    /// Reads the comments of a source.
    fn of_source(path: &str, text: &str) -> Self {
        let comment = |line: &str| {
            let line = line.trim_start().strip_prefix("//")?;
            Some(without_code(line.trim_start_matches(['/', '!'])))
        };
        let lines = text.lines().map(|line| comment(line).unwrap_or_default()).collect();
        Self { path: path.to_owned(), lines }
    }

    /// Returns the lines in which a habit begins. A sentence may continue in the next line; an empty line ends a
    /// paragraph.
    fn found(&self) -> Vec<(usize, &'static Tic)> {
        let mut found = Vec::new();
        let mut start = 0;
        for paragraph in self.lines.split(|line| line.trim().is_empty()) {
            let text = paragraph.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n");
            for tic in TICS.iter() {
                for at in tic.pattern.find_iter(&text) {
                    // The pattern may begin with the end of the sentence before.
                    let words = at.start() + at.as_str().len()
                        - at.as_str().trim_start_matches(|c: char| !c.is_alphanumeric()).len();
                    found.push((start + text[..words].matches('\n').count(), tic));
                }
            }
            start += paragraph.len() + 1;
        }
        found.sort_by_key(|(line, _)| *line);
        found
    }

    fn told(&self) -> Vec<String> {
        let line = |&(line, tic): &(usize, &'static Tic)| {
            format!("{}:{}: {}\n    instead: {}", self.path, line + 1, self.lines[line].trim(), tic.instead)
        };
        self.found().iter().map(line).collect()
    }
}

fn without_code(line: &str) -> String {
    let parts = line.split('`').enumerate();
    // A word replaces the code, so that sentences keep their shape.
    parts.map(|(n, part)| if n % 2 == 0 { part } else { "CODE" }).collect()
}

fn pages(roots: &[&str]) -> Vec<Prose> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = Vec::new();
    for name in roots {
        let path = root.join(name);
        if path.is_dir() {
            let mut files: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
            files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
            files.sort();
            let inside = |file: &Path| format!("{name}/{}", file.file_name().unwrap().to_str().unwrap());
            pages.extend(files.iter().map(|file| Prose::of_page(&inside(file), &fs::read_to_string(file).unwrap())));
        } else {
            pages.push(Prose::of_page(name, &fs::read_to_string(&path).unwrap()));
        }
    }
    pages
}

fn comments() -> Vec<Prose> {
    let sources = SOURCES.iter().flat_map(|folder| sources::below(folder));
    sources.map(|source| Prose::of_source(&source.path, &source.text)).collect()
}

#[test]
fn texts_for_users_have_none() {
    let told: Vec<_> = pages(&TEXTS).iter().chain(&pages(&PAGES)).flat_map(Prose::told).collect();
    assert!(told.is_empty(), "{} habits:\n{}", told.len(), told.join("\n"));
}

#[test]
fn comments_seldom_have_them() {
    let comments = comments();
    let lines: usize = comments.iter().map(|prose| prose.lines.iter().filter(|line| !line.is_empty()).count()).sum();
    let mut found = 0;
    for prose in &comments {
        let mut lines: Vec<_> = prose.found().iter().map(|(line, _)| *line).collect();
        lines.dedup();
        found += lines.len();
    }
    let percent = 100.0 * found as f64 / lines as f64;
    assert!(lines > 3_000, "{lines} lines of comments: are they still read?");
    assert!(percent < IN_COMMENTS_MAX, "{found} of {lines} lines of comments ({percent:.1} %) have one");
}

#[test]
#[ignore = "a report for people"]
fn report() {
    for prose in pages(&TEXTS).iter().chain(&pages(&PAGES)).chain(&comments()) {
        for line in prose.told() {
            println!("{line}");
        }
    }
}
