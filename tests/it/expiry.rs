//! Documents are deleted when they have not been seen for the collection's time to live, and not before. A document
//! that is seen stays. The tests only check limits on times: no document may be deleted too early. The tests wait
//! patiently for all other events. If a slow machine takes longer than the time to live between two inserts, the
//! document may be deleted, and the test does not count it.

use std::time::{Duration, Instant};

use hapax::collections::{Changes, Collection, Collections, Settings};
use hapax::telemetry::names;
use hapax::types::{
    CollectionName, DocId, Document, OnDuplicate, OnExisting, Outcome, TimestampMs, Verdict, VerdictKind,
};
use rusqlite::OpenFlags;
use serde_json::{Value, json};

use crate::support::client::{Client, words};
use crate::support::documents::{self, look, options};
use crate::support::library::{self, Dir};
use crate::support::server::Server;
use crate::support::until::until_within;

const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

fn lasting(seconds: u64, touch: bool) -> Settings {
    Settings { ttl: Some(Duration::from_secs(seconds)), touch, ..library::settings() }
}

async fn collection(collections: &Collections, name: &str, settings: Settings) -> Collection {
    collections.create(CollectionName::new(name).unwrap(), settings).await.unwrap().0
}

fn id(number: u64) -> DocId {
    documents::id(format!("id{number}"))
}

async fn insert_text(collection: &Collection, id: DocId, text: String) -> Verdict {
    insert_with(collection, id, text, OnDuplicate::Skip).await
}

async fn insert_with(collection: &Collection, id: DocId, text: String, on_duplicate: OnDuplicate) -> Verdict {
    documents::insert(collection, id.as_str(), text, options(on_duplicate, OnExisting::Conflict)).await.unwrap()
}

async fn insert(collection: &Collection, number: u64) -> Verdict {
    insert_text(collection, id(number), words(number)).await
}

async fn document(collection: &Collection, number: u64) -> Option<Document> {
    collection.document(&id(number)).await.unwrap()
}

async fn check(collection: &Collection, number: u64) -> VerdictKind {
    documents::check(collection, words(number), look(1)).await.unwrap().kind
}

/// Waits until the collection is empty.
async fn emptied(collection: &Collection) {
    let since = Instant::now();
    while collection.describe().documents > 0 {
        assert!(since.elapsed() < PATIENCE, "{} are still there", collection.describe().documents);
        tokio::time::sleep(POLL).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_go_after_their_time_and_not_before() {
    const DOCUMENTS: u64 = 700;
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let short = collection(&collections, "short", lasting(2, false)).await;
    let ever = collection(&collections, "ever", library::settings()).await;
    for number in 0..DOCUMENTS {
        assert_eq!(insert(&ever, number).await.outcome, Outcome::Inserted);
    }
    let begun = Instant::now();
    for number in 0..DOCUMENTS {
        assert_eq!(insert(&short, number).await.outcome, Outcome::Inserted);
    }
    while short.describe().documents == DOCUMENTS {
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(POLL).await;
    }
    assert!(begun.elapsed() >= Duration::from_secs(2), "gone after {:?}", begun.elapsed());
    emptied(&short).await;
    for number in 0..DOCUMENTS {
        assert_eq!(document(&short, number).await, None);
        assert_eq!(check(&short, number).await, VerdictKind::Unique);
    }
    assert_eq!(short.documents(None, 10).await.unwrap().documents, []);
    assert_eq!(ever.describe().documents, DOCUMENTS, "without a time to live nothing goes");
    assert_eq!(document(&ever, 1).await.unwrap().expires, None);
    assert_eq!(insert(&short, 5).await.outcome, Outcome::Inserted, "what is gone can come again");
    library::close(collections).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn times_outlive_a_restart() {
    let dir = library::dir();
    let begun = Instant::now();
    {
        let collections = library::open(library::config(&dir));
        let short = collection(&collections, "short", lasting(3, false)).await;
        for number in 0..50 {
            insert(&short, number).await;
        }
        library::close(collections).await;
    }
    let collections = library::open(library::config(&dir));
    let short = collections.get(&CollectionName::new("short").unwrap()).await.unwrap();
    while short.describe().documents == 50 {
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(POLL).await;
    }
    assert!(begun.elapsed() >= Duration::from_secs(3), "gone after {:?}", begun.elapsed());
    emptied(&short).await;
    library::close(collections).await;
    // The ledger agrees with the remaining documents, and no deleted document is there again.
    let collections = library::open(library::config(&dir));
    let short = collections.get(&CollectionName::new("short").unwrap()).await.unwrap();
    assert_eq!(short.describe().documents, 0);
    library::close(collections).await;
}

/// The longest time between two events.
struct Gaps {
    last: Instant,
    longest: Duration,
}

impl Gaps {
    fn new() -> Self {
        Self { last: Instant::now(), longest: Duration::ZERO }
    }

    /// Notes that the event happened, some time after `begun`.
    fn happened(&mut self, begun: Instant) {
        self.longest = self.longest.max(self.last.elapsed());
        self.last = begun;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_seen_stays_and_what_only_resembles_it_counts_where_touch_says_so() {
    const TTL: Duration = Duration::from_secs(2);
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let mut gaps = Gaps::new();
    let touched = collection(&collections, "touched", lasting(TTL.as_secs(), true)).await;
    let untouched = collection(&collections, "untouched", lasting(TTL.as_secs(), false)).await;
    let again = collection(&collections, "again", lasting(TTL.as_secs(), false)).await;
    let linked = collection(&collections, "linked", lasting(TTL.as_secs(), true)).await;
    for collection in [&touched, &untouched, &again, &linked] {
        assert_eq!(insert(collection, 1).await.outcome, Outcome::Inserted);
    }
    let link = async || insert_with(&linked, id(2), format!("{} more", words(1)), OnDuplicate::Link).await.outcome;
    assert_eq!(link().await, Outcome::Linked);
    let begun = Instant::now();
    let mut gone = false;
    while begun.elapsed() < 3 * TTL || !gone {
        assert!(begun.elapsed() < PATIENCE, "a duplicate keeps a document alive where `touch` is off");
        let sight = Instant::now();
        // The first two collections get nearly the same text under another id. The third gets the same document again.
        let near = insert_text(&touched, id(2), format!("{} more", words(1))).await;
        gone |= insert_text(&untouched, id(2), format!("{} more", words(1))).await.stored;
        let same = insert(&again, 1).await;
        // Checks do not count as seeing a document.
        check(&untouched, 1).await;
        // A link that is inserted again unchanged also renews its original.
        let kept = link().await;
        gaps.happened(sight);
        if gaps.longest < TTL {
            assert_eq!((near.kind, near.outcome), (VerdictKind::NearDuplicate, Outcome::Skipped));
            assert_eq!(same.outcome, Outcome::Unchanged);
            assert_eq!(kept, Outcome::Unchanged);
        }
        tokio::time::sleep(POLL).await;
    }
    let (linked_to, near_to) = (document(&linked, 1).await, document(&touched, 1).await);
    gaps.happened(Instant::now());
    if gaps.longest < TTL {
        assert!(linked_to.is_some(), "its link was seen all the time");
        let document = near_to.expect("its duplicate was seen all the time");
        let (first, last, expires) = (document.first_seen, document.last_seen.unwrap(), document.expires.unwrap());
        assert!(last.0 >= first.0 + TTL.as_millis() as i64, "{document:?}");
        assert_eq!(expires.0, last.0 + TTL.as_millis() as i64);
    }
    for collection in [&touched, &untouched, &again, &linked] {
        emptied(collection).await;
    }
    library::close(collections).await;
}

/// Reads the last-seen time from the file while the server runs.
fn on_disk(dir: &Dir, name: &str) -> TimestampMs {
    let file = dir.path().join(format!("data/collections/{name}.sqlite"));
    let connection = rusqlite::Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    TimestampMs(connection.query_row("SELECT max(seen_ms) FROM signature", [], |row| row.get(0)).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn sights_get_to_disk() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let name = CollectionName::new("touched").unwrap();
    let touched = collection(&collections, "touched", lasting(600, true)).await;
    insert(&touched, 1).await;
    let first = on_disk(&dir, "touched");
    // A last-seen time is written after a 64th of the ttl, which is over nine seconds here. After a shorter ttl is set,
    // the time must be written sooner.
    let minute = Changes { ttl: Some(Some(Duration::from_secs(60))), ..Changes::default() };
    touched.update(minute).await.unwrap();
    let since = Instant::now();
    while on_disk(&dir, "touched") == first {
        assert!(since.elapsed() < PATIENCE, "no sight was written");
        tokio::time::sleep(POLL).await;
        insert_text(&touched, id(2), format!("{} more", words(1))).await;
    }
    let written = on_disk(&dir, "touched");
    assert!(written > first);
    library::close(collections).await;
    let collections = library::open(library::config(&dir));
    let touched = collections.get(&name).await.unwrap();
    let last_seen = document(&touched, 1).await.unwrap().last_seen.unwrap();
    assert!(last_seen >= written, "{last_seen:?}, {written:?}");
    library::close(collections).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_to_live_can_be_set_and_taken_away() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let changing = collection(&collections, "changing", library::settings()).await;
    let ttl = |seconds: Option<u64>| Changes { ttl: Some(seconds.map(Duration::from_secs)), ..Changes::default() };
    for number in 0..300 {
        insert(&changing, number).await;
    }
    changing.update(ttl(Some(3600))).await.unwrap();
    let inserted_before = document(&changing, 7).await.unwrap();
    assert_eq!(inserted_before.last_seen, Some(inserted_before.first_seen));
    changing.update(ttl(Some(1))).await.unwrap();
    emptied(&changing).await;
    // The ttl is removed in time in one of these tries.
    let kept = loop {
        changing.update(ttl(Some(2))).await.unwrap();
        insert(&changing, 1).await;
        changing.update(ttl(None)).await.unwrap();
        if let Some(kept) = document(&changing, 1).await {
            break kept;
        }
    };
    assert_eq!((kept.last_seen, kept.expires), (None, None));
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(document(&changing, 1).await, Some(kept));
    // The ttl is set again. The document was inserted so long ago that it expires.
    changing.update(ttl(Some(1))).await.unwrap();
    emptied(&changing).await;
    library::close(collections).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insertion_acknowledged_while_its_id_expires_is_there() {
    const TTL: Duration = Duration::from_secs(1);
    const IDS: u64 = 40;
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let short = collection(&collections, "short", lasting(TTL.as_secs(), false)).await;
    let begun = Instant::now();
    let (mut anew, mut round) = (0, 0);
    // The insert is a little later in each round, so that in some rounds the documents are being deleted at the moment
    // of the insert.
    while round < 8 || anew <= 2 * IDS {
        assert!(begun.elapsed() < PATIENCE, "nothing expires");
        let mut writers = Vec::new();
        for _ in 0..4 {
            let short = short.clone();
            writers.push(tokio::spawn(async move {
                let mut anew = 0;
                for number in 0..IDS {
                    let sight = Instant::now();
                    let verdict = insert(&short, number).await;
                    anew += u64::from(verdict.outcome == Outcome::Inserted);
                    let there = document(&short, number).await.is_some();
                    assert!(
                        there || sight.elapsed() >= TTL,
                        "{number} was acknowledged ({verdict:?}) and is not there"
                    );
                }
                anew
            }));
        }
        for writer in writers {
            anew += writer.await.unwrap();
        }
        round += 1;
        tokio::time::sleep(TTL + Duration::from_millis(80 * round)).await;
    }
    emptied(&short).await;
    library::close(collections).await;
    let collections = library::open(library::config(&dir));
    let short = collections.get(&CollectionName::new("short").unwrap()).await.unwrap();
    assert_eq!(short.describe().documents, 0);
    library::close(collections).await;
}

fn metric(client: &Client, name: &str, labels: &str) -> f64 {
    let text = client.get("/metrics").text();
    let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(labels)));
    let line = line.unwrap_or_else(|| panic!("no {name}{labels} in\n{text}"));
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[test]
fn a_server_expires_counts_and_reuses_across_kills() {
    const OF: &str = "{collection=\"short\"";
    let dir = library::dir();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    let path = "/v1/collections/short";
    assert_eq!(client.json("PUT", path, &json!({"ttl": 2, "touch": true})).status, 201);
    let fill = |client: &Client, from: u64| {
        let documents: Vec<Value> =
            (from..from + 500).map(|number| json!({"id": number.to_string(), "text": words(number)})).collect();
        client.post(&format!("{path}/batch"), &json!({"op": "insert", "documents": documents})).ok();
    };
    let empty = |client: &Client| {
        until_within(PATIENCE, "the collection is empty", || client.get(path).ok()["documents"] == 0);
    };
    fill(&client, 0);
    let signatures = || metric(&client, names::INDEX_BYTES, &format!("{OF},part=\"signatures\""));
    let full = signatures();
    let document = client.get(&format!("{path}/documents?id=7"));
    if document.status == 200 {
        let document = document.json();
        assert!(document["last_seen"].is_string() && document["expires"].is_string(), "{document}");
    }
    empty(&client);
    // Documents are counted as expired a little after they are gone.
    until_within(PATIENCE, "500 documents have expired", || metric(&client, names::EXPIRED_DOCUMENTS, OF) == 500.0);
    assert!(metric(&client, names::INDEX_BYTES, &format!("{OF},part=\"seen_times\"")) >= 4.0 * 500.0);
    fill(&client, 1000);
    assert_eq!(signatures(), full, "slots are used again");
    client.post(&format!("{path}/documents"), &json!({"id": "1000", "text": words(1000)})).ok();
    server.kill();

    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    // This request opens the collection. Only open collections are swept.
    empty(&client);
    assert_eq!(client.get(&format!("{path}/documents?id=1000")).status, 404);
    assert!(metric(&client, names::EXPIRED_DOCUMENTS, OF) <= 500.0);
    assert!(metric(&client, names::EXPIRY_LAG, OF) >= 0.0);
    let same = || client.post(&format!("{path}/documents"), &json!({"id": "1", "text": words(1)})).ok();
    let since = Instant::now();
    while metric(&client, names::TOUCHED_DOCUMENTS, OF) == 0.0 {
        assert!(since.elapsed() < PATIENCE);
        same();
        std::thread::sleep(POLL);
    }
    server.kill();
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    empty(&client);
    assert!(server.terminate().success());
}

/// In an earlier version, a failed transaction of last-seen times also undid the writes that waited behind it.
#[test]
fn last_seen_times_that_cannot_be_written_cost_no_other_write() {
    let place = tempfile::tempdir().unwrap();
    let server = Server::start(place.path());
    let client = Client::new(server.url(""));
    let (path, of) = ("/v1/collections/seen", "{collection=\"seen\"");
    // A last-seen time is written when a 64th of the ttl has passed.
    assert_eq!(client.json("PUT", path, &json!({ "ttl": 4 })).status, 201);
    let insert = |number: u64| {
        client.post(&format!("{path}/documents"), &json!({ "id": number.to_string(), "text": words(number) })).ok()
    };
    (0..4).for_each(|number| drop(insert(number)));
    let connection = rusqlite::Connection::open(place.path().join("collections/seen.sqlite")).unwrap();
    connection.busy_timeout(Duration::from_secs(30)).unwrap();
    let trigger =
        "CREATE TRIGGER no BEFORE UPDATE OF seen_ms ON signature BEGIN SELECT RAISE(ABORT, 'by the test'); END";
    connection.execute_batch(trigger).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (1..=2_u64)
            .map(|writer| {
                let (insert, done) = (&insert, &done);
                scope.spawn(move || {
                    let mut number = writer << 32;
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        number += 1;
                        // None of these inserts may fail.
                        assert_eq!(insert(number)["stored"], true);
                        assert_eq!(insert(number % 4)["stored"], true);
                    }
                })
            })
            .collect();
        let begun = Instant::now();
        while metric(&client, names::COMMIT_FAILURES, of) < 4.0 && writers.iter().all(|writer| !writer.is_finished()) {
            assert!(begun.elapsed() < PATIENCE, "no last-seen time was to be written");
            std::thread::sleep(POLL);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
