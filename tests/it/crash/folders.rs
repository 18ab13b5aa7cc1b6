//! Creates collections, stores a few documents in each and drops most of them. A collection is there completely or not
//! at all.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use super::http::{Failure, agent, answer, list, whole};
use crate::support::server::Address;

#[derive(Clone)]
pub struct Folders {
    number: u32,
    random: ChaCha8Rng,
    made: u32,
    /// By name, the collections that exist or may exist.
    folders: BTreeMap<String, Folder>,
    acknowledged: u64,
}

#[derive(Clone, Default)]
struct Folder {
    /// Whether the creation of the collection has been answered.
    made: bool,
    /// Whether the drop of the collection has been requested.
    leaves: bool,
    /// The documents, and whether the insert of each was answered.
    documents: BTreeMap<String, bool>,
}

impl Folders {
    pub fn new(number: u32, seed: u64) -> Self {
        let random = ChaCha8Rng::seed_from_u64(seed ^ 0xF01D ^ u64::from(number) << 32);
        Self { number, random, made: 0, folders: BTreeMap::new(), acknowledged: 0 }
    }

    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    pub fn work(&mut self, server: &Address) -> Result<(), Failure> {
        if self.folders.len() < 4 || self.random.random_bool(0.2) {
            self.make(server)
        } else if self.folders.len() > 8 || self.random.random_bool(0.3) {
            self.remove(server)
        } else {
            self.insert(server)
        }
    }

    fn make(&mut self, server: &Address) -> Result<(), Failure> {
        self.made += 1;
        let name = format!("folder-{}-{}", self.number, self.made);
        self.folders.insert(name.clone(), Folder::default());
        answer(agent().put(server.url(&format!("/v1/collections/{name}"))).send_json(json!({ "threshold": 0.7 })))?;
        self.folders.get_mut(&name).expect("just made").made = true;
        self.acknowledged += 1;
        Ok(())
    }

    fn insert(&mut self, server: &Address) -> Result<(), Failure> {
        let Some(name) = self.pick() else { return Ok(()) };
        let folder = self.folders.get_mut(&name).expect("picked from them");
        let id = format!("{}", self.random.random::<u64>());
        folder.documents.insert(id.clone(), false);
        let text = super::random_text(self.random.random());
        let url = server.url(&format!("/v1/collections/{name}/documents"));
        let verdict = answer(agent().post(url).send_json(json!({ "id": id, "text": text })))?;
        assert_eq!(verdict["outcome"], "inserted", "{verdict}");
        folder.documents.insert(id, true);
        self.acknowledged += 1;
        Ok(())
    }

    fn remove(&mut self, server: &Address) -> Result<(), Failure> {
        let Some(name) = self.pick() else { return Ok(()) };
        self.folders.get_mut(&name).expect("picked from them").leaves = true;
        answer(agent().delete(server.url(&format!("/v1/collections/{name}?confirm={name}"))).call())?;
        self.folders.remove(&name);
        self.acknowledged += 1;
        Ok(())
    }

    /// Picks a collection with no unanswered request.
    fn pick(&mut self) -> Option<String> {
        let known = self.folders.iter().filter(|(_, folder)| folder.made && !folder.leaves);
        let names: Vec<String> = known.map(|(name, _)| name.clone()).collect();
        names.get(self.random.random_range(0..names.len().max(1))).cloned()
    }

    /// Compares the notes with the server's collections, and records the outcomes of unanswered requests.
    pub fn verify(&mut self, server: &Address) {
        let collections = whole(agent().get(server.url("/v1/collections")).call());
        let collections = collections["collections"].as_array().expect("collections");
        let mine = format!("folder-{}-", self.number);
        let names: Vec<&str> =
            collections.iter().filter_map(|one| one["name"].as_str()).filter(|name| name.starts_with(&mine)).collect();
        for name in &names {
            assert!(self.folders.contains_key(*name), "{name} was dropped or never made, and is there");
        }
        self.folders.retain(|name, folder| {
            let there = names.contains(&&**name);
            assert!(there || !folder.made || folder.leaves, "{name} is gone");
            there
        });
        for (name, folder) in &mut self.folders {
            let documents = list(&server.url(&format!("/v1/collections/{name}/documents")));
            let ids: Vec<&str> = documents.iter().filter_map(|document| document["id"].as_str()).collect();
            for id in &ids {
                assert!(folder.documents.contains_key(*id), "{name}: {id} was never sent");
            }
            folder.documents.retain(|id, answered| {
                let there = ids.contains(&&**id);
                assert!(there || !*answered, "{name}: {id} is gone");
                *answered = true;
                there
            });
            let held = whole(agent().get(server.url(&format!("/v1/collections/{name}"))).call());
            assert_eq!((&held["documents"], &held["threshold"]), (&json!(ids.len()), &json!(0.7)), "{held}");
            (folder.made, folder.leaves) = (true, false);
        }
    }
}
