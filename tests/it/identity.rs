//! If an id is sent again with the same content and other metadata, only the metadata changes. With other content,
//! `on_existing=replace` always removes the old content. In earlier versions, other metadata caused a conflict. With
//! `replace`, it made a new document, and a representative could lose its role. If the new content of an id was a
//! duplicate of another document, requests still found the old text under the id.

use std::path::PathBuf;
use std::time::Duration;

use hapax::collections::{CheckOptions, Collection, CollectionError, InsertOptions, Pending};
use hapax::types::{Content, Document, Metadata, OnDuplicate, OnExisting, Outcome, Verdict};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::client::{CHECK, Client, DOCUMENTS, words};
use crate::support::documents::{self, id, look, options};
use crate::support::library::{self, Dir};
use crate::support::local::Local;

fn put(client: &Client, query: &str, document: &Value) -> Value {
    client.post(&format!("{DOCUMENTS}?{query}"), document).ok()
}

fn get(client: &Client, id: &str) -> Value {
    client.get(&format!("{DOCUMENTS}?id={id}")).ok()
}

fn without_metadata(mut document: Value) -> Value {
    document.as_object_mut().unwrap().remove("metadata");
    document
}

fn near(number: u64) -> String {
    format!("{} end", words(number))
}

#[test]
fn other_metadata_changes_nothing_but_the_metadata() {
    let dir = library::dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let first = put(&client, "", &json!({ "id": "r", "text": words(1), "metadata": { "at": 1 } }));
    put(&client, "on_duplicate=store", &json!({ "id": "m", "text": near(1) }));
    put(&client, "on_duplicate=link", &json!({ "id": "l", "text": format!("start {}", words(1)) }));
    for (id, text) in [("r", words(1)), ("m", near(1)), ("l", format!("start {}", words(1)))] {
        let before = get(&client, id);
        for (at, existing) in ["conflict", "replace"].into_iter().enumerate() {
            for duplicate in ["skip", "link", "store"] {
                let query = format!("on_existing={existing}&on_duplicate={duplicate}");
                let metadata = json!({ "at": at, "under": duplicate });
                let updated = put(&client, &query, &json!({ "id": id, "text": text, "metadata": metadata }));
                assert_eq!((&updated["outcome"], &updated["stored"]), (&json!("updated"), &json!(true)), "{updated}");
                assert!(updated.get("previous").is_none());
                let after = get(&client, id);
                assert_eq!(after["metadata"], metadata);
                assert_eq!(without_metadata(after), without_metadata(before.clone()));
                // A retry, with the metadata of the first request and without it.
                for body in [json!({ "id": id, "text": text, "metadata": metadata }), json!({ "id": id, "text": text })]
                {
                    assert_eq!(put(&client, &query, &body)["outcome"], "unchanged");
                }
                assert_eq!(get(&client, id)["metadata"], metadata);
            }
        }
        let kept = json!({ "id": id, "text": text, "metadata": { "not": "kept" } });
        assert_eq!(put(&client, "on_existing=keep", &kept)["outcome"], "unchanged");
        assert_eq!(get(&client, id)["metadata"], json!({ "at": 1, "under": "store" }));
        for outcome in ["updated", "unchanged"] {
            let cleared = put(&client, "", &json!({ "id": id, "text": text, "metadata": {} }));
            assert_eq!(cleared["outcome"], outcome);
            assert!(get(&client, id).get("metadata").is_none());
        }
    }
    let again = put(&client, "", &json!({ "id": "r", "text": words(1), "metadata": { "at": 9 } }));
    for field in ["verdict", "matches", "candidates", "threshold"] {
        assert_eq!(again[field], first[field], "the first verdict is repeated");
    }
    let cluster = client.get("/v1/collections/default/clusters?id=l").ok();
    assert_eq!((&cluster["representative"], &cluster["documents"]), (&json!("r"), &json!(3)));
    let found = client.post(&format!("{CHECK}?with=metadata"), &json!({ "text": words(1) })).ok();
    assert_eq!(found["matches"][0]["metadata"], json!({ "at": 9 }));
}

#[test]
fn other_content_is_first_seen_now_and_its_id_when_it_was() {
    let dir = library::dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    put(&client, "", &json!({ "id": "a", "text": words(1), "metadata": { "of": 1 } }));
    let before = get(&client, "a");
    assert_eq!(before["first_seen"], before["id_first_seen"]);
    std::thread::sleep(Duration::from_millis(5));
    let replaced = put(&client, "on_existing=replace", &json!({ "id": "a", "text": words(2) }));
    assert_eq!(replaced["previous"]["first_seen"], before["first_seen"]);
    let after = get(&client, "a");
    assert_eq!(after["id_first_seen"], before["first_seen"]);
    assert_ne!(after["first_seen"], before["first_seen"], "{after}");
    assert!(after.get("metadata").is_none(), "other content without metadata has none");
    let found = client.post(CHECK, &json!({ "text": words(2) })).ok();
    assert_eq!(found["matches"][0]["first_seen"], after["first_seen"]);
    // The stored times are the original ones, even after a restart.
    drop(server);
    let server = Local::plain(&dir);
    assert_eq!(get(&Client::of(&server), "a"), after);
}

#[test]
fn a_replacement_lets_the_old_content_go_whether_or_not_the_new_one_is_stored() {
    let dir = library::dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let found = |text: String| client.post(CHECK, &json!({ "text": text })).ok()["duplicate_of"].clone();
    put(&client, "", &json!({ "id": "one", "text": words(1) }));
    for (query, text, outcome, stored) in [
        ("on_duplicate=store", words(1), "replaced", true),
        ("on_duplicate=link", words(1), "linked", true),
        ("on_duplicate=skip", words(1), "removed", false),
        ("on_duplicate=skip", near(1), "removed", false),
        ("", " … ".into(), "removed", false),
        ("on_duplicate=store", String::new(), "removed", false),
        ("", words(3), "replaced", true),
    ] {
        put(&client, "on_existing=replace", &json!({ "id": "two", "text": words(2) }));
        assert_eq!(found(words(2)), "two");
        let query = format!("on_existing=replace&{query}");
        let answer = put(&client, &query, &json!({ "id": "two", "text": text }));
        assert_eq!((&answer["outcome"], &answer["stored"]), (&json!(outcome), &json!(stored)), "{query}: {answer}");
        let empty = text.split_whitespace().all(|word| word == "…");
        assert_eq!(answer["verdict"] == "empty", empty, "{answer}");
        assert_eq!(answer["previous"]["similarity"], 0.0, "{answer}");
        assert_eq!(found(words(2)), Value::Null, "{query}: the old content is found");
        let there = client.get(&format!("{DOCUMENTS}?id=two"));
        assert_eq!(there.status == 200, stored, "{query}");
        assert_eq!(client.get("/v1/collections/default").ok()["documents"], 1 + u64::from(stored), "{query}");
        // A second removal has nothing to remove.
        if !stored {
            let again = put(&client, &query, &json!({ "id": "two", "text": text }));
            assert_eq!((&again["outcome"], again.get("previous")), (&json!("skipped"), None), "{again}");
        }
    }
    put(&client, "on_existing=replace", &json!({ "id": "two", "text": words(2) }));
    for (query, text) in [("on_existing=keep", words(1)), ("on_existing=keep", String::new()), ("", String::new())] {
        assert_eq!(put(&client, query, &json!({ "id": "two", "text": text }))["outcome"], "skipped");
        assert_eq!(found(words(2)), "two", "it stays");
    }
}

#[test]
fn a_representative_that_is_removed_is_followed_by_the_next() {
    let dir = library::dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    put(&client, "", &json!({ "id": "one", "text": words(1) }));
    put(&client, "", &json!({ "id": "r", "text": words(2) }));
    put(&client, "on_duplicate=link", &json!({ "id": "l", "text": near(2) }));
    let removed = put(&client, "on_existing=replace", &json!({ "id": "r", "text": words(1) }));
    assert_eq!((&removed["outcome"], &removed["duplicate_of"]), (&json!("removed"), &json!("one")));
    assert_eq!(get(&client, "l")["linked"], false);
    let found = client.post(CHECK, &json!({ "text": words(2) })).ok();
    assert_eq!(found["duplicate_of"], "l");
    let described = client.get("/v1/collections/default").ok();
    assert_eq!((&described["documents"], &described["linked"]), (&json!(2), &json!(0)));
}

fn metadata(number: u64) -> Option<Metadata> {
    Some(Metadata::new(format!(r#"{{"at":{number}}}"#)).unwrap())
}

const REPLACE: InsertOptions = InsertOptions { with_metadata: true, ..options(OnDuplicate::Skip, OnExisting::Replace) };

async fn decide(
    collection: &Collection,
    name: &str,
    text: String,
    metadata: Option<Metadata>,
) -> Result<Pending<Verdict>, CollectionError> {
    let prepared = collection.prepare(Content::Text(text)).await?;
    collection.insert(id(name), metadata, prepared, REPLACE).await
}

async fn insert(
    collection: &Collection,
    name: &str,
    text: String,
    metadata: Option<Metadata>,
) -> Result<Verdict, CollectionError> {
    decide(collection, name, text, metadata).await?.wait().await
}

async fn document(collection: &Collection, name: &str) -> Option<Document> {
    collection.document(&id(name)).await.unwrap()
}

async fn check(collection: &Collection, text: String) -> Verdict {
    documents::check(collection, text, CheckOptions { with_metadata: true, ..look(10) }).await.unwrap()
}

fn file(dir: &Dir) -> PathBuf {
    dir.path().join("data/collections/default.sqlite")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_that_is_not_on_disk_is_shown_to_nobody_who_does_not_wait_for_it() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = library::default(&collections).await;
    insert(&collection, "a", words(1), metadata(1)).await.unwrap();
    let held = library::hold(&dir, "default");
    let update = decide(&collection, "a", words(1), metadata(2)).await.unwrap();
    assert_eq!(document(&collection, "a").await.unwrap().metadata, metadata(1));
    assert_eq!(check(&collection, words(1)).await.matches[0].metadata, metadata(1));
    // This insert is decided after the update, so it must also be answered after the update.
    let later = decide(&collection, "b", near(1), None).await.unwrap();
    held.execute_batch("COMMIT").unwrap();
    assert_eq!(later.wait().await.unwrap().matches[0].metadata, metadata(2));
    assert_eq!(update.wait().await.unwrap().outcome, Outcome::Updated);
    assert_eq!(document(&collection, "a").await.unwrap().metadata, metadata(2));
    assert_eq!(check(&collection, words(1)).await.matches[0].metadata, metadata(2));
    library::close(collections).await;
    let collections = library::open(library::config(&dir));
    let collection = library::default(&collections).await;
    assert_eq!(document(&collection, "a").await.unwrap().metadata, metadata(2));
    library::close(collections).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_and_a_removal_whose_commit_fails_are_undone() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = library::default(&collections).await;
    insert(&collection, "a", words(1), metadata(1)).await.unwrap();
    insert(&collection, "b", words(2), metadata(2)).await.unwrap();
    let trigger = "CREATE TRIGGER refusing BEFORE INSERT ON document WHEN CAST(NEW.id AS TEXT) = 'refused'
                   BEGIN SELECT RAISE(ABORT, 'refused by the test'); END";
    Connection::open(file(&dir)).unwrap().execute_batch(trigger).unwrap();
    for (name, text, outcome) in [("a", words(1), Outcome::Updated), ("b", words(1), Outcome::Removed)] {
        let before = document(&collection, name).await.unwrap();
        let held = library::hold(&dir, "default");
        // While the committer is blocked on this decision, the next two decisions wait. They then share a transaction,
        // which fails.
        let filler =
            decide(&collection, &format!("before {name}"), words(if name == "a" { 7 } else { 9 }), None).await.unwrap();
        let undone = decide(&collection, name, text, metadata(9)).await.unwrap();
        let refused = decide(&collection, "refused", words(8), None).await.unwrap();
        held.execute_batch("COMMIT").unwrap();
        drop(filler.wait().await);
        for ticket in [undone, refused] {
            let failed = ticket.wait().await;
            assert!(matches!(failed, Err(CollectionError::WriteFailed { .. })), "{outcome:?}: {failed:?}");
        }
        assert_eq!(document(&collection, name).await.as_ref(), Some(&before), "{outcome:?}");
        // Later decisions do not use any part of the failed transaction either.
        let found = insert(&collection, "c", words(if name == "a" { 1 } else { 2 }), None).await.unwrap();
        assert_eq!((&found.duplicate_of, &found.matches[0].metadata), (&Some(id(name)), &before.metadata));
    }
    let updated = insert(&collection, "a", words(1), metadata(9)).await.unwrap();
    assert_eq!(updated.outcome, Outcome::Updated);
    let removed = insert(&collection, "b", words(1), None).await.unwrap();
    assert_eq!((removed.outcome, &removed.matches[0].metadata), (Outcome::Removed, &metadata(9)));
    library::close(collections).await;
}

#[test]
fn an_update_counts_as_last_seen() {
    let dir = library::dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let path = "/v1/collections/lasting";
    assert_eq!(client.json("PUT", path, &json!({ "ttl": 3600 })).status, 201);
    let put = |number: u64| {
        let document = json!({ "id": "a", "text": words(1), "metadata": { "at": number } });
        client.post(&format!("{path}/documents"), &document).ok()["outcome"].clone()
    };
    let last_seen = || client.get(&format!("{path}/documents?id=a")).ok()["last_seen"].as_str().unwrap().to_owned();
    assert_eq!(put(1), "inserted");
    let first = last_seen();
    // Times in memory have a resolution of half a second.
    std::thread::sleep(Duration::from_millis(1600));
    assert_eq!(last_seen(), first);
    assert_eq!(put(2), "updated");
    assert_ne!(last_seen(), first);
}
