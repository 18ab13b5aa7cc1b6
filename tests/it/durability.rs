//! Acknowledged means on disk.
//! Clients insert, replace and delete, one by one and in bulk, while the server is killed without warning, at random
//! moments, also while it starts. Afterwards every acknowledged document is there as it was acknowledged, every
//! acknowledged delete stays deleted, what was never answered is there whole or not at all, and nothing else is there.
//!
//! `HAPAX_KILLS` sets how often (5), `HAPAX_SEED` repeats a run.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rand::seq::IteratorRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use ureq::Agent;

use crate::support::server::{Address, Server, Starting};

const CLIENTS: u32 = 6;
const DOCUMENTS_PER_CLIENT_MAX: usize = 250;
const BULK_LINES_MAX: usize = 40;
const DOCUMENTS: &str = "/v1/collections/default/documents";
const ALL_STORED: &str = "on_duplicate=store&on_existing=replace";

/// The content of an id: a version of it, or nothing.
type State = Option<u32>;

struct Doc {
    /// What it may be: one state once it is acknowledged, more while a request is unanswered.
    possible: Vec<State>,
    /// A content that it had and has no more.
    retired: Option<u32>,
}

/// The answer did not come: the server was killed.
struct Gone;

struct Client {
    number: u32,
    random: ChaCha8Rng,
    docs: Vec<Doc>,
    versions: u32,
    acknowledged: u64,
}

#[test]
fn what_was_acknowledged_outlives_a_killed_process() {
    let variable = |name| std::env::var(name).ok().map(|text: String| text.parse::<u64>().expect(name));
    let kills = variable("HAPAX_KILLS").unwrap_or(5);
    let seed = variable("HAPAX_SEED").unwrap_or_else(|| rand::rng().random());
    eprintln!("HAPAX_SEED={seed} HAPAX_KILLS={kills}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let parent = tempfile::tempdir().unwrap();
    let data_dir = parent.path().join("data");
    let mut clients: Vec<_> = (0..CLIENTS)
        .map(|number| Client {
            number,
            random: ChaCha8Rng::seed_from_u64(seed ^ (u64::from(number) + 1)),
            docs: Vec::new(),
            versions: 0,
            acknowledged: 0,
        })
        .collect();
    let mut uncertain = 0;
    for _ in 0..kills {
        let server = start_after_a_few_tries(&data_dir, &mut random);
        uncertain += verify(&server, &mut clients);
        let killing = AtomicBool::new(false);
        let address = server.address().clone();
        thread::scope(|scope| {
            for client in &mut clients {
                let (address, killing) = (&address, &killing);
                scope.spawn(move || {
                    client.work_until_gone(address);
                    assert!(killing.load(Ordering::Relaxed), "a request failed before anybody killed the server");
                });
            }
            thread::sleep(Duration::from_millis(random.random_range(50..1500)));
            killing.store(true, Ordering::Relaxed);
            server.kill();
        });
    }
    let server = start_after_a_few_tries(&data_dir, &mut random);
    uncertain += verify(&server, &mut clients);
    assert!(server.terminate().success());
    let server = Server::start(&data_dir);
    assert_eq!(verify(&server, &mut clients), 0, "nothing was under way");
    let acknowledged: u64 = clients.iter().map(|client| client.acknowledged).sum();
    eprintln!("{acknowledged} acknowledged, {uncertain} unanswered, {} documents at the end", server.documents());
    assert!(acknowledged > 50 * kills, "only {acknowledged} acknowledged: nothing was tested; {}", server.log_tail());
}

/// Some lives end before they begin to serve.
fn start_after_a_few_tries(data_dir: &Path, random: &mut ChaCha8Rng) -> Server {
    while random.random_bool(0.4) {
        let starting = Starting::spawn(data_dir);
        thread::sleep(Duration::from_millis(random.random_range(0..200)));
        starting.kill();
    }
    Server::start(data_dir)
}

impl Client {
    fn work_until_gone(&mut self, server: &Address) {
        let agent = agent();
        loop {
            let done = match self.random.random_range(0..10) {
                0..4 => self.put(&agent, server),
                4..6 => self.delete(&agent, server),
                6..9 => self.put_bulk(&agent, server),
                _ => self.delete_bulk(&agent, server),
            };
            if done.is_err() {
                return;
            }
        }
    }

    /// A new document or another version of one.
    fn put(&mut self, agent: &Agent, server: &Address) -> Result<(), Gone> {
        let doc = self.pick_or_make();
        let version = self.begin_put(doc);
        let url = server.url(&format!("{DOCUMENTS}?{ALL_STORED}"));
        let verdict = answer(agent.post(url).send_json(document(self.number, doc, version)))?;
        self.end_put(doc, version, &verdict);
        Ok(())
    }

    fn put_bulk(&mut self, agent: &Agent, server: &Address) -> Result<(), Gone> {
        let docs: BTreeSet<usize> =
            (0..self.random.random_range(1..=BULK_LINES_MAX)).map(|_| self.pick_or_make()).collect();
        let lines: Vec<_> = docs.into_iter().map(|doc| (doc, self.begin_put(doc))).collect();
        let body: String =
            lines.iter().map(|(doc, version)| format!("{}\n", document(self.number, *doc, *version))).collect();
        let url = server.url(&format!("/v1/collections/default/bulk?op=insert&{ALL_STORED}"));
        bulk(agent, &url, body, lines.len(), |at, answer| {
            assert_eq!(answer["kind"], "verdict", "{answer}");
            let (doc, version) = lines[at];
            self.end_put(doc, version, answer);
        })
    }

    fn delete(&mut self, agent: &Agent, server: &Address) -> Result<(), Gone> {
        let Some(doc) = (0..self.docs.len()).choose(&mut self.random) else { return Ok(()) };
        self.docs[doc].possible.push(None);
        let answer = answer(agent.delete(server.url(DOCUMENTS)).query("id", id(self.number, doc)).call())?;
        self.end_delete(doc, &answer);
        Ok(())
    }

    fn delete_bulk(&mut self, agent: &Agent, server: &Address) -> Result<(), Gone> {
        let docs = (0..self.docs.len()).sample(&mut self.random, 5);
        if docs.is_empty() {
            return Ok(());
        }
        let body: String = docs.iter().map(|doc| format!("{}\n", json!({ "id": id(self.number, *doc) }))).collect();
        for doc in &docs {
            self.docs[*doc].possible.push(None);
        }
        bulk(agent, &server.url("/v1/collections/default/bulk?op=delete"), body, docs.len(), |at, answer| {
            self.end_delete(docs[at], answer);
        })
    }

    fn pick_or_make(&mut self) -> usize {
        if self.docs.len() < DOCUMENTS_PER_CLIENT_MAX && self.random.random_bool(0.5) {
            self.docs.push(Doc { possible: vec![None], retired: None });
            return self.docs.len() - 1;
        }
        match (0..self.docs.len()).choose(&mut self.random) {
            Some(doc) => doc,
            None => {
                self.docs.push(Doc { possible: vec![None], retired: None });
                0
            }
        }
    }

    fn begin_put(&mut self, doc: usize) -> u32 {
        self.versions += 1;
        self.docs[doc].possible.push(Some(self.versions));
        self.versions
    }

    fn end_put(&mut self, doc: usize, version: u32, verdict: &Value) {
        let outcome = if self.docs[doc].possible[0].is_some() { "replaced" } else { "inserted" };
        let wanted = json!([id(self.number, doc), "unique", outcome, true]);
        let told = json!([verdict["id"], verdict["verdict"], verdict["outcome"], verdict["stored"]]);
        assert_eq!(told, wanted, "{verdict}");
        self.settle(doc, Some(version));
    }

    fn end_delete(&mut self, doc: usize, answer: &Value) {
        let was_there = u64::from(self.docs[doc].possible[0].is_some());
        assert_eq!(answer["deleted"], was_there, "{answer}");
        self.settle(doc, None);
    }

    fn settle(&mut self, doc: usize, state: State) {
        self.acknowledged += 1;
        self.docs[doc].settle(state);
    }
}

impl Doc {
    fn settle(&mut self, state: State) {
        self.retired = self.possible.iter().copied().find(|other| *other != state).flatten().or(self.retired);
        self.possible = vec![state];
    }
}

/// Compares all that the server holds with all that the clients know, and settles what they did not. Answers how many
/// documents that were.
fn verify(server: &Server, clients: &mut [Client]) -> usize {
    let mut held = BTreeSet::new();
    let uncertain = thread::scope(|scope| {
        let threads: Vec<_> = clients.iter_mut().map(|client| scope.spawn(|| verify_client(server, client))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    for client in &*clients {
        let there = client.docs.iter().enumerate().filter(|(_, doc)| doc.possible[0].is_some());
        held.extend(there.map(|(doc, _)| id(client.number, doc)));
    }
    assert_eq!(server.documents(), held.len() as u64, "the ready line tells the number of documents");
    let listed = list(server);
    let set: BTreeSet<_> = listed.iter().cloned().collect();
    assert_eq!(set.len(), listed.len(), "a document is listed twice");
    assert_eq!(set, held, "the list has other documents than the ids tell");
    uncertain
}

fn verify_client(server: &Server, client: &mut Client) -> usize {
    let agent = agent();
    let number = client.number;
    let mut uncertain = 0;
    for (at, docs) in client.docs.chunks_mut(100).enumerate() {
        let first = at * 100;
        let ids: Vec<_> = (first..first + docs.len()).map(|doc| id(number, doc)).collect();
        let url = server.url(&format!("{DOCUMENTS}/get"));
        let found = whole(agent.post(url).send_json(json!({ "ids": ids })));
        let found = found["documents"].as_array().expect("documents");
        let mut checks = Vec::new();
        for (doc, known) in (first..).zip(&mut *docs) {
            let record = found.iter().find(|record| record["id"] == id(number, doc));
            let state = record.map(|record| {
                let version = record["metadata"]["version"].as_u64().expect("a version") as u32;
                assert_eq!(record["metadata"], metadata(number, doc, version));
                version
            });
            let possible = &known.possible;
            assert!(possible.contains(&state), "{}: {possible:?} was possible, {state:?} is there", id(number, doc));
            uncertain += usize::from(possible.len() > 1);
            known.settle(state);
            checks.extend(state.map(|version| (doc, version, true)));
            checks.extend(known.retired.map(|version| (doc, version, false)));
        }
        verify_checks(&agent, server, number, &checks);
    }
    uncertain
}

/// A content that is held finds itself; one that was replaced or deleted finds nothing.
fn verify_checks(agent: &Agent, server: &Server, client: u32, checks: &[(usize, u32, bool)]) {
    if checks.is_empty() {
        return;
    }
    let documents: Vec<_> =
        checks.iter().map(|(doc, version, _)| json!({ "text": text(client, *doc, *version) })).collect();
    let body = json!({ "op": "check", "documents": documents });
    let answer = whole(agent.post(server.url("/v1/collections/default/batch")).send_json(body));
    let results = answer["results"].as_array().expect("results");
    assert_eq!(results.len(), checks.len());
    for ((doc, version, held), verdict) in checks.iter().zip(results) {
        let (wanted, original) =
            if *held { ("exact_duplicate", json!(id(client, *doc))) } else { ("unique", Value::Null) };
        assert_eq!(verdict["verdict"], wanted, "{} version {version}: {verdict}", id(client, *doc));
        assert_eq!(verdict["duplicate_of"], original);
    }
}

fn list(server: &Server) -> Vec<String> {
    let agent = agent();
    let (mut ids, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut request = agent.get(server.url(DOCUMENTS)).query("limit", "300");
        if let Some(cursor) = &cursor {
            request = request.query("cursor", cursor);
        }
        let page = whole(request.call());
        let documents = page["documents"].as_array().expect("documents");
        ids.extend(documents.iter().map(|document| document["id"].as_str().expect("an id").to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return ids,
        }
    }
}

fn agent() -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(30)))
        .build()
        .new_agent()
}

type Response = Result<ureq::http::Response<ureq::Body>, ureq::Error>;

/// The body of a 200. Any other status is not what a killed server answers.
fn answer(response: Response) -> Result<Value, Gone> {
    let mut response = response.map_err(|_| Gone)?;
    let status = response.status();
    let text = response.body_mut().read_to_string().map_err(|_| Gone)?;
    assert_eq!(status, 200, "{text}");
    Ok(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
}

/// The same from a server that nobody kills.
fn whole(response: Response) -> Value {
    answer(response).unwrap_or_else(|Gone| panic!("no answer"))
}

/// Sends a bulk request and hands on each answered line; a line that did not arrive whole is not an answer.
fn bulk(
    agent: &Agent,
    url: &str,
    body: String,
    lines: usize,
    mut answered: impl FnMut(usize, &Value),
) -> Result<(), Gone> {
    let response = agent.post(url).content_type("application/x-ndjson").send(body).map_err(|_| Gone)?;
    let status = response.status();
    let mut reader = BufReader::new(response.into_body().into_reader());
    let (mut line, mut count) = (String::new(), 0);
    loop {
        line.clear();
        if reader.read_line(&mut line).map_err(|_| Gone)? == 0 || !line.ends_with('\n') {
            return Err(Gone);
        }
        assert_eq!(status, 200, "{line}");
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        if answer["kind"] == "summary" {
            assert_eq!(count, lines, "{answer}");
            return Ok(());
        }
        count += 1;
        assert_eq!(answer["line"], count, "{answer}");
        answered(count - 1, &answer);
    }
}

fn id(client: u32, doc: usize) -> String {
    format!("https://a.example/../{client}//ß%2F?doc={doc}#🦀")
}

fn metadata(client: u32, doc: usize, version: u32) -> Value {
    json!({ "client": client, "doc": doc, "version": version, "note": "a \"quoted\"\n line \u{0} 🦀" })
}

fn document(client: u32, doc: usize, version: u32) -> Value {
    json!({ "id": id(client, doc), "text": text(client, doc, version), "metadata": metadata(client, doc, version) })
}

/// Random words: no two versions share a shingle worth speaking of.
fn text(client: u32, doc: usize, version: u32) -> String {
    let mut random = ChaCha8Rng::seed_from_u64(u64::from(client) << 56 | (doc as u64) << 32 | u64::from(version));
    let mut word = || (0..random.random_range(3..9)).map(|_| random.random_range('a'..='z')).collect::<String>();
    (0..60).map(|_| word()).collect::<Vec<_>>().join(" ")
}
