//! All messages of hapax to people, in one file that can be read in one sitting: `messages.txt`. `HAPAX_RECORD=1 cargo
//! test --test it messages::` writes this file. Reviewers then see every change of a message.
//!
//! The file has the help of every verb, every problem, and, file by file, the errors, the log lines and all other
//! strings of two words or more. Placeholders have example values (`examples.rs`).

mod examples;
mod of_files;
mod planted;
mod scan;
mod template;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::{env, fs};

use hapax::http::error::Code;

use crate::support::command;
use crate::support::sources;
use scan::{Kind, Message};

const FOLDERS: [&str; 2] = ["src", "crates/hapax-core/src"];
const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/messages/messages.txt");
const METRICS: &str = "src/telemetry/names.rs";

#[test]
fn the_snapshot_is_up_to_date() {
    let now = snapshot();
    if env::var_os("HAPAX_RECORD").is_some() {
        return fs::write(SNAPSHOT, now).unwrap();
    }
    let recorded = fs::read_to_string(SNAPSHOT).unwrap();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (before, after) = (lines(&recorded), lines(&now));
    let changes: Vec<_> = before
        .difference(&after)
        .map(|line| format!("- {line}"))
        .chain(after.difference(&before).map(|line| format!("+ {line}")))
        .collect();
    assert!(
        now == recorded,
        "messages changed; read them, then `HAPAX_RECORD=1 cargo test --test it messages::` records them:\n{}",
        changes.join("\n")
    );
}

fn snapshot() -> String {
    let mut text = String::from("Everything that hapax says to people.\n");
    text += "Recorded by `HAPAX_RECORD=1 cargo test --test it messages::`; values in sentences are examples.\n";
    problems(&mut text);
    help(&mut text);
    let missing = sentences(&mut text);
    assert!(missing.is_empty(), "no example in tests/it/messages/examples.rs for:\n{}", missing.join("\n"));
    text
}

fn problems(text: &mut String) {
    text.push_str("\n\n# Problems: status, code, title\n\n");
    for code in Code::ALL {
        writeln!(text, "{} {}: {}", code.status().as_u16(), code.as_str(), code.title()).unwrap();
    }
}

fn help(text: &mut String) {
    text.push_str("\n\n# Help\n");
    let top = help_of(&["--help"]);
    let commands = top.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let verbs: Vec<_> =
        commands.filter_map(|line| line.split_whitespace().next()).filter(|verb| *verb != "help").collect();
    assert!(verbs.contains(&"serve"), "{verbs:?}");
    write!(text, "\n## hapax --help\n\n{top}").unwrap();
    for verb in verbs {
        write!(text, "\n## hapax {verb} --help\n\n{}", help_of(&[verb, "--help"])).unwrap();
    }
}

fn help_of(arguments: &[&str]) -> String {
    let output = command::hapax(arguments).env("COLUMNS", "100").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

/// Adds all sentences to `text`. Returns the expressions that have no example.
fn sentences(text: &mut String) -> Vec<String> {
    let titles: BTreeSet<_> = Code::ALL.iter().map(|code| code.title()).collect();
    let mut missing = Vec::new();
    text.push_str("\n\n# Errors, log lines and other texts, file by file\n");
    for source in FOLDERS.iter().flat_map(|folder| sources::below(folder)) {
        let mut messages = scan::scan(&source.text);
        messages.retain(|message| !titles.contains(message.template.source()));
        if of_tests(&source.path) || messages.is_empty() {
            continue;
        }
        write!(text, "\n## {}\n\n", source.path).unwrap();
        let mut told = BTreeSet::new();
        for message in &messages {
            match message.template.read(&place(&source.path, message)) {
                Ok(sentence) => {
                    let line = line(&source.path, message, &sentence);
                    if told.insert(line.clone()) {
                        text.push_str(&line);
                    }
                }
                Err(expressions) => {
                    let told = |of: &String| format!("`{of}` in {}: {:?}", source.path, message.template.source());
                    missing.extend(expressions.iter().map(told));
                }
            }
        }
    }
    missing
}

/// Returns whether a file is for tests only. One is the model that tests the protocol of a cluster.
fn of_tests(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("tests.rs") || path.contains("/protocol/model/")
}

/// The place of a message, for [`examples`].
fn place(path: &str, message: &Message) -> String {
    match &message.kind {
        Kind::Error(name) => format!("{path} {name}"),
        _ => path.to_owned(),
    }
}

fn line(path: &str, message: &Message, sentence: &str) -> String {
    // Each message begins on a new line. The lines of a longer text are indented below it.
    let sentence = sentence.trim_end().replace('\n', "\n    ");
    match &message.kind {
        Kind::Error(name) => format!("error {name}: {sentence}\n"),
        Kind::Log { level, fields } if fields.is_empty() => format!("log {level}: {sentence}\n"),
        Kind::Log { level, fields } => format!("log {level}: {sentence} [{}]\n", fields.join(", ")),
        Kind::Text if path == METRICS => format!("metric: {sentence}\n"),
        Kind::Text => format!("text: {sentence}\n"),
    }
}
