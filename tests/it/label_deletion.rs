//! Deletion of all documents with a label: immediately for answers, later in memory and on disk, and even across
//! crashes.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::keys;
use crate::support::client::{Answer, Client, DOCUMENTS, words};
use crate::support::command::run;
use crate::support::library::{dir, file, refuse};
use crate::support::local::{Local, Setup};
use crate::support::server::Server;
use crate::support::until::until_within;

const DEFAULT: &str = "/v1/collections/default";
const PATIENCE: Duration = Duration::from_secs(60);

fn insert(client: &Client, query: &str, id: &str, text: &str, labels: Value) -> Value {
    let mut document = json!({ "id": id, "text": text });
    if !labels.is_null() {
        document["labels"] = labels;
    }
    client.post(&format!("{DOCUMENTS}?{query}"), &document).ok()
}

fn delete_label(client: &Client, label: &str) -> Answer {
    client.delete(&format!("{DOCUMENTS}?label={label}"))
}

/// Deletes the documents with a label, and returns the job.
fn deleted(client: &Client, label: &str) -> Value {
    let answer = delete_label(client, label);
    assert_eq!(answer.status, 202, "{}", answer.text());
    let job = answer.json();
    assert_eq!(answer.headers["location"], format!("/v1/jobs/{}", job["job"].as_str().unwrap()));
    job
}

fn job(client: &Client, job: &Value) -> Value {
    client.get(&format!("/v1/jobs/{}", job["job"].as_str().unwrap())).ok()
}

fn until_done(client: &Client, begun: &Value) {
    until_within(PATIENCE, "the job ends", || job(client, begun)["state"] == "done");
    let ended = job(client, begun);
    assert_eq!((&ended["done"], &ended["documents"]), (&begun["documents"], &begun["documents"]), "{ended}");
    assert!(ended["ended"].is_string(), "{ended}");
}

fn check(client: &Client, text: &str) -> Value {
    let verdict = client.post(&format!("{DEFAULT}/check"), &json!({ "text": text })).ok();
    assert_eq!(verdict["complete"], true, "{verdict}");
    verdict
}

fn cited(verdict: &Value) -> Vec<&str> {
    verdict["matches"].as_array().unwrap().iter().map(|found| found["id"].as_str().unwrap()).collect()
}

fn listed(client: &Client, query: &str) -> BTreeSet<String> {
    let (mut ids, mut cursor) = (BTreeSet::new(), String::new());
    loop {
        let page = client.get(&format!("{DOCUMENTS}?limit=3&{query}{cursor}")).ok();
        ids.extend(page["documents"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

fn documents(client: &Client) -> u64 {
    client.get(DEFAULT).ok()["documents"].as_u64().unwrap()
}

fn counted(client: &Client) -> Vec<String> {
    let labels = client.get(&format!("{DEFAULT}/labels")).ok();
    let line = |label: &Value| format!("{}={}", label["value"].as_str().unwrap(), label["documents"]);
    labels["labels"].as_array().unwrap().iter().map(line).collect()
}

fn set(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

#[test]
fn documents_with_a_label_are_gone_at_once_and_others_stay() {
    let dir = dir();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    for number in 0..8 {
        let site = if number % 2 == 0 { "even" } else { "odd" };
        insert(&client, "", &format!("d{number}"), &words(number), json!({ "site": site }));
    }
    insert(&client, "", "plain", &words(8), Value::Null);
    let begun = deleted(&client, "site:even");
    assert_eq!((&begun["kind"], &begun["collection"]), (&json!("delete_label"), &json!("default")), "{begun}");
    assert_eq!((&begun["label"], &begun["documents"]), (&json!("site:even"), &json!(4)), "{begun}");
    let left = set(&["d1", "d3", "d5", "d7", "plain"]);
    let look = |client: &Client| {
        assert_eq!((listed(client, ""), documents(client)), (left.clone(), 5));
        assert_eq!(counted(client), ["odd=4"]);
        assert_eq!(listed(client, "label=site:even"), BTreeSet::new());
        for number in 0..8 {
            let (id, here) = (format!("d{number}"), number % 2 == 1);
            assert_eq!(check(client, &words(number))["verdict"] != "unique", here, "{id}");
            assert_eq!(client.get(&format!("{DOCUMENTS}?id={id}")).status, if here { 200 } else { 404 });
        }
    };
    look(&client);
    until_done(&client, &begun);
    look(&client);
    // There is no document left to delete, but the request still makes a job.
    let again = deleted(&client, "site:even");
    assert_eq!((&again["state"], &again["documents"]), (&json!("done"), &json!(0)));
    let jobs = client.get("/v1/jobs").ok();
    let names: Vec<&Value> = jobs["jobs"].as_array().unwrap().iter().map(|job| &job["job"]).collect();
    assert_eq!(names, [&again["job"], &begun["job"]]);
    assert!(server.terminate().success());
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    look(&client);
    assert_eq!(job(&client, &begun)["state"], "done");
    drop(server);
    let verified = run(&["verify", "--data-dir", data.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(verified.status.success() && said.contains("default: sound, 5 documents"), "{said}");
}

#[test]
fn a_crawl_that_begins_right_after_the_call_is_not_judged_against_the_old_one() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let count = 600;
    for number in 0..count {
        insert(&client, "", &format!("p{number}"), &words(number), json!({ "site": "a" }));
    }
    let begun = deleted(&client, "site:a");
    assert_eq!(begun["documents"], count);
    for number in 0..count {
        let again = insert(&client, "", &format!("p{number}"), &words(number), json!({ "site": "a" }));
        let told = (&again["verdict"], &again["outcome"]);
        assert_eq!(told, (&json!("unique"), &json!("inserted")), "{number}: {again}");
    }
    until_done(&client, &begun);
    assert_eq!((documents(&client), counted(&client)), (count, vec![format!("a={count}")]));
    assert_eq!(check(&client, &words(5))["duplicate_of"], "p5");
    // A document that gets the label later is not deleted, and one that has lost the label is not deleted either.
    insert(&client, "", "p1", &words(1), json!({ "site": "b" }));
    insert(&client, "", "late", &words(1000), json!({ "site": "b" }));
    let begun = deleted(&client, "site:a");
    assert_eq!(begun["documents"], count - 1);
    insert(&client, "", "late", &words(1000), json!({ "site": "a" }));
    until_done(&client, &begun);
    assert_eq!((listed(&client, ""), counted(&client)), (set(&["late", "p1"]), vec!["a=1".into(), "b=1".into()]));
}

/// `r` represents `m` and the link `l`. The three have different sites.
fn cluster(client: &Client) {
    insert(client, "", "r", &words(1), json!({ "site": "r" }));
    insert(client, "on_duplicate=link", "l", &format!("start {}", words(1)), json!({ "site": "l" }));
    insert(client, "on_duplicate=store", "m", &format!("{} end", words(1)), json!({ "site": "m" }));
}

#[test]
fn the_next_living_document_represents_a_cluster() {
    for gone in [&["r"][..], &["r", "l"], &["l"], &["m"], &["r", "m"], &["l", "r"]] {
        let dir = dir();
        let data = dir.path().join("data");
        let server = Server::start(&data);
        let client = Client::new(server.url(""));
        cluster(&client);
        let mut jobs = Vec::new();
        for site in gone {
            jobs.push(deleted(&client, &format!("site:{site}")));
        }
        let left: Vec<&str> = ["r", "l", "m"].into_iter().filter(|id| !gone.contains(id)).collect();
        let look = |client: &Client, told: &str| {
            let found = check(client, &words(1));
            let cited = cited(&found);
            assert!(cited.contains(&left[0]), "{gone:?}, {told}: {found}");
            assert!(cited.iter().all(|id| left.contains(id)), "{gone:?}, {told}: {found}");
            let page = client.get(&format!("{DEFAULT}/clusters?id={}", left[left.len() - 1])).ok();
            let told = (&page["representative"], &page["documents"]);
            assert_eq!(told, (&json!(left[0]), &json!(left.len())), "{gone:?}: {page}");
            let record = client.get(&format!("{DOCUMENTS}?id={}", left[left.len() - 1])).ok();
            let named = if left.len() == 1 { Value::Null } else { json!(left[0]) };
            assert_eq!(record["representative"], named, "{gone:?}: {record}");
        };
        look(&client, "at once");
        let joined = insert(&client, "on_duplicate=store", "new", &format!("{} more", words(1)), Value::Null);
        assert_eq!(joined["representative"], left[0], "{gone:?}: {joined}");
        assert_eq!(client.delete(&format!("{DOCUMENTS}?id=new")).ok()["deleted"], 1);
        jobs.iter().for_each(|job| until_done(&client, job));
        look(&client, "afterwards");
        server.kill();
        let server = Server::start(&data);
        look(&Client::new(server.url("")), "after a restart");
    }
}

#[test]
fn a_deletion_goes_on_after_a_crash() {
    let dir = dir();
    let data = dir.path().join("data");
    let mut server = Server::start(&data);
    let mut client = Client::new(server.url(""));
    let lines: String = (0..6000)
        .map(|number| {
            let site = if number % 3 == 0 { "kept" } else { "gone" };
            json!({"id": format!("d{number}"), "text": words(number), "labels": {"site": site}}).to_string() + "\n"
        })
        .collect();
    assert_eq!(client.bulk("op=insert", &lines).len(), 6001, "one line for each, and the summary");
    let begun = deleted(&client, "site:gone");
    assert_eq!(begun["documents"], 4000);
    for _ in 0..3 {
        server.kill();
        server = Server::start(&data);
        client = Client::new(server.url(""));
        assert_eq!(documents(&client), 2000);
        assert_eq!(check(&client, &words(1))["verdict"], "unique");
        assert_eq!(check(&client, &words(3))["duplicate_of"], "d3");
        assert_eq!(job(&client, &begun)["documents"], 4000);
    }
    let exported = |data: &std::path::Path| {
        let output = run(&["export", "--data-dir", data.to_str().unwrap()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().count()
    };
    server.kill();
    assert_eq!(exported(&data), 2000);
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    until_done(&client, &begun);
    assert!(server.terminate().success());
    assert_eq!(exported(&data), 2000);
    let verified = run(&["verify", "--data-dir", data.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&verified.stdout).contains("default: sound, 2000 documents"));
}

#[test]
fn a_first_verdict_that_is_repeated_names_no_deleted_match() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    cluster(&client);
    // The rows stay on the disk, because their removal is refused.
    let refuses = refuse(&dir, "default", "BEFORE DELETE ON document");
    deleted(&client, "site:r");
    let again = insert(&client, "", "m", &format!("{} end", words(1)), Value::Null);
    assert_eq!((&again["outcome"], &again["matches"]), (&json!("unchanged"), &json!([])), "{again}");
    refuses.execute_batch("DROP TRIGGER no").unwrap();
}

/// In an earlier version, a deletion that met a damaged document stopped all writes of the collection, and did so again
/// after each start.
#[test]
fn a_damaged_document_does_not_stop_a_deletion() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    for number in 0..20 {
        insert(&client, "", &format!("d{number}"), &words(number), json!({ "site": "a" }));
    }
    assert_eq!(
        file(&dir, "default").execute("DELETE FROM document WHERE id = CAST('d7' AS BLOB) OR id = 'd7'", []).unwrap(),
        1
    );
    until_done(&client, &deleted(&client, "site:a"));
    insert(&client, "", "next", &words(100), Value::Null);
    assert_eq!(listed(&client, ""), set(&["next"]));
    drop(server);
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    insert(&client, "", "last", &words(101), Value::Null);
    assert_eq!((listed(&client, ""), documents(&client)), (set(&["last", "next"]), 2));
}

#[test]
fn a_deletion_counts_as_many_documents_as_it_deletes_for_the_limits_of_a_key() {
    let dir = dir();
    let keys =
        [("all", &["read", "insert"][..], ""), ("slow", &["delete"][..], "limits = { documents_per_second = 1 }")];
    let server = Setup { keys_file: Some(keys::file::write(dir.path(), &keys)), ..Setup::new(&dir) }.start();
    let (all, slow) = (Client::of(&server).key("all"), Client::of(&server).key("slow"));
    for number in 0..100 {
        insert(&all, "", &format!("d{number}"), &words(number), json!({ "site": "a" }));
    }
    assert_eq!(delete_label(&slow, "site:a").json()["documents"], 100);
    let refused = delete_label(&slow, "site:a");
    refused.problem(429, "rate_limited");
    let wait: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((80..=101).contains(&wait), "{wait}");
}

#[test]
fn a_deletion_that_the_disk_refuses_is_undone() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    cluster(&client);
    insert(&client, "", "s", &words(2), json!({ "site": "r" }));
    let refuses = refuse(&dir, "default", "BEFORE INSERT ON job");
    assert!(delete_label(&client, "site:r").status >= 500);
    assert_eq!((documents(&client), counted(&client)), (4, vec!["l=1".into(), "m=1".into(), "r=2".into()]));
    assert_eq!(check(&client, &words(1))["duplicate_of"], "r");
    assert_eq!(client.get("/v1/jobs").ok(), json!({ "jobs": [] }));
    let joined = insert(&client, "on_duplicate=store", "new", &format!("{} more", words(1)), Value::Null);
    assert_eq!(joined["representative"], "r");
    refuses.execute_batch("DROP TRIGGER no").unwrap();
    until_done(&client, &deleted(&client, "site:r"));
    assert_eq!(listed(&client, ""), set(&["l", "m", "new"]));
}

#[test]
fn no_answer_rests_on_documents_whose_deletion_is_in_doubt() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    cluster(&client);
    insert(&client, "", "s", &words(2), json!({ "site": "s" }));
    let refuses = refuse(&dir, "default", "BEFORE UPDATE ON ledger WHEN new.tally = 'signature'");
    delete_label(&client, "site:r").problem(503, "write_failed");
    let found = client.post(&format!("{DEFAULT}/check"), &json!({ "text": words(1) })).ok();
    assert_eq!((cited(&found), &found["complete"]), (vec!["m"], &json!(false)), "{found}");
    client.get(&format!("{DOCUMENTS}?id=r")).problem(503, "write_failed");
    client.get(&format!("{DOCUMENTS}?id=s")).ok();
    assert_eq!(check(&client, &words(2))["duplicate_of"], "s");
    delete_label(&client, "site:s").problem(503, "write_failed");
    drop(server);
    refuses.execute_batch("DROP TRIGGER no").unwrap();
    let server = Local::plain(&dir);
    assert_eq!(check(&Client::of(&server), &words(1))["duplicate_of"], "r");
}

#[test]
fn wrong_requests_are_explained() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    for query in ["", "id=a&label=site:a", "label=site", "label=site:a&label=site:b", "label=Site:a", "label="] {
        client.delete(&format!("{DOCUMENTS}?{query}")).problem(422, "invalid_value");
    }
    client.get("/v1/jobs/default.1").problem(404, "job_not_found");
    client.get("/v1/jobs/other.1").problem(404, "collection_not_found");
    client.get("/v1/jobs?collection=other").problem(404, "collection_not_found");
    for target in ["jobs/default", "jobs/default.x", "jobs/.1", "jobs?state=odd", "jobs?limit=0", "jobs?collection=A"] {
        client.get(&format!("/v1/{target}")).problem(422, "invalid_value");
    }
    let done = deleted(&client, "site:a");
    assert_eq!(client.get("/v1/jobs?state=ended&collection=default").ok()["jobs"][0]["job"], done["job"]);
    assert_eq!(client.get("/v1/jobs?state=running").ok(), json!({ "jobs": [] }));
}
