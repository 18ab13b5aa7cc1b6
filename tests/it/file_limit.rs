//! A limit on the size of files (`ulimit -f`): writes that do not fit are refused, and the server continues to work.

use serde_json::json;

use crate::support::client::{Client, words};
use crate::support::server::Starting;

#[test]
fn a_limit_on_the_size_of_files_refuses_writes_and_ends_nothing() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let data = dir.path().join("data");
    // This is two or four million bytes, because shells count in blocks of 512 or of 1024 bytes.
    let program = ["sh", "-c", "ulimit -f 4000 && exec \"$@\"", "sh"];
    let server = Starting::spawn_by(&program, &data, &[], &[("HAPAX__DATA__RESERVE_BYTES", "0")]).ready();
    let client = Client::new(server.url(""));
    let refused = (0..1000).find_map(|number| {
        let metadata = json!({"long": "m".repeat(10_000)});
        let document = json!({"id": format!("d{number}"), "text": words(number), "metadata": metadata});
        let answer = client.post("/v1/collections/default/documents", &document);
        (answer.status != 200).then_some((number, answer))
    });
    let (number, refused) = refused.expect("a write is refused");
    refused.problem(507, "storage_full");
    assert!(number > 10, "only {number} documents fit");
    for number in 0..number {
        assert_eq!(client.get(&format!("/v1/collections/default/documents?id=d{number}")).status, 200, "d{number}");
    }
    let parquet = ("content-type", "application/vnd.apache.parquet");
    let loaded = client.send("POST", "/v1/collections/loaded/load", &[parquet], &vec![0; 5_000_000]);
    loaded.problem(507, "storage_full");
    assert_eq!(client.get("/livez").status, 200);
    server.terminate();
}
