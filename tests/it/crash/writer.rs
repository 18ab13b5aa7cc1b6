//! Inserts, replaces, updates, removes and deletes its own documents in `default`, one by one and in bulk. No two
//! stored documents have anything in common.

use std::collections::BTreeSet;

use rand::seq::IteratorRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::http::{Failure, agent, answer, bulk, get, whole};
use crate::support::server::Address;

const DOCUMENTS_MAX: usize = 250;
pub const DOCUMENTS: &str = "/v1/collections/default/documents";
const ALL_STORED: &str = "on_duplicate=store&on_existing=replace";
/// With these options, a document that duplicates another one is not stored. If its id had other content before, this
/// old content is removed.
const REMOVING: &str = "on_duplicate=skip&on_existing=replace";

#[derive(Clone)]
pub struct Writer {
    number: u32,
    random: ChaCha8Rng,
    /// The most lines of a bulk request.
    lines_max: usize,
    docs: Vec<Doc>,
    versions: u32,
    acknowledged: u64,
}

/// The content of an id and its metadata, or nothing.
type State = Option<Held>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    version: u32,
    /// A number that changes with each version, and with each update of the metadata.
    note: u32,
}

#[derive(Clone)]
struct Doc {
    /// The possible states. There is one if all writes are acknowledged, and several while a request is unanswered.
    possible: Vec<State>,
    /// A content that the document had before.
    retired: Option<u32>,
}

impl Writer {
    pub fn new(number: u32, seed: u64, lines_max: usize) -> Self {
        let random = ChaCha8Rng::seed_from_u64(seed ^ (u64::from(number) + 1));
        Self { number, random, lines_max, docs: Vec::new(), versions: 0, acknowledged: 0 }
    }

    /// Returns how many answered writes changed something.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Returns the ids of the stored documents, if all requests have been answered.
    pub fn held(&self) -> impl Iterator<Item = String> {
        let there = self.docs.iter().enumerate().filter(|(_, doc)| doc.possible[0].is_some());
        there.map(|(doc, _)| id(self.number, doc))
    }

    pub fn work(&mut self, server: &Address) -> Result<(), Failure> {
        match self.random.random_range(0..10) {
            0..3 => self.put(server),
            3 => self.update(server),
            4 => self.remove(server),
            5 => self.delete(server),
            6..9 => self.put_bulk(server),
            _ => self.delete_bulk(server),
        }
    }

    /// Inserts a new document or another version of one.
    fn put(&mut self, server: &Address) -> Result<(), Failure> {
        let doc = self.pick_or_make();
        let held = self.begin_put(doc);
        let url = server.url(&format!("{DOCUMENTS}?{ALL_STORED}"));
        let verdict = answer(agent().post(url).send_json(document(self.number, doc, held)))?;
        self.end_put(doc, held, &verdict);
        Ok(())
    }

    /// Sends the same content with other metadata.
    fn update(&mut self, server: &Address) -> Result<(), Failure> {
        let Some(doc) = self.pick_held() else { return Ok(()) };
        self.versions += 1;
        let held = self.docs[doc].possible[0].map(|held| Held { note: self.versions, ..held });
        self.docs[doc].possible.push(held);
        let body = document(self.number, doc, held.expect("it was picked among those that are there"));
        let url = server.url(&format!("{DOCUMENTS}?{ALL_STORED}"));
        let verdict = answer(agent().post(url).send_json(body))?;
        let told = json!([verdict["id"], verdict["verdict"], verdict["outcome"], verdict["stored"]]);
        assert_eq!(told, json!([id(self.number, doc), "unique", "updated", true]), "{verdict}");
        self.acknowledged += 1;
        self.docs[doc].settle(held);
        Ok(())
    }

    /// Replaces the content of an id by nothing, or by a copy of another document.
    fn remove(&mut self, server: &Address) -> Result<(), Failure> {
        let Some(doc) = (0..self.docs.len()).choose(&mut self.random) else { return Ok(()) };
        let original = self.pick_held().filter(|original| *original != doc && self.docs[*original].possible.len() == 1);
        let copied = original.and_then(|original| self.docs[original].possible[0].map(|held| (original, held.version)));
        let text = copied.map_or(String::new(), |(original, version)| text(self.number, original, version));
        self.docs[doc].possible.push(None);
        let url = server.url(&format!("{DOCUMENTS}?{REMOVING}"));
        let verdict = answer(agent().post(url).send_json(json!({ "id": id(self.number, doc), "text": text })))?;
        let was_there = self.docs[doc].possible[0].is_some();
        let outcome = if was_there { "removed" } else { "skipped" };
        let kind = if copied.is_some() { "exact_duplicate" } else { "empty" };
        let told = json!([verdict["verdict"], verdict["outcome"], verdict["stored"]]);
        assert_eq!(told, json!([kind, outcome, false]), "{verdict}");
        assert_eq!(verdict["duplicate_of"].as_str().map(str::to_owned), copied.map(|(doc, _)| id(self.number, doc)));
        self.acknowledged += u64::from(was_there);
        self.docs[doc].settle(None);
        Ok(())
    }

    fn pick_held(&mut self) -> Option<usize> {
        (0..self.docs.len()).filter(|doc| self.docs[*doc].possible[0].is_some()).choose(&mut self.random)
    }

    fn put_bulk(&mut self, server: &Address) -> Result<(), Failure> {
        let docs: BTreeSet<usize> =
            (0..self.random.random_range(1..=self.lines_max)).map(|_| self.pick_or_make()).collect();
        let lines: Vec<_> = docs.into_iter().map(|doc| (doc, self.begin_put(doc))).collect();
        let body: String =
            lines.iter().map(|(doc, held)| format!("{}\n", document(self.number, *doc, *held))).collect();
        let url = server.url(&format!("/v1/collections/default/bulk?op=insert&{ALL_STORED}"));
        bulk(&url, body, lines.len(), |at, answer| {
            assert_eq!(answer["kind"], "verdict", "{answer}");
            let (doc, held) = lines[at];
            self.end_put(doc, held, answer);
        })
    }

    fn delete(&mut self, server: &Address) -> Result<(), Failure> {
        let Some(doc) = (0..self.docs.len()).choose(&mut self.random) else { return Ok(()) };
        self.docs[doc].possible.push(None);
        let answer = answer(agent().delete(server.url(DOCUMENTS)).query("id", id(self.number, doc)).call())?;
        self.end_delete(doc, &answer);
        Ok(())
    }

    fn delete_bulk(&mut self, server: &Address) -> Result<(), Failure> {
        let docs = (0..self.docs.len()).sample(&mut self.random, 5);
        if docs.is_empty() {
            return Ok(());
        }
        let body: String = docs.iter().map(|doc| format!("{}\n", json!({ "id": id(self.number, *doc) }))).collect();
        for doc in &docs {
            self.docs[*doc].possible.push(None);
        }
        bulk(&server.url("/v1/collections/default/bulk?op=delete"), body, docs.len(), |at, answer| {
            self.end_delete(docs[at], answer);
        })
    }

    fn pick_or_make(&mut self) -> usize {
        let more = self.docs.len() < DOCUMENTS_MAX && self.random.random_bool(0.5);
        if more || self.docs.is_empty() {
            self.docs.push(Doc { possible: vec![None], retired: None });
            return self.docs.len() - 1;
        }
        self.random.random_range(0..self.docs.len())
    }

    fn begin_put(&mut self, doc: usize) -> Held {
        self.versions += 1;
        let held = Held { version: self.versions, note: self.versions };
        self.docs[doc].possible.push(Some(held));
        held
    }

    fn end_put(&mut self, doc: usize, held: Held, verdict: &Value) {
        let outcome = if self.docs[doc].possible[0].is_some() { "replaced" } else { "inserted" };
        let wanted = json!([id(self.number, doc), "unique", outcome, true]);
        let told = json!([verdict["id"], verdict["verdict"], verdict["outcome"], verdict["stored"]]);
        assert_eq!(told, wanted, "{verdict}");
        self.acknowledged += 1;
        self.docs[doc].settle(Some(held));
    }

    fn end_delete(&mut self, doc: usize, answer: &Value) {
        let was_there = u64::from(self.docs[doc].possible[0].is_some());
        assert_eq!(answer["deleted"], was_there, "{answer}");
        self.acknowledged += was_there;
        self.docs[doc].settle(None);
    }

    /// Compares the notes with the server's documents, and records the outcomes of unanswered requests. Returns the
    /// number of documents.
    pub fn verify(&mut self, server: &Address) -> usize {
        let number = self.number;
        let mut uncertain = 0;
        for (at, docs) in self.docs.chunks_mut(100).enumerate() {
            let first = at * 100;
            let ids: Vec<_> = (first..first + docs.len()).map(|doc| id(number, doc)).collect();
            let found = get(&server.url(DOCUMENTS), &ids);
            let mut checks = Vec::new();
            for (doc, known) in (first..).zip(&mut *docs) {
                let record = found.iter().find(|record| record["id"] == id(number, doc));
                let state = record.map(|record| {
                    let number_of = |name: &str| record["metadata"][name].as_u64().expect("a number") as u32;
                    let held = Held { version: number_of("version"), note: number_of("note") };
                    assert_eq!(record["metadata"], metadata(number, doc, held));
                    held
                });
                let possible = &known.possible;
                assert!(
                    possible.contains(&state),
                    "{}: {possible:?} was possible, {state:?} is there",
                    id(number, doc)
                );
                uncertain += usize::from(possible.len() > 1);
                known.settle(state);
                checks.extend(state.map(|held| (doc, held.version, true)));
                checks.extend(known.retired.map(|version| (doc, version, false)));
            }
            verify_checks(server, number, &checks);
        }
        uncertain
    }
}

impl Doc {
    fn settle(&mut self, state: State) {
        let version = state.map(|held| held.version);
        let mut versions = self.possible.iter().map(|state| state.map(|held| held.version));
        self.retired = versions.find(|other| *other != version).flatten().or(self.retired);
        self.possible = vec![state];
    }
}

/// Checks that a stored content is found under its id, and that a replaced or deleted content is not found.
fn verify_checks(server: &Address, client: u32, checks: &[(usize, u32, bool)]) {
    if checks.is_empty() {
        return;
    }
    let documents: Vec<_> =
        checks.iter().map(|(doc, version, _)| json!({ "text": text(client, *doc, *version) })).collect();
    let body = json!({ "op": "check", "documents": documents });
    let answer = whole(agent().post(server.url("/v1/collections/default/batch")).send_json(body));
    let results = answer["results"].as_array().expect("results");
    assert_eq!(results.len(), checks.len());
    for ((doc, version, held), verdict) in checks.iter().zip(results) {
        let (wanted, original) =
            if *held { ("exact_duplicate", json!(id(client, *doc))) } else { ("unique", Value::Null) };
        assert_eq!(verdict["verdict"], wanted, "{} version {version}: {verdict}", id(client, *doc));
        assert_eq!(verdict["duplicate_of"], original);
    }
}

fn id(client: u32, doc: usize) -> String {
    format!("https://a.example/../{client}//ß%2F?doc={doc}#🦀")
}

fn metadata(client: u32, doc: usize, held: Held) -> Value {
    let Held { version, note } = held;
    json!({ "client": client, "doc": doc, "version": version, "note": note, "said": "a \"quoted\"\n line \u{0} 🦀" })
}

fn document(client: u32, doc: usize, held: Held) -> Value {
    json!({ "id": id(client, doc), "text": text(client, doc, held.version), "metadata": metadata(client, doc, held) })
}

/// Returns random words. Two versions have hardly any shingle in common.
fn text(client: u32, doc: usize, version: u32) -> String {
    super::random_text(u64::from(client) << 56 | (doc as u64) << 32 | u64::from(version))
}
