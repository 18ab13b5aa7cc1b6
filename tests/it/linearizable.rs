//! Check-and-insert is linearizable: concurrent writers get the answers that a single writer would get for the same
//! operations in the commit order.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hapax::collections::{CheckOptions, Collection, CollectionError, InsertOptions};
use hapax::types::{CollectionName, Content, DocId, Metadata, OnDuplicate, OnExisting, Outcome, VerdictKind};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::documents;
use crate::support::library;

const WRITERS: u64 = 64;
const GROUPS: u64 = 1000;

/// The result of one operation. It is stored together with its place in the commit order. An operation that changed
/// nothing has the place of the last change before its decision, and comes after this change.
#[derive(Debug)]
enum Event {
    Judged { put: Put, id: String, kind: VerdictKind, matches: Vec<(String, Option<Metadata>)>, outcome: Outcome },
    Deleted { id: String, was_there: bool },
}

/// The content of an insert: a text, and the number in its metadata.
#[derive(Clone, Copy, Debug)]
struct Put {
    group: u64,
    variant: u64,
    note: u64,
}

impl Put {
    fn metadata(self) -> Option<Metadata> {
        Some(Metadata::new(format!(r#"{{"note":{}}}"#, self.note)).unwrap())
    }
}

/// Returns a text. Texts of a group differ in one word of 400, so any two are near-duplicates. Groups have nothing in
/// common.
fn text(group: u64, variant: u64) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(group);
    let mut words: Vec<String> = (0..400).map(|_| format!("g{group}w{}", rng.random_range(0..10_000_u32))).collect();
    words[(variant % 400) as usize] = format!("variant{variant}");
    words.join(" ")
}

fn options(on_duplicate: OnDuplicate, on_existing: OnExisting) -> InsertOptions {
    InsertOptions { with_metadata: true, ..documents::options(on_duplicate, on_existing) }
}

async fn insert(collection: &Collection, put: Put, id: &str, options: InsertOptions) -> (u64, Event) {
    let prepared = collection.prepare(Content::Text(text(put.group, put.variant))).await.unwrap();
    let ticket = collection.insert(DocId::new(id).unwrap(), put.metadata(), prepared, options).await.unwrap();
    let at = ticket.decided_at();
    let verdict = ticket.wait().await.unwrap();
    // A repeated first verdict may name documents that no longer exist.
    if !matches!(verdict.outcome, Outcome::Unchanged | Outcome::Updated) {
        assert_eq!(verdict.duplicate_of.as_ref(), verdict.matches.first().map(|best| &best.id));
    }
    let matches = verdict.matches.into_iter().map(|found| (found.id.as_str().to_owned(), found.metadata)).collect();
    (at, Event::Judged { put, id: id.to_owned(), kind: verdict.kind, matches, outcome: verdict.outcome })
}

/// Replays the events one by one and compares each answer with the documents present at that moment.
fn replay(mut events: Vec<(u64, Event)>) -> HashMap<String, Put> {
    let changes = |event: &Event| match event {
        Event::Judged { outcome, .. } => !matches!(outcome, Outcome::Skipped),
        Event::Deleted { was_there, .. } => *was_there,
    };
    events.sort_by_key(|(at, event)| (*at, !changes(event)));
    let mut held: HashMap<String, Put> = HashMap::new();
    for (at, event) in events {
        match event {
            Event::Deleted { id, was_there } => {
                assert!(!was_there || held.remove(&id).is_some(), "{at:?}: {id} deleted and not there");
            }
            Event::Judged { put, id, outcome: Outcome::Updated, .. } => {
                let held = held.get_mut(&id).unwrap_or_else(|| panic!("{at:?}: {id} updated and not there"));
                assert_eq!((held.group, held.variant), (put.group, put.variant), "{at:?}: {id}");
                held.note = put.note;
            }
            Event::Judged { put, id, kind, matches, outcome } => {
                let alike = |(other, known): &(&String, &Put)| **other != id && known.group == put.group;
                let others: Vec<_> = held.iter().filter(alike).collect();
                let same = others.iter().any(|(_, known)| known.variant == put.variant);
                let expected = match others.is_empty() {
                    true => VerdictKind::Unique,
                    false if same => VerdictKind::ExactDuplicate,
                    false => VerdictKind::NearDuplicate,
                };
                assert_eq!(kind, expected, "{at:?}: {id} of {put:?} among {others:?}");
                assert_eq!(matches.len(), others.len().min(10), "{at:?}: {id}: {matches:?} of {others:?}");
                for (original, metadata) in matches {
                    let known = others.iter().find(|(other, _)| **other == original);
                    let (_, known) = known.unwrap_or_else(|| panic!("{at:?}: {id} cites {original}, not there"));
                    assert_eq!(metadata, known.metadata(), "{at:?}: {id} shows other metadata of {original}");
                }
                let was_there = held.contains_key(&id);
                match outcome {
                    Outcome::Inserted => assert!(!was_there, "{at:?}: {id} was there"),
                    Outcome::Replaced | Outcome::Removed => assert!(was_there, "{at:?}: {id} {outcome:?}, not there"),
                    Outcome::Skipped => assert!(!was_there, "{at:?}: {id} keeps what was to be replaced"),
                    other => panic!("{at:?}: {id}: {other:?}"),
                }
                match outcome {
                    Outcome::Skipped | Outcome::Removed => drop(held.remove(&id)),
                    _ => drop(held.insert(id, put)),
                }
            }
        }
    }
    held
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_near_identical_insertions_one_is_unique() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = library::default(&collections).await;
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let collection = collection.clone();
        writers.push(tokio::spawn(async move {
            let mut uniques = Vec::new();
            // Sixteen writers insert each group, at about the same time.
            for group in (writer % 4..GROUPS).step_by(4) {
                let options = options(OnDuplicate::Skip, OnExisting::Conflict);
                let put = Put { group, variant: writer, note: 0 };
                let (_, event) = insert(&collection, put, &format!("{group}/{writer}"), options).await;
                if let Event::Judged { kind: VerdictKind::Unique, .. } = event {
                    uniques.push(group);
                }
            }
            uniques
        }));
    }
    let mut uniques = Vec::new();
    for writer in writers {
        uniques.extend(writer.await.unwrap());
    }
    uniques.sort_unstable();
    assert_eq!(uniques, (0..GROUPS).collect::<Vec<_>>(), "one unique in each group, and no second");
    library::close(collections).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_the_commit_order_with_deletes_and_replacements() {
    let seed = library::seed();
    let dir = library::dir();
    let mut config = library::config(&dir);
    // 80 ids have only 16 fingerprints: every id shares its fingerprint with others, and only the records distinguish
    // them.
    config.limits.id_fingerprint_bits = 4;
    let collections = library::open(config);
    let collection = library::default(&collections).await;
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let collection = collection.clone();
        writers.push(tokio::spawn(async move {
            let mut rng = ChaCha8Rng::seed_from_u64(seed ^ writer.wrapping_mul(0x9E37_79B9));
            let mut events = Vec::new();
            for _ in 0..60 {
                // There are few groups and few ids, so that nearly every operation meets another one. There are so few
                // texts that an id is often sent again with the same content and other metadata.
                let (group, variant) = (rng.random_range(0..12), rng.random_range(0..3));
                let put = Put { group, variant, note: rng.random_range(0..1000) };
                let id = format!("id{}", rng.random_range(0..80));
                if rng.random_bool(0.3) {
                    let ticket = collection.delete(DocId::new(id.as_str()).unwrap()).await.unwrap();
                    let at = ticket.decided_at();
                    events.push((at, Event::Deleted { id, was_there: ticket.wait().await.unwrap() }));
                    continue;
                }
                let on_duplicate = if rng.random_bool(0.5) { OnDuplicate::Skip } else { OnDuplicate::Store };
                let (at, event) = insert(&collection, put, &id, options(on_duplicate, OnExisting::Replace)).await;
                if !matches!(event, Event::Judged { outcome: Outcome::Unchanged, .. }) {
                    events.push((at, event));
                }
            }
            events
        }));
    }
    let events = library::all(writers).await;
    let held = replay(events);
    let mut stored: Vec<String> = collection
        .documents(None, 10_000)
        .await
        .unwrap()
        .documents
        .into_iter()
        .map(|document| document.id.as_str().to_owned())
        .collect();
    stored.sort();
    let mut expected: Vec<String> = held.into_keys().collect();
    expected.sort();
    assert_eq!(stored, expected, "seed {seed}");
    library::close(collections).await;
}

/// A replacement is one step: a reader always finds either the old content or the new content. In an earlier version, a
/// check could find neither. The check took its place in the order, found the old content already removed from memory,
/// and ignored the new content, because the new content came later in the order.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_is_replaced_is_there_all_the_time() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = library::default(&collections).await;
    let replace = options(OnDuplicate::Store, OnExisting::Replace);
    let moving = |variant| Put { group: 7, variant, note: 0 };
    insert(&collection, moving(0), "moving", replace).await;
    let done = Arc::new(AtomicBool::new(false));
    let mut readers = Vec::new();
    for reader in 0..4 {
        let (collection, done) = (collection.clone(), Arc::clone(&done));
        readers.push(tokio::spawn(async move {
            let id = DocId::new("moving").unwrap();
            let look = CheckOptions {
                threshold: None,
                limit: 1,
                with_metadata: false,
                explain: false,
                payload_digest: None,
                scope: None,
            };
            let mut looks = 0_u64;
            while !done.load(Ordering::Relaxed) {
                assert!(collection.document(&id).await.unwrap().is_some(), "not there");
                let twin = collection.prepare(Content::Text(text(7, 399))).await.unwrap();
                let verdict = collection.check(None, twin, look.clone()).await.unwrap();
                assert!(verdict.kind.is_duplicate(), "reader {reader}: {verdict:?}");
                let own = collection.prepare(Content::Text(text(7, 398))).await.unwrap();
                let verdict = collection.check(Some(id.clone()), own, look.clone()).await.unwrap();
                assert!(verdict.previous.is_some(), "reader {reader}: {verdict:?}");
                looks += 1;
            }
            looks
        }));
    }
    for round in 1..400 {
        insert(&collection, moving(round % 390), "moving", replace).await;
    }
    done.store(true, Ordering::Relaxed);
    for reader in readers {
        assert!(reader.await.unwrap() > 0);
    }
    library::close(collections).await;
}

/// Clients that create, open and drop a collection at the same time use the same collection, or none.
#[tokio::test(flavor = "multi_thread")]
async fn making_opening_and_dropping_meet_without_a_second_collection() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let name = CollectionName::new("flicker").unwrap();
    let mut workers = Vec::new();
    for worker in 0..8_u64 {
        let (collections, name) = (collections.clone(), name.clone());
        workers.push(tokio::spawn(async move {
            for round in 0..12 {
                match (worker + round) % 4 {
                    0 => drop(collections.create(name.clone(), library::settings()).await),
                    1 => drop(collections.remove(&name).await),
                    _ => {
                        let Ok(collection) = collections.get(&name).await else { continue };
                        let prepared = collection.prepare(Content::Text(text(worker, round))).await.unwrap();
                        let id = DocId::new(format!("{worker}/{round}")).unwrap();
                        let inserted =
                            collection.insert(id, None, prepared, options(OnDuplicate::Store, OnExisting::Keep)).await;
                        let outcome = match inserted {
                            Ok(ticket) => ticket.wait().await.map(drop),
                            Err(error) => Err(error),
                        };
                        // Another client may drop the collection at the same time, but there are never two committers
                        // on the same file.
                        assert!(matches!(outcome, Ok(()) | Err(CollectionError::Overloaded { .. })), "{outcome:?}");
                    }
                }
            }
        }));
    }
    for worker in workers {
        worker.await.unwrap();
    }
    let (collection, _) = collections.create(name, library::settings()).await.unwrap();
    insert(&collection, Put { group: 1, variant: 1, note: 0 }, "last", options(OnDuplicate::Store, OnExisting::Keep))
        .await;
    library::close(collections).await;
}
