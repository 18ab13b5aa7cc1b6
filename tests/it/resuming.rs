//! An import that is killed at any moment goes on with `--resume`: every line has one verdict, in the order of the input,
//! and the documents that the verdicts call stored are stored.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use rand::{RngExt as _, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::cli::text;
use crate::dedup::corpus;
use crate::support::client::Client;
use crate::support::command::{hapax, run};
use crate::support::server::Server;

/// Returns lines of documents, of which each fiftieth is broken.
fn lines(count: usize, seed: u64) -> Vec<String> {
    let broken = |number| number % 50 == 49;
    let line = |(number, document): (usize, Value)| match broken(number) {
        true => "broken".to_owned(),
        false => json!({"id": document["id"], "text": document["text"]}).to_string(),
    };
    corpus(count, seed).into_iter().enumerate().map(line).collect()
}

/// Begins an import. Without a server, it goes into the directory `data`.
fn import(dir: &Path, server: Option<&Server>, arguments: &[&str]) -> Child {
    let url = server.map(|server| server.url(""));
    let target = url.as_ref().map_or(["--data-dir", "data"], |url| ["--server", url]);
    let mut command = hapax(&[["import", "in.jsonl"].as_slice(), &target, arguments].concat());
    command.current_dir(dir).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs")
}

/// The number of documents that are stored.
fn documents(server: &Server) -> u64 {
    let collection = Client::new(server.url("")).get("/v1/collections/default").ok();
    collection["documents"].as_u64().expect("a number")
}

fn read(path: &Path) -> Vec<Value> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let bytes =
        if bytes.starts_with(b"\x28\xB5\x2F\xFD") { zstd::decode_all(&bytes[..]).expect("zstd") } else { bytes };
    text(&bytes).lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

/// Kills imports until one is complete, and checks the result.
fn killed_until_complete(seed: u64, end: &str, through_a_server: bool) {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let server = through_a_server.then(|| Server::start(&data));
    let lines = lines(12_000, seed);
    std::fs::write(dir.path().join("in.jsonl"), lines.join("\n")).unwrap();
    let (verdicts, kept) = (format!("verdicts.jsonl{end}"), format!("kept.jsonl{end}"));
    let arguments = ["--resume", "--verdicts", &verdicts, "--kept", &kept];
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut kills = 0;
    loop {
        let mut child = import(dir.path(), server.as_ref(), &arguments);
        // A run gets further if it lasts for a second, because the state is written each second.
        let lasts = Duration::from_millis(if kills < 4 { random.random_range(20..2500) } else { 120_000 });
        let begun = std::time::Instant::now();
        while child.try_wait().unwrap().is_none() && begun.elapsed() < lasts {
            std::thread::sleep(Duration::from_millis(5));
        }
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
            continue;
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "seed {seed}: {}", text(&output.stderr));
        break;
    }
    assert!(!dir.path().join(format!("{verdicts}.resume")).exists());
    let verdicts = read(&dir.path().join(&verdicts));
    let numbers: Vec<_> = verdicts.iter().map(|verdict| verdict["line"].as_u64().expect("a line")).collect();
    assert_eq!(numbers, (1..=lines.len() as u64).collect::<Vec<_>>(), "seed {seed}, {kills} kills");
    assert_eq!(verdicts.iter().filter(|verdict| verdict["kind"] == "error").count(), lines.len() / 50);
    let ids =
        |lines: &[Value]| lines.iter().map(|line| line["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>();
    let stored: Vec<_> = verdicts.iter().filter(|verdict| verdict["stored"] == true).cloned().collect();
    assert_eq!(ids(&read(&dir.path().join(&kept))), ids(&stored), "seed {seed}, {kills} kills");
    let different = ids(&stored).into_iter().collect::<BTreeSet<_>>().len();
    let server = server.unwrap_or_else(|| Server::start(&data));
    assert_eq!(documents(&server), different as u64, "seed {seed}");
    server.terminate();
    let verified = run(&["verify", "--data-dir", data.to_str().expect("UTF-8")]);
    assert!(verified.status.success(), "seed {seed}: {verified:?}");
}

#[test]
fn an_import_that_is_killed_goes_on() {
    killed_until_complete(41, "", true);
}

#[test]
fn an_import_with_compressed_outputs_goes_on() {
    killed_until_complete(42, ".zst", true);
}

#[test]
fn an_import_without_a_server_goes_on() {
    killed_until_complete(44, "", false);
    killed_until_complete(45, ".zst", false);
}

#[test]
fn only_the_same_import_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    std::fs::write(dir.path().join("in.jsonl"), lines(6000, 43).join("\n")).unwrap();
    let run = |arguments: &[&str]| import(dir.path(), Some(&server), arguments).wait_with_output().unwrap();
    let refused = |arguments: &[&str]| {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        text(&output.stderr).to_owned()
    };
    assert!(refused(&["--resume"]).contains("--resume needs --verdicts"));
    assert!(refused(&["--resume", "--verdicts", "/dev/null"]).contains("/dev/null is not a regular file"));
    // An interruption leaves the state.
    let mut child = import(dir.path(), Some(&server), &["--verdicts", "verdicts.jsonl"]);
    let begun = std::time::Instant::now();
    while documents(&server) == 0 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait().map(|_| child.wait_with_output().unwrap()).unwrap();
    assert!(text(&output.stderr).contains("run the import again with --resume to continue"), "{output:?}");
    assert!(
        refused(&["--resume", "--verdicts", "verdicts.jsonl", "--on-duplicate", "store"])
            .contains("other options: http://127.0.0.1")
    );
    assert!(refused(&["--resume", "--verdicts", "verdicts.jsonl", "--id-field", "text"]).contains("other fields: "));
    // A state that cannot be used says what to do.
    let state = std::fs::read(dir.path().join("verdicts.jsonl.resume")).unwrap();
    std::fs::write(dir.path().join("verdicts.jsonl.resume"), &state[..state.len() / 2]).unwrap();
    let damaged = refused(&["--resume", "--verdicts", "verdicts.jsonl"]);
    assert!(damaged.contains("is damaged; import again without --resume"), "{damaged}");
    let state = text(&state);
    let (before, after) = state.split_once("\"verdicts_bytes\":").unwrap();
    let after = &after[after.find(',').unwrap()..];
    let longer = format!("{before}\"verdicts_bytes\":99999999{after}");
    std::fs::write(dir.path().join("verdicts.jsonl.resume"), longer).unwrap();
    let missing = refused(&["--resume", "--verdicts", "verdicts.jsonl"]);
    assert!(missing.contains("but had 99999999 when the import was interrupted; put the file back"), "{missing}");
    std::fs::write(dir.path().join("verdicts.jsonl.resume"), state).unwrap();
    // Another import that writes the same file holds its lock.
    let held = std::fs::File::options().append(true).open(dir.path().join("verdicts.jsonl")).unwrap();
    held.lock().unwrap();
    for resume in [&["--resume"][..], &[]] {
        let locked = refused(&[resume, &["--verdicts", "verdicts.jsonl"]].concat());
        assert!(locked.contains("verdicts.jsonl: another import is writing this file"), "{locked}");
    }
    drop(held);
    // The interrupted import may have sent all documents. Then no broken line is left.
    let done = run(&["--resume", "--verdicts", "verdicts.jsonl"]);
    assert!(matches!(done.status.code(), Some(0 | 1)), "{done:?}");
    assert_eq!(read(&dir.path().join("verdicts.jsonl")).len(), 6000);
    assert!(refused(&["--resume", "--verdicts", "verdicts.jsonl"]).contains("was complete"));
    assert_eq!(Client::new(server.url("")).get("/readyz").status, 200);
    assert_eq!(read(&dir.path().join("verdicts.jsonl")).len(), 6000);
}
