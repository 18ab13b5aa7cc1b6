//! Inserts documents with labels into its own collection, changes their labels, and deletes all documents with a label.
//! The deleted documents never return, and a document that is inserted later with the same label stays.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::seq::IteratorRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::http::{Failure, agent, answer, bulk, list, whole};
use crate::support::server::Address;
use crate::support::until::until_within;

pub const COLLECTION: &str = "/v1/collections/labelled";
const DOCUMENTS_MAX: usize = 60;
/// The number of labels. Each document has one of them.
const LABELS: u32 = 4;
/// The number of texts of a document. A text is sent again after a deletion.
const VERSIONS: u32 = 2;
/// The number of jobs that are compared. A collection remembers more ended jobs than this, if they had something to
/// delete.
const JOBS_MAX: usize = 50;

#[derive(Clone)]
pub struct Labelled {
    number: u32,
    random: ChaCha8Rng,
    /// The most lines of a bulk request.
    lines_max: usize,
    docs: Vec<Doc>,
    notes: u32,
    /// The documents of each unanswered deletion by label. A deletion removes either all of its documents or none.
    open: Vec<BTreeSet<usize>>,
    /// The jobs of acknowledged deletions, and the number of documents that each deletes.
    jobs: Vec<(String, u64)>,
    acknowledged: u64,
    deletions: u64,
}

type State = Option<Held>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    version: u32,
    label: u32,
    /// A number that changes with each write.
    note: u32,
}

/// The possible states of a document. There is one if all writes are acknowledged, and several while a request is
/// unanswered.
#[derive(Clone)]
struct Doc(Vec<State>);

impl Labelled {
    pub fn new(number: u32, seed: u64, lines_max: usize) -> Self {
        Self {
            number,
            random: ChaCha8Rng::seed_from_u64(seed ^ 0x1ABE ^ u64::from(number) << 32),
            lines_max,
            docs: Vec::new(),
            notes: 0,
            open: Vec::new(),
            jobs: Vec::new(),
            acknowledged: 0,
            deletions: 0,
        }
    }

    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Returns how many deletions by label were acknowledged.
    pub fn deletions(&self) -> u64 {
        self.deletions
    }

    pub fn work(&mut self, server: &Address) -> Result<(), Failure> {
        match self.random.random_range(0..10) {
            0..4 => self.put_bulk(server),
            4..7 => self.relabel(server),
            7 => self.delete(server),
            _ => self.delete_label(server),
        }
    }

    /// Inserts new documents, and replaces others.
    fn put_bulk(&mut self, server: &Address) -> Result<(), Failure> {
        let count = self.random.random_range(1..=self.lines_max);
        let docs = (0..DOCUMENTS_MAX).sample(&mut self.random, count);
        let first = self.docs.len();
        self.docs.resize(first.max(docs.iter().max().map_or(0, |doc| doc + 1)), Doc(vec![None]));
        let mut lines = Vec::new();
        for doc in docs {
            let version = self.random.random_range(0..VERSIONS);
            lines.push((doc, self.begin_put(doc, version)));
        }
        let body: String = lines.iter().map(|(doc, held)| format!("{}\n", self.document(*doc, *held))).collect();
        let url = server.url(&format!("{COLLECTION}/bulk?op=insert&on_existing=replace"));
        bulk(&url, body, lines.len(), |at, verdict| self.end_put(lines[at].0, lines[at].1, verdict))
    }

    /// Sends a document again, with another label.
    fn relabel(&mut self, server: &Address) -> Result<(), Failure> {
        let there = self.docs.iter().enumerate().filter_map(|(doc, known)| known.0[0].map(|held| (doc, held.version)));
        let Some((doc, version)) = there.choose(&mut self.random) else { return Ok(()) };
        let held = self.begin_put(doc, version);
        let url = server.url(&format!("{COLLECTION}/documents?on_existing=replace"));
        let verdict = answer(agent().post(url).send_json(self.document(doc, held)))?;
        self.end_put(doc, held, &verdict);
        Ok(())
    }

    fn delete(&mut self, server: &Address) -> Result<(), Failure> {
        let Some(doc) = (0..self.docs.len()).choose(&mut self.random) else { return Ok(()) };
        self.touch(doc);
        self.docs[doc].0.push(None);
        let url = server.url(&format!("{COLLECTION}/documents"));
        answer(agent().delete(url).query("id", self.id(doc)).call())?;
        self.docs[doc] = Doc(vec![None]);
        self.acknowledged += 1;
        Ok(())
    }

    fn delete_label(&mut self, server: &Address) -> Result<(), Failure> {
        let label = self.random.random_range(0..LABELS);
        let has = |state: &State| state.is_some_and(|held| held.label == label);
        let at_least: BTreeSet<usize> = (0..self.docs.len()).filter(|doc| self.docs[*doc].0.iter().all(has)).collect();
        let at_most: Vec<usize> = (0..self.docs.len()).filter(|doc| self.docs[*doc].0.iter().any(has)).collect();
        self.open.push(at_least.clone());
        at_most.iter().for_each(|doc| self.docs[*doc].0.push(None));
        let url = server.url(&format!("{COLLECTION}/documents"));
        let job = answer(agent().delete(url).query("label", format!("crawl:{label}")).call())?;
        let documents = job["documents"].as_u64().expect("a number");
        assert!((at_least.len()..=at_most.len()).contains(&(documents as usize)), "{} have it: {job}", at_least.len());
        self.open.pop();
        for doc in &at_most {
            self.docs[*doc].0.retain(|state| !has(state));
        }
        self.acknowledged += 1;
        if documents > 0 {
            self.deletions += 1;
            self.jobs.push((job["job"].as_str().expect("a name").to_owned(), documents));
            self.jobs.drain(..self.jobs.len().saturating_sub(JOBS_MAX));
        }
        let page = answer(
            agent().get(server.url(&format!("{COLLECTION}/documents"))).query("label", format!("crawl:{label}")).call(),
        )?;
        assert_eq!(page["documents"], json!([]), "crawl:{label} was deleted");
        Ok(())
    }

    fn begin_put(&mut self, doc: usize, version: u32) -> Held {
        self.touch(doc);
        self.notes += 1;
        let held = Held { version, label: self.random.random_range(0..LABELS), note: self.notes };
        self.docs[doc].0.push(Some(held));
        held
    }

    fn end_put(&mut self, doc: usize, held: Held, verdict: &Value) {
        let outcome = |before: &State| match before {
            None => "inserted",
            Some(before) if before.version == held.version => "updated",
            Some(_) => "replaced",
        };
        let before = &self.docs[doc].0;
        let possible: Vec<&str> = before[..before.len() - 1].iter().map(outcome).collect();
        let told = verdict["outcome"].as_str().unwrap_or_default();
        assert!(verdict["verdict"] == "unique" && possible.contains(&told), "{possible:?}: {verdict}");
        assert_eq!((&verdict["id"], &verdict["stored"]), (&json!(self.id(doc)), &json!(true)), "{verdict}");
        self.docs[doc] = Doc(vec![Some(held)]);
        self.acknowledged += 1;
    }

    /// Removes the document from the open deletions, because another request now changes it.
    fn touch(&mut self, doc: usize) {
        self.open.iter_mut().for_each(|docs| _ = docs.remove(&doc));
    }

    /// Compares the notes with the server's documents, and records the outcomes of unanswered requests. Then waits for
    /// all jobs, and compares again.
    pub fn verify(&mut self, server: &Address) {
        self.settle(server);
        self.look(server);
        for (job, documents) in &self.jobs {
            let url = server.url(&format!("/v1/jobs/{job}"));
            let mut now = Value::Null;
            until_within(Duration::from_secs(60), "a deletion by label ends", || {
                now = whole(agent().get(&url).call());
                now["state"] != "running"
            });
            let told = json!([now["state"], now["documents"], now["done"]]);
            assert_eq!(told, json!(["done", documents, documents]), "{now}");
        }
        self.look(server);
    }

    fn settle(&mut self, server: &Address) {
        let there = self.there(server);
        for (doc, known) in self.docs.iter_mut().enumerate() {
            let state = there.get(&doc).copied();
            assert!(known.0.contains(&state), "labelled {doc}: {:?} was possible, {state:?} is there", known.0);
            *known = Doc(vec![state]);
        }
        for docs in self.open.drain(..) {
            let gone = docs.iter().filter(|doc| !there.contains_key(doc)).count();
            assert!(gone == 0 || gone == docs.len(), "{gone} of {} were deleted by a label", docs.len());
        }
    }

    /// Compares documents, pages, counts and checks with the states that are known for certain.
    fn look(&self, server: &Address) {
        let wanted: BTreeMap<usize, Held> =
            self.docs.iter().enumerate().filter_map(|(doc, known)| known.0[0].map(|held| (doc, held))).collect();
        assert_eq!(self.there(server), wanted);
        let described = whole(agent().get(server.url(COLLECTION)).call());
        assert_eq!(described["documents"], wanted.len(), "{described}");
        let labels = whole(agent().get(server.url(&format!("{COLLECTION}/labels"))).call());
        for label in 0..LABELS {
            let count = wanted.values().filter(|held| held.label == label).count() as u64;
            let labels = labels["labels"].as_array().expect("labels");
            let value = label.to_string();
            let told = labels.iter().find(|told| told["value"] == value);
            assert_eq!(told.map_or(0, |told| told["documents"].as_u64().expect("a number")), count, "{labels:?}");
            let page = agent().get(server.url(&format!("{COLLECTION}/documents"))).query("limit", "300");
            let page = whole(page.query("label", format!("crawl:{label}")).call());
            assert_eq!(page["documents"].as_array().map(Vec::len), Some(count as usize), "crawl:{label}");
        }
        let texts: Vec<_> = (0..self.docs.len()).flat_map(|doc| (0..VERSIONS).map(move |one| (doc, one))).collect();
        for texts in texts.chunks(100) {
            let documents: Vec<_> =
                texts.iter().map(|(doc, version)| json!({"text": self.text(*doc, *version)})).collect();
            let body = json!({ "op": "check", "documents": documents });
            let told = whole(agent().post(server.url(&format!("{COLLECTION}/batch"))).send_json(body));
            for ((doc, version), verdict) in texts.iter().zip(told["results"].as_array().expect("results")) {
                let held = wanted.get(doc).is_some_and(|held| held.version == *version);
                let original = if held { json!(self.id(*doc)) } else { Value::Null };
                assert_eq!(verdict["duplicate_of"], original, "labelled {doc}, version {version}: {verdict}");
            }
        }
    }

    fn there(&self, server: &Address) -> BTreeMap<usize, Held> {
        let documents = list(&server.url(&format!("{COLLECTION}/documents")));
        let there: BTreeMap<usize, Held> = documents
            .iter()
            .map(|document| {
                let field = |name: &str| document["metadata"][name].as_u64().expect("a number") as u32;
                let label = document["labels"]["crawl"].as_str().and_then(|label| label.parse().ok());
                let held =
                    Held { version: field("version"), note: field("note"), label: label.expect("a label's number") };
                let doc = field("doc") as usize;
                assert_eq!(*document.get("id").expect("an id"), self.id(doc));
                assert_eq!(u64::from(held.label), document["metadata"]["label"], "{document}");
                (doc, held)
            })
            .collect();
        assert_eq!(there.len(), documents.len(), "a document is listed twice");
        there
    }

    fn document(&self, doc: usize, held: Held) -> Value {
        let Held { version, label, note } = held;
        json!({
            "id": self.id(doc),
            "text": self.text(doc, version),
            "metadata": { "doc": doc, "version": version, "label": label, "note": note },
            "labels": { "crawl": label.to_string() },
        })
    }

    fn id(&self, doc: usize) -> String {
        format!("labelled-{}-{doc}", self.number)
    }

    fn text(&self, doc: usize, version: u32) -> String {
        super::random_text(0x1ABE << 40 | u64::from(self.number) << 32 | (doc as u64) << 8 | u64::from(version))
    }
}
