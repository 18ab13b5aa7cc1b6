//! Merges: a staging collection is inserted into another one, in order, with a report on each document, even across
//! crashes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::keys;
use crate::support::client::{Client, documents, words};
use crate::support::command::run;
use crate::support::library::{dir, file, refuse};
use crate::support::local::{Local, Setup};
use crate::support::server::Server;
use crate::support::until::until_within;

const PATIENCE: Duration = Duration::from_secs(60);

fn create(client: &Client, name: &str, settings: &Value) {
    let made = client.json("PUT", &format!("/v1/collections/{name}"), settings);
    assert!([200, 201].contains(&made.status), "{}", made.text());
}

fn insert(client: &Client, collection: &str, query: &str, document: &Value) -> Value {
    client.post(&format!("{}?{query}", documents(collection)), document).ok()
}

fn merge(client: &Client, into: &str, input: &Value) -> Value {
    let answer = client.post(&format!("/v1/collections/{into}/merge"), input);
    assert_eq!(answer.status, 202, "{}", answer.text());
    let job = answer.json();
    assert_eq!(answer.headers["location"], format!("/v1/jobs/{}", job["job"].as_str().unwrap()));
    job
}

fn job(client: &Client, job: &Value) -> Value {
    client.get(&format!("/v1/jobs/{}", job["job"].as_str().unwrap())).ok()
}

fn until_ended(client: &Client, begun: &Value) -> Value {
    until_within(PATIENCE, "the job ends", || job(client, begun)["state"] != "running");
    job(client, begun)
}

fn reports(client: &Client, of: &Value) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let target = format!("/v1/jobs/{}/reports?limit=3{cursor}", of["job"].as_str().unwrap());
        let page = client.get(&target).ok();
        all.extend(page["reports"].as_array().unwrap().iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

fn record(client: &Client, collection: &str, id: &str) -> Value {
    client.get(&format!("{}?id={id}", documents(collection))).ok()
}

fn near(number: u64) -> String {
    format!("{} end", words(number))
}

#[test]
fn a_crawl_is_merged_document_by_document() {
    let dir = dir();
    let server = Server::start(&dir.path().join("data"));
    let client = Client::new(server.url(""));
    create(&client, "crawl", &json!({}));
    insert(&client, "default", "", &json!({"id": "old", "text": words(1)}));
    insert(&client, "default", "", &json!({"id": "taken", "text": words(2)}));
    insert(&client, "default", "", &json!({"id": "same", "text": words(3)}));
    let page = json!({
        "id": "new", "text": words(4), "metadata": {"n": 1}, "labels": {"site": "a"},
        "date": "2026-11-20T10:00:00Z", "payload_digest": "sha1:abc",
    });
    insert(&client, "crawl", "", &page);
    insert(&client, "crawl", "", &json!({"id": "copy", "text": words(1)}));
    insert(&client, "crawl", "", &json!({"id": "taken", "text": words(5)}));
    insert(&client, "crawl", "", &json!({"id": "same", "text": words(3)}));
    insert(&client, "crawl", "on_duplicate=store", &json!({"id": "near", "text": near(4)}));
    let begun = merge(&client, "default", &json!({"from": "crawl"}));
    let told = ["kind", "collection", "from", "on_duplicate", "on_existing"].map(|name| begun[name].as_str().unwrap());
    assert_eq!(told, ["merge", "default", "crawl", "skip", "conflict"], "{begun}");
    assert_eq!(begun["documents"], 5);
    let ended = until_ended(&client, &begun);
    assert_eq!((&ended["state"], &ended["done"]), (&json!("done"), &json!(5)), "{ended}");
    assert_eq!(ended["outcomes"], json!({"inserted": 1, "skipped": 2, "refused": 1, "unchanged": 1}), "{ended}");
    assert_eq!(ended["verdicts"], json!({"unique": 2, "exact_duplicate": 1, "near_duplicate": 1}), "{ended}");
    let reported = reports(&client, &begun);
    let lines: Vec<_> =
        reported.iter().map(|one| (one["id"].as_str().unwrap(), one["outcome"].as_str().unwrap())).collect();
    let expected =
        [("new", "inserted"), ("copy", "skipped"), ("taken", "refused"), ("same", "unchanged"), ("near", "skipped")];
    assert_eq!(lines, expected);
    assert_eq!((&reported[1]["duplicate_of"], &reported[4]["duplicate_of"]), (&json!("old"), &json!("new")));
    assert!(reported[2]["error"].as_str().unwrap().contains("on_existing"), "{}", reported[2]);
    let merged = record(&client, "default", "new");
    let there = record(&client, "crawl", "new");
    for name in ["metadata", "labels", "date", "payload_digest", "shingles"] {
        assert_eq!(merged[name], there[name], "{name}");
    }
    assert_eq!(record(&client, "default", "taken")["first_seen"], record(&client, "default", "taken")["id_first_seen"]);
    // The merge is repeated, then done again with other options.
    let again = until_ended(&client, &merge(&client, "default", &json!({"from": "crawl"})));
    assert_eq!(again["outcomes"], json!({"skipped": 2, "refused": 1, "unchanged": 2}), "{again}");
    let input = json!({"from": "crawl", "on_duplicate": "store", "on_existing": "replace"});
    let replaced = until_ended(&client, &merge(&client, "default", &input));
    assert_eq!(replaced["outcomes"], json!({"inserted": 2, "replaced": 1, "unchanged": 2}), "{replaced}");
    assert_eq!(client.get("/v1/collections/default").ok()["documents"], 6);
    let listed = client.get("/v1/jobs?collection=default").ok();
    assert_eq!(listed["jobs"].as_array().unwrap().len(), 3);
}

#[test]
fn payloads_come_along_and_are_compared() {
    for (keep, verify) in [("shingles", "exact"), ("text", "exact")] {
        let dir = dir();
        let server = Local::plain(&dir);
        let client = Client::of(&server);
        let settings = json!({"keep": keep, "verify": verify});
        create(&client, "main", &settings);
        create(&client, "crawl", &settings);
        for number in 0..5 {
            insert(&client, "crawl", "", &json!({"id": format!("d{number}"), "text": words(number)}));
        }
        insert(&client, "main", "", &json!({"id": "m", "text": near(2)}));
        let ended = until_ended(&client, &merge(&client, "main", &json!({"from": "crawl"})));
        assert_eq!(ended["outcomes"], json!({"inserted": 4, "skipped": 1}), "{ended}");
        let found = client.post("/v1/collections/main/check", &json!({"text": near(3)})).ok();
        assert_eq!(
            (&found["duplicate_of"], &found["matches"][0]["method"]),
            (&json!("d3"), &json!("exact")),
            "{found}"
        );
        if keep == "text" {
            let text = client.get(&format!("{}?id=d3&with=text", documents("main"))).ok();
            let own = client.get(&format!("{}?id=d3&with=text", documents("crawl"))).ok();
            assert!(text["text"].is_string() && text["text"] == own["text"], "{text}");
        }
    }
}

#[test]
fn a_merge_goes_on_after_crashes_and_decides_on_each_document_once() {
    let dir = dir();
    let data = dir.path().join("data");
    let mut server = Server::start(&data);
    let mut client = Client::new(server.url(""));
    create(&client, "crawl", &json!({}));
    let count = 4000;
    let lines: String = (0..count)
        .map(|number| json!({"id": format!("d{number}"), "text": words(number / 2)}).to_string() + "\n")
        .collect();
    let target = "/v1/collections/crawl/bulk?op=insert&on_duplicate=store";
    let headers = [("content-type", "application/x-ndjson")];
    assert_eq!(client.send("POST", target, &headers, lines.as_bytes()).status, 200);
    let begun = merge(&client, "default", &json!({"from": "crawl"}));
    let mut seen = 0;
    for _ in 0..4 {
        until_within(PATIENCE, "the merge goes on", || {
            let now = job(&client, &begun);
            now["done"].as_u64().unwrap() > seen || now["state"] == "done"
        });
        server.kill();
        server = Server::start(&data);
        client = Client::new(server.url(""));
        let now = job(&client, &begun)["done"].as_u64().unwrap();
        assert!(now > seen, "{now}");
        seen = now;
    }
    let ended = until_ended(&client, &begun);
    assert_eq!(ended["outcomes"], json!({"inserted": count / 2, "skipped": count / 2}), "{ended}");
    let reported = client.get(&format!("/v1/jobs/{}/reports?limit=1000", begun["job"].as_str().unwrap())).ok();
    assert_eq!(reported["reports"].as_array().unwrap().len(), 1000);
    let mut outcomes = BTreeMap::new();
    for one in reports(&client, &begun) {
        let number: u64 = one["id"].as_str().unwrap()[1..].parse().unwrap();
        let before = outcomes.insert(number, one["outcome"].as_str().unwrap().to_owned());
        assert_eq!(before, None, "twice: {one}");
    }
    assert!(outcomes.iter().all(|(number, outcome)| outcome == if number % 2 == 0 { "inserted" } else { "skipped" }));
    assert_eq!(outcomes.len() as u64, count);
    assert!(server.terminate().success());
    let verified = run(&["verify", "--data-dir", data.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(verified.status.success() && said.contains("default: sound, 2000 documents"), "{said}");
}

/// In an earlier version, documents whose commit failed were skipped if a later document of the same step was stored.
#[test]
fn commits_that_fail_cost_a_merge_no_document() {
    let dir = dir();
    let server = Server::start(&dir.path().join("data"));
    let client = Client::new(server.url(""));
    create(&client, "crawl", &json!({}));
    let count = 600;
    for number in 0..count {
        insert(&client, "crawl", "", &json!({"id": format!("d{number}"), "text": words(number)}));
    }
    let refuses = refuse(&dir, "default", "BEFORE INSERT ON document WHEN abs(random()) % 60 = 0");
    let ended = until_ended(&client, &merge(&client, "default", &json!({"from": "crawl"})));
    assert_eq!((&ended["state"], &ended["outcomes"]), (&json!("done"), &json!({"inserted": count})), "{ended}");
    assert_eq!(client.get("/v1/collections/default").ok()["documents"], count);
    let failures = client.get("/metrics").text();
    let failures =
        failures.lines().find(|line| line.starts_with("hapax_commit_failures_total{collection=\"default\"}")).unwrap();
    assert!(!failures.ends_with(" 0"), "no commit failed, so nothing was tested: {failures}");
    let counted = client.get("/v1/collections/default/statistics").ok();
    assert_eq!(counted["all"]["unique"], count, "{counted}");
    refuses.execute_batch("DROP TRIGGER no").unwrap();
}

#[test]
fn a_merge_that_runs_is_not_begun_with_other_options() {
    let dir = dir();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    create(&client, "crawl", &json!({}));
    let lines: String =
        (0..3000).map(|number| json!({"id": format!("d{number}"), "text": words(number)}).to_string() + "\n").collect();
    let headers = [("content-type", "application/x-ndjson")];
    assert_eq!(client.send("POST", "/v1/collections/crawl/bulk?op=insert", &headers, lines.as_bytes()).status, 200);
    let begun = merge(&client, "default", &json!({"from": "crawl"}));
    assert_eq!(merge(&client, "default", &json!({"from": "crawl"}))["job"], begun["job"]);
    let other = json!({"from": "crawl", "on_existing": "replace"});
    let refused = client.post("/v1/collections/default/merge", &other).problem(409, "not_mergeable");
    assert!(refused["detail"].as_str().unwrap().contains("`on_existing` = `conflict`"), "{refused}");
    until_ended(&client, &begun);
    until_ended(&client, &merge(&client, "default", &other));
}

#[test]
fn a_merge_is_seen_by_keys_for_both_collections() {
    let dir = dir();
    let keys = [
        ("all", &["read", "insert", "admin"][..], ""),
        ("some", &["read", "insert"][..], "collections = [\"default\"]"),
    ];
    let server = Setup { keys_file: Some(keys::file::write(dir.path(), &keys)), ..Setup::new(&dir) }.start();
    let (all, some) = (Client::of(&server).key("all"), Client::of(&server).key("some"));
    create(&all, "private", &json!({}));
    insert(&all, "private", "", &json!({"id": "secret", "text": words(1)}));
    let ended = until_ended(&all, &merge(&all, "default", &json!({"from": "private"})));
    let path = format!("/v1/jobs/{}", ended["job"].as_str().unwrap());
    assert_eq!(all.get("/v1/jobs").ok()["jobs"], json!([ended]));
    assert_eq!(some.get("/v1/jobs").ok(), json!({ "jobs": [] }));
    some.get(&path).problem(404, "job_not_found");
    some.get(&format!("{path}/reports")).problem(404, "job_not_found");
    some.delete(&path).problem(404, "job_not_found");
    all.get(&format!("{path}/reports")).ok();
}

#[test]
fn a_merge_from_a_damaged_collection_is_aborted() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    create(&client, "crawl", &json!({}));
    create(&client, "sound", &json!({}));
    for number in 0..10 {
        insert(&client, "crawl", "", &json!({"id": format!("d{number}"), "text": words(number)}));
        insert(&client, "sound", "", &json!({"id": format!("s{number}"), "text": words(100 + number)}));
    }
    file(&dir, "crawl").execute("UPDATE document SET shingles = shingles + 1 WHERE seq = 5", []).unwrap();
    let (damaged, sound) =
        (merge(&client, "default", &json!({"from": "crawl"})), merge(&client, "default", &json!({"from": "sound"})));
    let ended = until_ended(&client, &damaged);
    assert_eq!(ended["state"], "aborted", "{ended}");
    assert!(ended["detail"].as_str().unwrap().contains("hapax verify --repair"), "{ended}");
    // In an earlier version, one merge that could not continue kept all later ones waiting.
    assert_eq!(until_ended(&client, &sound)["outcomes"], json!({"inserted": 10}));
}

#[test]
fn a_merge_can_be_stopped() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    for from in ["first", "second"] {
        create(&client, from, &json!({}));
        insert(&client, from, "", &json!({"id": from, "text": words(1)}));
    }
    // The first merge waits, because its commits fail, and the second merge waits for the first.
    let refuses = refuse(&dir, "default", "BEFORE INSERT ON document");
    let begun = ["first", "second"].map(|from| merge(&client, "default", &json!({"from": from})));
    let stop = |job: &Value| client.delete(&format!("/v1/jobs/{}", job["job"].as_str().unwrap()));
    for job in begun.iter().rev() {
        let ended = stop(job).ok();
        assert_eq!((&ended["state"], &ended["done"]), (&json!("aborted"), &json!(0)), "{ended}");
        assert!(ended["detail"].as_str().unwrap().contains("DELETE /v1/jobs"), "{ended}");
        assert_eq!(stop(job).ok(), ended, "again");
    }
    refuses.execute_batch("DROP TRIGGER no").unwrap();
    let again = until_ended(&client, &merge(&client, "default", &json!({"from": "first"})));
    assert_eq!((&again["state"], &again["outcomes"]), (&json!("done"), &json!({"inserted": 1})), "{again}");
    assert_eq!(stop(&again).ok()["state"], "done", "it had ended");
    let deletion = client.delete(&format!("{}?label=a:b", documents("default"))).json();
    stop(&deletion).problem(422, "invalid_value");
}

#[test]
fn what_is_replaced_before_its_turn_is_left_out_and_that_is_said() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    create(&client, "crawl", &json!({}));
    create(&client, "first", &json!({}));
    for number in 0..5 {
        insert(&client, "crawl", "", &json!({"id": format!("d{number}"), "text": words(number)}));
    }
    // The commits of the first merge fail, so the second merge waits.
    insert(&client, "first", "", &json!({"id": "x", "text": words(50)}));
    let refuses = refuse(&dir, "default", "BEFORE INSERT ON document");
    merge(&client, "default", &json!({"from": "first"}));
    let begun = merge(&client, "default", &json!({"from": "crawl"}));
    insert(&client, "crawl", "on_existing=replace", &json!({"id": "d3", "text": words(33)}));
    refuses.execute_batch("DROP TRIGGER no").unwrap();
    let ended = until_ended(&client, &begun);
    assert_eq!((&ended["documents"], &ended["done"]), (&json!(5), &json!(4)), "{ended}");
    assert!(ended["detail"].as_str().unwrap().contains("1 of the documents"), "{ended}");
    let again = until_ended(&client, &merge(&client, "default", &json!({"from": "crawl"})));
    assert_eq!(again["outcomes"], json!({"inserted": 1, "unchanged": 4}), "{again}");
    assert_eq!(again["detail"], Value::Null, "{again}");
}

#[test]
fn dropping_the_staging_collection_aborts_the_merge() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    create(&client, "crawl", &json!({}));
    let lines: String =
        (0..3000).map(|number| json!({"id": format!("d{number}"), "text": words(number)}).to_string() + "\n").collect();
    let headers = [("content-type", "application/x-ndjson")];
    client.send("POST", "/v1/collections/crawl/bulk?op=insert", &headers, lines.as_bytes());
    let begun = merge(&client, "default", &json!({"from": "crawl"}));
    // While the merge runs, the same request returns the same job.
    let same = merge(&client, "default", &json!({"from": "crawl"}));
    assert!(same["job"] == begun["job"] || job(&client, &begun)["state"] == "done");
    assert_eq!(client.delete("/v1/collections/crawl?confirm=crawl").status, 200);
    let ended = until_ended(&client, &begun);
    let stored = client.get("/v1/collections/default").ok()["documents"].as_u64().unwrap();
    if ended["state"] == "aborted" {
        assert!(ended["detail"].as_str().unwrap().contains("dropped"), "{ended}");
    }
    assert_eq!(ended["done"], stored, "{ended}");
    // A new collection with the same name is another collection.
    create(&client, "crawl", &json!({}));
    insert(&client, "crawl", "", &json!({"id": "x", "text": words(9999)}));
    let again = until_ended(&client, &merge(&client, "default", &json!({"from": "crawl"})));
    assert_eq!(again["outcomes"], json!({"inserted": 1}), "{again}");
}

#[test]
fn wrong_merges_are_explained() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    create(&client, "texts", &json!({"keep": "text"}));
    create(&client, "visible", &json!({"extract": "visible"}));
    create(&client, "words", &json!({"shingle": "word3"}));
    let target = "/v1/collections/default/merge";
    for (from, setting) in [("texts", "keep"), ("visible", "extract"), ("words", "spec")] {
        let refused = client.post(target, &json!({ "from": from })).problem(409, "not_mergeable");
        assert!(refused["detail"].as_str().unwrap().contains(&format!("`{setting}`")), "{refused}");
    }
    for input in [
        json!({}),
        json!({"from": "default"}),
        json!({"from": "A"}),
        json!({"from": 5}),
        json!({"from": "texts", "on_duplicate": "odd"}),
        json!({"from": "texts", "on_existing": "odd"}),
        json!({"from": "texts", "more": 1}),
    ] {
        client.post(target, &input).problem(422, "invalid_value");
    }
    client.post(target, &json!({"from": "none"})).problem(404, "collection_not_found");
    client.post("/v1/collections/none/merge", &json!({"from": "texts"})).problem(404, "collection_not_found");
    let deletion = client.delete(&format!("{}?label=a:b", documents("default"))).json();
    let reports = format!("/v1/jobs/{}/reports", deletion["job"].as_str().unwrap());
    client.get(&reports).problem(422, "invalid_value");
    client.get("/v1/jobs/default.999/reports").problem(404, "job_not_found");
    create(&client, "empty", &json!({}));
    let ended = until_ended(&client, &merge(&client, "default", &json!({"from": "empty"})));
    assert_eq!((&ended["state"], &ended["documents"]), (&json!("done"), &json!(0)), "{ended}");
    let job = ended["job"].as_str().unwrap();
    client.get(&format!("/v1/jobs/{job}/reports?cursor=x")).problem(422, "invalid_value");
    assert_eq!(client.get(&format!("/v1/jobs/{job}/reports?cursor=5")).ok(), json!({ "reports": [] }));
}

#[test]
fn the_oldest_jobs_are_forgotten_with_their_reports() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    create(&client, "crawl", &json!({}));
    insert(&client, "crawl", "", &json!({"id": "a", "text": words(1)}));
    let first = until_ended(&client, &merge(&client, "default", &json!({"from": "crawl"})));
    let jobs = || client.get("/v1/jobs?limit=1000").ok()["jobs"].as_array().unwrap().clone();
    let is_listed = || jobs().iter().any(|job| job["job"] == first["job"]);
    // At most 64 jobs run at a time.
    let delete = |label: &str| {
        let begins = || client.delete(&format!("{}?label={label}", documents("default"))).status == 202;
        until_within(PATIENCE, "the deletion begins", begins);
    };
    // Jobs that found nothing to do are forgotten first.
    (0..105).for_each(|_| delete("a:b"));
    until_within(PATIENCE, "old jobs are forgotten", || jobs().len() == 100);
    assert!(is_listed());
    for number in 0..101 {
        let label = format!("n:{number}");
        let document = json!({"id": label, "text": words(number + 2), "labels": {"n": number.to_string()}});
        insert(&client, "default", "", &document);
        delete(&label);
    }
    until_within(PATIENCE, "old jobs are forgotten", || jobs().len() == 100 && !is_listed());
    client.get(&format!("/v1/jobs/{}", first["job"].as_str().unwrap())).problem(404, "job_not_found");
}
