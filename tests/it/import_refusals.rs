//! `hapax import`: the files, the lines and the arguments that it refuses, and its messages about them.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::cli::{code, path, row, run_with_input, text, words};
use crate::support::client::{Client, gzip};
use crate::support::command::{hapax, run};
use crate::support::library;
use crate::support::server::Server;

fn document(id: &str, n: usize) -> String {
    format!("{}\n", json!({"id": id, "text": words(n)}))
}

/// Returns the first block of a tar archive, followed by one file of JSON Lines.
fn tar(content: &str) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..9].copy_from_slice(b"one.jsonl");
    block[257..263].copy_from_slice(b"ustar\0");
    [&block, content.as_bytes(), &[0; 1024]].concat()
}

// In an earlier version, a bzip2 file and a JSON array failed at each line, and a tar archive lost its first document.
// A Parquet file after eight other files was noticed only when the eight files were stored.
#[test]
fn a_refused_file_ends_an_import_before_anything_is_stored() {
    let dir = library::dir();
    let server = Server::start(&dir.path().join("data"));
    let url = server.url("");
    let good = dir.path().join("good.jsonl");
    std::fs::write(&good, document("good", 1)).unwrap();
    let line = document("a", 2);
    let packed = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    let cases: &[(&str, Vec<u8>, &str, &str)] = &[
        ("bz2", b"BZh91AY&SY\x01\x02".to_vec(), "this is bzip2", "bunzip2"),
        ("xz", b"\xFD7zXZ\0\x01".to_vec(), "this is xz", "unxz"),
        ("zip", b"PK\x03\x04\x14\0".to_vec(), "this is a zip archive", "unzip"),
        ("tar", tar(&line), "this is a tar archive", "tar -xf"),
        ("tar.gz", gzip(&tar(&line)), "this is a tar archive", "tar -xf"),
        ("tar.zst", packed(&tar(&line)), "this is a tar archive", "tar -xf"),
        ("array", format!("\n [\n{line}]").into_bytes(), "this is a JSON array", "jq -c '.[]'"),
        ("csv", b"id,\"text\",n,text\n1,a b,2\n".to_vec(), "this is CSV", "twice"),
        ("utf16", b"\xFF\xFEi\0d\0".to_vec(), "this is UTF-16", "iconv"),
        ("parquet", b"PAR1\x15\x04".to_vec(), "this is Parquet", "cut or damaged"),
    ];
    for (name, bytes, what, remedy) in cases {
        let bad = dir.path().join(name);
        std::fs::write(&bad, bytes).unwrap();
        let import = run(&["import", "--server", &url, path(&good), path(&bad)]);
        let said = text(&import.stderr);
        assert_eq!(code(&import), 2, "{name}: {import:?}");
        assert!(said.starts_with(&format!("hapax: cannot read {}: {what}", path(&bad))), "{name}: {said}");
        assert!(said.contains(remedy) && said.lines().count() == 1 && import.stdout.is_empty(), "{name}: {import:?}");
        let piped = run_with_input(&["import", "--server", &url, "-"], bytes);
        assert!(code(&piped) == 2 && text(&piped.stderr).contains(what), "{name}: {piped:?}");
    }
    let missing = run(&["import", "--server", &url, path(&good), "no-such-file"]);
    assert!(code(&missing) == 2 && text(&missing.stderr).contains("no-such-file"), "{missing:?}");
    let client = Client::new(url.clone());
    assert_eq!(client.get("/v1/collections/default").ok()["documents"], 0, "nothing was stored");

    // The document looks like a tar archive or a table, but is JSON.
    let shaped = |text: &str| json!({"id": "t", "text": text}).to_string();
    let at = 257 - shaped("").find("\"\"").unwrap() - 1;
    let texts = [format!("{}ustar {}", "x".repeat(at), words(3)), format!("id,text,{}", words(4))];
    for shape in &texts {
        let import =
            run_with_input(&["import", "--server", &url, "--on-existing", "replace", "-"], shaped(shape).as_bytes());
        assert_eq!(code(&import), 0, "{import:?}");
    }
}

#[test]
fn a_pipe_is_not_read_before_its_turn() {
    let dir = library::dir();
    let server = Server::start(&dir.path().join("data"));
    let fifo = dir.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let good = dir.path().join("good.jsonl");
    std::fs::write(&good, document("good", 1)).unwrap();
    let url = server.url("");
    let arguments = ["import", "--server", &url, path(&good), path(&fifo), "-"];
    let mut import = hapax(&arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    import.stdin.take().unwrap().write_all(document("stdin", 2).as_bytes()).unwrap();
    // The pipe is opened only once: a second reader would wait for ever.
    std::fs::write(&fifo, document("fifo", 3)).unwrap();
    let import = import.wait_with_output().unwrap();
    assert_eq!((code(&import), row(&import, "unique")), (0, 3), "{import:?}");
}

#[test]
fn stdin_is_read_once() {
    let import = run_with_input(&["import", "--server", "http://127.0.0.1:1", "-", "-"], b"");
    assert_eq!(code(&import), 2, "{import:?}");
    assert!(text(&import.stderr).contains("- is given twice"), "{import:?}");
}

// In an earlier version, 922 of 1,099 failed lines were conflicts of ids, but this could be found only by reading all
// verdicts.
#[test]
fn failed_lines_are_counted_by_reason_and_have_a_code() {
    let dir = library::dir();
    let server = Server::start(&dir.path().join("data"));
    let url = server.url("");
    let mut input = [document("a", 1), document("a", 2), document("a", 3)].concat().into_bytes();
    input.extend_from_slice(b"nonsense\n{\"id\":\"b\"\n{\"id\":\"c\"}\n{\"id\":\"d\",\"text\":\"\xFF\"}\n");
    input.extend_from_slice(
        b"{\"id\":\"e\",\"id\":\"f\",\"text\":\"one two\"}\n{\"id\":\"g\",\"text\":\"t\",\"text\":\"u\"}\n",
    );
    input.extend_from_slice(b"{\"id\":\"h\",\"text\":\"t\",\"set\":\"x\",\"signature\":\"y\"}\n");
    let verdicts = dir.path().join("v.jsonl");
    let arguments = ["import", "--server", &url, "--connections", "1", "--verdicts", path(&verdicts), "-"];
    let import = run_with_input(&arguments, &input);
    assert_eq!((code(&import), row(&import, "failed")), (1, 9), "{import:?}");
    let table = text(&import.stdout);
    let failed = table.lines().find(|line| line.starts_with("failed")).unwrap();
    assert!(
        failed.ends_with("9  (invalid_value 3, id_conflict 2, malformed_json 2, not_utf8 1, no_field 1)")
            || failed.ends_with("9  (invalid_value 3, id_conflict 2, malformed_json 2, no_field 1, not_utf8 1)"),
        "{failed}"
    );
    let said = text(&import.stderr);
    assert!(
        said.contains("-:8 at byte 472: id: is given twice") && said.contains("-:9 at byte 509: text: is given twice"),
        "{said}"
    );
    let several = said.lines().find(|line| line.starts_with("failed: -:10")).unwrap();
    assert!(
        several.contains(": text: only one of text")
            && several.contains("and 2 more fields")
            && !several.contains("`errors`"),
        "{several}"
    );

    let told = std::fs::read_to_string(&verdicts).unwrap();
    let errors: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let codes: Vec<_> = errors[3..9].iter().map(|line| line["error"]["code"].as_str().unwrap_or("none")).collect();
    assert_eq!(codes, ["malformed_json", "malformed_json", "no_field", "not_utf8", "invalid_value", "invalid_value"]);
}
