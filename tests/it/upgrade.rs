//! Files of earlier versions open and give the same answers. Files of later versions are refused.
//!
//! `tests/fixtures/format-N` has the collections of a data directory as the last version of that format left them when
//! it was stopped. `format-N-killed` has the collections as this version left them when it was killed, with everything
//! still in the log. Each fixture also has the recorded answers. A new format needs new fixtures, made by the program
//! that writes this format:
//!
//! ```text
//! HAPAX_FIXTURE=tests/fixtures/format-8 cargo test --test it upgrade::a_fixture_is_made
//! ```
//!
//! With `HAPAX_FIXTURE_BINARY`, another program makes the fixture. If the name of the fixture ends in `-killed`, the
//! program is killed. Without the variables, the test makes fixtures of this version, and deletes them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::server::{Server, Starting};
use crate::support::until::until;

const ANSWERS: &str = "answers.json";

pub fn fixtures() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut found: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.file_name().unwrap().to_str().unwrap().starts_with("format-"));
    found.sort();
    found
}

/// Copies the files of a fixture into a new data directory.
pub fn laid_out(fixture: &Path, parent: &Path) -> PathBuf {
    let data = parent.join("data");
    let collections = data.join("collections");
    fs::create_dir_all(&collections).unwrap();
    for entry in fs::read_dir(fixture).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap() != ANSWERS {
            fs::copy(&path, collections.join(path.file_name().unwrap())).unwrap();
        }
    }
    data
}

pub fn answers(fixture: &Path) -> Value {
    serde_json::from_slice(&fs::read(fixture.join(ANSWERS)).unwrap()).unwrap()
}

fn format_of(file: &Path) -> i32 {
    let connection = Connection::open(file).unwrap();
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[test]
fn every_format_written_so_far_opens_and_answers_as_recorded() {
    let parent = tempfile::tempdir().unwrap();
    let new = parent.path().join("new");
    assert!(Server::start(&new).terminate().success());
    let present = format_of(&new.join("collections/default.sqlite"));
    let names: Vec<_> = fixtures().iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    for format in 1..=present {
        for name in [format!("format-{format}"), format!("format-{format}-killed")] {
            assert!(names.contains(&name), "tests/fixtures/{name} is missing");
        }
    }
    for fixture in fixtures() {
        let parent = tempfile::tempdir().unwrap();
        let data = laid_out(&fixture, parent.path());
        let recorded = answers(&fixture);
        let server = Server::start(&data);
        holds(&fixture, &server, &recorded);
        // The second run finds a file of this format, with the additions of the first run.
        let client = Client::new(server.url(""));
        let retried = client.post("/v1/collections/default/documents", &document(0)).ok();
        assert_eq!(retried["outcome"], "unchanged", "{retried}");
        let added = client.post("/v1/collections/default/documents", &document(50)).ok();
        assert_eq!(added["outcome"], "inserted", "{added}");
        assert!(server.terminate().success());
        assert_eq!(format_of(&data.join("collections/default.sqlite")), present);
        let server = Server::start(&data);
        let client = Client::new(server.url(""));
        let found = client.post("/v1/collections/default/check", &json!({ "text": text(50, 0) })).ok();
        assert_eq!(found["duplicate_of"], "doc-50", "{found}");
        assert_eq!(client.delete("/v1/collections/default/documents?id=doc-50").ok()["deleted"], 1);
        holds(&fixture, &server, &recorded);
    }
}

pub fn holds(fixture: &Path, server: &Server, recorded: &Value) {
    let client = Client::new(server.url(""));
    for asked in recorded.as_array().unwrap() {
        let target = asked["target"].as_str().unwrap();
        let answer = match asked.get("body") {
            Some(body) => client.post(target, body),
            None => client.get(target),
        };
        let what = format!("{}: {target} {}", fixture.display(), asked.get("body").unwrap_or(&Value::Null));
        contains(&what, &answer.ok(), &asked["answer"]);
    }
}

/// Checks that every recorded answer still holds. A later version may return more fields.
fn contains(what: &str, now: &Value, recorded: &Value) {
    match (now, recorded) {
        (Value::Object(now), Value::Object(recorded)) => {
            for (field, value) in recorded {
                // An interval may be wider now, because earlier intervals were too narrow.
                match field.as_str() {
                    "low" if now[field].as_f64() <= value.as_f64() => continue,
                    "high" if now[field].as_f64() >= value.as_f64() => continue,
                    _ => {}
                }
                contains(&format!("{what}: {field}"), now.get(field).unwrap_or(&Value::Null), value);
            }
        }
        (Value::Array(now), Value::Array(recorded)) => {
            assert_eq!(now.len(), recorded.len(), "{what}");
            now.iter().zip(recorded).for_each(|(now, recorded)| contains(what, now, recorded));
        }
        _ => assert_eq!(now, recorded, "{what}"),
    }
}

#[test]
fn a_later_format_is_refused_by_name() {
    let parent = tempfile::tempdir().unwrap();
    let data = laid_out(fixtures().last().unwrap(), parent.path());
    let file = data.join("collections/default.sqlite");
    // This start moves the contents of the log into the file.
    assert!(Server::start(&data).terminate().success());
    let later = format_of(&file) + 1;
    Connection::open(&file).unwrap().pragma_update(None, "user_version", later).unwrap();
    let before = fs::read(&file).unwrap();
    let mut refused = Starting::spawn(&data);
    assert_eq!(refused.wait().code(), Some(2));
    let told = refused.log_tail();
    assert!(told.contains(&format!("{} has format {later}", file.display())), "{told}");
    assert!(told.contains(&format!("reads formats up to {}", later - 1)), "{told}");
    assert_eq!(fs::read(&file).unwrap(), before, "it is not touched");
}

/// Returns 60 words. Each number has its own.
fn text(number: u64, changed: u64) -> String {
    (0..60).map(|word| format!("w{}x{word} ", if word < changed { 1000 + number } else { number })).collect()
}

fn document(number: u64) -> Value {
    let id = format!("doc-{number}");
    if number.is_multiple_of(2) {
        json!({ "id": id, "text": text(number, 0), "metadata": { "n": number, "note": "a \"quoted\" ß 🦀" } })
    } else {
        json!({ "id": id, "text": text(number, 0) })
    }
}

/// Returns a page of HTML. Its main text is always the same.
fn page(menu: &str) -> String {
    format!("<title>A page</title><nav><a href=x>{menu}</a></nav><main><p>{}</p></main>", text(70, 0))
}

/// Returns a pair of the golden set. The last one is labelled wrongly, so that one verdict differs.
fn golden_pair(number: u64) -> Value {
    let near = number.is_multiple_of(2);
    let (a, b) = (text(number, 0), if near { text(number, 2) } else { text(number + 20, 0) });
    json!({ "name": format!("pair-{number}"), "a": a, "b": b, "duplicate": near || number == 3 })
}

/// A program that writes a fixture. It may be an earlier version, so its answers are not checked against today's
/// description.
struct Writer {
    child: Child,
    base: String,
}

impl Writer {
    fn start(data: &Path) -> Self {
        let binary = std::env::var("HAPAX_FIXTURE_BINARY").unwrap_or(env!("CARGO_BIN_EXE_hapax").to_owned());
        let mut child = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let base = line.split_whitespace().find(|word| word.starts_with("http://")).expect("a ready line");
        Self { child, base: base.to_owned() }
    }

    fn send(&self, method: &str, target: &str, body: Option<&Value>) -> Value {
        let request = ureq::http::Request::builder().method(method).uri(format!("{}{target}", self.base));
        let agent = ureq::agent();
        let sent = match body {
            Some(body) => agent.run(request.header("content-type", "application/json").body(body.to_string()).unwrap()),
            None => agent.run(request.body(()).unwrap()),
        };
        let text = sent.unwrap_or_else(|error| panic!("{target}: {error}")).body_mut().read_to_string().unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Sends a body with PUT, and returns whether it was accepted.
    fn takes(&self, target: &str, body: &Value) -> bool {
        let put = ureq::agent().put(format!("{}{target}", self.base)).config().http_status_as_error(false).build();
        put.send_json(body).unwrap().status().is_success()
    }

    fn insert(&self, collection: &str, query: &str, document: &Value) {
        self.send("POST", &format!("/v1/collections/{collection}/documents?{query}"), Some(document));
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_fixture_is_made_and_answers_as_recorded() {
    let place = tempfile::tempdir().unwrap();
    let fixtures = match std::env::var_os("HAPAX_FIXTURE") {
        Some(fixture) => vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(fixture)],
        None => ["made", "made-killed"].map(|name| place.path().join(name)).into(),
    };
    for fixture in fixtures {
        make(&fixture);
        let parent = tempfile::tempdir().unwrap();
        let server = Server::start(&laid_out(&fixture, parent.path()));
        holds(&fixture, &server, &answers(&fixture));
    }
}

/// Inserts one page twice: the second time with the same text, but with another menu and other labels. Returns whether
/// the writer supports pages. Pages, labels and captures were introduced in the same format.
fn insert_pages(writer: &Writer) -> bool {
    let pages = writer.send("POST", "/v1/collections/default/extract", Some(&json!({ "html": "<p>a</p>" })));
    let pages = pages["extractor"].is_number();
    for menu in ["Home", "Start"].into_iter().filter(|_| pages) {
        for collection in ["default", "pages"] {
            writer.insert(
                collection,
                "on_existing=replace",
                &json!({
                    "id": "page",
                    "html": page(menu),
                    "labels": { "site": "a.example", "menu": menu },
                    "date": "2026-11-20T10:00:00.123456789Z",
                    "payload_digest": format!("sha1:{menu}"),
                }),
            );
        }
    }
    pages
}

/// Inserts, links, replaces, updates and deletes documents in both collections.
fn insert_documents(writer: &Writer) {
    for collection in ["default", "pages"] {
        let first: Vec<_> = (0..6).map(document).collect();
        let batch = json!({ "op": "insert", "documents": first });
        writer.send("POST", &format!("/v1/collections/{collection}/batch"), Some(&batch));
        writer.insert(collection, "on_duplicate=store", &json!({ "id": "near", "text": text(0, 4) }));
        writer.insert(
            collection,
            "on_duplicate=link",
            &json!({ "id": "link", "text": text(1, 2), "metadata": { "list": [1] } }),
        );
        writer.insert(collection, "", &json!({ "id": "skipped", "text": text(2, 0) }));
        writer.insert(collection, "on_existing=replace", &json!({ "id": "doc-4", "text": text(40, 0) }));
        // Equal content with other metadata, and content that is not stored. Both are treated differently since format
        // 3.
        let updated = json!({ "id": "doc-1", "text": text(1, 0), "metadata": { "updated": true } });
        writer.insert(collection, "on_existing=replace&on_duplicate=store", &updated);
        writer.insert(collection, "", &json!({ "id": "gone", "text": text(60, 0) }));
        writer.insert(collection, "on_existing=replace", &json!({ "id": "gone", "text": text(2, 0) }));
        writer.send("DELETE", &format!("/v1/collections/{collection}/documents?id=doc-3"), None);
    }
}

fn make(fixture: &Path) {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let mut writer = Writer::start(&data);
    let banding = json!({ "bands": 42, "rows": 6 });
    let settings = json!({ "shingle": "word3", "threshold": 0.6, "ttl": 3_153_600_000_u64, "keep": "shingles", "verify": "exact", "banding": banding });
    let first_format = json!({ "shingle": "word3", "threshold": 0.6, "banding": banding });
    // An earlier version does not know all of these settings.
    let mut borderline = settings.clone();
    borderline["verify"] = json!("borderline");
    let mut visible = borderline.clone();
    visible["extract"] = json!("visible");
    for settings in [visible, borderline, settings, first_format] {
        if writer.takes("/v1/collections/pages", &settings) {
            break;
        }
    }
    let golden: Vec<Value> = (0..4).map(golden_pair).collect();
    let golden = writer.takes("/v1/collections/pages/golden", &json!({ "pairs": golden }));
    insert_documents(&writer);
    let pages = insert_pages(&writer);
    let items = insert_items(&writer);
    let killed = fixture.to_str().unwrap().ends_with("-killed");
    let jobs = run_jobs(&writer);
    let mut answers = recorded(&writer, (golden, pages, jobs), killed);
    answers.extend(items.then(|| of_items(&writer)).into_iter().flatten());
    let answers: Vec<_> = answers.iter().map(Value::to_string).collect();
    let answers = format!("[\n{}\n]\n", answers.join(",\n"));
    fs::create_dir_all(fixture).unwrap();
    if jobs {
        (0..20).for_each(|number| writer.insert("default", "", &labelled(number, "late")));
        // The writer ends before these documents are removed from the disk.
        delete_label(&writer, "crawl:late");
    }
    if killed {
        writer.child.kill().unwrap();
    } else {
        let pid = writer.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }
    writer.child.wait().unwrap();
    for entry in fs::read_dir(data.join("collections")).unwrap() {
        let path = entry.unwrap().path();
        // The index of the log is not copied, because SQLite rebuilds it.
        if !path.to_str().unwrap().ends_with("-shm") {
            fs::copy(&path, fixture.join(path.file_name().unwrap())).unwrap();
        }
    }
    fs::write(fixture.join(ANSWERS), answers).unwrap();
}

/// Deletes documents by label and merges a collection, and returns whether the writer can do that. Statistics were
/// introduced in the same format.
fn run_jobs(writer: &Writer) -> bool {
    if !writer.send("GET", "/v1/jobs", None)["jobs"].is_array() {
        return false;
    }
    assert!(writer.takes("/v1/collections/crawl", &json!({})));
    for number in 0..3 {
        writer.insert("default", "", &labelled(number, "gone"));
        writer.insert("crawl", "on_duplicate=store", &labelled(number / 2 * 50, &format!("new-{number}")));
    }
    delete_label(writer, "crawl:gone");
    writer.send("POST", "/v1/collections/default/merge", Some(&json!({ "from": "crawl" })));
    until("the jobs end", || writer.send("GET", "/v1/jobs?state=running", None)["jobs"] == json!([]));
    true
}

fn labelled(number: u64, crawl: &str) -> Value {
    json!({ "id": format!("{crawl}-{number}"), "text": text(200 + number, 0), "labels": { "crawl": crawl } })
}

fn delete_label(writer: &Writer, label: &str) {
    let target = format!("/v1/collections/default/documents?label={label}");
    assert_eq!(writer.send("DELETE", &target, None)["kind"], "delete_label");
}

/// Returns the writer's answers about its jobs, which have ended, and about statistics. A killed writer loses the last
/// statistics, so the answer about them is left out.
fn of_jobs(writer: &Writer, killed: bool) -> Vec<Value> {
    let mut lines = Vec::new();
    for job in writer.send("GET", "/v1/jobs?collection=default", None)["jobs"].as_array().unwrap() {
        let target = format!("/v1/jobs/{}", job["job"].as_str().unwrap());
        if job["kind"] == "merge" {
            let target = format!("{target}/reports");
            let answer = writer.send("GET", &target, None);
            lines.push(json!({ "target": target, "answer": answer }));
        }
        lines.push(json!({ "target": target, "answer": job }));
    }
    if !killed {
        let target = "/v1/collections/default/statistics?name=crawl&limit=1";
        let mut answer = writer.send("GET", target, None);
        answer.as_object_mut().unwrap().remove("all");
        lines.push(json!({ "target": target, "answer": answer }));
    }
    lines
}

/// Returns the first words of a text.
fn words(number: u64, count: usize) -> String {
    text(number, 0).split_inclusive(' ').take(count).collect()
}

/// Inserts, replaces and deletes items, and returns whether the writer has collections of items.
fn insert_items(writer: &Writer) -> bool {
    if !writer.takes(
        "/v1/collections/items",
        &json!({ "index": "containment", "shingle": "word11", "ttl": 3_153_600_000_u64 }),
    ) {
        return false;
    }
    for (number, count) in [60, 40, 11, 10, 8, 7].into_iter().enumerate() {
        let item =
            json!({ "id": format!("item-{number}"), "text": words(number as u64, count), "labels": { "set": "a" } });
        writer.insert("items", "", &item);
    }
    writer.insert("items", "on_duplicate=link", &json!({ "id": "copy", "text": words(0, 60) }));
    writer.insert("items", "on_existing=replace", &json!({ "id": "item-1", "text": words(20, 30) }));
    writer.insert("items", "", &json!({ "id": "gone", "text": words(30, 30) }));
    writer.send("DELETE", "/v1/collections/items/documents?id=gone", None);
    true
}

/// Returns the writer's answers about items.
fn of_items(writer: &Writer) -> Vec<Value> {
    let base = "/v1/collections/items";
    let reads = [base.to_owned(), format!("{base}/documents?limit=100"), format!("{base}/labels")];
    let mut lines: Vec<_> =
        reads.map(|read| json!({ "target": read, "answer": writer.send("GET", &read, None) })).into();
    let texts = [text(0, 0), text(1, 0) + &text(20, 0), words(2, 20) + &words(3, 20) + &words(4, 20), text(30, 0)];
    for text in texts {
        let (target, body) = (format!("{base}/overlaps"), json!({ "text": format!("Before. {text}") }));
        let answer = writer.send("POST", &target, Some(&body));
        lines.push(json!({ "target": target, "body": body, "answer": answer }));
    }
    lines
}

/// Returns the writer's answers to all possible questions.
fn recorded(writer: &Writer, (golden, pages, jobs): (bool, bool, bool), killed: bool) -> Vec<Value> {
    let mut lines = if jobs { of_jobs(writer, killed) } else { Vec::new() };
    for collection in ["default", "pages"] {
        let base = format!("/v1/collections/{collection}");
        let mut reads = vec![base.clone(), format!("{base}/documents?limit=100")];
        let ids = (0..6).map(|number| format!("doc-{number}")).chain(["near".into(), "link".into()]);
        reads.extend(ids.filter(|id| id != "doc-3").map(|id| format!("{base}/documents?id={id}")));
        let of_pages = ["documents?id=page", "labels", "documents?label=menu:Start&label=site:a.example"];
        reads.extend(of_pages.into_iter().filter(|_| pages).map(|read| format!("{base}/{read}")));
        reads.extend((golden && collection == "pages").then(|| format!("{base}/golden")));
        for target in reads {
            let answer = writer.send("GET", &target, None);
            lines.push(json!({ "target": target, "answer": answer }));
        }
        let texts = (0..6).map(|number| text(number, 0)).chain([text(40, 0), text(0, 4), text(1, 2), text(5, 9)]);
        let texts = texts.chain([text(99, 0), "one two".into(), "…".into()]).map(|text| json!({ "text": text }));
        let pages = ["Home", "Start", "Other"]
            .into_iter()
            .filter(|_| pages)
            .map(|menu| json!({ "html": page(menu), "payload_digest": format!("sha1:{menu}") }));
        let scopes = ["", "&scope=site:a.example", "&scope=!site:a.example"];
        let scoped = pages.clone().flat_map(|page| scopes.map(|scope| (page.clone(), scope)));
        for (body, scope) in texts.map(|text| (text, "")).chain(scoped) {
            let target = format!("{base}/check?threshold=0.5&with=metadata{scope}");
            let answer = writer.send("POST", &target, Some(&body));
            lines.push(json!({ "target": target, "body": body, "answer": answer }));
        }
    }
    lines
}
