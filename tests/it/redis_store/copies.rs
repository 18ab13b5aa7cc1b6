//! `hapax copy` fills a new collection in a cluster. A server on the cluster then answers as the server from which the
//! documents come. If the copy is ended, nothing is visible, and the servers remove what it has written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::compared::compared;
use super::nodes::{self, Node, dangling};
use super::{seed, settings, start_with};
use crate::support::client::{Client, documents};
use crate::support::command::{hapax, run};
use crate::support::library::dir;
use crate::support::redis::{Kind, RedisCluster};
use crate::support::server::{Server, Starting};
use crate::support::until::{until, until_within};

const DOCUMENTS: usize = 2400;
const QUERIES: usize = 400;
/// How often the texts of some documents are stored. A field has room for five postings.
const COPIES: [usize; 4] = [5, 6, 7, 60];
/// A killed copy is dead after 30 seconds, and its data is removed after ten more, unless the machine is busy.
const REMOVED_MAX: Duration = Duration::from_secs(150);

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Makes texts: some of them resemble others, and some are equal.
struct Texts {
    rng: ChaCha8Rng,
    made: Vec<String>,
    /// The last text of each id.
    stored: BTreeMap<String, String>,
}

impl Texts {
    fn new(seed: u64) -> Self {
        Self { rng: ChaCha8Rng::seed_from_u64(seed), made: Vec::new(), stored: BTreeMap::new() }
    }

    fn unique(&mut self) -> String {
        let words: Vec<_> = (0..60).map(|_| format!("w{}", self.rng.random_range(0..1_000_000))).collect();
        words.join(" ")
    }

    /// Returns a text with other last words than an earlier one.
    fn near(&mut self) -> String {
        let of = self.made.choose(&mut self.rng).expect("there is one").clone();
        let kept = 60 - self.rng.random_range(1..8);
        let words: Vec<_> = of.split(' ').take(kept).collect();
        format!("{} {}", words.join(" "), self.rng.random_range(0..1_000_000))
    }

    fn next(&mut self) -> String {
        let made = match self.rng.random_range(0..10) {
            0..3 if !self.made.is_empty() => self.near(),
            3 if !self.made.is_empty() => self.made.choose(&mut self.rng).expect("there is one").clone(),
            _ => self.unique(),
        };
        self.made.push(made.clone());
        made
    }

    /// Returns the lines of all documents.
    fn lines(&mut self) -> Vec<String> {
        let equal: Vec<_> = COPIES.iter().flat_map(|&count| vec![self.unique(); count]).collect();
        let mut texts: Vec<_> = (equal.len()..DOCUMENTS).map(|_| self.next()).collect();
        for text in equal {
            let at = self.rng.random_range(0..=texts.len());
            texts.insert(at, text.clone());
            self.made.push(text);
        }
        texts.into_iter().enumerate().map(|(number, text)| self.line(number, text)).collect()
    }

    fn line(&mut self, number: usize, text: String) -> String {
        let id = format!("https://a.example/{number}");
        let metadata = if number.is_multiple_of(3) { json!({"number": number}) } else { json!({}) };
        let line = json!({"id": id, "text": text, "metadata": metadata}).to_string() + "\n";
        self.stored.insert(id, text);
        line
    }
}

fn bulk(client: &Client, query: &str, lines: &[String]) {
    for some in lines.chunks(800) {
        let target = format!("/v1/collections/pages/bulk?{query}");
        let body = some.concat();
        let answer = client.send("POST", &target, &[("content-type", "application/x-ndjson")], body.as_bytes());
        let answers = answer.lines();
        let summary = &answers.last().expect("a summary")["summary"];
        assert_eq!(summary["errors"], 0, "{summary}");
    }
}

/// Returns the documents of `pages` in their order, without what differs in a cluster.
fn listed(client: &Client, collection: &str) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("{}?limit=500{cursor}", documents(collection))).ok();
        all.extend(page["documents"].as_array().expect("a list").iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    for document in &mut all {
        let fields = document.as_object_mut().expect("an object");
        ["seq", "representative"].into_iter().for_each(|name| _ = fields.remove(name));
    }
    all
}

/// A local server with the collection `pages`, and its documents.
fn local(data: &Path, texts: &mut Texts, settings: &Value) -> Server {
    let server = Starting::spawn(data).ready();
    let client = Client::new(server.url(""));
    assert_eq!(client.json("PUT", "/v1/collections/pages", settings).status, 201);
    let lines = texts.lines();
    bulk(&client, "op=insert&on_duplicate=store", &lines);
    // Some ids get other contents, so that they are older than their contents.
    let replaced = (1..20).map(|number| {
        let text = texts.next();
        texts.line(number * 97, text)
    });
    let replaced: Vec<_> = replaced.collect();
    bulk(&client, "op=insert&on_duplicate=store&on_existing=replace", &replaced);
    server
}

struct Target {
    config: PathBuf,
    server: Server,
    client: Client,
}

/// Returns a data directory with a collection. Its server has ended.
fn stopped(dir: &Path) -> PathBuf {
    let data = dir.join("disk");
    assert!(local(&data, &mut Texts::new(seed("copies")), &json!({})).terminate().success());
    data
}

/// Starts a server on the cluster, with few groups.
fn target(cluster: &RedisCluster, dir: &Path) -> Target {
    let server = start_with(&settings(cluster.nodes(), "documents_expected = 1000"), dir, "cluster").ready();
    let client = Client::new(server.url(""));
    Target { config: dir.join("cluster.toml"), server, client }
}

fn copy(from: &Path, target: &Target, more: &[&str]) -> Command {
    let arguments = ["copy", "--from", text(from), "--to", text(&target.config)];
    hapax(&[&arguments[..], more].concat())
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn copied(mut command: Command) -> String {
    let output = command.output().expect("the binary runs");
    assert!(output.status.success(), "{}", told(&output));
    told(&output)
}

fn a_copied_collection_answers_as_the_original(kind: Kind, settings: &Value) {
    let Some(cluster) = RedisCluster::up(kind) else { return };
    let dir = dir();
    let mut texts = Texts::new(seed("copies"));
    let data = dir.path().join("disk");
    assert!(local(&data, &mut texts, settings).terminate().success());
    let target = target(&cluster, dir.path());
    let words = copied(copy(&data, &target, &["--collection", "pages"]));
    assert!(words.starts_with(&format!("copied into collection `pages`: {DOCUMENTS_SHOWN} documents, ")), "{words}");
    let parquet = dir.path().join("pages.parquet");
    let export = ["export", "--parquet", "--data-dir", text(&data), "--collection", "pages", "--output"];
    assert!(run(&[&export[..], &[text(&parquet)]].concat()).status.success());
    copied(copy(&parquet, &target, &["--collection", "of-parquet"]));

    let disk = Starting::spawn(&data).ready();
    let on_disk = Client::new(disk.url(""));
    let originals = listed(&on_disk, "pages");
    assert_eq!(originals.len(), DOCUMENTS);
    assert!(originals.iter().filter(|document| document["first_seen"] != document["id_first_seen"]).count() > 10);
    for collection in ["pages", "of-parquet"] {
        assert_same(&listed(&target.client, collection), &originals);
        let path = format!("/v1/collections/{collection}");
        until("the documents are counted", || target.client.get(&path).ok()["documents"] == DOCUMENTS);
    }
    assert_eq!(dangling(&cluster), Vec::<String>::new());
    same_checks(&on_disk, &target.client, &mut texts);
    same_first_verdicts(&on_disk, &target.client, &texts);
    same_inserts(&on_disk, &target.client, &mut texts, &originals);

    let refused = copy(&parquet, &target, &["--collection", "pages"]).output().expect("the binary runs");
    assert_eq!(refused.status.code(), Some(2));
    assert!(told(&refused).contains("collection `pages` exists in the cluster"), "{}", told(&refused));
    // Nothing of it is left, because it was refused before its work.
    assert_eq!(notes(&cluster), Vec::<String>::new());
    delete_all(&cluster, &target.client, &originals);
}

/// Compares two lists of documents. Says only where they differ first.
fn assert_same(found: &[Value], expected: &[Value]) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}

const DOCUMENTS_SHOWN: &str = "2,400";

/// Compares the answers to checks of stored texts, similar texts and new texts.
fn same_checks(on_disk: &Client, on_cluster: &Client, texts: &mut Texts) {
    let mut verdicts = BTreeMap::<_, u64>::new();
    for number in 0..QUERIES {
        let text = match number % 4 {
            0 => texts.unique(),
            1 => texts.made.choose(&mut texts.rng).expect("there is one").clone(),
            _ => texts.near(),
        };
        let check = |client: &Client| {
            let answer = client.post("/v1/collections/pages/check?limit=1000&with=metadata", &json!({"text": text}));
            let mut answer = compared(answer.ok(), true);
            // A field has 24 bits of a key. So with few groups, a document may be read that shares no band.
            answer.as_object_mut().expect("an object").remove("candidates").expect("a number");
            answer
        };
        let (here, there) = (check(on_disk), check(on_cluster));
        assert_eq!(there, here, "{text}");
        *verdicts.entry(here["verdict"].as_str().expect("a verdict").to_owned()).or_default() += 1;
    }
    println!("copies: {verdicts:?}");
    assert!(verdicts.len() == 3 && verdicts.values().all(|count| *count > 20), "{verdicts:?}");
}

/// Sends stored documents again. The answers are their first verdicts.
fn same_first_verdicts(on_disk: &Client, on_cluster: &Client, texts: &Texts) {
    let mut matches = 0;
    for (number, (id, text)) in texts.stored.iter().enumerate() {
        // The last documents have replaced others.
        let is_replaced = id.rsplit('/').next().and_then(|text| text.parse::<u64>().ok()).is_some_and(|n| n % 97 == 0);
        if number % 10 > 0 && !is_replaced {
            continue;
        }
        let [here, there] = [on_disk, on_cluster].map(|client| {
            let answer = client.post(&documents("pages"), &json!({"id": id, "text": text})).ok();
            compared(answer, true)
        });
        assert_eq!(there, here, "{id}");
        assert_eq!(here["outcome"], "unchanged");
        matches += here["matches"].as_array().expect("a list").len();
    }
    assert!(matches > 50, "{matches}");
}

/// Inserts new documents, some of which resemble others.
fn same_inserts(on_disk: &Client, on_cluster: &Client, texts: &mut Texts, originals: &[Value]) {
    let exported =
        |client: &Client, id: &Value| client.post(&format!("{}/get", documents("pages")), &json!({"ids": [id]})).ok();
    let last = originals.last().expect("one");
    let highest = seq(&exported(on_cluster, &last["id"]));
    let insert = |client: &Client, id: &str, text: &str| {
        compared(client.post(&documents("pages"), &json!({"id": id, "text": text})).ok(), true)
    };
    for number in 0..50 {
        let text = if number == 0 { texts.unique() } else { texts.next() };
        let id = format!("new/{number}");
        assert_eq!(insert(on_cluster, &id, &text), insert(on_disk, &id, &text), "{text}");
    }
    let newest = exported(on_cluster, &json!("new/0"));
    assert!(seq(&newest) > highest, "{newest}");
}

fn seq(answer: &Value) -> u64 {
    answer["documents"][0]["seq"].as_u64().unwrap_or_else(|| panic!("no seq: {answer}"))
}

/// Deletes all documents of `pages`. Nothing of them may be left.
fn delete_all(cluster: &RedisCluster, client: &Client, originals: &[Value]) {
    let new = (0..50).map(|number| json!(format!("new/{number}")));
    let ids: Vec<_> = originals.iter().map(|document| document["id"].clone()).chain(new).collect();
    for some in ids.chunks(500) {
        client.post(&format!("{}/delete", documents("pages")), &json!({"ids": some})).ok();
    }
    assert_eq!(listed(client, "pages"), Vec::<Value>::new());
    until("nothing leads to deleted documents", || dangling(cluster).is_empty());
    for collection in ["pages", "of-parquet"] {
        client.delete(&format!("/v1/collections/{collection}?confirm={collection}")).ok();
    }
    let keys = || keys(cluster).into_iter().filter(|key| !key.starts_with("hapax:1:")).collect::<Vec<_>>();
    until_within(REMOVED_MAX, "all keys are removed", || keys().is_empty());
}

#[test]
fn a_collection_copied_into_redis_answers_as_the_original() {
    a_copied_collection_answers_as_the_original(Kind::Redis, &json!({}));
}

#[test]
fn a_collection_copied_into_valkey_answers_as_the_original() {
    a_copied_collection_answers_as_the_original(Kind::Valkey, &json!({"keep": "shingles", "verify": "exact"}));
}

/// Returns the keys of collections. The collection `default` has the number 1.
fn keys(cluster: &RedisCluster) -> Vec<String> {
    let mut keys: Vec<_> =
        nodes::primaries(cluster).iter().flat_map(|at| Node::connect(at).keys("hapax:*:*")).collect();
    keys.retain(|key| !key.ends_with(":w"));
    keys
}

/// Returns the fields of the list of collections that are no names.
fn notes(cluster: &RedisCluster) -> Vec<String> {
    let of = |at: &String| {
        let mut node = Node::connect(at);
        let has_it = node.tell("EXISTS hapax:collections") == ":1";
        if has_it { node.list("HKEYS hapax:collections") } else { Vec::new() }
    };
    nodes::primaries(cluster).iter().flat_map(of).filter(|field| field.contains(':')).collect()
}

/// Begins a copy, and waits until it has written a record.
fn begun(cluster: &RedisCluster, data: &Path, target: &Target) -> Child {
    let mut nodes: Vec<_> = nodes::primaries(cluster).iter().map(|at| Node::connect(at)).collect();
    let mut command = copy(data, target, &["--collection", "pages"]);
    let mut child = command.stderr(Stdio::piped()).spawn().expect("the binary runs");
    until("it has written a record", || {
        assert!(child.try_wait().expect("it is a child").is_none(), "it has ended");
        nodes.iter_mut().any(|node| !node.keys("hapax:[2-9]*:r1000000001").is_empty())
    });
    child
}

fn nothing_is_visible(target: &Target) {
    target.client.get("/v1/collections/pages").problem(404, "collection_not_found");
    let all = target.client.get("/v1/collections").ok();
    assert_eq!(all["collections"].as_array().expect("a list").len(), 1, "{all}");
}

fn everything_is_removed(cluster: &RedisCluster) {
    let left = || keys(cluster).into_iter().any(|key| !key.starts_with("hapax:1:"));
    let needed = until_within(REMOVED_MAX, "its keys are removed", || !left() && notes(cluster).is_empty());
    println!("copies: the keys were removed after {needed:?}");
}

#[test]
fn an_ended_copy_leaves_nothing() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let data = stopped(dir.path());
    let target = target(&cluster, dir.path());

    let interrupted = begun(&cluster, &data, &target);
    signal(&interrupted, "-INT");
    let output = interrupted.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", told(&output));
    assert!(
        told(&output).contains("nothing was published, and the servers remove what was written"),
        "{}",
        told(&output)
    );
    nothing_is_visible(&target);
    assert_eq!(notes(&cluster), ["dropped:2"]);
    everything_is_removed(&cluster);

    let mut killed = begun(&cluster, &data, &target);
    killed.kill().expect("it runs");
    killed.wait().expect("it ends");
    nothing_is_visible(&target);
    assert_eq!(notes(&cluster), ["copying:3"]);
    // Another copy is not affected.
    copied(copy(&data, &target, &["--from-collection", "default", "--collection", "other"]));
    target.client.delete("/v1/collections/other?confirm=other").ok();
    everything_is_removed(&cluster);

    copied(copy(&data, &target, &["--collection", "pages"]));
    assert_eq!(listed(&target.client, "pages").len(), DOCUMENTS);
    assert!(target.server.terminate().success());
}

#[test]
fn a_running_collection_is_copied_by_a_backup_and_what_a_cluster_lacks_is_counted() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let (data, backup, restored) = (dir.path().join("disk"), dir.path().join("backup"), dir.path().join("restored"));
    let server = Starting::spawn(&data).ready();
    let client = Client::new(server.url(""));
    let text_of = |number: u64| crate::support::client::words(number);
    let insert = |query: &str, body: Value| client.post(&format!("{}{query}", documents("default")), &body).ok();
    insert("", json!({"id": "a", "text": text_of(1), "labels": {"site": "x"}, "date": "2026-11-29T00:00:00Z"}));
    insert("", json!({"id": "b", "text": text_of(2), "payload_digest": "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}));
    insert("?on_duplicate=link", json!({"id": "c", "text": text_of(1)}));
    insert("?on_duplicate=store", json!({"id": "d", "text": text_of(1)}));
    insert("", json!({"id": "e", "html": format!("<html><body><p>{}</p></body></html>", text_of(3))}));

    let target = target(&cluster, dir.path());
    let refused = |from: &Path, words: &str, more: &[&str]| {
        let output = copy(from, &target, &[&["--collection", "copied"], more].concat()).output().expect("it runs");
        assert!(output.status.code() == Some(2) && told(&output).contains(words), "{}", told(&output));
    };
    let default = ["--from-collection", "default"];
    refused(&data, "stop it, or make a backup, restore it into another directory, and copy from there", &default);
    assert!(run(&["backup", text(&backup), "--server", &server.url("")]).status.success());
    refused(&backup, "this is a backup; restore it", &default);
    assert!(run(&["restore", text(&backup), "--data-dir", text(&restored)]).status.success());
    refused(&restored, "there is no collection `copied`", &[]);
    let words = copied(copy(&restored, &target, &[&default[..], &["--collection", "copied"]].concat()));
    let notes = [
        "copied into collection `copied`: 4 documents, ",
        "note: left out 1 link, which a cluster cannot store",
        "note: left out `labels` of 1 document",
        "note: left out `date` of 1 document",
        "note: left out `payload_digest` of 1 document",
        "note: left out `html_hash` of 1 document",
    ];
    for note in notes {
        assert!(words.contains(note), "{note}: {words}");
    }
    let ids: Vec<_> = listed(&target.client, "copied").iter().map(|document| document["id"].clone()).collect();
    assert_eq!(ids, ["a", "b", "d", "e"]);

    assert_eq!(client.json("PUT", "/v1/collections/texts", &json!({"keep": "text"})).status, 201);
    assert!(server.terminate().success());
    refused(&data, "collections in a Redis cluster have no `keep=text`", &["--from-collection", "texts"]);
}

#[test]
fn a_copy_whose_writes_reach_no_replica_publishes_nothing() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let data = stopped(dir.path());
    let target = target(&cluster, dir.path());
    let child = begun(&cluster, &data, &target);
    signal(&child, "-STOP");
    (3..6).for_each(|replica| cluster.pause(replica));
    signal(&child, "-CONT");
    let output = child.wait_with_output().expect("it ends");
    (3..6).for_each(|replica| cluster.resume(replica));
    let words = told(&output);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.contains("has fewer than 1 replicas that have the write"), "{words}");
    assert!(words.contains("nothing was published"), "{words}");
    nothing_is_visible(&target);
    everything_is_removed(&cluster);
}

fn signal(child: &Child, signal: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().expect("kill runs").success());
}
