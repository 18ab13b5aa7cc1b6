//! The README tells the truth: its curls, run in its order against a fresh server, print what it prints.

use std::process::Command;
use std::sync::LazyLock;

use regex::Regex;

use crate::support::library;
use crate::support::server::Server;

/// A block of shell, and the block of JSON right behind it.
static EXAMPLE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"```sh\n([^`]*)\n```\n```json\n([^`]*)\n```").unwrap());
static FIRST_SEEN: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#""first_seen":"[^"]*""#).unwrap());

#[test]
fn its_curls_print_what_it_prints() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let dir = library::dir();
    let server = Server::start(&dir.path().join("data"));
    let mut examples = 0;
    for example in EXAMPLE.captures_iter(&readme) {
        let command = example[1].replace("http://127.0.0.1:8080", &server.url(""));
        let output = Command::new("sh").args(["-c", &command]).output().unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
        let printed = String::from_utf8(output.stdout).unwrap();
        let without_clock = |text: &str| FIRST_SEEN.replace_all(text.trim_end(), r#""first_seen":"""#).into_owned();
        assert_eq!(without_clock(&printed), without_clock(&example[2]), "{command}");
        examples += 1;
    }
    assert_eq!(examples, 8, "the README promises five curls, two of clusters, and one on exact verification");
}
