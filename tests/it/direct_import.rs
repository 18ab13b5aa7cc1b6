//! `hapax import --data-dir`: an import without a server decides as an import through a server does, answers with the
//! same lines, and leaves a directory that a server opens.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::cli::{code, path, row, text, words};
use crate::dedup::corpus;
use crate::support::client::Client;
use crate::support::command::{hapax, run};
use crate::support::jsonl::{parsed, read};
use crate::support::server::{Server, Starting};
use crate::support::until::until;

/// Writes files of documents with duplicates, repeated ids and broken lines.
fn write_inputs(dir: &Path, seed: u64) {
    let mut lines: Vec<String> = corpus(2600, seed).iter().map(Value::to_string).collect();
    for at in (0..lines.len()).step_by(90) {
        lines[at] = ["broken", "{\"id\": \"no text\"}", "{\"id\": 1.5, \"text\": []}"][at % 3].to_owned();
    }
    // Ids that are stored with other content, by then.
    for at in (1000..2600).step_by(70) {
        lines[at] = json!({"id": format!("d/{}", at - 1000), "text": words(at)}).to_string();
    }
    std::fs::write(dir.join("a.jsonl"), lines[..1500].join("\n")).unwrap();
    std::fs::write(dir.join("b.jsonl.zst"), zstd::encode_all(lines[1500..].join("\n").as_bytes(), 1).unwrap()).unwrap();
    std::fs::write(dir.join("c.jsonl"), "{\"id\": \"c\", \"text\": \"one two\"}\n{\"id\": 7, \"text\": \"one two\"}")
        .unwrap();
}

/// Runs an import in a folder.
fn import(dir: &Path, arguments: &[&str]) -> Output {
    hapax(&[&["import"], arguments].concat()).current_dir(dir).output().expect("the binary runs")
}

/// Returns the failures that an import shows, without its lines of progress.
fn failures(import: &Output) -> Vec<String> {
    let is_failure = |line: &&str| line.starts_with("failed:");
    text(&import.stderr).lines().filter(is_failure).map(str::to_owned).collect()
}

/// Returns lines of verdicts without the parts that are different in each run.
fn comparable(file: &Path) -> Vec<Value> {
    let mut lines = parsed(&read(file));
    lines.iter_mut().for_each(leave_out_times);
    lines
}

/// Leaves out times and the ids of requests.
fn leave_out_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !["first_seen", "request_id"].contains(&name.as_str()));
            fields.values_mut().for_each(leave_out_times);
        }
        Value::Array(values) => values.iter_mut().for_each(leave_out_times),
        _ => {}
    }
}

/// Returns what a server says of `default`: its description and statistics, and the ids of its documents.
fn stored(server: &Server) -> (Value, Value, Vec<Value>) {
    let client = Client::new(server.url(""));
    let mut described = client.get("/v1/collections/default").ok();
    let counts = json!([described["documents"], described["links"], described["settings"], described["threshold"]]);
    described.as_object_mut().unwrap().clear();
    let statistics = client.get("/v1/collections/default/statistics").ok();
    let ids = run(&["export", "--server", &server.url("")]);
    let ids = parsed(&ids.stdout).iter().map(|line| line["id"].clone()).collect();
    (counts, statistics, ids)
}

fn same_as_over_http(seed: u64, options: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    write_inputs(dir.path(), seed);
    let (served, direct) = (dir.path().join("served"), dir.path().join("direct"));
    let files = ["a.jsonl", "b.jsonl.zst", "c.jsonl"];
    let server = Server::start(&served);
    let url = server.url("");
    if options.contains(&"--collections") {
        for target in [["--server", &url], ["--data-dir", path(&direct)]] {
            let other = ["--collection", "other", "--create", "--shingle", "word2", "b.jsonl.zst"];
            assert_eq!(code(&import(dir.path(), &[&target, other.as_slice()].concat())), 1);
        }
    }
    let over_http = ["--server", &url, "--connections", "1", "--verdicts", "http.jsonl", "--kept", "http.kept"];
    let over_http = import(dir.path(), &[&over_http, options, &files].concat());
    let directly = ["--data-dir", path(&direct), "--verdicts", "direct.jsonl", "--kept", "direct.kept"];
    let directly = import(dir.path(), &[&directly, options, &files].concat());
    assert_eq!((code(&over_http), code(&directly)), (1, 1), "{options:?}: {directly:?}");
    assert_eq!(failures(&over_http), failures(&directly), "{options:?}");
    let names = ["documents", "unique", "near", "exact", "empty", "unchanged", "updated", "failed"];
    assert_eq!(names.map(|name| row(&over_http, name)), names.map(|name| row(&directly, name)), "{options:?}");
    let (theirs, ours) = (comparable(&dir.path().join("http.jsonl")), comparable(&dir.path().join("direct.jsonl")));
    assert_eq!(theirs.len(), 2602);
    for (theirs, ours) in theirs.iter().zip(&ours) {
        assert_eq!(theirs, ours, "{options:?}");
    }
    assert_eq!(theirs.len(), ours.len());
    assert_eq!(read(&dir.path().join("http.kept")), read(&dir.path().join("direct.kept")), "{options:?}");
    let verified = run(&["verify", "--data-dir", path(&direct)]);
    assert_eq!(code(&verified), 0, "{verified:?}");
    assert_eq!(stored(&server), stored(&Server::start(&direct)), "{options:?}");
}

#[test]
fn verdicts_and_documents_are_those_of_an_import_over_http() {
    for (seed, on_duplicate) in [(51, "skip"), (52, "link"), (53, "store")] {
        for on_existing in ["conflict", "replace", "keep"] {
            same_as_over_http(seed, &["--on-duplicate", on_duplicate, "--on-existing", on_existing]);
        }
    }
}

#[test]
fn other_collections_are_asked_as_over_http() {
    same_as_over_http(55, &["--collections", "other"]);
    same_as_over_http(56, &["--label", "crawl:2026-48", "--label-field", "extra"]);
}

#[test]
fn a_directory_that_a_server_uses_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    std::fs::write(dir.path().join("in.jsonl"), json!({"id": "a", "text": words(1)}).to_string()).unwrap();
    let refused = import(dir.path(), &["--data-dir", "data", "in.jsonl"]);
    assert_eq!(code(&refused), 2, "{refused:?}");
    let told = text(&refused.stderr);
    assert!(told.contains(&format!("in use by process {}", server.pid())), "{told}");
    assert!(told.contains("leave out --data-dir to import through the running server"), "{told}");
    server.terminate();
    // The other way round, a server waits for the import.
    let mut long = hapax(&["import", "--data-dir", path(&data), "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let lock = || std::fs::read_to_string(data.join("LOCK")).unwrap_or_default();
    until("the import has the directory", || lock().trim() == long.id().to_string());
    let (_, log) = Starting::spawn(&data).ready_or_ended().err().expect("the directory is in use");
    assert!(log.contains(&format!("in use by process {}", long.id())), "{log}");
    drop(long.stdin.take());
    assert!(long.wait().unwrap().success());
}

#[test]
fn arguments_for_a_server_are_refused() {
    for more in [["--server", "http://127.0.0.1:1"], ["--connections", "2"], ["--patience", "1s"]] {
        let refused = run(&[&["import", "--data-dir", "nowhere"], more.as_slice(), &["in.jsonl"]].concat());
        assert_eq!(code(&refused), 2, "{refused:?}");
        assert!(text(&refused.stderr).contains("cannot be used with"), "{refused:?}");
    }
    let refused = run(&["import", "--config", "hapax.toml", "in.jsonl"]);
    assert!(code(&refused) == 2 && text(&refused.stderr).contains("--data-dir"), "{refused:?}");
    assert!(!Path::new("nowhere").exists());
}

#[test]
fn collections_are_made_as_a_server_makes_them() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    std::fs::write(dir.path().join("in.jsonl"), json!({"id": "a", "text": words(1)}).to_string()).unwrap();
    let config = "[default_collection]\nthreshold = 0.6\nkeep = \"text\"\n[limits]\nlabels_max = 7\n";
    std::fs::write(dir.path().join("hapax.toml"), config).unwrap();
    let run = |arguments: &[&str]| {
        import(dir.path(), &[&["--data-dir", "data", "--config", "hapax.toml"], arguments, &["in.jsonl"]].concat())
    };
    let missing = run(&["--collection", "news"]);
    assert_eq!(code(&missing), 2, "{missing:?}");
    assert_eq!(
        text(&missing.stderr),
        "hapax: there is no collection news; `hapax import --create` creates it\n",
        "as over HTTP"
    );
    let created = run(&["--collection", "news", "--create", "--shingle", "char5"]);
    assert_eq!((code(&created), row(&created, "unique")), (0, 1), "{created:?}");
    assert_eq!(code(&run(&[])), 0);
    let other = run(&["--collection", "news", "--create", "--shingle", "word3"]);
    assert!(code(&other) == 2 && text(&other.stderr).contains("news"), "{other:?}");
    let wrong = run(&["--collection", "new/s"]);
    assert!(code(&wrong) == 2 && text(&wrong.stderr).contains("--collection"), "{wrong:?}");
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    let described = |name: &str| client.get(&format!("/v1/collections/{name}")).ok();
    assert_eq!(described("default")["threshold"], 0.6);
    assert_eq!(described("default")["keep"], "text");
    assert!(described("news")["spec"].as_str().expect("a spec").contains("shingle=char5"));
    assert_eq!(["default", "news"].map(|name| described(name)["documents"].clone()), [1, 1]);
}

#[test]
fn decisions_are_logged_as_those_of_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let lines = [("a", 1), ("b", 1), ("c", 2)].map(|(id, n)| json!({"id": id, "text": words(n)}).to_string());
    std::fs::write(dir.path().join("in.jsonl"), lines.join("\n")).unwrap();
    std::fs::write(dir.path().join("hapax.toml"), "[audit]\ndir = \"audit\"\n").unwrap();
    let imported = import(dir.path(), &["--data-dir", "data", "--config", "hapax.toml", "in.jsonl"]);
    assert_eq!(code(&imported), 0, "{imported:?}");
    let logged = run(&["audit", path(&dir.path().join("audit"))]);
    // Lines of one moment have any order.
    let logged: BTreeMap<_, _> =
        parsed(&logged.stdout).iter().map(|line| (line["id"].to_string(), line["verdict"].clone())).collect();
    let logged: Vec<_> = logged.values().collect();
    assert_eq!(logged, ["unique", "exact_duplicate", "unique"]);
}

#[test]
fn nothing_is_imported_into_a_directory_that_keeps_nothing() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("in.jsonl"), json!({"id": "a", "text": words(1)}).to_string()).unwrap();
    let redis = "store = \"redis\"\n[redis]\nnodes = [\"127.0.0.1:1\"]\n";
    for (store, told) in [("store = \"memory\"\n", "nothing would be kept"), (redis, "in a Redis cluster")] {
        std::fs::write(dir.path().join("hapax.toml"), format!("[data]\n{store}")).unwrap();
        let refused = import(dir.path(), &["--data-dir", "data", "--config", "hapax.toml", "in.jsonl"]);
        assert!(code(&refused) == 2 && text(&refused.stderr).contains(told), "{refused:?}");
        assert!(!dir.path().join("data").exists());
    }
}

#[test]
fn an_interrupted_import_stores_what_its_verdicts_say_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let lines: Vec<_> = corpus(40_000, 54).iter().map(Value::to_string).collect();
    std::fs::write(dir.path().join("in.jsonl"), lines.join("\n")).unwrap();
    let arguments = ["import", "--data-dir", "data", "--verdicts", "v.jsonl", "in.jsonl"];
    let child = hapax(&arguments).current_dir(dir.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.unwrap();
    until("there are verdicts", || dir.path().join("v.jsonl").metadata().is_ok_and(|data| data.len() > 0));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 2, "{output:?}");
    assert!(text(&output.stderr).contains("run the import again with --resume to continue"), "{output:?}");
    let counted =
        |server: &Server| Client::new(server.url("")).get("/v1/collections/default").ok()["documents"].clone();
    let stored = parsed(&read(&dir.path().join("v.jsonl"))).iter().filter(|line| line["stored"] == true).count();
    assert!(stored > 0);
    assert_eq!(counted(&Server::start(&dir.path().join("data"))), stored);
    // The options are those of another place, so the state does not fit.
    let elsewhere = ["--data-dir", "other", "--verdicts", "v.jsonl", "--resume", "in.jsonl"];
    let elsewhere = import(dir.path(), &elsewhere);
    assert!(code(&elsewhere) == 2 && text(&elsewhere.stderr).contains("other options"), "{elsewhere:?}");
    let done = import(dir.path(), &[&arguments[1..], &["--resume"]].concat());
    assert_eq!(code(&done), 0, "{done:?}");
    assert_eq!(parsed(&read(&dir.path().join("v.jsonl"))).len(), lines.len());
}
