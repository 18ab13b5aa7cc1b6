//! Stored duplicates form clusters, each a star around its first-seen representative, whatever is inserted, linked,
//! replaced and deleted, and whenever the server stops.
//!
//! Signatures are given, so that who is like whom is the test's to say: 64 slots, of which 52 must be equal, and so
//! many bands that no such pair is ever missed.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hapax::collections::{
    BandingAsked, Changes, ClusterMember, Collection, CollectionError, Collections, Pending, Settings,
};
use hapax::types::{CollectionName, DocId, OnDuplicate, Outcome, Seq, Verdict, VerdictKind};
use hapax_core::{Banding, SignatureShape, Spec, verify};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::support::client::{Client, encode};
use crate::support::documents::{self, id, look};
use crate::support::library::{self, Dir};
use crate::support::local::Local;
use crate::support::server::Server;

const SHAPE: SignatureShape = SignatureShape { k: 64, bits: 8 };
const THRESHOLD: f64 = 0.8;

type Signature = [u8; 64];

fn settings() -> Settings {
    let spec = Spec::parse("hapax1;external:test:64x8").unwrap();
    // Two signatures that differ in 12 slots share at least 20 bands of 2.
    Settings::new(spec, Banding::new(32, 2, SHAPE).unwrap(), THRESHOLD)
}

fn name() -> CollectionName {
    CollectionName::new("given").unwrap()
}

async fn made(collections: &Collections) -> Collection {
    collections.create(name(), settings()).await.unwrap().0
}

/// All slots of one value, but `from..to`.
fn with(from: usize, to: usize, value: u8) -> Signature {
    let mut signature = base();
    signature[from..to].fill(value);
    signature
}

fn base() -> Signature {
    std::array::from_fn(|slot| slot as u8)
}

fn equal(a: &Signature, b: &Signature) -> u32 {
    a.iter().zip(b).filter(|(a, b)| a == b).count() as u32
}

fn alike(a: &Signature, b: &Signature) -> bool {
    equal(a, b) >= verify::matching_min(THRESHOLD, SHAPE)
}

async fn begin(
    collection: &Collection,
    name: &str,
    signature: &Signature,
    on_duplicate: OnDuplicate,
) -> Pending<Verdict> {
    documents::begin(collection, name, signature, on_duplicate).await.unwrap()
}

async fn insert(collection: &Collection, name: &str, signature: &Signature, on_duplicate: OnDuplicate) -> Verdict {
    begin(collection, name, signature, on_duplicate).await.wait().await.unwrap()
}

async fn check(collection: &Collection, signature: &Signature) -> Vec<String> {
    let verdict = documents::check(collection, signature, look(1000)).await.unwrap();
    verdict.matches.into_iter().map(|found| found.id.as_str().to_owned()).collect()
}

/// The ids of the cluster of `name`, the representative first.
async fn cluster(collection: &Collection, name: &str) -> Vec<String> {
    let page = collection.cluster(id(name), None, 1000).await.unwrap().unwrap();
    let ids: Vec<_> = page.members.iter().map(|member| member.id.as_str().to_owned()).collect();
    assert_eq!(page.representative.as_str(), ids[0]);
    assert_eq!(page.documents, Some(ids.len() as u64));
    assert_eq!(page.next, None);
    ids
}

async fn all_clusters(collection: &Collection, limit: usize) -> Vec<ClusterMember> {
    let (mut members, mut after) = (Vec::new(), None);
    loop {
        let page = collection.clusters(after, limit).await.unwrap();
        assert!(page.members.len() <= limit);
        members.extend(page.members);
        after = page.next;
        if after.is_none() {
            return members;
        }
    }
}

fn representative(verdict: &Verdict) -> Option<&str> {
    verdict.representative.as_ref().map(DocId::as_str)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_whose_ends_are_unlike_makes_two_stars() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = made(&collections).await;
    // Each differs from the one before in ten slots, from the one before that in twenty.
    let [a, b, c, d] = [with(0, 0, 200), with(0, 10, 200), with(0, 20, 200), with(0, 30, 200)];
    for (one, other, like) in [(a, b, true), (b, c, true), (c, d, true), (a, c, false), (b, d, false), (a, d, false)] {
        assert_eq!(alike(&one, &other), like);
    }
    let first = insert(&collection, "a", &a, OnDuplicate::Store).await;
    assert_eq!((first.kind, representative(&first)), (VerdictKind::Unique, None));
    let second = insert(&collection, "b", &b, OnDuplicate::Store).await;
    assert_eq!((second.kind, representative(&second)), (VerdictKind::NearDuplicate, Some("a")));
    let third = insert(&collection, "c", &c, OnDuplicate::Store).await;
    assert_eq!(third.duplicate_of, Some(id("b")));
    assert_eq!(representative(&third), None, "c is like b, but not like a, who stands for b");
    let fourth = insert(&collection, "d", &d, OnDuplicate::Store).await;
    assert_eq!((fourth.duplicate_of.as_ref(), representative(&fourth)), (Some(&id("c")), Some("c")));
    // Like b and c alike: only c stands for anybody.
    let between = with(0, 15, 200);
    let fifth = insert(&collection, "e", &between, OnDuplicate::Store).await;
    assert_eq!(representative(&fifth), Some("c"));

    for name in ["a", "b"] {
        assert_eq!(cluster(&collection, name).await, ["a", "b"]);
    }
    for name in ["c", "d", "e"] {
        assert_eq!(cluster(&collection, name).await, ["c", "d", "e"]);
    }
    let stored = collection.document(&id("d")).await.unwrap().unwrap();
    assert_eq!(stored.representative, Some(id("c")));
    // A retry repeats it.
    let again = insert(&collection, "d", &d, OnDuplicate::Store).await;
    assert_eq!((again.outcome, representative(&again)), (Outcome::Unchanged, Some("c")));
    library::close(collections).await;
}

/// A link that is its cluster's founder would be a cluster that no lookup ever finds.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_resembles_members_only_is_stored() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = made(&collections).await;
    insert(&collection, "a", &base(), OnDuplicate::Store).await;
    insert(&collection, "b", &with(0, 10, 200), OnDuplicate::Store).await;
    let third = insert(&collection, "c", &with(0, 20, 200), OnDuplicate::Link).await;
    assert_eq!((third.outcome, third.duplicate_of.as_ref()), (Outcome::Inserted, Some(&id("b"))));
    assert_eq!(check(&collection, &with(0, 30, 200)).await, ["c"]);
    let fourth = insert(&collection, "d", &with(0, 30, 200), OnDuplicate::Link).await;
    assert_eq!((fourth.outcome, representative(&fourth)), (Outcome::Linked, Some("c")));
    assert_eq!(collection.describe().linked, Some(1));
    library::close(collections).await;
}

/// A link that was added and promoted in one transaction was counted off, and never counted in.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_promoted_before_it_is_on_disk_is_counted_once() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = made(&collections).await;
    let other = |number: u8| -> Signature { std::array::from_fn(|slot| slot as u8 ^ (128 + number)) };
    let far = other(0);
    for (representative, signature) in [("a", base()), ("b", far)] {
        insert(&collection, representative, &signature, OnDuplicate::Store).await;
    }
    insert(&collection, "stays a link", &far, OnDuplicate::Link).await;
    for round in 0..3 {
        let held = library::hold(&dir, name().as_str());
        // The committer waits with this one, so that the next two share a transaction.
        let filler = begin(&collection, &format!("filler{round}"), &other(round + 1), OnDuplicate::Store).await;
        let link = begin(&collection, &format!("link{round}"), &base(), OnDuplicate::Link).await;
        let first = if round == 0 { "a".to_owned() } else { format!("link{}", round - 1) };
        let deleted = collection.delete(id(&first)).await.unwrap();
        held.execute_batch("COMMIT").unwrap();
        filler.wait().await.unwrap();
        assert_eq!(link.wait().await.unwrap().outcome, Outcome::Linked);
        assert!(deleted.wait().await.unwrap());
        let described = collection.describe();
        assert_eq!((described.documents, described.linked), (4 + u64::from(round), Some(1)), "round {round}");
    }
    library::close(collections).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_representative_is_followed_by_the_next_first_seen_a_link_too() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = made(&collections).await;
    insert(&collection, "a", &base(), OnDuplicate::Store).await;
    let linked = insert(&collection, "b", &with(0, 10, 200), OnDuplicate::Link).await;
    assert_eq!((linked.outcome, representative(&linked)), (Outcome::Linked, Some("a")));
    insert(&collection, "c", &with(50, 60, 200), OnDuplicate::Store).await;
    let like_b = with(0, 20, 200);
    assert_eq!(check(&collection, &like_b).await, Vec::<String>::new(), "a link is not found");
    assert_eq!(collection.describe().linked, Some(1));

    assert!(collection.delete(id("a")).await.unwrap().wait().await.unwrap());
    assert_eq!(cluster(&collection, "c").await, ["b", "c"]);
    assert_eq!(check(&collection, &like_b).await, ["b"]);
    let described = collection.describe();
    assert_eq!((described.documents, described.linked), (2, Some(0)));
    let promoted = collection.document(&id("b")).await.unwrap().unwrap();
    assert_eq!((promoted.linked, promoted.representative), (false, None));
    let page = collection.cluster(id("c"), None, 10).await.unwrap().unwrap();
    assert!(page.members[1].similarity.unwrap().value < THRESHOLD, "c was judged against a");
    assert!(page.members[1].below_threshold);
    let joins = insert(&collection, "d", &like_b, OnDuplicate::Link).await;
    assert_eq!(representative(&joins), Some("b"));

    // A replacement leaves its cluster, too, and is judged anew.
    let replaced = insert(&collection, "b", &with(40, 50, 200), OnDuplicate::Store).await;
    assert_eq!(replaced.outcome, Outcome::Replaced);
    assert_eq!(cluster(&collection, "d").await, ["c", "d"]);
    assert!(collection.delete(id("c")).await.unwrap().wait().await.unwrap());
    assert_eq!(cluster(&collection, "d").await, ["d"]);
    assert_eq!(check(&collection, &like_b).await, ["d"]);
    assert_eq!(collection.describe().linked, Some(0));
    library::close(collections).await;
    let collections = library::open(library::config(&dir));
    let collection = collections.get(&name()).await.unwrap();
    assert_eq!(check(&collection, &like_b).await, ["d"]);
    assert_eq!(collection.describe().linked, Some(0));
    library::close(collections).await;
}

/// A document as the model has it.
#[derive(Clone, Debug)]
struct Doc {
    name: String,
    signature: Signature,
    linked: bool,
    cluster: u64,
}

/// What one writer after another would have made of it, in plain code.
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

    /// The documents that a lookup finds, best first.
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

    /// The outcome, and who stands for the new document.
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

/// Near one of a few centres, so that likeness comes in chains.
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
                // Now and then the next is decided before this one is durable.
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

#[tokio::test(flavor = "multi_thread")]
async fn of_many_writers_at_once_one_founds_and_the_others_join() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = made(&collections).await;
    let writers: Vec<_> = (0..32_u8)
        .map(|writer| {
            let collection = collection.clone();
            tokio::spawn(async move {
                let mut founded = 0;
                for group in 0..50_u8 {
                    let mut signature = [group; 64];
                    signature[usize::from(writer)] = 255;
                    let on_duplicate = if writer % 2 == 0 { OnDuplicate::Store } else { OnDuplicate::Link };
                    let verdict = insert(&collection, &format!("{group}/{writer}"), &signature, on_duplicate).await;
                    founded += u32::from(verdict.representative.is_none());
                }
                founded
            })
        })
        .collect();
    let mut founded = 0;
    for writer in writers {
        founded += writer.await.unwrap();
    }
    assert_eq!(founded, 50);
    let members = all_clusters(&collection, 1000).await;
    assert_eq!(members.len(), 50 * 32);
    assert_eq!(members.iter().filter(|member| member.representative.is_none()).count(), 50);
    for group in 0..50 {
        assert_eq!(cluster(&collection, &format!("{group}/7")).await.len(), 32);
    }
    library::close(collections).await;
}

/// A lookup reads few documents of a full bucket. Where the representative was not among them, each new duplicate once
/// founded a cluster of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_larger_than_a_lookup_reads_stays_one() {
    let dir = library::dir();
    let mut config = library::config(&dir);
    config.limits.bucket_read_max = 2;
    let collections = library::open(config);
    let collection = made(&collections).await;
    for number in 0..500 {
        let verdict = insert(&collection, &format!("{number}"), &base(), OnDuplicate::Store).await;
        assert_eq!(representative(&verdict), (number > 0).then_some("0"), "document {number}");
    }
    library::close(collections).await;
}

/// Changes of flags are refused by the file, so that a deletion that promotes a link fails.
fn refuse_promotions(dir: &Dir) -> rusqlite::Connection {
    let path = dir.path().join(format!("data/collections/{}.sqlite", name()));
    let connection = rusqlite::Connection::open(path).unwrap();
    let trigger = "CREATE TRIGGER refusing BEFORE UPDATE ON signature BEGIN SELECT RAISE(ABORT, 'refused'); END";
    connection.execute_batch(trigger).unwrap();
    connection
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_commit_undoes_promotions_and_whoever_joined_since() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = made(&collections).await;
    insert(&collection, "a", &base(), OnDuplicate::Store).await;
    insert(&collection, "b", &with(0, 10, 200), OnDuplicate::Link).await;
    insert(&collection, "c", &with(50, 60, 200), OnDuplicate::Store).await;
    let other = refuse_promotions(&dir);
    let like_b = with(0, 20, 200);
    for round in 0..20 {
        // As many as fit before the disk has refused the first of them.
        let gone = match round % 2 {
            0 => collection.delete(id("a")).await.unwrap().wait().await.err(),
            _ => begin(&collection, "a", &with(0, 60, 7), OnDuplicate::Store).await.wait().await.err(),
        };
        assert!(matches!(gone, Some(CollectionError::WriteFailed { .. })), "round {round}: {gone:?}");
        let deleted = collection.delete(id("a")).await.unwrap();
        let joins = begin(&collection, "d", &like_b, OnDuplicate::Store).await;
        let again = collection.delete(id("b")).await.unwrap();
        let replaces = begin(&collection, "e", &with(50, 62, 200), OnDuplicate::Link).await;
        assert!(deleted.wait().await.is_err());
        let joined = joins.wait().await;
        let went = again.wait().await;
        let linked = replaces.wait().await;
        // What was decided after the failure knows nothing of the promotion, and is kept.
        if let Ok(verdict) = joined {
            assert_eq!((verdict.kind, verdict.representative), (VerdictKind::Unique, None));
            assert!(collection.delete(id("d")).await.unwrap().wait().await.unwrap());
        }
        if went.is_ok() {
            // In their order: were c next in line, nothing would be promoted.
            insert(&collection, "b", &with(0, 10, 200), OnDuplicate::Link).await;
            assert!(collection.delete(id("c")).await.unwrap().wait().await.unwrap());
            insert(&collection, "c", &with(50, 60, 200), OnDuplicate::Store).await;
        }
        if linked.is_ok() {
            assert!(collection.delete(id("e")).await.unwrap().wait().await.unwrap());
        }
        assert_eq!(cluster(&collection, "b").await, ["a", "b", "c"]);
        assert_eq!(collection.describe().linked, Some(1));
        assert_eq!(check(&collection, &like_b).await, Vec::<String>::new(), "b is a link again");
        let probe = insert(&collection, "f", &with(30, 40, 200), OnDuplicate::Link).await;
        assert_eq!(representative(&probe), Some("a"));
        assert!(collection.delete(id("f")).await.unwrap().wait().await.unwrap());
    }
    other.execute_batch("DROP TRIGGER refusing").unwrap();
    assert!(collection.delete(id("a")).await.unwrap().wait().await.unwrap());
    assert_eq!(cluster(&collection, "c").await, ["b", "c"]);
    assert_eq!(check(&collection, &like_b).await, ["b"]);
    library::close(collections).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_pass_over_a_promoted_link_until_that_is_on_disk_and_deciders_do_not() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = made(&collections).await;
    let like_b = with(0, 20, 200);
    insert(&collection, "a", &base(), OnDuplicate::Store).await;
    insert(&collection, "b", &with(0, 10, 200), OnDuplicate::Link).await;
    // Another program holds the file: what is decided waits.
    let other = rusqlite::Connection::open(dir.path().join(format!("data/collections/{}.sqlite", name()))).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let deleted = collection.delete(id("a")).await.unwrap();
    let joins = begin(&collection, "c", &like_b, OnDuplicate::Link).await;
    assert_eq!(check(&collection, &like_b).await, Vec::<String>::new());
    assert_eq!(check(&collection, &base()).await, ["a"]);
    assert!(collection.document(&id("b")).await.unwrap().unwrap().linked);
    assert_eq!(cluster(&collection, "b").await, ["a", "b"]);
    assert_eq!(collection.describe().linked, Some(1));
    other.execute_batch("ROLLBACK").unwrap();
    assert!(deleted.wait().await.unwrap());
    let joined = joins.wait().await.unwrap();
    assert_eq!((joined.outcome, representative(&joined)), (Outcome::Linked, Some("b")));
    assert_eq!(check(&collection, &like_b).await, ["b"]);
    assert_eq!(cluster(&collection, "b").await, ["b", "c"]);
    library::close(collections).await;
}

/// A promotion while the index is built anew: the link is found afterwards, whichever came first.
#[tokio::test(flavor = "multi_thread")]
async fn links_promoted_during_a_rebanding_are_found_after_it() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = made(&collections).await;
    let signature = |number: u16| -> Signature {
        let mut random = ChaCha8Rng::seed_from_u64(u64::from(number));
        std::array::from_fn(|_| random.random())
    };
    const CLUSTERS: u16 = 2000;
    let mut tickets = Vec::new();
    for number in 0..CLUSTERS {
        tickets.push(begin(&collection, &format!("a{number}"), &signature(number), OnDuplicate::Store).await);
        tickets.push(begin(&collection, &format!("b{number}"), &signature(number), OnDuplicate::Link).await);
    }
    for ticket in tickets {
        ticket.wait().await.unwrap();
    }
    let deleting = {
        let collection = collection.clone();
        tokio::spawn(async move {
            let mut tickets = Vec::new();
            for number in 0..CLUSTERS {
                tickets.push(collection.delete(id(format!("a{number}"))).await.unwrap());
            }
            for ticket in tickets {
                ticket.wait().await.unwrap();
            }
        })
    };
    for (bands, rows) in [(16, 4), (32, 2), (21, 3)] {
        let banding = BandingAsked::ByHand(Banding::new(bands, rows, SHAPE).unwrap());
        collection.update(Changes { banding: Some(banding), ..Changes::default() }).await.unwrap();
    }
    deleting.await.unwrap();
    for number in 0..CLUSTERS {
        assert_eq!(check(&collection, &signature(number)).await, [format!("b{number}")]);
    }
    assert_eq!(collection.describe().linked, Some(0));
    library::close(collections).await;
}

fn body(name: &str, signature: &Signature) -> Value {
    json!({ "id": name, "signature": STANDARD.encode(signature) })
}

const COLLECTION: &str = "/v1/collections/given";

fn put(client: &Client) {
    let settings = json!({ "spec": "external:test:64x8", "banding": { "bands": 32, "rows": 2 }, "threshold": 0.8 });
    assert_eq!(client.json("PUT", COLLECTION, &settings).status, 201);
}

#[test]
fn a_cluster_is_paged_while_its_documents_come_and_go() {
    let dir = library::dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    put(&client);
    let post = |name: &str, on_duplicate: &str| {
        let target = format!("{COLLECTION}/documents?on_duplicate={on_duplicate}");
        client.post(&target, &body(name, &base())).ok()
    };
    let get = |query: &str| client.get(&format!("{COLLECTION}/clusters?{query}"));
    let ids = |page: &Value| -> Vec<String> {
        let members = page["members"].as_array().unwrap();
        members.iter().map(|member| member["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(get("").ok(), json!({ "members": [] }));
    get("id=nobody").problem(404, "document_not_found");
    get("id=nobody&cursor=AAAA").problem(422, "invalid_value");
    get("limit=0").problem(422, "invalid_value");
    get("limit=1001").problem(422, "invalid_value");

    let name = |number: u32| format!("http://a.example/?{number}#&=");
    assert_eq!(post(&name(0), "store").get("representative"), None);
    let alone = get(&format!("id={}", encode(&name(0)))).ok();
    assert_eq!((&alone["documents"], ids(&alone)), (&json!(1), vec![name(0)]));
    assert_eq!(get("").ok(), json!({ "members": [] }), "one that is alone is not listed");
    for number in 1..10 {
        let verdict = post(&name(number), if number % 2 == 0 { "store" } else { "link" });
        assert_eq!(verdict["representative"], name(0));
    }
    let record = client.get(&format!("{COLLECTION}/documents?id={}", encode(&name(3)))).ok();
    assert_eq!((&record["representative"], &record["seq"]), (&json!(name(0)), &json!(4)));

    let first = get(&format!("id={}&limit=4", encode(&name(7)))).ok();
    assert_eq!(ids(&first), (0..4).map(name).collect::<Vec<_>>());
    assert_eq!((&first["documents"], &first["representative"]), (&json!(10), &json!(name(0))));
    assert_eq!(first["members"][0].get("similarity"), None);
    assert_eq!(first["members"][1]["similarity"], 1.0);
    for gone in [0, 3, 4, 7] {
        client.delete(&format!("{COLLECTION}/documents?id={}", encode(&name(gone)))).ok();
    }
    post(&name(10), "store");
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = get(&format!("id={}&limit=4&cursor={cursor}", encode(&name(7)))).ok();
    assert_eq!(ids(&second), [5, 6, 8, 9].map(name), "though the document asked for is gone");
    assert_eq!((second.get("documents"), &second["representative"]), (None, &json!(name(1))));
    let cursor = second["next_cursor"].as_str().unwrap();
    let third = get(&format!("id={}&limit=4&cursor={cursor}", encode(&name(8)))).ok();
    assert_eq!((ids(&third), third.get("next_cursor")), (vec![name(10)], None));
    get(&format!("id={}", encode(&name(7)))).problem(404, "document_not_found");

    let all = get("limit=3").ok();
    assert_eq!(ids(&all), [1, 2, 5].map(name));
    assert_eq!(all["members"][0].get("representative"), None);
    assert_eq!(all["members"][2]["representative"], name(1));
}

#[test]
fn clusters_and_promotions_outlive_a_killed_process() {
    let dir = library::dir();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    put(&client);
    let post = |client: &Client, name: &str, signature: &Signature, on_duplicate: &str| {
        client.post(&format!("{COLLECTION}/documents?on_duplicate={on_duplicate}"), &body(name, signature)).ok()
    };
    let finds = |client: &Client, signature: &Signature| {
        let check = json!({ "signature": STANDARD.encode(signature) });
        client.post(&format!("{COLLECTION}/check"), &check).ok()["duplicate_of"].clone()
    };
    post(&client, "a", &base(), "store");
    post(&client, "b", &with(0, 10, 200), "link");
    post(&client, "c", &with(50, 60, 200), "store");
    server.kill();

    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    assert_eq!(finds(&client, &with(0, 20, 200)), Value::Null);
    assert_eq!(post(&client, "d", &with(50, 55, 200), "store")["representative"], "a");
    client.delete(&format!("{COLLECTION}/documents?id=a")).ok();
    server.kill();

    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    assert_eq!(finds(&client, &with(0, 20, 200)), "b");
    let page = client.get(&format!("{COLLECTION}/clusters?id=c")).ok();
    let ids: Vec<_> = page["members"].as_array().unwrap().iter().map(|member| member["id"].clone()).collect();
    assert_eq!(ids, ["b", "c", "d"]);
    assert_eq!(client.get(COLLECTION).ok()["linked"], 0);
    assert_eq!(post(&client, "e", &with(0, 12, 200), "link")["representative"], "b");
    assert!(server.terminate().success());
}
