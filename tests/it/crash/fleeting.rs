//! Inserts documents into a collection with a short time to live. Documents that are too young to expire are there, and
//! expired ones do not return.

use std::time::{Duration, SystemTime};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use super::http::{Failure, agent, answer, get};
use crate::support::server::Address;

pub const COLLECTION: &str = "/v1/collections/fleeting";
pub const TTL: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub struct Fleeting {
    number: u32,
    random: ChaCha8Rng,
    docs: Vec<Doc>,
    acknowledged: u64,
}

#[derive(Clone)]
struct Doc {
    sent: SystemTime,
    answered: bool,
    gone: bool,
}

impl Fleeting {
    pub fn new(number: u32, seed: u64) -> Self {
        let random = ChaCha8Rng::seed_from_u64(seed ^ 0xF1EE ^ u64::from(number) << 32);
        Self { number, random, docs: Vec::new(), acknowledged: 0 }
    }

    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    pub fn work(&mut self, server: &Address) -> Result<(), Failure> {
        let doc = self.docs.len();
        self.docs.push(Doc { sent: SystemTime::now(), answered: false, gone: false });
        let text = super::random_text(self.random.random());
        let url = server.url(&format!("{COLLECTION}/documents"));
        answer(agent().post(url).send_json(json!({ "id": self.id(doc), "text": text })))?;
        self.docs[doc].answered = true;
        self.acknowledged += 1;
        std::thread::sleep(Duration::from_millis(self.random.random_range(0..20)));
        Ok(())
    }

    /// Compares the notes with the server's documents, and records the outcomes of unanswered requests.
    pub fn verify(&mut self, server: &Address) {
        let url = server.url(&format!("{COLLECTION}/documents"));
        let ids: Vec<String> = (0..self.docs.len()).map(|doc| self.id(doc)).collect();
        let found: Vec<String> = ids
            .chunks(500)
            .flat_map(|ids| get(&url, ids))
            .map(|document| document["id"].as_str().expect("an id").to_owned())
            .collect();
        for (doc, id) in self.docs.iter_mut().zip(&ids) {
            let there = found.contains(id);
            let age = doc.sent.elapsed().expect("the clock goes on");
            assert!(!there || !doc.gone, "{id} is back");
            assert!(there || !doc.answered || doc.gone || age >= TTL, "{id} is gone after {age:?}");
            (doc.answered, doc.gone) = (there, !there);
        }
    }

    fn id(&self, doc: usize) -> String {
        format!("fleeting-{}-{doc}", self.number)
    }
}
