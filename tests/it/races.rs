//! Check-and-insert is linearizable even while documents expire. Many clients insert, replace and delete documents at
//! the same time. Documents expire after a second. There are few ids and few groups of similar documents, so that the
//! operations affect each other. Afterwards, a model replays the operations in the commit order and checks each answer.
//! If a document is gone but was not deleted, it must have been old enough to expire.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use hapax::collections::{Collection, Settings};
use hapax::types::{CollectionName, Content, DocId, OnDuplicate, OnExisting, Outcome, VerdictKind};
use hapax_core::{Banding, Spec, SplitMix64};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::documents::options;
use crate::support::library;

const WRITERS: u64 = 256;
const TTL: Duration = Duration::from_secs(1);
/// The number of ids under which a group is inserted.
const IDS: u64 = 4;

struct Event {
    at: u64,
    began: Instant,
    ended: Instant,
    group: u64,
    id: u64,
    did: Did,
}

enum Did {
    Deleted,
    Judged { kind: VerdictKind, duplicate_of: Option<u64>, outcome: Outcome },
}

impl Did {
    fn changes(&self) -> bool {
        !matches!(self, Self::Judged { outcome: Outcome::Skipped, .. })
    }
}

/// Returns a signature. Signatures of a group differ in at most two slots of 128. Groups have nothing in common.
fn signature(group: u64, variant: u64) -> Content {
    let mut words = SplitMix64::new(group);
    let mut bytes: Vec<u8> = (0..16).flat_map(|_| words.next_u64().to_le_bytes()).collect();
    bytes[variant as usize % 128] ^= 1;
    Content::Signature { bytes, fingerprint: None, text: None }
}

fn name(group: u64, id: u64) -> DocId {
    DocId::new(format!("{group}/{id}")).unwrap()
}

/// Does one operation. Returns `None` if it neither changed anything nor depended on a stored document.
async fn race(collection: &Collection, rng: &mut ChaCha8Rng, groups: u64) -> Option<Event> {
    let (group, id) = (rng.random_range(0..groups), rng.random_range(0..IDS));
    let began = Instant::now();
    if rng.random_bool(0.2) {
        let ticket = collection.delete(name(group, id)).await.unwrap();
        let at = ticket.decided_at();
        let was_there = ticket.wait().await.unwrap();
        return was_there.then(|| Event { at, began, ended: Instant::now(), group, id, did: Did::Deleted });
    }
    let prepared = collection.prepare(signature(group, rng.random_range(0..128))).await.unwrap();
    let on_duplicate = if rng.random_bool(0.5) { OnDuplicate::Skip } else { OnDuplicate::Store };
    let options = options(on_duplicate, OnExisting::Replace);
    let ticket = collection.insert(name(group, id), None, prepared, options).await.unwrap();
    let at = ticket.decided_at();
    let verdict = ticket.wait().await.unwrap();
    let duplicate_of = verdict.duplicate_of.map(|original| {
        let (of, original) = original.as_str().split_once('/').unwrap();
        assert_eq!(of, group.to_string(), "a duplicate from another group");
        original.parse().unwrap()
    });
    let did = Did::Judged { kind: verdict.kind, duplicate_of, outcome: verdict.outcome };
    let unchanged = verdict.outcome == Outcome::Unchanged;
    (!unchanged).then(|| Event { at, began, ended: Instant::now(), group, id, did })
}

/// The documents that exist according to the events so far, by group and id. The value is the earliest time at which
/// the document can have been last seen.
#[derive(Default)]
struct Model(HashMap<u64, HashMap<u64, Instant>>);

impl Model {
    /// Notes that a document was gone. It must have been old enough.
    fn expired(&mut self, event: &Event, id: u64) {
        let seen = self.0.get_mut(&event.group).unwrap().remove(&id).unwrap();
        assert!(event.ended >= seen + TTL, "{}/{id} is gone after {:?}", event.group, event.ended - seen);
    }

    fn replay(&mut self, event: &Event) {
        let Event { group, id, .. } = *event;
        let held = self.0.entry(group).or_default();
        match event.did {
            Did::Deleted => assert!(held.remove(&id).is_some(), "{:?}: {group}/{id} deleted and not there", event.at),
            Did::Judged { kind, duplicate_of, outcome } => {
                let others: Vec<u64> = held.keys().copied().filter(|other| *other != id).collect();
                match (kind, duplicate_of) {
                    (VerdictKind::Unique, None) => others.iter().for_each(|&other| self.expired(event, other)),
                    (VerdictKind::NearDuplicate, Some(original)) => {
                        assert!(others.contains(&original), "{:?}: {group}/{id} of {original}, not there", event.at);
                    }
                    other => panic!("{:?}: {group}/{id}: {other:?}", event.at),
                }
                match outcome {
                    // If the model still has a document under this id, that document has expired.
                    Outcome::Skipped if self.0[&group].contains_key(&id) => return self.expired(event, id),
                    Outcome::Skipped => return,
                    Outcome::Removed => {
                        let held = self.0.get_mut(&group).unwrap().remove(&id);
                        assert!(held.is_some(), "{:?}: {group}/{id} removed and not there", event.at);
                        return;
                    }
                    Outcome::Inserted if self.0[&group].contains_key(&id) => self.expired(event, id),
                    Outcome::Inserted => {}
                    Outcome::Replaced => {
                        let held = &self.0[&group];
                        assert!(held.contains_key(&id), "{:?}: {group}/{id} replaced and not there", event.at);
                    }
                    other => panic!("{:?}: {group}/{id}: {other:?}", event.at),
                }
                self.0.get_mut(&group).unwrap().insert(id, event.began);
            }
        }
    }
}

async fn races(count: u64, groups: u64) {
    let seed = library::seed();
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let spec = Spec::parse("hapax1;external:races:128x8").unwrap();
    let banding = Banding::new(21, 6, spec.shape()).unwrap();
    let settings = Settings { ttl: Some(TTL), ..Settings::new(spec, banding, 0.8) };
    let (collection, _) = collections.create(CollectionName::new("races").unwrap(), settings).await.unwrap();
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let collection = collection.clone();
        writers.push(tokio::spawn(async move {
            let mut rng = ChaCha8Rng::seed_from_u64(seed ^ writer.wrapping_mul(0x9E37_79B9));
            let mut events = Vec::new();
            for _ in 0..count / WRITERS {
                events.extend(race(&collection, &mut rng, groups).await);
            }
            events
        }));
    }
    let mut events = library::all(writers).await;
    // An operation that changed nothing has the same place as the last change before its decision. The change is
    // sorted first.
    events.sort_by_key(|event| (event.at, !event.did.changes()));
    let mut model = Model::default();
    events.iter().for_each(|event| model.replay(event));

    let (mut stored, mut after) = (0, None);
    loop {
        let page = collection.documents(after, 1000).await.unwrap();
        stored += page.documents.len();
        for document in &page.documents {
            let (group, id) = document.id.as_str().split_once('/').unwrap();
            let held = model.0.get_mut(&group.parse().unwrap()).and_then(|held| held.remove(&id.parse().unwrap()));
            assert!(held.is_some(), "{} is stored, and nobody knows why (seed {seed})", document.id);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let now = Instant::now();
    let gone: Vec<Instant> = model.0.into_values().flat_map(HashMap::into_values).collect();
    assert!(gone.iter().all(|seen| now >= *seen + TTL), "a document is lost (seed {seed})");
    println!("{} races, {stored} documents stored at the end, {} expired unseen", events.len(), gone.len());
    library::close(collections).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_the_commit_order_while_documents_expire() {
    races(20_000, 300).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a million races are for `make races`"]
async fn a_million_races() {
    // One operation in eight finds nothing to do and does not count, so there are about a million races.
    races(1_200_000, 20_000).await;
}
