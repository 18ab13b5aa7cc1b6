//! Full queues, failing commits and clients that leave. None of them blocks another client or loses an answer.

use std::collections::BTreeMap;
use std::time::Duration;

use hapax::collections::{CheckOptions, Collection, CollectionError, InsertOptions};
use hapax::types::{CollectionName, Content, DocId, OnDuplicate, OnExisting, Outcome, VerdictKind};

use crate::support::documents::{id, insert, options};
use crate::support::library::{self, Dir};

const STORE: InsertOptions = options(OnDuplicate::Store, OnExisting::Conflict);
const SKIP: InsertOptions = options(OnDuplicate::Skip, OnExisting::Conflict);

/// Returns a text that has nothing in common with the texts of other numbers.
fn text(number: u32) -> Content {
    Content::Text((0..60).map(|word| format!("n{number}w{word} ")).collect())
}

/// A trigger in the file refuses rows with this id, so a transaction with such a row fails.
const REFUSED: &str = "refused";

fn refuse(dir: &Dir, collection: &CollectionName) {
    let path = dir.path().join(format!("data/collections/{collection}.sqlite"));
    let connection = rusqlite::Connection::open(path).unwrap();
    let trigger = format!(
        "CREATE TRIGGER refusing BEFORE INSERT ON document WHEN CAST(NEW.id AS TEXT) = '{REFUSED}'
         BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"
    );
    connection.execute_batch(&trigger).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_commit_undoes_every_decision_that_is_not_durable() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = library::default(&collections).await;
    refuse(&dir, collection.name());
    let mut held: BTreeMap<String, u32> = BTreeMap::new();
    let mut undone = 0;
    for round in 0..20 {
        // The committer is busy with the first of these documents while the others are decided. Therefore the refused
        // row shares its transaction, or at least its queue, with decisions that depend on this row.
        let mut tickets = Vec::new();
        for filler in 0..20 {
            let number = 1000 * (round + 1) + filler;
            let prepared = collection.prepare(text(number)).await.unwrap();
            let name = format!("filler{number}");
            tickets.push((collection.insert(id(&name), None, prepared, STORE).await.unwrap(), name, number));
        }
        let prepared = collection.prepare(text(round)).await.unwrap();
        tickets.push((collection.insert(id(REFUSED), None, prepared, STORE).await.unwrap(), REFUSED.to_owned(), round));
        let prepared = collection.prepare(text(round)).await.unwrap();
        let twin = format!("twin{round}");
        tickets.push((collection.insert(id(&twin), None, prepared, SKIP).await.unwrap(), twin, round));
        let oldest = held.keys().next().cloned();
        let deleted = match &oldest {
            Some(oldest) => Some(collection.delete(id(oldest)).await.unwrap()),
            None => None,
        };
        for (ticket, name, number) in tickets {
            match ticket.wait().await {
                Ok(verdict) => {
                    assert_eq!(verdict.kind, VerdictKind::Unique, "{name} cites what was undone");
                    assert!(verdict.stored && name != REFUSED);
                    held.insert(name, number);
                }
                Err(CollectionError::WriteFailed { .. }) => undone += 1,
                Err(other) => panic!("{name}: {other}"),
            }
        }
        if let (Some(deleted), Some(oldest)) = (deleted, oldest)
            && deleted.wait().await.is_ok()
        {
            held.remove(&oldest);
        }
    }
    assert!(undone > 20, "only the refused rows themselves failed");
    holds_just_these(&collection, &held).await;
    library::close(collections).await;
}

/// Checks that exactly the documents in `held` are listed, counted and found.
async fn holds_just_these(collection: &Collection, held: &BTreeMap<String, u32>) {
    let stored = collection.documents(None, 1000).await.unwrap().documents;
    let stored: Vec<&str> = stored.iter().map(|document| document.id.as_str()).collect();
    let mut expected: Vec<&str> = held.keys().map(String::as_str).collect();
    expected.sort_unstable_by_key(|id| stored.iter().position(|held| held == id));
    assert_eq!(stored, expected);
    assert_eq!(collection.describe().documents, held.len() as u64);
    for number in (0..20).chain((1..=20).flat_map(|round| (0..20).map(move |filler| 1000 * round + filler))) {
        let options = CheckOptions {
            threshold: None,
            limit: 10,
            with_metadata: false,
            explain: false,
            payload_digest: None,
            scope: None,
        };
        let prepared = collection.prepare(text(number)).await.unwrap();
        let verdict = collection.check(None, prepared, options).await.unwrap();
        let there = held.iter().find(|(_, held)| **held == number).map(|(id, _)| id.as_str());
        assert_eq!(verdict.duplicate_of.as_ref().map(DocId::as_str), there, "text {number}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_leave_keep_nobody_waiting() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = library::default(&collections).await;
    for number in 0..200 {
        // Each client leaves at some point between the signing and the durable write. All clients use the same id.
        let leaving = collection.clone();
        let left = tokio::spawn(async move { insert(&leaving, "same", text(number), STORE).await });
        tokio::time::sleep(Duration::from_micros(u64::from(number) * 7)).await;
        left.abort();
    }
    let options = InsertOptions { on_existing: OnExisting::Replace, ..STORE };
    let finished = tokio::time::timeout(Duration::from_secs(20), insert(&collection, "same", text(999), options));
    let verdict = finished.await.expect("the id's latch was handed on").unwrap();
    assert!(matches!(verdict.outcome, Outcome::Inserted | Outcome::Replaced));
    library::close(collections).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_and_then_goes_on() {
    let dir = library::dir();
    let mut config = library::config(&dir);
    config.limits.commit_queue_max = 2;
    config.limits.commit_batch_max = 1;
    config.limits.commit_queue_wait = Duration::ZERO;
    let collections = library::open(config);
    let collection = library::default(&collections).await;
    let writers: Vec<_> = (0..300)
        .map(|number| {
            let collection = collection.clone();
            tokio::spawn(async move { insert(&collection, &format!("d{number}"), text(number), STORE).await })
        })
        .collect();
    let (mut stored, mut refused) = (0, 0);
    for writer in writers {
        match writer.await.unwrap() {
            Ok(_) => stored += 1,
            Err(CollectionError::Overloaded { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(stored >= 2 && refused > 0, "{stored} stored, {refused} refused");
    assert_eq!(collection.describe().documents, stored);
    insert(&collection, "later", text(1000), STORE).await.unwrap();
    library::close(collections).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_of_one_place_makes_writers_take_turns() {
    let dir = library::dir();
    let mut config = library::config(&dir);
    config.limits.commit_queue_max = 1;
    let collections = library::open(config);
    let collection = library::default(&collections).await;
    let writers: Vec<_> = (0..64)
        .map(|number| {
            let collection = collection.clone();
            let name = format!("d{}", number % 16);
            let options = InsertOptions { on_existing: OnExisting::Replace, ..STORE };
            tokio::spawn(async move { insert(&collection, &name, text(number), options).await })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
    assert_eq!(collection.describe().documents, 16);
    library::close(collections).await;
}
