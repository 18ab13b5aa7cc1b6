//! Inserts near-duplicates of the documents of other clients, and notes the documents that verdicts name. None of the
//! noted documents may be missing after a crash, except those that were deleted.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::http::{Failure, agent, answer, get, list, whole};
use crate::support::server::Address;

pub const COLLECTION: &str = "/v1/collections/likes";
/// The texts that all documents are similar to.
const TEXTS: u64 = 12;

#[derive(Clone)]
pub struct Citer {
    number: u32,
    random: ChaCha8Rng,
    docs: Vec<Doc>,
    /// The ids that verdicts named. The documents belong to this client or to other clients.
    cited: BTreeSet<String>,
    acknowledged: u64,
}

#[derive(Clone)]
struct Doc {
    text: String,
    there: bool,
    /// Whether an insert or a delete has not been answered.
    open: bool,
    /// Whether a delete was requested.
    leaves: bool,
}

impl Citer {
    pub fn new(number: u32, seed: u64) -> Self {
        let random = ChaCha8Rng::seed_from_u64(seed ^ 0xC17E ^ u64::from(number) << 32);
        Self { number, random, docs: Vec::new(), cited: BTreeSet::new(), acknowledged: 0 }
    }

    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    pub fn work(&mut self, server: &Address) -> Result<(), Failure> {
        match self.random.random_range(0..10) {
            0..6 => self.insert(server),
            6..9 => self.check(server),
            _ => self.delete(server),
        }
    }

    fn insert(&mut self, server: &Address) -> Result<(), Failure> {
        let (doc, text) = (self.docs.len(), self.text());
        self.docs.push(Doc { text: text.clone(), there: false, open: true, leaves: false });
        let url = server.url(&format!("{COLLECTION}/documents?on_duplicate=store"));
        let verdict = answer(agent().post(url).send_json(json!({ "id": self.id(doc), "text": text })))?;
        assert_eq!((&verdict["stored"], &verdict["outcome"]), (&json!(true), &json!("inserted")), "{verdict}");
        (self.docs[doc].there, self.docs[doc].open) = (true, false);
        self.acknowledged += 1;
        self.cite(&verdict);
        Ok(())
    }

    fn check(&mut self, server: &Address) -> Result<(), Failure> {
        let url = server.url(&format!("{COLLECTION}/check"));
        let text = self.text();
        let verdict = answer(agent().post(url).send_json(json!({ "text": text })))?;
        self.cite(&verdict);
        Ok(())
    }

    fn delete(&mut self, server: &Address) -> Result<(), Failure> {
        let there: Vec<usize> = (0..self.docs.len()).filter(|doc| self.docs[*doc].there).collect();
        let Some(&doc) = there.get(self.random.random_range(0..there.len().max(1))) else { return Ok(()) };
        (self.docs[doc].open, self.docs[doc].leaves) = (true, true);
        let url = server.url(&format!("{COLLECTION}/documents"));
        let answer = answer(agent().delete(url).query("id", self.id(doc)).call())?;
        assert_eq!(answer["deleted"], 1, "{answer}");
        (self.docs[doc].there, self.docs[doc].open) = (false, false);
        self.acknowledged += 1;
        Ok(())
    }

    /// Notes the documents that a verdict names. A named document must not be known as deleted.
    fn cite(&mut self, verdict: &Value) {
        let matches = verdict["matches"].as_array().expect("matches");
        let ids = matches.iter().map(|one| &one["id"]).chain(verdict.get("duplicate_of"));
        for id in ids.filter_map(Value::as_str) {
            let own = (0..self.docs.len()).find(|doc| self.id(*doc) == id);
            assert!(own.is_none_or(|doc| self.docs[doc].there), "{id} is deleted: {verdict}");
            self.cited.insert(id.to_owned());
        }
    }

    /// Makes a text that is similar to one of a few texts: nine words in ten are the same.
    fn text(&mut self) -> String {
        let mut words: Vec<String> =
            super::random_text(1 << 60 | self.random.random_range(0..TEXTS)).split(' ').map(str::to_owned).collect();
        let at = self.random.random_range(0..words.len());
        words[at] = format!("other{}", self.random.random::<u32>());
        words.join(" ")
    }

    fn id(&self, doc: usize) -> String {
        format!("like-{}-{doc}", self.number)
    }
}

/// Compares the notes of all citers with the server's documents, and records the outcomes of unanswered requests.
pub fn verify(citers: &mut [&mut Citer], server: &Address) {
    let documents = server.url(&format!("{COLLECTION}/documents"));
    let cited: BTreeSet<String> = citers.iter_mut().flat_map(|citer| std::mem::take(&mut citer.cited)).collect();
    let mut held = BTreeSet::new();
    for citer in citers {
        let ids: Vec<String> = (0..citer.docs.len()).map(|doc| citer.id(doc)).collect();
        let found: BTreeSet<String> = ids
            .chunks(500)
            .flat_map(|ids| get(&documents, ids))
            .map(|document| document["id"].as_str().expect("an id").to_owned())
            .collect();
        for (doc, id) in citer.docs.iter_mut().zip(&ids) {
            let there = found.contains(id);
            assert!(doc.open || there == doc.there, "{id} is there: {there}");
            assert!(there || doc.leaves || !cited.contains(id), "{id} was cited and is gone");
            (doc.there, doc.open, doc.leaves) = (there, false, doc.leaves && !there);
        }
        for doc in citer.docs.iter().enumerate().filter(|(_, doc)| doc.there).step_by(7) {
            let verdict = whole(
                agent().post(server.url(&format!("{COLLECTION}/check"))).send_json(json!({ "text": doc.1.text })),
            );
            assert_eq!(verdict["verdict"], "exact_duplicate", "{} does not find itself: {verdict}", citer.id(doc.0));
        }
        held.extend(found);
    }
    let listed: BTreeSet<String> =
        list(&documents).iter().map(|document| document["id"].as_str().expect("an id").to_owned()).collect();
    assert_eq!(listed, held, "the list has other documents than the ids tell");
}
