//! Labels of documents: how they are stored, counted and listed, and the scopes of checks.

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::library::{Dir, dir};
use crate::support::local::{Local, Setup};
use crate::support::server::Server;
use crate::support::signatures::{document, settings, unlike_others};
use crate::support::until::until;

const DOCUMENTS: &str = "/v1/collections/default/documents";
const CHECK: &str = "/v1/collections/default/check";
const LABELS: &str = "/v1/collections/default/labels";

/// Returns a text that resembles none of the others.
fn text(number: u64) -> String {
    let mut random = hapax_core::SplitMix64::new(number);
    let words: Vec<String> = (0..60).map(|_| format!("word{}", random.next_u64() % 100_000)).collect();
    words.join(" ")
}

fn insert(client: &Client, query: &str, id: &str, number: u64, labels: Value) -> Value {
    let mut body = json!({"id": id, "text": text(number)});
    if !labels.is_null() {
        body["labels"] = labels;
    }
    client.post(&format!("{DOCUMENTS}?{query}"), &body).ok()
}

fn labels_of(client: &Client, id: &str) -> Value {
    client.get(&format!("{DOCUMENTS}?id={id}")).ok()["labels"].clone()
}

/// Returns each label with its count, as `name:value=count`.
fn counts(client: &Client) -> Vec<String> {
    let page = client.get(LABELS).ok();
    let line = |label: &Value| {
        let text = |name: &str| label[name].as_str().unwrap().to_owned();
        format!("{}:{}={}", text("name"), text("value"), label["documents"])
    };
    page["labels"].as_array().unwrap().iter().map(line).collect()
}

/// Returns the ids of a whole listing of documents, page by page.
fn listed(client: &Client, query: &str) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("{DOCUMENTS}?limit=2&{query}{cursor}")).ok();
        ids.extend(page["documents"].as_array().unwrap().iter().map(|found| found["id"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

fn checked(client: &Client, query: &str, number: u64) -> (String, Option<String>) {
    let verdict = client.post(&format!("{CHECK}?{query}"), &json!({"text": text(number)})).ok();
    assert_eq!(verdict["complete"], true, "{verdict}");
    (verdict["verdict"].as_str().unwrap().to_owned(), verdict["duplicate_of"].as_str().map(str::to_owned))
}

#[test]
fn labels_are_stored_changed_counted_and_listed_and_survive_a_restart() {
    let dir = dir();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    insert(&client, "", "a", 1, json!({"site": "a.example", "crawl": "2026-47"}));
    insert(&client, "label=crawl:2026-47", "b", 2, json!({"site": "b.example"}));
    let raw = client.send(
        "POST",
        &format!("{DOCUMENTS}?id=c&label=crawl:2026-48&label=site:a.example"),
        &[("content-type", "text/plain")],
        text(3).as_bytes(),
    );
    assert_eq!(raw.status, 200);
    insert(&client, "", "d", 4, Value::Null);
    assert_eq!(labels_of(&client, "c"), json!({"crawl": "2026-48", "site": "a.example"}));
    assert_eq!(labels_of(&client, "d"), Value::Null);
    assert_eq!(counts(&client), ["crawl:2026-47=2", "crawl:2026-48=1", "site:a.example=2", "site:b.example=1"]);

    // Labels that are sent replace the stored ones. If no labels are sent, nothing changes. `{}` removes the labels.
    assert_eq!(insert(&client, "", "a", 1, json!({"crawl": "2026-48", "site": "a.example"}))["outcome"], "updated");
    assert_eq!(insert(&client, "", "a", 1, json!({"site": "a.example", "crawl": "2026-48"}))["outcome"], "unchanged");
    assert_eq!(insert(&client, "", "a", 1, Value::Null)["outcome"], "unchanged");
    assert_eq!(insert(&client, "on_existing=keep", "a", 1, json!({}))["outcome"], "unchanged");
    assert_eq!(labels_of(&client, "a"), json!({"crawl": "2026-48", "site": "a.example"}));
    assert_eq!(insert(&client, "", "b", 2, json!({}))["outcome"], "updated");
    // A replacement does not keep the labels of the old content.
    assert_eq!(insert(&client, "on_existing=replace", "c", 5, Value::Null)["outcome"], "replaced");
    assert_eq!(counts(&client), ["crawl:2026-48=1", "site:a.example=1"]);
    insert(&client, "", "e", 6, json!({"crawl": "2026-48"}));
    insert(&client, "", "f", 7, json!({"crawl": "2026-48", "site": "a.example"}));
    client.delete(&format!("{DOCUMENTS}?id=f")).ok();
    insert(&client, "", "g", 8, json!({"crawl": "2026-48", "site": "g.example"}));

    let expected = ["crawl:2026-48=3", "site:a.example=1", "site:g.example=1"];
    let holds = |client: &Client| {
        assert_eq!(counts(client), expected);
        assert_eq!(listed(client, "label=crawl:2026-48"), ["a", "e", "g"]);
        assert_eq!(listed(client, "label=crawl:2026-48&label=site:g.example"), ["g"]);
        assert!(listed(client, "label=site:f.example").is_empty());
        assert_eq!(checked(client, "scope=crawl:2026-48", 1), ("exact_duplicate".into(), Some("a".into())));
        assert_eq!(checked(client, "scope=!crawl:2026-48", 1).0, "unique");
        assert_eq!(checked(client, "scope=!crawl:2026-48", 2).0, "exact_duplicate");
    };
    holds(&client);
    let one = client.get(&format!("{LABELS}?name=site&limit=1")).ok();
    assert_eq!(one["labels"], json!([{"name": "site", "value": "a.example", "documents": 1}]));
    let cursor = one["next_cursor"].as_str().unwrap().to_owned();
    let next = client.get(&format!("{LABELS}?name=site&limit=1&cursor={cursor}")).ok();
    assert_eq!(next, json!({"labels": [{"name": "site", "value": "g.example", "documents": 1}]}));

    server.kill();
    let server = Server::start(&data);
    holds(&Client::new(server.url("")));
    assert!(server.terminate().success());
}

#[test]
fn exact_copies_obey_the_scope_and_the_oldest_in_it_is_named() {
    let dir = dir();
    let server = Setup::new(&dir).start();
    let client = Client::of(&server);
    for (id, crawl) in [("one", "1"), ("two", "2"), ("three", "2"), ("four", "3")] {
        insert(&client, "on_duplicate=store", id, 1, json!({"crawl": crawl}));
    }
    insert(&client, "on_duplicate=link", "link", 1, json!({"crawl": "4"}));
    for (scope, expected) in [
        ("scope=crawl:1", Some("one")),
        ("scope=crawl:2", Some("two")),
        ("scope=!crawl:1&scope=!crawl:2", Some("four")),
        ("scope=crawl:4", Some("link")),
        ("scope=crawl:5", None),
        ("scope=crawl:1&scope=crawl:2", None),
    ] {
        assert_eq!(checked(&client, scope, 1).1.as_deref(), expected, "{scope}");
    }
    // Scopes also work in batches and streams.
    let body = json!({"op": "check", "documents": [{"text": text(1)}, {"text": text(2)}]});
    let batch = client.post("/v1/collections/default/batch?scope=crawl:2", &body).ok();
    assert_eq!(
        (&batch["results"][0]["duplicate_of"], &batch["results"][1]["verdict"]),
        (&json!("two"), &json!("unique"))
    );
    let lines = client.bulk("op=check&scope=crawl:3", &format!("{}\n", json!({"text": text(1)})));
    assert_eq!(lines[0]["duplicate_of"], "four");
    let lines = format!("{}\n", json!({"id": "bulk", "text": text(9), "labels": {"site": "x"}}));
    assert_eq!(client.bulk("op=insert&label=crawl:9", &lines)[0]["outcome"], "inserted");
    assert_eq!(labels_of(&client, "bulk"), json!({"crawl": "9", "site": "x"}));
}

#[test]
fn what_is_not_a_label_or_a_scope_is_refused_with_its_reason() {
    let dir = dir();
    let server = Setup::new(&dir).start();
    let client = Client::of(&server);
    let text = text(1);
    let refused = |target: &str, labels: Value, field: &str, words: &str| {
        let mut body = json!({"id": "a", "text": text});
        if !labels.is_null() {
            body["labels"] = labels;
        }
        let problem = client.post(target, &body).problem(422, "invalid_value");
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
        assert!(problem["errors"][0]["detail"].as_str().unwrap().contains(words), "{problem}");
    };
    refused(DOCUMENTS, json!([]), "labels", "must be an object");
    refused(DOCUMENTS, json!({"site": 5}), "labels.site", "must be a string");
    refused(DOCUMENTS, json!({"Site": "a"}), "labels.Site", "name");
    refused(DOCUMENTS, json!({"site": ""}), "labels.site", "value");
    refused(DOCUMENTS, json!({"site": "a\nb"}), "labels.site", "value");
    let nine: serde_json::Map<String, Value> = (0..9).map(|number| (format!("n{number}"), json!("x"))).collect();
    refused(DOCUMENTS, Value::Object(nine), "labels", "at most 8");
    refused(&format!("{DOCUMENTS}?label=site:b"), json!({"site": "a"}), "label", "given twice");
    refused(&format!("{DOCUMENTS}?label=site"), Value::Null, "label", "colon");
    refused(&format!("{CHECK}?scope=site"), Value::Null, "scope", "colon");
    let scopes = ["scope=n:x"; 9].join("&");
    refused(&format!("{CHECK}?{scopes}"), Value::Null, "scope", "at most 8");
    // A scope is for checks only, and labels are for inserts only.
    let problem = client
        .post(&format!("{DOCUMENTS}?scope=site:a"), &json!({"id": "a", "text": text}))
        .problem(422, "invalid_value");
    assert_eq!(problem["errors"][0]["field"], "scope");
    let body = json!({"op": "insert", "documents": []});
    let problem = client.post("/v1/collections/default/batch?scope=site:a", &body).problem(422, "invalid_value");
    assert_eq!(problem["errors"][0]["field"], "scope");
    client.get(&format!("{DOCUMENTS}?id=a&label=site:a")).problem(422, "invalid_value");
    client.get(&format!("{LABELS}?cursor=x")).problem(422, "invalid_value");
    client.get(&format!("{LABELS}?name=Site")).problem(422, "invalid_value");
    // The same label twice is one label.
    insert(&client, "label=site:a&label=site:a", "a", 1, json!({"site": "a", "n": "x"}));
    assert_eq!(labels_of(&client, "a"), json!({"n": "x", "site": "a"}));
}

#[test]
fn labels_that_no_document_has_any_more_are_forgotten() {
    let dir = dir();
    let mut setup = Setup::new(&dir);
    setup.collections.limits.labels.labels_max = 12;
    let server = setup.start();
    let client = Client::of(&server);
    // Together, the requests of this test send more different labels, and more combinations of labels, than may
    // exist at once.
    for number in 0..400_u32 {
        let labels: serde_json::Map<String, Value> =
            (0..8).map(|bit| (format!("n{bit}"), json!(format!("{}", number >> bit & 1)))).take(6).collect();
        let outcome = insert(&client, "", "a", 1, Value::Object(labels))["outcome"].clone();
        assert!(outcome != "unchanged" || number == 0, "{number}");
    }
    for number in 0..20 {
        insert(&client, "", "b", 2, json!({"only": number.to_string()}));
        client.delete(&format!("{DOCUMENTS}?id=b")).ok();
    }
    assert_eq!(counts(&client).len(), 6);
    // Each document has its own label. At the limit, no further label is stored, even if many documents come at once.
    let lines: String = (10..100)
        .map(|number| json!({"id": format!("m{number}"), "text": text(number), "labels": {"m": number.to_string()}}))
        .map(|line| format!("{line}\n"))
        .collect();
    let refused = client.bulk("op=insert", &lines).iter().filter(|line| line["kind"] == "error").count();
    assert_eq!((counts(&client).len(), refused), (12, 84));
}

#[test]
fn there_is_a_limit_on_labels_and_labels_in_use_stay_usable() {
    let dir = dir();
    let mut setup = Setup::new(&dir);
    setup.collections.limits.labels.labels_max = 3;
    let server = setup.start();
    let client = Client::of(&server);
    insert(&client, "", "a", 1, json!({"crawl": "1", "site": "a"}));
    insert(&client, "", "b", 2, json!({"crawl": "1", "site": "b"}));
    let full = |id: &str, number: u64| {
        let body = json!({"id": id, "text": text(number), "labels": {"site": "c"}});
        client.post(DOCUMENTS, &body).problem(507, "labels_full")
    };
    let problem = full("c", 3);
    assert!(problem["detail"].as_str().unwrap().contains("limits.labels_max"), "{problem}");
    // A stored document cannot get new labels either.
    full("b", 2);
    assert_eq!(labels_of(&client, "b"), json!({"crawl": "1", "site": "b"}));
    insert(&client, "", "d", 4, json!({"crawl": "1"}));
    insert(&client, "", "e", 5, Value::Null);
    // Requests that store no document still work, whatever their labels are.
    let twin = json!({"id": "twin", "text": text(1), "labels": {"site": "z"}});
    assert_eq!(client.post(DOCUMENTS, &twin).ok()["outcome"], "skipped");
    client.delete(&format!("{DOCUMENTS}?id=b")).ok();
    // The labels of a deleted document are freed when all earlier readers have left.
    let third = json!({"id": "c", "text": text(3), "labels": {"site": "c"}});
    until("there is room for a label", || client.post(DOCUMENTS, &third).status == 200);
    assert_eq!(counts(&client), ["crawl:1=2", "site:a=1", "site:c=1"]);
}

/// Stores documents of one source from many threads. Returns the numbers of stored and of refused documents.
fn crowd(local: &Local, threads: u64, each: u64) -> (usize, usize) {
    let outcomes: Vec<u16> = std::thread::scope(|scope| {
        let store = |thread: u64| {
            let client = Client::of(local);
            (0..each).map(move |number| {
                let id = format!("t{thread}-{number}");
                let number = 1000 * (thread + 1) + number;
                let body = json!({"id": id, "text": text(number), "labels": {"source": "s", "n": number.to_string()}});
                client.post(DOCUMENTS, &body).status
            })
        };
        let threads: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || store(thread).collect::<Vec<_>>())).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let of = |status: u16| outcomes.iter().filter(|&&outcome| outcome == status).count();
    assert_eq!(of(200) + of(507), outcomes.len());
    (of(200), of(507))
}

#[test]
fn a_source_has_a_limit_of_documents_that_crowds_reach_exactly() {
    let dir = dir();
    let setup = |dir: &Dir| {
        let mut setup = Setup::new(dir);
        setup.collections.limits.labels.source_documents_max = Some(50);
        setup
    };
    let server = setup(&dir).start();
    assert_eq!(crowd(&server, 16, 10), (50, 110));
    let client = Client::of(&server);
    let of_source = |client: &Client| counts(client).iter().find(|count| count.starts_with("source:s")).cloned();
    assert_eq!(of_source(&client), Some("source:s=50".into()));
    let one_more = |client: &Client, query: &str, id: &str, number: u64, source: &str| {
        let body = json!({"id": id, "text": text(number), "labels": {"source": source}});
        client.post(&format!("{DOCUMENTS}?{query}"), &body)
    };
    let problem = one_more(&client, "", "more", 1, "s").problem(507, "source_full");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("`s`") && detail.contains("limits.source_documents_max"), "{problem}");
    // The label is given by a parameter, in a batch, and in bulk.
    client
        .post(&format!("{DOCUMENTS}?label=source:s"), &json!({"id": "more", "text": text(1)}))
        .problem(507, "source_full");
    let more = json!({"id": "more", "text": text(1), "labels": {"source": "s"}});
    let batch = client.post("/v1/collections/default/batch", &json!({"op": "insert", "documents": [more]})).ok();
    assert_eq!(batch["results"][0]["error"]["code"], "source_full", "{batch}");
    assert_eq!(client.bulk("op=insert", &format!("{more}\n"))[0]["error"]["code"], "source_full");
    // Other sources, and documents without a source, are not limited. Checks and duplicates do not count either.
    assert_eq!(one_more(&client, "", "other", 2, "o").status, 200);
    insert(&client, "", "none", 3, Value::Null);
    let stored = client.get(&format!("{DOCUMENTS}?label=source:s&limit=1")).ok()["documents"][0].clone();
    let (id, n) = (stored["id"].as_str().unwrap(), stored["labels"]["n"].as_str().unwrap().parse::<u64>().unwrap());
    assert_eq!(one_more(&client, "", "twin", n, "s").ok()["outcome"], "skipped");
    // A document may change within its source, but a document of another source may not join it.
    assert_eq!(one_more(&client, "", id, n, "s").ok()["outcome"], "updated");
    assert_eq!(one_more(&client, "on_existing=replace", id, 4, "s").ok()["outcome"], "replaced");
    one_more(&client, "", "other", 2, "s").problem(507, "source_full");
    one_more(&client, "on_existing=replace", "none", 5, "s").problem(507, "source_full");
    // If a document leaves the source, there is room for one.
    assert_eq!(one_more(&client, "", id, 4, "o").ok()["outcome"], "updated");
    assert_eq!(one_more(&client, "", "other", 2, "s").ok()["outcome"], "updated");
    client.delete(&format!("{DOCUMENTS}?id=other")).ok();
    assert_eq!(one_more(&client, "", "again", 6, "s").status, 200);
    one_more(&client, "", "more", 1, "s").problem(507, "source_full");
    drop(client);
    drop(server);
    let server = setup(&dir).start();
    let client = Client::of(&server);
    assert_eq!(of_source(&client), Some("source:s=50".into()));
    one_more(&client, "", "more", 1, "s").problem(507, "source_full");
}

#[test]
fn a_source_has_a_rate_and_bulk_waits_for_it() {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.source_documents_per_second = Some(5)).start();
    let client = Client::of(&server);
    let body = |number: u64, source: &str| json!({"id": format!("{source}{number}"), "text": text(number), "labels": {"source": source}});
    // The limit is five documents per second. The first five documents are accepted at once, without a pause.
    let statuses: Vec<u16> = (0..12).map(|number| client.post(DOCUMENTS, &body(number, "s")).status).collect();
    assert!(statuses[..5].iter().all(|&status| status == 200) && statuses.contains(&429), "{statuses:?}");
    let refused = (20..40).map(|number| client.post(DOCUMENTS, &body(number, "s"))).find(|answer| answer.status == 429);
    let refused = refused.unwrap();
    let problem = refused.problem(429, "rate_limited");
    assert!(problem["detail"].as_str().unwrap().contains("limits.source_documents_per_second"), "{problem}");
    assert!(refused.headers.contains_key("retry-after"), "{:?}", refused.headers);
    // Other sources and checks still work.
    assert_eq!(client.post(DOCUMENTS, &body(50, "o")).status, 200);
    assert_eq!(client.post(CHECK, &body(51, "s")).status, 200);
    // A batch does not wait: documents beyond the rate are refused one by one.
    let batch: Vec<Value> = (60..80).map(|number| body(number, "b")).collect();
    let answer = client.post("/v1/collections/default/batch", &json!({"op": "insert", "documents": batch})).ok();
    let results = answer["results"].as_array().unwrap();
    assert!(results[..5].iter().all(|result| result["outcome"] == "inserted"), "{answer}");
    assert_eq!(results[19]["error"]["code"], "rate_limited", "{answer}");
    // A stream waits: the last five documents take a second.
    let lines: String = (100..110).map(|number| format!("{}\n", body(number, "w"))).collect();
    let begun = std::time::Instant::now();
    let answers = client.bulk("op=insert", &lines);
    assert!(answers[..10].iter().all(|line| line["outcome"] == "inserted"), "{answers:?}");
    assert!(begun.elapsed() > std::time::Duration::from_millis(900), "{:?}", begun.elapsed());
}

/// Makes a collection. `foreign` of its documents share most of their bands with [`unlike_others(0)`], and another 100
/// documents are similar to this signature.
fn crowded(dir: &Dir, foreign: u64, scoped_reads_max: usize) -> Local {
    let mut setup = Setup::new(dir);
    setup.collections.limits.bucket_read_max = 64;
    setup.collections.limits.candidates_max = 200;
    setup.collections.limits.scoped_reads_max = scoped_reads_max;
    let server = setup.start();
    let client = Client::of(&server);
    assert_eq!(client.json("PUT", "/v1/collections/c", &settings()).status, 201);
    let with_random = |number: u64, from: usize| {
        let (mut bytes, random) = (unlike_others(0), unlike_others(number + 1));
        bytes[from..].copy_from_slice(&random[from..]);
        bytes
    };
    let store = |label: &str, documents: Vec<Value>| {
        let target = format!("/v1/collections/c/batch?on_duplicate=store&label=site:{label}");
        let batch = client.post(&target, &json!({"op": "insert", "documents": documents})).ok();
        assert_eq!(batch["summary"]["errors"], 0, "{batch}");
    };
    for first in (0..foreign).step_by(500) {
        let foreign = first..foreign.min(first + 500);
        store("foreign", foreign.map(|number| document(&format!("f{number}"), &with_random(number, 72))).collect());
    }
    store(
        "own",
        (0..100).map(|number| document(&format!("own{number}"), &with_random(1 << 40 | number, 120))).collect(),
    );
    server
}

fn finds_its_own_among(foreign: u64) {
    let dir = dir();
    let server = crowded(&dir, foreign, foreign as usize + 200);
    let client = Client::of(&server);
    let query = document("", &unlike_others(0))["signature"].clone();
    let check = |scope: &str| {
        let target = format!("/v1/collections/c/check?limit=1000{scope}");
        client.post(&target, &json!({"signature": query})).ok()
    };
    let all = check("");
    assert_eq!(all["complete"], false, "{all}");
    for scope in ["&scope=site:own", "&scope=!site:foreign"] {
        let own = check(scope);
        assert_eq!((&own["complete"], &own["candidates"]), (&json!(true), &json!(100)), "{scope}");
        let found = own["matches"].as_array().unwrap();
        assert!(found.len() == 100 && found.iter().all(|found| found["id"].as_str().unwrap().starts_with("own")));
    }
    let none = check("&scope=site:nobody");
    assert_eq!((&none["complete"], &none["verdict"]), (&json!(true), &json!("unique")));
}

#[test]
fn documents_in_scope_are_found_in_buckets_that_others_fill() {
    finds_its_own_among(3000);
}

#[test]
#[ignore = "takes a minute in a debug build; make quality runs it"]
fn quality_of_scopes_in_buckets_of_50_000() {
    finds_its_own_among(50_000);
}

/// In an earlier version, a check read only some of the copies of other tenants, and so missed the tenant's own copy.
/// It found only a document with the same signature and other content, and the verdict did not show that a copy was
/// missed.
#[test]
fn an_exact_copy_is_found_behind_many_of_others() {
    let dir = dir();
    let mut setup = Setup::new(&dir);
    setup.collections.limits.bucket_read_max = 16;
    let server = setup.start();
    let client = Client::of(&server);
    // If the text is repeated, its shingles are the same.
    let text = |times: usize| "round and round the garden like a teddy bear ".repeat(times);
    let insert = |id: &str, times: usize, tenant: &str| {
        let document = json!({"id": id, "text": text(times), "labels": {"tenant": tenant}});
        client.post(&format!("{DOCUMENTS}?on_duplicate=store"), &document).ok()
    };
    insert("b", 4, "me");
    for number in 0..100 {
        insert(&format!("f{number}"), 3, "other");
    }
    assert_eq!(insert("e", 3, "me")["similarity"], 1.0);
    let found = client.post(&format!("{CHECK}?scope=tenant:me&limit=1"), &json!({"text": text(3)})).ok();
    assert_eq!((&found["verdict"], &found["duplicate_of"]), (&json!("exact_duplicate"), &json!("e")), "{found}");
}

#[test]
fn a_scoped_check_that_leaves_postings_unread_says_so() {
    let dir = dir();
    let server = crowded(&dir, 1000, 300);
    let client = Client::of(&server);
    let query = document("", &unlike_others(0))["signature"].clone();
    let target = "/v1/collections/c/check?limit=1000&scope=site:own";
    let own = client.post(target, &json!({"signature": query})).ok();
    assert_eq!(own["complete"], false, "{own}");
    assert!(own["unread"].as_u64().unwrap() > 700, "{own}");
}
