//! The signatures of the cluster tests, the collection that stores them, and helpers for its requests and answers.

use hapax::collections::{ClusterMember, Collection, Collections, Pending, Settings};
use hapax::types::{CollectionName, DocId, OnDuplicate, Verdict};
use hapax_core::{Banding, SignatureShape, Spec, verify};

use crate::support::documents::{self, id, look};

pub(super) const SHAPE: SignatureShape = SignatureShape { k: 64, bits: 8 };
pub(super) const THRESHOLD: f64 = 0.8;

pub(super) type Signature = [u8; 64];

pub(super) fn settings() -> Settings {
    let spec = Spec::parse("hapax1;external:test:64x8").unwrap();
    // Two signatures that differ in 12 slots share at least 20 bands of two rows.
    Settings::new(spec, Banding::new(32, 2, SHAPE).unwrap(), THRESHOLD)
}

pub(super) fn name() -> CollectionName {
    CollectionName::new("given").unwrap()
}

pub(super) async fn made(collections: &Collections) -> Collection {
    collections.create(name(), settings()).await.unwrap().0
}

/// Returns a signature with one value in all slots except `from..to`.
pub(super) fn with(from: usize, to: usize, value: u8) -> Signature {
    let mut signature = base();
    signature[from..to].fill(value);
    signature
}

pub(super) fn base() -> Signature {
    std::array::from_fn(|slot| slot as u8)
}

pub(super) fn equal(a: &Signature, b: &Signature) -> u32 {
    a.iter().zip(b).filter(|(a, b)| a == b).count() as u32
}

pub(super) fn alike(a: &Signature, b: &Signature) -> bool {
    equal(a, b) >= verify::matching_min(THRESHOLD, SHAPE)
}

pub(super) async fn begin(
    collection: &Collection,
    name: &str,
    signature: &Signature,
    on_duplicate: OnDuplicate,
) -> Pending<Verdict> {
    documents::begin(collection, name, signature, on_duplicate).await.unwrap()
}

pub(super) async fn insert(
    collection: &Collection,
    name: &str,
    signature: &Signature,
    on_duplicate: OnDuplicate,
) -> Verdict {
    begin(collection, name, signature, on_duplicate).await.wait().await.unwrap()
}

pub(super) async fn check(collection: &Collection, signature: &Signature) -> Vec<String> {
    let verdict = documents::check(collection, signature, look(1000)).await.unwrap();
    verdict.matches.into_iter().map(|found| found.id.as_str().to_owned()).collect()
}

/// Returns the ids of the cluster of `name`, the representative first.
pub(super) async fn cluster(collection: &Collection, name: &str) -> Vec<String> {
    let page = collection.cluster(id(name), None, 1000).await.unwrap().unwrap();
    let ids: Vec<_> = page.members.iter().map(|member| member.id.as_str().to_owned()).collect();
    assert_eq!(page.representative.as_str(), ids[0]);
    assert_eq!(page.documents, Some(ids.len() as u64));
    assert_eq!(page.next, None);
    ids
}

pub(super) async fn all_clusters(collection: &Collection, limit: usize) -> Vec<ClusterMember> {
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

pub(super) fn representative(verdict: &Verdict) -> Option<&str> {
    verdict.representative.as_ref().map(DocId::as_str)
}
