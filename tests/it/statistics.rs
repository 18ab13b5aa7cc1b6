//! Statistics: the outcomes of the documents that were sent, in total and for each label, even across restarts.

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::client::{Client, DOCUMENTS, words};
use crate::support::command::run;
use crate::support::library::dir;
use crate::support::server::Server;

const STATISTICS: &str = "/v1/collections/default/statistics";
const COUNTS: [&str; 8] =
    ["documents", "unique", "near_duplicates", "exact_duplicates", "empty", "unchanged", "bytes", "bytes_saved"];

fn counts(of: &Value) -> [u64; 8] {
    COUNTS.map(|name| of[name].as_u64().unwrap())
}

fn of_label(page: &Value, value: &str) -> [u64; 8] {
    let found = page["labels"].as_array().unwrap().iter().find(|one| one["value"] == value);
    counts(found.unwrap_or_else(|| panic!("no {value} in {page}")))
}

/// Damaged counts must not prevent the use of the documents.
#[test]
fn damaged_statistics_cost_no_document() {
    let dir = dir();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    client.post(DOCUMENTS, &json!({"id": "a", "text": words(1), "labels": {"site": "a"}})).ok();
    assert!(server.terminate().success());
    let connection = Connection::open(data.join("collections/default.sqlite")).unwrap();
    connection.execute("UPDATE statistics SET sum = sum + 1 WHERE place = 1", []).unwrap();
    drop(connection);
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    client.get(&format!("{DOCUMENTS}?id=a")).ok();
    let page = client.get(STATISTICS).ok();
    assert_eq!((&page["all"]["documents"], of_label(&page, "a")[0]), (&json!(0), 1), "{page}");
    assert!(server.terminate().success());
    let repaired = run(&["verify", "--repair", "--data-dir", data.to_str().unwrap()]);
    assert!(repaired.status.code() == Some(1), "{repaired:?}");
    let verified = run(&["verify", "--data-dir", data.to_str().unwrap()]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}

#[test]
fn documents_are_counted_by_what_became_of_them() {
    let dir = dir();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    let insert = |query: &str, id: &str, text: &str, site: &str| {
        let document = json!({"id": id, "text": text, "labels": {"site": site}});
        client.post(&format!("{DOCUMENTS}?{query}"), &document).ok()
    };
    let (text, near) = (words(1), format!("{} end", words(1)));
    let [bytes, more] = [text.len(), near.len()].map(|bytes| bytes as u64);
    insert("", "a", &text, "a");
    insert("", "a", &text, "a");
    insert("", "b", &text, "b");
    insert("on_duplicate=store", "c", &near, "b");
    insert("on_duplicate=link", "d", &near, "b");
    insert("", "e", "", "b");
    insert("", "f", &near, "b");
    client.post(DOCUMENTS, &json!({"id": "a", "text": words(2)})).problem(409, "id_conflict");
    let line = json!({"id": "g", "text": words(3)}).to_string() + "\n";
    client.bulk("op=insert&label=site:c", &line);
    let raw = client.text(&format!("{DOCUMENTS}?id=h&label=site:c"), words(4).as_bytes());
    assert_eq!(raw.status, 200);
    let [third, fourth] = [3, 4].map(|number| words(number).len() as u64);
    let all = [9, 3, 1, 3, 1, 1, 3 * bytes + 3 * more + third + fourth, 2 * bytes + more];
    let look = |client: &Client| {
        let page = client.get(STATISTICS).ok();
        assert_eq!(counts(&page["all"]), all, "{page}");
        assert_eq!(of_label(&page, "a"), [2, 1, 0, 0, 0, 1, 2 * bytes, bytes]);
        assert_eq!(of_label(&page, "b"), [5, 0, 1, 3, 1, 0, bytes + 3 * more, bytes + more]);
        assert_eq!(of_label(&page, "c"), [2, 2, 0, 0, 0, 0, third + fourth, 0]);
        let first = client.get(&format!("{STATISTICS}?limit=2&name=site")).ok();
        let next = first["next_cursor"].as_str().unwrap();
        let second = client.get(&format!("{STATISTICS}?limit=2&name=site&cursor={next}")).ok();
        assert_eq!((first["labels"].as_array().unwrap().len(), second["labels"].as_array().unwrap().len()), (2, 1));
        assert_eq!(client.get(&format!("{STATISTICS}?name=other")).ok()["labels"], json!([]));
    };
    look(&client);
    client.get(&format!("{STATISTICS}?name=A")).problem(422, "invalid_value");
    client.get(&format!("{STATISTICS}?cursor=x")).problem(422, "invalid_value");
    // Deletions do not change the statistics.
    assert_eq!(client.delete(&format!("{DOCUMENTS}?label=site:c")).status, 202);
    look(&client);
    assert!(server.terminate().success());
    let verified = run(&["verify", "--data-dir", data.to_str().unwrap()]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    let server = Server::start(&data);
    look(&Client::new(server.url("")));
}
