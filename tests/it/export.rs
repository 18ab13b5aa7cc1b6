//! `hapax export` writes the stored documents. The output is the same from a server and from its data directory.

use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::{hapax, run};
use crate::support::library;
use crate::support::server::Server;

fn lines(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns 40 words that no other `n` has, and one more.
fn text(n: u64, last: &str) -> String {
    crate::support::client::words(n) + " " + last
}

const MODES: [&[&str]; 3] = [&[], &["--pairs"], &["--clusters"]];

fn with<'a>(arguments: &[&'a str], mode: &[&'a str]) -> Vec<&'a str> {
    [&["export"], arguments, mode].concat()
}

/// Stores 2,300 documents: 2,100 in one cluster, 50 clusters of two, 100 alone.
fn fill(client: &Client) {
    let document = |id: String, text: String| json!({ "id": id, "text": text, "metadata": { "of": id } }).to_string();
    let large = (0..2100).map(|n| document(format!("large/{n}"), text(0, "same")));
    let pairs = (1..=50).flat_map(|n| {
        [("first", "one"), ("second", "two")].map(|(id, last)| document(format!("{id}/{n}"), text(n, last)))
    });
    let alone = (51..=150).map(|n| document(format!("alone/{n}"), text(n, "one")));
    // In a debug build, a lookup among thousands of equal documents is slow. Links are not searched.
    for (on_duplicate, documents) in [("link", large.collect::<Vec<_>>()), ("store", pairs.chain(alone).collect())] {
        let body = documents.join("\n") + "\n";
        let answers = client.bulk(&format!("op=insert&on_duplicate={on_duplicate}"), &body);
        assert_eq!(answers.last().unwrap()["summary"]["stored"], documents.len());
    }
    // This removes two documents from their clusters: a representative, and one of a pair.
    for id in ["large/0", "second/50"] {
        assert_eq!(client.delete(&format!("/v1/collections/default/documents?id={id}")).ok()["deleted"], 1);
    }
}

#[test]
fn documents_pairs_and_clusters_are_the_same_online_and_offline() {
    let dir = library::dir();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let url = server.url("");
    fill(&Client::new(url.as_str()));
    let file = dir.path().join("out.jsonl");
    let online: Vec<_> = MODES.map(|mode| lines(&run(&with(&["--server", &url], mode)))).to_vec();
    let refused = run(&with(&["--data-dir", path(&data)], &[]));
    assert_eq!(refused.status.code(), Some(2), "a server is using it: {refused:?}");
    assert!(server.terminate().success());
    let offline: Vec<_> = MODES.map(|mode| lines(&run(&with(&["--data-dir", path(&data)], mode)))).to_vec();
    for (online, offline) in online.iter().zip(&offline) {
        assert_eq!(online.len(), offline.len());
        assert!(online == offline);
    }
    let to_file = run(&with(&["--data-dir", path(&data), "--output", path(&file)], MODES[1]));
    assert!(to_file.status.success() && to_file.stdout.is_empty(), "{to_file:?}");
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(written.lines().count(), online[1].len());

    let [documents, pairs, clusters] = &online[..] else { panic!("three modes") };
    assert_eq!(documents.len(), 2298);
    assert!(documents.is_sorted_by_key(|document| document["seq"].as_u64().unwrap()));
    assert_eq!(documents[0]["id"], "large/1");
    assert_eq!(documents[0]["metadata"], json!({ "of": "large/1" }));
    assert_eq!((documents[0].get("representative"), &documents[1]["representative"]), (None, &json!("large/1")));

    assert_eq!(pairs.len(), 2098 + 49);
    assert_eq!(
        pairs[0],
        json!({
            "id": "large/2", "representative": "large/1", "similarity": 1.0, "low": 1.0, "high": 1.0, "method": "exact"
        })
    );
    for (n, pair) in (1..50).zip(&pairs[2098..]) {
        let ids = json!([format!("second/{n}"), format!("first/{n}")]);
        assert_eq!(json!([pair["id"], pair["representative"]]), ids);
        assert!((0.7..1.0).contains(&pair["similarity"].as_f64().unwrap()), "{pair}");
    }

    let sizes: Vec<_> = clusters.iter().map(|line| line["members"].as_array().unwrap().len()).collect();
    assert_eq!((&sizes[..3], sizes.len()), (&[1000, 1000, 99][..], 3 + 49));
    let continued: Vec<_> = clusters.iter().map(|line| line.get("continued")).collect();
    assert_eq!(continued[..4], [None, Some(&json!(true)), Some(&json!(true)), None]);
    assert!(clusters[..3].iter().all(|line| line["representative"] == "large/1"));
    assert_eq!(clusters[0]["members"][0], "large/1");
    assert_eq!(clusters[3], json!({ "representative": "first/1", "members": ["first/1", "second/1"] }));
}

#[test]
fn whoever_has_seen_enough_of_an_export_ends_it_quietly() {
    let dir = library::dir();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    for part in 0..5 {
        let document = |n: u64| json!({ "id": format!("{n}"), "text": text(n, &"x".repeat(2000)) }).to_string();
        let body: Vec<_> = (part * 1000..(part + 1) * 1000).map(document).collect();
        client.bulk("op=insert", &body.join("\n"));
    }
    let mut child =
        hapax(&["export", "--server", &server.url("")]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    // The pipe is closed after one line, while much more than a pipe holds is still unsent.
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert!(first.contains("\"id\":\"0\""));

    server.terminate();
    let arguments = ["export", "--data-dir", path(&data), "--parquet"];
    let mut child = hapax(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 4];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty() && first == *b"PAR1", "{output:?}");
}

#[test]
fn what_cannot_be_exported_is_told_and_leaves_no_file() {
    let dir = library::dir();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let url = server.url("");
    let file = dir.path().join("out.jsonl");
    let missing = dir.path().join("missing");
    let output = ["--output", path(&file)];
    for arguments in [
        ["--server", &url, "--collection", "no-such"],
        ["--data-dir", path(&missing), "--collection", "default"],
        ["--data-dir", path(&data), "--collection", "default"],
    ] {
        let refused = run(&with(&[&arguments[..], &output].concat(), &[]));
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(refused.stdout.is_empty() && !refused.stderr.is_empty(), "{refused:?}");
        assert!(!file.exists() && !missing.exists());
    }
    assert!(server.terminate().success());
    let refused = run(&["export", "--data-dir", path(&data), "--collection", "no-such"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no-such"), "{refused:?}");
    let empty = run(&["export", "--data-dir", path(&data)]);
    assert_eq!(lines(&empty), Vec::<Value>::new());
    assert_eq!(run(&["export", "--pairs", "--clusters"]).status.code(), Some(2));
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}
