//! Full queues, commits that fail and clients that leave: none of them blocks anyone or loses an answer.

use std::sync::Arc;
use std::time::Duration;

use hapax::collection::{Collection, CollectionError, Collections, InsertOptions};
use hapax::types::{CollectionName, Content, DocId, OnDuplicate, OnExisting, Outcome, Seq, VerdictKind};

use crate::support::library::{self, Dir};

const STORE: InsertOptions =
    InsertOptions { on_duplicate: OnDuplicate::Store, on_existing: OnExisting::Conflict, limit: 10, with_metadata: false };
const SKIP: InsertOptions = InsertOptions { on_duplicate: OnDuplicate::Skip, ..STORE };

fn id(text: &str) -> DocId {
    DocId::new(text).unwrap()
}

/// A text that shares nothing with another number's.
fn text(number: u32) -> Content {
    Content::Text((0..60).map(|word| format!("n{number}w{word} ")).collect())
}

async fn insert(
    collection: &Arc<Collection>,
    name: &str,
    content: Content,
    options: InsertOptions,
) -> Result<hapax::types::Verdict, CollectionError> {
    let prepared = collection.prepare(content).await?;
    collection.insert(id(name), None, prepared, options).await?.wait().await
}

/// Rows with this id are refused by a trigger in the file, so the transaction they are in fails.
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

async fn everything_found_is_stored(collections: &Arc<Collections>) {
    let collection = library::default(collections).await;
    for document in collection.documents(Seq(0), 1000).await.unwrap() {
        assert!(collection.document(&document.id).await.unwrap().is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_commit_undoes_every_decision_that_is_not_durable() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = library::default(&collections).await;
    insert(&collection, "kept", text(1), STORE).await.unwrap();
    insert(&collection, "goes", text(2), STORE).await.unwrap();
    refuse(&dir, collection.name());

    // Decided together, so that the refused row takes the others' transaction or their queue with it.
    let mut tickets = Vec::new();
    let prepared = collection.prepare(text(3)).await.unwrap();
    tickets.push(collection.insert(id(REFUSED), None, prepared, STORE).await.unwrap());
    let prepared = collection.prepare(text(3)).await.unwrap();
    let twin = collection.insert(id("twin"), None, prepared, SKIP).await.unwrap();
    tickets.push(twin);
    let deleted = collection.delete(id("goes")).await.unwrap();
    for ticket in tickets {
        assert!(matches!(ticket.wait().await, Err(CollectionError::WriteFailed { .. })));
    }
    // The delete shared the fate of the decisions before it, or came after the failure and met a store that refuses.
    assert!(matches!(deleted.wait().await, Err(CollectionError::WriteFailed { .. })));

    let options = hapax::collection::CheckOptions { threshold: None, limit: 10, with_metadata: false };
    for (number, expected) in
        [(1, VerdictKind::ExactDuplicate), (2, VerdictKind::ExactDuplicate), (3, VerdictKind::Unique)]
    {
        let verdict = collection.check(None, text(number), options).await.unwrap();
        assert_eq!(verdict.kind, expected, "text {number}");
    }
    assert!(collection.document(&id(REFUSED)).await.unwrap().is_none());
    assert_eq!(collection.describe().documents, 2);
    everything_found_is_stored(&collections).await;
    library::close(collections).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_leave_keep_nobody_waiting() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = library::default(&collections).await;
    for number in 0..200 {
        // Left at some point between signing and durability; the id is the same for all.
        let leaving = Arc::clone(&collection);
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
            let collection = Arc::clone(&collection);
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
            let collection = Arc::clone(&collection);
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
