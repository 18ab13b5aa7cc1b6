//! The table in `docs/redis.md` says what collections in a Redis Cluster have. It has every operation of
//! `openapi.yaml`, with every parameter and every field of a JSON body, and no others. A server on a real cluster
//! refuses exactly those that the table calls missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::LazyLock;

use hapax::http::{ROUTES, Route};
use regex::Regex;
use serde_json::{Value, json};

use crate::openapi::{COLLECTION, ITEMS, good, is, path};
use crate::support::client::{Answer, Client, encode, words};
use crate::support::description::{DESCRIPTION, resolve};
use crate::support::redis::{Kind, RedisCluster};
use crate::support::sources::root;

/// A row of the table: the operation, the options that a cluster has, and those that it lacks.
static ROW: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)^\| `([A-Z]+) ([/…]\S*)` \| ([^|]+) \| ([^|]+) \| [^|]*\|$").unwrap());
static OPTION: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"`([a-z_]+)(?:=([a-z_]+))?`").unwrap());

/// The options in one cell.
#[derive(Debug, PartialEq, Eq)]
enum Options {
    All,
    /// Each with its value, if only this value is meant.
    Listed(Vec<(String, Option<String>)>),
}

struct Row {
    has: Options,
    lacks: Options,
}

fn options(cell: &str) -> Options {
    match cell {
        "all" => Options::All,
        "–" => Options::Listed(Vec::new()),
        _ => {
            let text = |part: regex::Match<'_>| part.as_str().to_owned();
            let listed =
                OPTION.captures_iter(cell).map(|option| (text(option.get(1).unwrap()), option.get(2).map(text)));
            assert_eq!(OPTION.replace_all(cell, "").replace([',', ' '], ""), "", "not an option: {cell}");
            Options::Listed(listed.collect())
        }
    }
}

/// Returns the rows, by method and path.
fn table() -> BTreeMap<(String, String), Row> {
    let page = fs::read_to_string(root().join("docs/redis.md")).unwrap();
    let mut table = BTreeMap::new();
    for row in ROW.captures_iter(&page) {
        let path = row[2].replace('…', "/v1/collections/{collection}");
        let row = ((row[1].to_owned(), path), Row { has: options(&row[3]), lacks: options(&row[4]) });
        let twice = table.insert(row.0.clone(), row.1);
        assert!(twice.is_none(), "{:?} has two rows", row.0);
    }
    table
}

fn operation(route: &Route) -> &'static Value {
    &DESCRIPTION["paths"][route.path][route.method.as_str().to_lowercase()]
}

/// Returns the fields of the JSON body, with their schemas.
fn fields(route: &Route) -> BTreeMap<String, &'static Value> {
    let body = &operation(route)["requestBody"]["content"]["application/json"]["schema"];
    let fields = resolve(body)["properties"].as_object().into_iter().flatten();
    fields.map(|(name, schema)| (name.clone(), resolve(schema))).collect()
}

/// Returns the parameters and the fields of the body. Each has its values, if it has a list of them.
fn described(route: &Route) -> BTreeMap<String, BTreeSet<String>> {
    let parameters = operation(route)["parameters"].as_array().into_iter().flatten().map(resolve);
    let parameters = parameters
        .filter(|parameter| parameter["in"] == "query")
        .map(|parameter| (parameter["name"].as_str().unwrap().to_owned(), resolve(&parameter["schema"])));
    let values = |schema: &Value| match schema["type"].as_str() {
        Some("boolean") => ["true", "false"].map(str::to_owned).into(),
        _ => schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
    };
    parameters.chain(fields(route)).map(|(name, schema)| (name, values(schema))).collect()
}

/// Returns the options that the row lacks, and those that do not exist.
fn mistakes(route: &Route, row: &Row) -> Vec<String> {
    let (Options::Listed(has), Options::Listed(lacks)) = (&row.has, &row.lacks) else {
        let nothing = Options::Listed(Vec::new());
        let is_whole =
            (row.has == Options::All && row.lacks == nothing) || (row.has == nothing && row.lacks == Options::All);
        return if is_whole { Vec::new() } else { vec!["`all` next to other options".into()] };
    };
    let (described, mut told, mut wrong) = (described(route), BTreeMap::<_, Vec<_>>::new(), Vec::new());
    for (name, value) in has.iter().chain(lacks) {
        match (described.get(name), value) {
            (None, _) => wrong.push(format!("{name} does not exist")),
            (Some(values), Some(value)) if !values.contains(value) => {
                wrong.push(format!("{name}={value} does not exist"))
            }
            _ => told.entry(name).or_default().push(value.clone()),
        }
    }
    for (name, values) in &described {
        let told = told.remove(name).unwrap_or_default();
        let each = values.iter().map(|value| Some(value.clone())).collect::<BTreeSet<_>>();
        let is_covered = told == [None]
            || (!each.is_empty() && told.len() == each.len() && told.into_iter().collect::<BTreeSet<_>>() == each);
        if !is_covered {
            wrong.push(format!("{name} must be named once, or each of its values: {values:?}"));
        }
    }
    wrong
}

#[test]
fn the_table_has_every_operation_with_every_option() {
    let table = table();
    let mut wrong = Vec::new();
    for route in ROUTES {
        let operation = (route.method.to_string(), route.path.to_owned());
        match table.get(&operation) {
            None => wrong.push(format!("{operation:?} has no row")),
            Some(row) => wrong.extend(mistakes(route, row).into_iter().map(|what| format!("{operation:?}: {what}"))),
        }
    }
    assert!(wrong.is_empty(), "docs/redis.md:\n{}", wrong.join("\n"));
    assert_eq!(table.len(), ROUTES.len(), "docs/redis.md has a row for an operation that does not exist");
}

#[test]
fn an_operation_declares_501_if_it_may_answer_so() {
    let table = table();
    for route in ROUTES {
        let row = &table[&(route.method.to_string(), route.path.to_owned())];
        // Several documents: an error is in the answer of its document.
        let answers = row.lacks != Options::Listed(Vec::new()) && !is_of_several(route);
        assert_eq!(route.statuses.contains(&501), answers, "{} {}", route.method, route.path);
    }
}

fn is_of_several(route: &Route) -> bool {
    is(route, "POST", "/batch") || is(route, "POST", "/bulk")
}

/// Returns a good value for a parameter or a field that has no list of values.
fn sample(name: &str) -> Value {
    match name {
        "banding" => json!({ "bands": 20, "rows": 4 }),
        "collections" => json!("default"),
        "content_hash" | "fingerprint" => json!("0123456789abcdef0123456789abcdef"),
        // The end of a page of documents.
        "cursor" => json!("AAAAAAAAAAE"),
        "date" => json!("2026-11-28"),
        "ids" => json!(["a"]),
        "key" => json!("none"),
        "label" | "scope" => json!("site:a"),
        "labels" => json!({ "site": "a" }),
        "limit" => json!(5),
        "metadata" => json!({ "n": 1 }),
        "payload_digest" => json!("sha1:AAAA"),
        "set" => json!(["one", "two"]),
        "shingle" => json!("word3"),
        "shingles" => json!(7),
        "sketch" => json!("fss"),
        "threshold" => json!(0.7),
        "ttl" => json!(3600),
        _ => json!("a"),
    }
}

/// Sends a good request with this option.
fn ask(client: &Client, route: &Route, (name, value): (&str, Option<&str>), number: u64) -> Answer {
    let (target, mut body) = good(route);
    // There are no collections of items in a cluster.
    let mut target = target.replace(ITEMS, COLLECTION);
    let is_of_documents = is(route, "GET", "/documents") || is(route, "DELETE", "/documents");
    if is_of_documents && name != "with" {
        target = path(route);
    }
    if let Some(body) = body.as_mut().filter(|_| is(route, "POST", "/documents")) {
        // Each document is new.
        *body = json!({ "id": number.to_string(), "text": words(number) });
    }
    if let Some(Value::Object(body)) = body.as_mut().filter(|_| is_of_several(route)) {
        let op = if ["scope", "threshold"].contains(&name) { "check" } else { "insert" };
        target = path(route);
        match is(route, "POST", "/bulk") {
            true if name != "op" => target += &format!("?op={op}"),
            true => {}
            false => drop(body.insert("op".to_owned(), json!(op))),
        }
    }
    let value = value.map_or_else(|| sample(name), |value| value.parse::<bool>().map_or(json!(value), Value::Bool));
    match body.as_mut().and_then(Value::as_object_mut).filter(|_| fields(route).contains_key(name)) {
        Some(body) => {
            if ["html", "signature", "set"].contains(&name) {
                body.remove("text");
            }
            if name != "documents" && name != "op" {
                body.insert(name.to_owned(), value);
            }
        }
        None if name.is_empty() => {}
        None => {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            target += &format!("{}{name}={}", if target.contains('?') { '&' } else { '?' }, encode(&value));
        }
    }
    let kind = match route.path.rsplit('/').next().unwrap() {
        "bulk" => "application/x-ndjson",
        "load" => "application/vnd.apache.parquet",
        _ => "application/json",
    };
    let kind: &[_] = if body.is_some() { &[("content-type", kind)] } else { &[] };
    client.send(route.method.as_str(), &target, kind, body.map(|body| body.to_string()).unwrap_or_default().as_bytes())
}

/// Starts a server on the cluster. `dir` is for its files.
#[test]
fn a_server_refuses_what_the_table_calls_missing_and_nothing_else() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = tempfile::tempdir().unwrap();
    let server = cluster.serve(dir.path());
    let client = Client::new(server.url(""));
    assert_eq!(client.json("PUT", &format!("/v1/collections/{COLLECTION}"), &json!({})).status, 201);
    let (table, mut number, mut wrong, mut refused) = (table(), 0, Vec::new(), 0);
    for route in ROUTES {
        let row = &table[&(route.method.to_string(), route.path.to_owned())];
        for (options, is_missing) in [(&row.has, false), (&row.lacks, true)] {
            let all = vec![(String::new(), None)];
            let asked = if let Options::Listed(listed) = options { listed } else { &all };
            for (name, value) in asked {
                number += 1;
                // An earlier request may have dropped it.
                client.json("PUT", &format!("/v1/collections/{COLLECTION}"), &json!({}));
                let answer = ask(&client, route, (name, value.as_deref()), number);
                let is_refused = match is_of_several(route) {
                    true => answer.text().contains("not_in_this_store"),
                    false => answer.status == 501,
                };
                refused += usize::from(is_refused);
                if is_refused != is_missing || (answer.status >= 500 && answer.status != 501) {
                    let what = format!("{} {} {name}={value:?}", route.method, route.path);
                    wrong.push(format!("{what}: {} {:.300}", answer.status, answer.text()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "the table in docs/redis.md is wrong:\n{}", wrong.join("\n"));
    assert!(refused > 35, "{refused}");
}
