//! Insertions under an id whose document other clients delete all the time: each of them gets a verdict.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use serde_json::json;

use super::{start, turn};
use crate::support::client::{Client, DOCUMENTS, words};
use crate::support::library::dir;
use crate::support::redis::{Kind, RedisCluster};

const WRITERS: u64 = 12;
const INSERTIONS: u64 = 1500;

#[test]
fn no_insertion_is_refused_because_others_delete_the_document_of_its_id() {
    let _turn = turn();
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let server = start(&cluster, dir.path(), "a").ready();
    let sent = AtomicU64::new(0);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (client, sent) = (Client::new(server.url("")), &sent);
            scope.spawn(move || {
                while sent.fetch_add(1, Ordering::Relaxed) < INSERTIONS {
                    // Other metadata changes a document that is stored, which fails if it is deleted meanwhile.
                    let metadata = json!({"sent": rand::random::<u64>()});
                    let document = json!({"id": "a", "text": words(1), "metadata": metadata});
                    let answer = client.post(DOCUMENTS, &document).ok();
                    let outcome = answer["outcome"].as_str().unwrap_or_default();
                    assert!(["inserted", "updated"].contains(&outcome), "{answer}");
                    if writer % 2 == 0 {
                        client.delete(&format!("{DOCUMENTS}?id=a"));
                    }
                }
            });
        }
    });
}
