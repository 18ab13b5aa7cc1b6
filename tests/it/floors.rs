//! The floors of ARCHITECTURE.md: a file imports only lower floors or its own folder, and the core does nothing but
//! compute. Read from the sources, so that a shortcut fails here before anybody builds on it.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// Folder or file under `src/`, and its floor. A new one takes its place here, and in ARCHITECTURE.md.
const FLOORS: [(&str, u8); 12] = [
    ("types", 1),
    ("telemetry", 1),
    ("extract", 1),
    ("cpu", 2),
    ("index", 2),
    ("store", 2),
    ("verdicts", 3),
    ("engine", 4),
    ("collections", 5),
    ("config", 6),
    ("http", 7),
    ("cli", 8),
];

/// What the core may be built from: tables, hashes, error types. Each new one must be as free of I/O as these.
const CORE_DEPENDENCIES: [&str; 6] =
    ["icu_casemap", "icu_normalizer", "icu_properties", "siphasher", "thiserror", "xxhash-rust"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a source folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The code without its comments; good enough for imports.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("UTF-8");
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn floor(module: &str) -> Option<u8> {
    FLOORS.iter().find(|(name, _)| *name == module).map(|(_, floor)| *floor)
}

/// The first names after each `crate::`, those of a group `crate::{a::B, c}` one by one.
fn imported(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, prefix) in code.match_indices("crate::") {
        // `$crate::` and `some_crate::` are other things.
        if code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_') {
            continue;
        }
        let rest = &code[at + prefix.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            names.push(first_name(rest));
            continue;
        };
        let mut depth = 0;
        let mut begun = true;
        for (at, character) in group.char_indices() {
            match character {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => begun = true,
                _ if begun && depth == 0 && !character.is_whitespace() => {
                    names.push(first_name(&group[at..]));
                    begun = false;
                }
                _ => {}
            }
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

fn first_name(text: &str) -> String {
    text.chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect()
}

/// `src/http/dto/verdict.rs` -> `http`; `src/types.rs` -> `types`.
fn module(src: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(src).expect("below src");
    let first = relative.components().next().expect("not empty").as_os_str().to_str().expect("UTF-8");
    first.trim_end_matches(".rs").to_owned()
}

#[test]
fn imports_go_down_only() {
    let src = root().join("src");
    let mut upward = Vec::new();
    for path in sources(&src) {
        let name = module(&src, &path);
        // These two see all floors.
        if name == "lib" || name == "main" {
            continue;
        }
        let own = floor(&name).unwrap_or_else(|| panic!("{} has no floor; give it one", path.display()));
        for imported in imported(&code(&path)) {
            let Some(floor) = floor(&imported) else {
                upward.push(format!("{}: crate::{imported} is on no floor", path.display()));
                continue;
            };
            if imported != name && floor >= own {
                upward.push(format!("{} (floor {own}) imports crate::{imported} (floor {floor})", path.display()));
            }
        }
    }
    assert!(upward.is_empty(), "{}", upward.join("\n"));
}

#[test]
fn no_import_climbs_out_of_its_folder_by_super() {
    let src = root().join("src");
    let supers = Regex::new(r"(?:super::)+(\w+)").expect("a pattern");
    for path in sources(&src) {
        let own = module(&src, &path);
        for found in supers.captures_iter(&code(&path)) {
            let name = &found[1];
            // A folder may have a file of a floor's name (`http/dto/collection.rs`): then it is that one.
            let near = path.parent().is_some_and(|folder| {
                folder.ancestors().take_while(|folder| *folder != src).any(|folder| {
                    folder.join(format!("{name}.rs")).exists() || folder.join(name).join("mod.rs").exists()
                })
            });
            let climbs = floor(name).is_some() && name != own && !near;
            assert!(!climbs, "{}: {} reaches another floor; name it by crate::", path.display(), &found[0]);
        }
    }
}

#[test]
fn lib_lists_the_modules_in_floor_order() {
    let code = code(&root().join("src/lib.rs"));
    let pattern = Regex::new(r"pub mod (\w+);").expect("a pattern");
    let floors: Vec<_> = pattern.captures_iter(&code).map(|found| floor(&found[1]).expect("on a floor")).collect();
    assert!(floors.len() > 5 && floors.is_sorted(), "{floors:?}");
}

#[test]
fn anyhow_stays_on_the_top_floor() {
    let src = root().join("src");
    for path in sources(&src) {
        if !["cli", "main"].contains(&&*module(&src, &path)) {
            assert!(!code(&path).contains("anyhow"), "{}: errors below the cli are enums", path.display());
        }
    }
}

#[test]
fn the_core_only_computes() {
    let core = root().join("crates/hapax-core");
    let manifest = fs::read_to_string(core.join("Cargo.toml")).expect("the core's manifest");
    let section = manifest.split("\n[dependencies]\n").nth(1).expect("dependencies");
    let section = section.split("\n[").next().unwrap_or_default();
    for line in section.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let name = line.split([' ', '=', '.']).next().unwrap_or_default();
        assert!(CORE_DEPENDENCIES.contains(&name), "hapax-core depends on {name}; is it as pure as the core?");
    }
    for path in sources(&core.join("src")) {
        let code = code(&path);
        for effect in
            ["std::fs", "std::io", "std::net", "std::env", "std::time", "std::thread", "std::process", "static mut"]
        {
            assert!(!code.contains(effect), "{}: {effect} has no place in the core", path.display());
        }
    }
}

#[test]
fn imports_are_found_in_groups_and_paths() {
    let code = "use crate::types::{A, B};\nuse crate::{store::{C, D}, index as i};\nlet x = crate::http::serve();\n";
    assert_eq!(imported(code), ["types", "store", "index", "http"]);
    assert_eq!(imported("$crate::x hapax_crate::y"), ["x"]);
}
