//! A document in the place of another one under its id: at any moment, exactly one of the two is stored.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::nodes::records;
use super::one_winner::three;
use super::{start, turn, variable};
use crate::support::client::{CHECK, Client, DOCUMENTS, words};
use crate::support::library::dir;
use crate::support::redis::{Kind, RedisCluster};
use crate::support::until::until;

const WRITERS: u64 = 8;

fn replace(client: &Client, id: &str, text: &str) -> Value {
    client.post(&format!("{DOCUMENTS}?on_existing=replace"), &json!({"id": id, "text": text})).ok()
}

fn get(client: &Client, id: &str) -> Value {
    client.get(&format!("{DOCUMENTS}?id={id}")).ok()
}

fn check(client: &Client, text: &str) -> Value {
    client.post(CHECK, &json!({"text": text})).ok()["verdict"].clone()
}

#[test]
fn a_replaced_document_leaves_nothing_behind() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let server = start(&cluster, dir.path(), "a").ready();
    let client = Client::new(server.url(""));
    let first = replace(&client, "a", &words(1));
    assert_eq!((&first["outcome"], &first["stored"]), (&json!("inserted"), &json!(true)));
    let old = get(&client, "a");

    let second = replace(&client, "a", &words(2));
    assert_eq!((&second["outcome"], &second["verdict"]), (&json!("replaced"), &json!("unique")));
    assert_eq!(second["previous"]["first_seen"], old["first_seen"]);
    let new = get(&client, "a");
    assert_eq!(new["id_first_seen"], old["id_first_seen"]);
    assert!(new["seq"].as_u64() > old["seq"].as_u64(), "{old} {new}");
    assert_eq!([check(&client, &words(1)), check(&client, &words(2))], ["unique", "exact_duplicate"]);
    until("only the new document is there", || records(&cluster) == [("s".to_owned(), 1)].into());

    // A near-duplicate of the content that it replaces is no duplicate.
    let third = replace(&client, "a", &format!("{} and one more", words(2)));
    assert_eq!((&third["outcome"], &third["verdict"]), (&json!("replaced"), &json!("unique")));
    // The same content is unchanged.
    let again = replace(&client, "a", &format!("{} and one more", words(2)));
    assert_eq!(again["outcome"], "unchanged");

    // Content that is a duplicate of another document, or empty, deletes the old one.
    assert_eq!(replace(&client, "b", &words(3))["outcome"], "inserted");
    let removed = replace(&client, "a", &words(3));
    assert_eq!((&removed["outcome"], &removed["duplicate_of"]), (&json!("removed"), &json!("b")));
    assert_eq!(check(&client, &words(2)), "unique");
    client.get(&format!("{DOCUMENTS}?id=a")).problem(404, "document_not_found");
    assert_eq!(replace(&client, "b", " ")["outcome"], "removed");
    assert_eq!(replace(&client, "b", " ")["outcome"], "skipped");
    until("no document is there", || records(&cluster).is_empty());
}

/// Writers on three servers replace one document again and again. Readers always find one.
fn there_is_always_one(kind: Kind) {
    let _turn = turn();
    let Some(cluster) = RedisCluster::up(kind) else { return };
    let dir = dir();
    let servers = three(&cluster, dir.path());
    let clients: Vec<_> = servers.iter().map(|server| Client::new(server.url(""))).collect();
    // All texts of the writers are near-duplicates of this one.
    let base = words(1);
    let text = |writer: u64, turn: u64| format!("{base} {writer} {turn}");
    replace(&clients[0], "a", &base);
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (client, ended) = (&clients[writer as usize % 3], &ended);
            scope.spawn(move || {
                let mut turn = 0;
                while !ended.load(Ordering::Relaxed) {
                    let outcome = replace(client, "a", &text(writer, turn))["outcome"].clone();
                    assert!(outcome == "replaced" || outcome == "unchanged", "{writer}: {outcome}");
                    turn += 1;
                }
                println!("replacements: {turn} by {writer}");
            });
        }
        for client in &clients {
            let (ended, base) = (&ended, &base);
            scope.spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    let found = client.post(CHECK, &json!({"text": base})).ok();
                    assert_eq!(found["matches"].as_array().map(Vec::len), Some(1), "{found}");
                    get(client, "a");
                }
            });
        }
        thread::sleep(Duration::from_secs(variable("HAPAX_REDIS_SECONDS").unwrap_or(4)));
        ended.store(true, Ordering::Relaxed);
    });
    let mut left = records(&cluster);
    until("one document is there", || {
        left = records(&cluster);
        // Records without a document stay for a while.
        left.iter().filter(|(state, _)| *state != "a bare").eq([(&"s".to_owned(), &1)])
    });
    println!("replacements: {left:?}");
    let found = check(&clients[0], &base);
    assert_eq!(found, "near_duplicate");
}

#[test]
fn there_is_always_one_document_on_redis() {
    there_is_always_one(Kind::Redis);
}

#[test]
fn there_is_always_one_document_on_valkey() {
    there_is_always_one(Kind::Valkey);
}
