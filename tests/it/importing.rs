//! `hapax import`: the files that it writes, the collections that it creates, and its messages about files that it
//! cannot use.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::cli::{code, path, row, run_with_input, text, words};
use crate::support::client::{Client, gzip};
use crate::support::command::{hapax, run};
use crate::support::server::Server;
use crate::support::until::until;

fn lines(bytes: &[u8]) -> Vec<Value> {
    bytes
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// A line of a data set, with fields that documents do not have.
fn line(n: usize) -> String {
    json!({"url": format!("u{n}"), "title": "T", "body": words(n), "html": "<p>"}).to_string()
}

fn started(dir: &Path) -> (Server, String) {
    let server = Server::start(&dir.join("data"));
    let url = server.url("");
    (server, url)
}

// In an earlier version, an output that was also an input was emptied before it was read, with exit status 0.
#[test]
fn no_file_of_the_input_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let content = format!("{}\n", json!({"id": "a", "text": words(1)}));
    std::fs::write(file("in.jsonl"), &content).unwrap();
    std::fs::write(file("old.jsonl"), "old\n").unwrap();
    std::os::unix::fs::symlink("in.jsonl", file("link.jsonl")).unwrap();
    let refused = |arguments: &[&str], why: &str| {
        // No server is called.
        let run = hapax(&[&["import", "--server", "http://127.0.0.1:1"], arguments].concat())
            .current_dir(dir.path())
            .output()
            .unwrap();
        let told = String::from_utf8(run.stderr).unwrap();
        assert!(run.status.code() == Some(2) && told.contains(why), "{arguments:?}: {told}");
        assert_eq!(std::fs::read_to_string(file("in.jsonl")).unwrap(), content);
        assert_eq!(std::fs::read_to_string(file("old.jsonl")).unwrap(), "old\n");
    };
    refused(&["--kept", "in.jsonl", "in.jsonl"], "--kept in.jsonl: this file is also an input");
    refused(&["--verdicts", "link.jsonl", "in.jsonl"], "--verdicts link.jsonl: this file is also an input");
    refused(&["--kept", "old.jsonl", "*.jsonl"], "--kept old.jsonl: this file is also an input");
    refused(&["--kept", "old.jsonl", "--verdicts", "old.jsonl", "in.jsonl"], "they must be two different files");
    refused(&["--kept", "new.jsonl", "--verdicts", "new.jsonl", "in.jsonl"], "they must be two different files");
    refused(&["--kept", "old.jsonl", "missing.jsonl"], "cannot read missing.jsonl");
    let stdin = std::fs::File::open(file("in.jsonl")).unwrap();
    let arguments = ["import", "--server", "http://127.0.0.1:1", "--kept", "in.jsonl", "-"];
    let run = hapax(&arguments).current_dir(dir.path()).stdin(stdin).output().unwrap();
    assert!(text(&run.stderr).contains("--kept in.jsonl: this file is also an input"), "{run:?}");
    assert_eq!(std::fs::read_to_string(file("in.jsonl")).unwrap(), content);
}

#[test]
fn the_last_version_of_a_document_is_the_one_that_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (_server, url) = started(dir.path());
    // The older version comes after long lines. So another connection could finish the chunk with the newer version
    // first.
    let long = |n: usize| (0..190).map(|m| words(n * 200 + m)).collect::<Vec<_>>().join(" ");
    let mut corpus: Vec<_> = (0..90).map(|n| json!({"id": format!("l{n}"), "text": long(n)}).to_string()).collect();
    corpus.push(json!({"id": "page", "text": words(500_000)}).to_string());
    corpus.extend((91..2_000).map(|n| json!({"id": format!("s{n}"), "text": words(500_000 + n)}).to_string()));
    corpus.push(json!({"id": "page", "text": words(600_000)}).to_string());
    let import = run_with_input(
        &["import", "--server", &url, "--on-existing", "replace", "--on-duplicate", "store", "-"],
        corpus.join("\n").as_bytes(),
    );
    assert_eq!(code(&import), 0, "{import:?}");
    let client = Client::new(url.clone());
    let check = client.post("/v1/collections/default/check", &json!({"text": words(600_000)})).ok();
    assert_eq!((&check["verdict"], &check["duplicate_of"]), (&json!("exact_duplicate"), &json!("page")), "{check}");
}

#[test]
fn verdicts_and_kept_lines_are_written_in_the_order_of_the_input() {
    let dir = tempfile::tempdir().unwrap();
    let (_server, url) = started(dir.path());
    // In each group of four lines, the last is a copy of the one before it. Line 6,001 is not JSON.
    let count = 9_000;
    let mut corpus: Vec<_> = (0..count).map(|n| line(if n % 4 == 3 { n - 1 } else { n })).collect();
    for n in (3..count).step_by(4) {
        corpus[n] = corpus[n].replace(&format!("\"u{}\"", n - 1), &format!("\"u{n}\""));
    }
    corpus.insert(6_000, "nonsense".to_owned());
    let (input, verdicts, kept) =
        (dir.path().join("in.jsonl"), dir.path().join("v.jsonl.gz"), dir.path().join("kept.jsonl.zst"));
    std::fs::write(&input, corpus.join("\n")).unwrap();
    let import = || {
        let files = ["--verdicts", path(&verdicts), "--kept", path(&kept), path(&input)];
        let fields = ["--id-field", "url", "--text-field", "body", "--connections", "8"];
        run(&[["import", "--server", &url].as_slice(), &fields, &files].concat())
    };
    let read_kept = || zstd::decode_all(std::fs::File::open(&kept).unwrap()).unwrap();
    let first = import();
    assert_eq!(code(&first), 1, "{first:?}");
    assert_eq!(["documents", "unique", "failed"].map(|name| row(&first, name)), [9_001, 6_750, 1]);

    let mut told = Vec::new();
    std::io::copy(&mut flate2::read::MultiGzDecoder::new(std::fs::File::open(&verdicts).unwrap()), &mut told).unwrap();
    let told = lines(&told);
    assert_eq!(told.len(), 9_001);
    for (at, verdict) in told.iter().enumerate() {
        assert_eq!((&verdict["file"], &verdict["line"]), (&json!(path(&input)), &json!(at + 1)));
    }
    assert_eq!(told[6_000]["kind"], "error");
    assert_eq!(told[3]["duplicate_of"], "u2");

    let text_kept = read_kept();
    let lines_kept: Vec<_> = std::str::from_utf8(&text_kept).unwrap().lines().collect();
    let stored = |at: &usize| told[*at]["stored"] == true;
    let expected: Vec<_> = (0..corpus.len()).filter(stored).map(|at| corpus[at].as_str()).collect();
    assert_eq!(lines_kept.len(), 6_750);
    assert!(lines_kept == expected, "the lines are those of the input, in its order");

    // Documents that are stored already count as stored.
    let again = import();
    assert_eq!(["documents", "unique", "unchanged"].map(|name| row(&again, name)), [9_001, 0, 6_750]);
    assert!(read_kept() == text_kept);
}

#[test]
fn an_interrupted_import_ends_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let (server, url) = started(dir.path());
    let kept = dir.path().join("kept.jsonl.zst");
    let arguments = ["import", "--server", &url, "--kept", path(&kept), "-"];
    let mut import =
        hapax(&arguments).stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = import.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let lines = (0..1_000_000).map(|n| format!("{}\n", json!({"id": n.to_string(), "text": words(n)})));
        // A write fails when the import has closed its input.
        lines.take_while(|line| stdin.write_all(line.as_bytes()).is_ok()).count()
    });
    let client = Client::new(server.url(""));
    let stored = || client.get("/v1/collections/default").ok()["documents"].as_u64().unwrap();
    until("something is stored", || stored() > 0);
    let pid = import.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = import.wait_with_output().unwrap();
    assert!(writer.join().unwrap() < 1_000_000);
    assert_eq!(code(&output), 2, "{output:?}");
    assert!(text(&output.stderr).contains("interrupted; stored documents stay stored"), "{output:?}");
    let lines = zstd::decode_all(std::fs::File::open(&kept).unwrap()).unwrap();
    assert_eq!(lines.iter().filter(|&&byte| byte == b'\n').count() as u64, stored());
    assert_eq!(row(&output, "unique"), stored());
}

/// Returns whether a process handles SIGTERM.
fn handles_signals(process: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.is_some_and(|caught| u64::from_str_radix(caught.trim(), 16).unwrap() & 1 << (15 - 1) != 0)
}

/// In an earlier version, the first signal had no effect on an import that waited for a pipe, or read an endless line.
#[test]
fn an_import_that_gets_no_line_ends_when_it_is_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let (_server, url) = started(dir.path());
    let pipe = dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (signal, file) in [("-TERM", path(&pipe)), ("-INT", "/dev/zero")] {
        let mut import = hapax(&["import", "--server", &url, file]).stderr(Stdio::piped()).spawn().unwrap();
        until("it handles signals", || handles_signals(&import));
        assert!(Command::new("kill").args([signal, &import.id().to_string()]).status().unwrap().success());
        until("it ends", || import.try_wait().unwrap().is_some());
        let output = import.wait_with_output().unwrap();
        assert_eq!(code(&output), 2, "{file}: {output:?}");
        assert!(text(&output.stderr).contains("interrupted; stored documents stay stored"), "{file}: {output:?}");
    }
}

#[test]
fn an_import_whose_server_is_gone_ends_when_it_is_told_to_or_has_no_patience() {
    let gone = |patience: &str, end: fn(&Child)| {
        let dir = tempfile::tempdir().unwrap();
        let (server, url) = started(dir.path());
        let arguments = ["import", "--server", &url, "--patience", patience, "-"];
        let mut import =
            hapax(&arguments).stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let client = Client::new(server.url(""));
        let mut stdin = import.stdin.take().unwrap();
        let chunk: String =
            (0..4000).map(|n| format!("{}\n", json!({"id": n.to_string(), "text": words(n)}))).collect();
        stdin.write_all(chunk.as_bytes()).unwrap();
        until("something is stored", || client.get("/v1/collections/default").ok()["documents"] != 0);
        server.kill();
        // The import cannot store these lines without a server. The write fails if the import has already ended.
        drop(stdin.write_all(chunk.as_bytes()));
        drop(stdin);
        end(&import);
        let output = import.wait_with_output().unwrap();
        assert_eq!(code(&output), 2, "{output:?}");
        text(&output.stderr).to_owned()
    };
    // The error belongs to the chunk in progress, or to the next one.
    let lost = |told: &str| ["cannot reach", "ended early"].iter().any(|lost| told.contains(lost));
    let told = gone("0s", |_| {});
    assert!(lost(&told), "{told}");
    let told = gone("1h", |import| {
        std::thread::sleep(std::time::Duration::from_millis(300));
        assert!(Command::new("kill").args(["-INT", &import.id().to_string()]).status().unwrap().success());
    });
    assert!(lost(&told) || told.contains("interrupted"), "{told}");
}

#[test]
fn a_summary_that_nobody_reads_is_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    let (_server, url) = started(dir.path());
    let input = dir.path().join("in.jsonl");
    std::fs::write(&input, json!({"id": "a", "text": words(1)}).to_string()).unwrap();
    let mut import = hapax(&["import", "--server", &url, path(&input)]).stdout(Stdio::piped()).spawn().unwrap();
    drop(import.stdout.take());
    assert_eq!(import.wait().unwrap().code(), Some(0));
}

#[test]
fn what_was_answered_before_an_error_is_in_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let (_server, url) = started(dir.path());
    let (good, cut) = (dir.path().join("good.jsonl"), dir.path().join("cut.jsonl.gz"));
    let corpus: Vec<_> = (0..20_000).map(|n| json!({"id": n, "text": words(n)}).to_string()).collect();
    std::fs::write(&good, corpus.join("\n")).unwrap();
    let whole = gzip(corpus.join("\n").as_bytes());
    std::fs::write(&cut, &whole[..whole.len() - 20]).unwrap();
    let kept = dir.path().join("kept.jsonl.zst");
    let import =
        run(&["import", "--server", &url, "--kept", path(&kept), path(&good), path(&cut), path(&good), path(&good)]);
    assert_eq!(code(&import), 2, "{import:?}");
    let said = text(&import.stderr);
    let line = said.split("in line ").nth(1).and_then(|rest| rest.split(' ').next());
    let line: usize = line.and_then(|line| line.trim().parse().ok()).unwrap_or_else(|| panic!("no line in {said}"));
    assert!((19_500..=20_000).contains(&line), "{said}");
    let rest = format!("; the next 2 files were not read; the first of them is {}\n", path(&good));
    assert!(said.contains(&format!("cannot read {}: ", path(&cut))) && said.ends_with(&rest), "{said}");
    assert_eq!(row(&import, "unique"), 20_000, "what was read is sent");
    assert_eq!(row(&import, "unchanged"), line as u64 - 1, "the last chunk before the damage is sent too: {import:?}");
    let kept = zstd::decode_all(std::fs::File::open(&kept).unwrap()).unwrap();
    let kept: Vec<_> = std::str::from_utf8(&kept).unwrap().lines().collect();
    assert!(kept == [&corpus[..], &corpus[..line - 1]].concat(), "they are in the order of the input");

    let good = dir.path().join("one.jsonl");
    std::fs::write(&good, corpus[0].clone()).unwrap();
    let nowhere = dir.path().join("no/such/folder.jsonl");
    let import = run(&["import", "--server", &url, "--verdicts", path(&nowhere), path(&good)]);
    assert_eq!(code(&import), 2, "{import:?}");
    assert!(text(&import.stderr).contains("cannot write"), "{import:?}");
}

#[test]
fn a_file_that_cannot_be_used_is_told_once_with_what_helps() {
    let dir = tempfile::tempdir().unwrap();
    let (_server, url) = started(dir.path());
    let told = |arguments: &[&str], input: &[u8]| {
        let import = run_with_input(&[&["import", "--server", &url], arguments].concat(), input);
        assert_eq!(code(&import), 2, "{import:?}");
        assert!(import.stdout.is_empty(), "{import:?}");
        text(&import.stderr)
    };
    let rows: String =
        (0..5_000).map(|n| format!("{{\"id\":{n},\"content\":\"a b\",\"body\":\"c d\",\"n\":1}}\n")).collect();
    let said = told(&["-"], rows.as_bytes());
    assert_eq!(said, "hapax: cannot read -: no field \"text\"; there are \"content\", \"body\": use --text-field\n");
    let said = told(&["--text-field", "body", "--id-field", "url", "-"], rows.as_bytes());
    assert!(
        said.contains("no field \"url\"; there are \"id\", \"content\", \"body\", \"n\": use --id-field"),
        "{said}"
    );
    let said = told(&["-"], b"PAR1\x15\x04\x15\x10");
    assert!(said.contains("this is Parquet") && said.lines().count() == 1, "{said}");
    let said = told(&["-"], b"filedesc://x.arc 0.0.0.0 2026 text/plain 75\n");
    assert!(said.contains("this is ARC"), "{said}");
    let said = told(&[&format!("{}/*.nothing", path(dir.path()))], b"");
    assert!(said.contains("no file matches"), "{said}");
    let said = told(&["--shingle", "word3", "-"], b"");
    assert!(said.contains("shingle is a setting of a new collection: it needs --create"), "{said}");

    // Further lines without a text are counted, and only one of them is shown.
    let mixed = format!("{{\"id\":\"x\",\"text\":\"a b\"}}\n{rows}");
    let import = run_with_input(&["import", "--server", &url, "-"], mixed.as_bytes());
    assert_eq!((code(&import), row(&import, "failed")), (1, 5_000), "{import:?}");
    assert_eq!(text(&import.stderr).lines().count(), 2, "{import:?}");
}

#[test]
fn import_ignores_the_fields_that_bulk_ignores() {
    let dir = tempfile::tempdir().unwrap();
    let (_server, url) = started(dir.path());
    let client = Client::new(url.clone());
    let row_of = |id: &str| {
        json!({"id": id, "text": words(5), "title": "T", "metadata": {"n": 1}, "nested": {"a": [1]}}).to_string()
    };
    let import = run_with_input(&["import", "--server", &url, "-"], row_of("a").as_bytes());
    assert_eq!(code(&import), 0, "{import:?}");
    let headers = [("content-type", "application/x-ndjson")];
    let target = "/v1/collections/default/bulk?op=insert&extra=ignore&on_duplicate=store";
    let answer = client.send("POST", target, &headers, row_of("b").as_bytes());
    assert_eq!(lines(&answer.body)[0]["outcome"], "inserted");
    let metadata =
        |id: &str| client.get(&format!("/v1/collections/default/documents?id={id}")).json()["metadata"].clone();
    assert_eq!((metadata("a"), metadata("b")), (json!({"n": 1}), json!({"n": 1})));
}

#[test]
fn create_makes_the_collection_once_and_refuses_other_settings() {
    let dir = tempfile::tempdir().unwrap();
    let (_server, url) = started(dir.path());
    for name in ["part-1.jsonl", "part-2.jsonl"] {
        std::fs::write(dir.path().join(name), json!({"id": name, "text": words(name.len())}).to_string()).unwrap();
    }
    let import = |more: &[&str]| {
        let arguments = [&["import", "--server", &url, "--collection", "poems"], more, &["part-*.jsonl"]].concat();
        hapax(&arguments).current_dir(dir.path()).output().unwrap()
    };
    let missing = import(&[]);
    assert_eq!(code(&missing), 2, "{missing:?}");
    for (more, documents) in [
        (["--create", "--shingle", "char5", "--threshold", "0.7"].as_slice(), [1, 0]),
        (&["--create"], [0, 1]),
        (&["--create", "--shingle", "char5", "--threshold", "0.7"], [0, 1]),
    ] {
        let created = import(more);
        assert_eq!(code(&created), 0, "{created:?}");
        assert_eq!(row(&created, "documents"), 2, "both files match the pattern");
        assert_eq!(["unique", "unchanged"].map(|name| row(&created, name)), documents, "{created:?}");
    }
    let described = run(&["collection", "describe", "poems", "--server", &url]);
    assert!(text(&described.stdout).contains("shingle=char5"), "{described:?}");
    let other = import(&["--create", "--shingle", "word3"]);
    assert_eq!(code(&other), 2, "{other:?}");
    assert!(text(&other.stderr).contains("409"), "{other:?}");
}
