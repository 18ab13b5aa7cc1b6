//! `hapax collection` against a real server.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::cli::{code, path, row, run_with_input, text};
use crate::support::command::{binary, run};
use crate::support::server::{Server, Starting};

#[test]
fn collections_are_created_listed_described_and_changed() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let url = server.url("");
    let verb = |arguments: &[&str]| run(&[&["collection"], arguments, &["--server", &url]].concat());
    let fine = |arguments: &[&str]| {
        let output = verb(arguments);
        assert_eq!(code(&output), 0, "{arguments:?}: {output:?}");
        text(&output.stdout)
    };
    let json = |arguments: &[&str]| -> Value { serde_json::from_str(&fine(arguments)).unwrap() };

    let settings = [
        "--shingle",
        "char5",
        "--threshold",
        "0.7",
        "--ttl",
        "30d",
        "--touch",
        "true",
        "--keep",
        "text",
        "--extract",
        "visible",
    ];
    let create = [&["create", "poems"], settings.as_slice()].concat();
    let created = fine(&create);
    assert!(created.lines().any(|line| line == "threshold        0.7"), "{created}");
    assert!(created.contains("shingle=char5") && created.contains("bands 37, rows 6"), "{created}");
    let again = verb(&create);
    assert!(code(&again) == 0 && text(&again.stderr).contains("nothing changed"), "{again:?}");
    let other = verb(&["create", "poems"]);
    assert!(code(&other) == 2 && text(&other.stderr).contains("409"), "{other:?}");
    let wrong = verb(&["create", "x", "--shingle", "sentence2"]);
    assert!(code(&wrong) == 2 && text(&wrong.stderr).contains("shingle"), "{wrong:?}");

    let described = json(&["describe", "poems", "--json"]);
    assert_eq!(
        (&described["ttl"], &described["touch"], &described["keep"], &described["extract"]),
        (&2_592_000.0.into(), &true.into(), &"text".into(), &"visible".into())
    );
    assert_eq!(code(&verb(&["describe", "no-such"])), 2);

    let table = fine(&["list"]);
    let names: Vec<_> = table.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(names, ["NAME", "default", "poems"]);
    assert_eq!(json(&["list", "--json"])["collections"][1]["name"], "poems");

    let changed = json(&["set", "poems", "--bands", "16", "--rows", "8", "--ttl", "never", "--json"]);
    assert_eq!((&changed["banding"]["bands"], &changed["ttl"]), (&16.into(), &Value::Null));
    assert_eq!(json(&["set", "poems", "--auto-banding", "--json"])["banding"]["bands"], 37);
    let nothing = verb(&["set", "poems"]);
    assert!(code(&nothing) == 2 && text(&nothing.stderr).contains("nothing to change"), "{nothing:?}");
}

#[test]
fn a_drop_is_confirmed() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let url = server.url("");
    let verb = |arguments: &[&str]| run(&[&["collection"], arguments, &["--server", &url]].concat());
    assert_eq!(code(&verb(&["create", "poems"])), 0);
    let import = run_with_input(
        &["import", "--server", &url, "--collection", "poems", "-"],
        b"{\"id\":\"a\",\"text\":\"some words\"}",
    );
    assert_eq!(row(&import, "unique"), 1);
    let unsure = verb(&["drop", "poems"]);
    assert!(code(&unsure) == 2 && text(&unsure.stderr).contains("deletes 1 document; to confirm"), "{unsure:?}");
    assert_eq!(code(&verb(&["drop", "poems", "--yes"])), 0);
    assert_eq!(code(&verb(&["describe", "poems"])), 2);
    let kept = verb(&["drop", "default", "--yes"]);
    assert!(code(&kept) == 2 && text(&kept.stderr).contains("403"), "{kept:?}");
}

#[test]
fn the_verb_needs_the_key_of_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    std::fs::write(&key, "a-key-of-the-tests\n").unwrap();
    let server =
        Starting::spawn_with(&dir.path().join("data"), &[], &[("HAPAX__AUTH__API_KEY_FILE", path(&key))]).ready();
    let url = server.url("");
    let refused = run(&["collection", "create", "news", "--server", &url]);
    assert!(code(&refused) == 2 && text(&refused.stderr).contains("--api-key-file"), "{refused:?}");
    let taken = run(&["collection", "create", "news", "--server", &url, "--api-key-file", path(&key)]);
    assert_eq!(code(&taken), 0, "{taken:?}");
}

/// A script that runs its arguments in a terminal, and types its own input into it.
const TERMINAL: &str = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

#[test]
fn a_drop_is_confirmed_on_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let url = server.url("");
    assert_eq!(code(&run(&["collection", "create", "poems", "--server", &url])), 0);
    let typed = |words: &[u8]| {
        let mut command = Command::new("python3");
        command.args(["-c", TERMINAL, &binary(), "collection", "drop", "poems", "--server", &url]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3 runs");
        let mut input = child.stdin.take().unwrap();
        input.write_all(words).unwrap();
        // The terminal closes when its input ends, so the input stays open.
        let output = child.wait_with_output().unwrap();
        drop(input);
        output
    };
    let other = typed(b"poem\n");
    assert!(code(&other) == 2 && text(&other.stdout).contains("nothing was dropped"), "{other:?}");
    assert_eq!(code(&run(&["collection", "describe", "poems", "--server", &url])), 0);
    let right = typed(b"poems\n");
    assert!(code(&right) == 0 && text(&right.stdout).contains("dropped poems with 0 documents"), "{right:?}");
    assert_eq!(code(&run(&["collection", "describe", "poems", "--server", &url])), 2);
}

#[test]
fn jobs_are_begun_and_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let url = server.url("");
    let verb = |arguments: &[&str]| run(&[&["collection"], arguments, &["--server", &url]].concat());
    let import = |collection: &str, lines: &str| {
        let arguments = ["import", "--server", &url, "--collection", collection, "--create", "-"];
        assert_eq!(code(&run_with_input(&arguments, lines.as_bytes())), 0);
    };
    import("main", "{\"id\":\"a\",\"text\":\"one two three four five six\"}");
    import(
        "crawl",
        "{\"id\":\"b\",\"text\":\"one two three four five six\",\"labels\":{\"crawl\":\"1\"}}
        {\"id\":\"c\",\"text\":\"seven eight nine ten eleven twelve\",\"labels\":{\"crawl\":\"1\"}}",
    );
    let merged = verb(&["merge", "main", "--from", "crawl", "--on-duplicate", "store", "--json"]);
    assert!(code(&merged) == 0 && text(&merged.stderr).contains("done, 2 of 2 documents"), "{merged:?}");
    let job: Value = serde_json::from_str(&text(&merged.stdout)).unwrap();
    assert_eq!((&job["state"], &job["outcomes"]["inserted"]), (&"done".into(), &2.into()), "{job}");
    let wrong = verb(&["merge", "main", "--from", "no-such"]);
    assert!(code(&wrong) == 2 && text(&wrong.stderr).contains("404"), "{wrong:?}");

    let unsure = verb(&["delete-label", "main", "crawl:1"]);
    assert!(code(&unsure) == 2 && text(&unsure.stderr).contains("--yes"), "{unsure:?}");
    let begun = verb(&["delete-label", "main", "crawl:1", "--yes", "--no-wait", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&text(&begun.stdout)).unwrap()["documents"], 2, "{begun:?}");
    let again = verb(&["delete-label", "main", "crawl:1", "--yes"]);
    assert!(code(&again) == 0 && text(&again.stderr).contains("done, 0 of 0 documents"), "{again:?}");
    assert_eq!(code(&verb(&["delete-label", "main", "crawl", "--yes"])), 2);
}
