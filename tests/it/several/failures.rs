//! If another collection cannot be asked about a document, the document is still stored. The answer says that it was
//! stored, and which collection could not be asked.

use serde_json::json;

use super::{create, store, text};
use crate::damaged::{file, spoil};
use crate::support::client::{Client, documents};
use crate::support::library::dir;
use crate::support::server::Server;

#[test]
fn an_answer_says_what_was_stored_and_what_could_not_be_asked() {
    let dir = dir();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    create(&client);
    store(&client, "b", "the-damaged-one", &text(1, 0));
    store(&client, "c", "c1", &text(1, 0));
    assert!(server.terminate().success());
    spoil(&file(&data, "b"), b"the-damaged-one");

    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    let insert = |id: &str| json!({"id": id, "text": text(1, 40)});
    let single = client.post(&format!("{}?collections=b,c", documents("a")), &insert("x")).ok();
    let batch = json!({"op": "insert", "documents": [insert("y"), insert("z")]});
    let batch = client.post("/v1/collections/a/batch?collections=b,c&on_duplicate=store", &batch).ok();
    assert_eq!(batch["summary"]["errors"], 0, "{batch}");
    for (answer, id) in [(&single, "x"), (&batch["results"][0], "y"), (&batch["results"][1], "z")] {
        let facts = ["outcome", "stored", "complete"].map(|field| &answer[field]);
        assert_eq!(facts, [&json!("inserted"), &json!(true), &json!(false)], "{answer}");
        assert_eq!(answer["elsewhere"].as_array().unwrap().len(), 1, "the third collection was asked: {answer}");
        let [own, damaged, third] = answer["collections"].as_array().unwrap().as_slice() else { panic!("{answer}") };
        assert_eq!([&own["complete"], &damaged["complete"], &third["complete"]], [true, false, true]);
        assert_eq!((&damaged["collection"], &damaged["error"]["code"]), (&json!("b"), &json!("collection_damaged")));
        assert!(damaged["error"]["request_id"].is_string() && damaged.get("verdict").is_none(), "{damaged}");
        assert_eq!(client.get(&format!("{}?id={id}", documents("a"))).ok()["id"], id);
    }
    assert_eq!(single["unread"], json!(null), "no limit was met");
    let metrics = client.get("/metrics").text();
    assert!(metrics.contains("hapax_http_elsewhere_failures_total 3"), "{metrics}");
    assert!(server.log_tail().contains("could not be asked"), "{}", server.log_tail());
    // A check has stored nothing and can be sent again, so it fails.
    let check = client.post("/v1/collections/a/check?collections=b,c", &json!({"text": text(1, 40)}));
    check.problem(500, "collection_damaged");
}
