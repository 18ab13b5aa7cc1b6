//! The clusters of a collection equal those of a model in plain code, also after restarts.

use std::collections::BTreeMap;

use hapax::collections::Collection;
use hapax::types::{OnDuplicate, Outcome, Seq};
use hapax_core::verify;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::given::{SHAPE, Signature, alike, all_clusters, base, begin, check, cluster, equal, made, representative};
use crate::support::documents::id;
use crate::support::library::{self};

/// A document in the model.
#[derive(Clone, Debug)]
struct Doc {
    name: String,
    signature: Signature,
    linked: bool,
    cluster: u64,
}

/// The result of the same operations by a single writer, in plain code.
#[derive(Default)]
struct Model {
    docs: BTreeMap<u64, Doc>,
    last: u64,
}

impl Model {
    fn seq_of(&self, name: &str) -> Option<u64> {
        self.docs.iter().find(|(_, doc)| doc.name == name).map(|(seq, _)| *seq)
    }

    fn members(&self, cluster: u64) -> Vec<u64> {
        self.docs.iter().filter(|(_, doc)| doc.cluster == cluster).map(|(seq, _)| *seq).collect()
    }

    /// Returns the documents that a lookup finds, best first.
    fn matches(&self, signature: &Signature, own: Option<u64>) -> Vec<u64> {
        let found = self.docs.iter().filter(|(seq, doc)| !doc.linked && Some(**seq) != own);
        let mut found: Vec<_> = found.filter(|(_, doc)| alike(&doc.signature, signature)).collect();
        found.sort_by_key(|(seq, doc)| (std::cmp::Reverse(equal(&doc.signature, signature)), **seq));
        found.into_iter().map(|(seq, _)| *seq).collect()
    }

    fn leave(&mut self, seq: u64) {
        let cluster = self.docs.remove(&seq).unwrap().cluster;
        if let Some(first) = self.members(cluster).first() {
            self.docs.get_mut(first).unwrap().linked = false;
        }
    }

    /// Returns the outcome, and the representative of the new document.
    fn insert(&mut self, name: &str, signature: Signature, on_duplicate: OnDuplicate) -> (Outcome, Option<String>) {
        let own = self.seq_of(name);
        let matches = self.matches(&signature, own);
        let stands = |model: &Self, seq: u64| model.members(model.docs[&seq].cluster)[0] == seq;
        if let Some(own) = own.filter(|own| self.docs[own].signature == signature) {
            let first = self.members(self.docs[&own].cluster)[0];
            return (Outcome::Unchanged, (first != own).then(|| self.docs[&first].name.clone()));
        }
        if !matches.is_empty() && on_duplicate == OnDuplicate::Skip {
            let Some(own) = own else { return (Outcome::Skipped, None) };
            self.leave(own);
            self.last += 1;
            return (Outcome::Removed, None);
        }
        if let Some(own) = own {
            self.leave(own);
        }
        let representative = matches.into_iter().find(|seq| stands(self, *seq));
        let linked = on_duplicate == OnDuplicate::Link && representative.is_some();
        self.last += 1;
        let cluster = representative.map_or(self.last, |seq| self.docs[&seq].cluster);
        self.docs.insert(self.last, Doc { name: name.to_owned(), signature, linked, cluster });
        let outcome = match (linked, own) {
            (true, _) => Outcome::Linked,
            (false, Some(_)) => Outcome::Replaced,
            (false, None) => Outcome::Inserted,
        };
        (outcome, representative.map(|seq| self.docs[&seq].name.clone()))
    }

    fn delete(&mut self, name: &str) -> bool {
        let Some(seq) = self.seq_of(name) else { return false };
        self.leave(seq);
        self.last += 1;
        true
    }

    async fn compare(&self, collection: &Collection, random: &mut ChaCha8Rng) {
        let described = collection.describe();
        let linked = self.docs.values().filter(|doc| doc.linked).count() as u64;
        assert_eq!((described.documents, described.linked), (self.docs.len() as u64, Some(linked)));
        let mut listed = all_clusters(collection, random.random_range(1..50)).await.into_iter();
        let names: std::collections::BTreeSet<u64> = self.docs.values().map(|doc| doc.cluster).collect();
        for name in names {
            let members = self.members(name);
            let first = &self.docs[&members[0]];
            assert!(!first.linked, "a representative can be found");
            for (&seq, alone) in members.iter().zip(std::iter::repeat(members.len() == 1)) {
                let doc = &self.docs[&seq];
                let stands = (seq != members[0]).then(|| id(&first.name));
                let stored = collection.document(&id(&doc.name)).await.unwrap().unwrap();
                assert_eq!((stored.seq, stored.linked), (Seq(seq), doc.linked), "{}", doc.name);
                assert_eq!(stored.representative, stands, "{}", doc.name);
                if alone {
                    assert_eq!(cluster(collection, &doc.name).await, std::slice::from_ref(&doc.name));
                    continue;
                }
                let member = listed.next().unwrap();
                assert_eq!((member.id.as_str(), member.seq), (doc.name.as_str(), Seq(seq)));
                assert_eq!((member.linked, &member.representative), (doc.linked, &stands));
                let similarity = verify::similarity(equal(&doc.signature, &first.signature), SHAPE);
                assert_eq!(member.similarity.map(|told| told.value), stands.map(|_| similarity));
            }
            if let Some(&any) = members.choose(random) {
                let ids: Vec<_> = members.iter().map(|seq| self.docs[seq].name.clone()).collect();
                assert_eq!(cluster(collection, &self.docs[&any].name).await, ids);
            }
        }
        assert_eq!(listed.next(), None);
        let docs: Vec<_> = self.docs.values().collect();
        for doc in docs.sample(random, 10) {
            let found: Vec<_> =
                self.matches(&doc.signature, None).iter().map(|seq| self.docs[seq].name.clone()).collect();
            assert_eq!(check(collection, &doc.signature).await, found);
        }
    }
}

/// Makes a signature near one of a few centres, so that there are chains of similar documents.
fn any_signature(random: &mut ChaCha8Rng) -> Signature {
    let mut signature = base();
    let centre = random.random_range(0..4_u8);
    signature[..usize::from(centre) * 10].fill(100 + centre);
    for _ in 0..random.random_range(0..12) {
        signature[random.random_range(0..64)] = random.random_range(200..203);
    }
    signature
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_are_those_of_one_writer_after_another_through_restarts() {
    let mut random = ChaCha8Rng::seed_from_u64(library::seed());
    let dir = library::dir();
    let mut model = Model::default();
    for life in 0..6 {
        let collections = library::open(library::config(&dir));
        let collection = made(&collections).await;
        let (mut deletions, mut insertions) = (Vec::new(), Vec::new());
        for step in 0..150 {
            let name = format!("d{}", random.random_range(0..60));
            if random.random_bool(0.3) {
                let was_there = model.delete(&name);
                let ticket = collection.delete(id(&name)).await.unwrap();
                if was_there {
                    assert_eq!(ticket.decided_at(), model.last);
                }
                // Sometimes the next operation is decided before this one is durable.
                if random.random_bool(0.5) {
                    assert_eq!(ticket.wait().await.unwrap(), was_there);
                } else {
                    deletions.push(ticket);
                }
            } else {
                let signature = any_signature(&mut random);
                let on_duplicate = *[OnDuplicate::Skip, OnDuplicate::Link, OnDuplicate::Link, OnDuplicate::Store]
                    .choose(&mut random)
                    .unwrap();
                let wanted = model.insert(&name, signature, on_duplicate);
                let ticket = begin(&collection, &name, &signature, on_duplicate).await;
                if random.random_bool(0.5) {
                    let verdict = ticket.wait().await.unwrap();
                    let told = (verdict.outcome, representative(&verdict).map(str::to_owned));
                    assert_eq!(told, wanted, "{name} in step {step} of life {life}");
                } else {
                    insertions.push(ticket);
                }
            }
            if step % 30 == 29 {
                for ticket in deletions.drain(..) {
                    ticket.wait().await.unwrap();
                }
                for ticket in insertions.drain(..) {
                    ticket.wait().await.unwrap();
                }
                model.compare(&collection, &mut random).await;
            }
        }
        library::close(collections).await;
    }
    let clusters = model.docs.values().filter(|doc| model.members(doc.cluster).len() > 1).count();
    assert!(clusters > 10, "nothing was tested");
}
