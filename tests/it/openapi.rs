//! `openapi.yaml` and the router agree on routes, methods, parameters, scopes and statuses, and each declared status
//! can occur.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hapax::config::{AddressLimits, Addresses};
use hapax::http::error::Code;
use hapax::http::{OPENAPI, ROUTES, Requires, Route};
use hapax::keys::Scope;
use serde_json::{Value, json};

use crate::keys::file;
use crate::loading::table::Table;
use crate::support::client::{Client, Raw, encode, words};
use crate::support::description::{self, DESCRIPTION, Entry};
use crate::support::library::dir;
use crate::support::local::{Local, Setup};

#[test]
fn router_and_description_name_the_same() {
    let table: BTreeMap<_, _> = ROUTES
        .iter()
        .map(|route| {
            let query = route.query.iter().map(|name| (*name).to_owned()).collect();
            let statuses = route.statuses.iter().copied().collect();
            let mut scopes: BTreeSet<_> = route.requires.scopes().iter().map(Scope::to_string).collect();
            if route.requires == Requires::Key {
                scopes.insert(String::new());
            }
            ((route.method.to_string(), route.path.to_owned()), Entry { query, statuses, scopes })
        })
        .collect();
    assert_eq!(table.len(), ROUTES.len(), "no route stands in the table twice");
    let described = description::routes();
    for (route, entry) in &table {
        assert_eq!(Some(entry), described.get(route), "{route:?}");
    }
    for route in described.keys() {
        assert!(table.contains_key(route), "{route:?} is described but not routed");
    }
}

#[test]
fn the_description_is_served_as_it_is_kept() {
    let dir = dir();
    let server = Local::plain(&dir);
    assert_eq!(Client::of(&server).get("/openapi.yaml").text(), OPENAPI);
}

/// Calls `visit` with every field of every object in `value`.
fn walk(value: &Value, visit: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, field)| {
            visit(name, field);
            walk(field, visit);
        }),
        Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        _ => {}
    }
}

#[test]
fn generators_find_what_they_need() {
    walk(&DESCRIPTION, &mut |name, value| {
        assert!(!["oneOf", "anyOf", "allOf", "nullable"].contains(&name), "{name}: {value}");
    });
    let operations = DESCRIPTION["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap());
    let mut operation_ids = BTreeSet::new();
    for (_, operation) in operations.filter(|(method, _)| *method != "parameters") {
        let id = operation["operationId"].as_str().expect("every operation has an id");
        assert!(operation_ids.insert(id), "{id} twice");
    }
    assert_eq!(operation_ids.len(), ROUTES.len());
}

#[test]
fn the_problem_schema_knows_every_code() {
    let schema = &DESCRIPTION["components"]["schemas"]["Problem"]["properties"]["code"]["enum"];
    let described: BTreeSet<_> = schema.as_array().unwrap().iter().map(|code| code.as_str().unwrap()).collect();
    let codes: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(described, codes);
}

/// Returns the field `name` of `problem`, or an empty text.
fn text<'a>(problem: &'a Value, name: &str) -> &'a str {
    problem[name].as_str().unwrap_or_default()
}

#[test]
fn problems_in_examples_have_the_type_title_and_status_of_their_code() {
    let mut problems = 0;
    walk(&DESCRIPTION, &mut |_, value| {
        let Some(suffix) = text(value, "type").strip_prefix("urn:hapax:problem:") else { return };
        let code = Code::ALL.iter().find(|code| code.as_str() == text(value, "code")).expect("a known code");
        assert_eq!(suffix, code.as_str().replace('_', "-"));
        assert_eq!((text(value, "title"), &value["status"]), (code.title(), &json!(code.status().as_u16())));
        problems += 1;
    });
    assert!(problems > 10, "{problems} examples");
}

/// Returns the parameters of a route that have a default, as a query.
fn defaults(route: &Route) -> String {
    let operation = &DESCRIPTION["paths"][route.path][route.method.as_str().to_lowercase()];
    let parameters = operation["parameters"].as_array().into_iter().flatten().map(description::resolve);
    let default = |parameter: &Value| match &parameter["schema"]["default"] {
        Value::Null => None,
        Value::String(text) => Some(format!("{}={text}", parameter["name"].as_str().unwrap())),
        other => Some(format!("{}={other}", parameter["name"].as_str().unwrap())),
    };
    parameters.filter_map(default).collect::<Vec<_>>().join("&")
}

/// Generated clients send the default of each parameter that their user leaves out. In an earlier version, some routes
/// refused these defaults: `?id=a&limit=100` was a 422, and so was each batch of checks, because of
/// `on_duplicate=skip`.
#[test]
fn a_default_that_is_sent_changes_nothing() {
    let dir = dir();
    let server = Setup::new(&dir).start_audited(dir.path().join("audit"));
    let client = Client::of(&server);
    assert_eq!(client.json("PUT", &format!("/v1/collections/{COLLECTION}"), &json!({})).status, 201);
    make_items(&client, &json!({}));
    begin_job(&client);
    let stored = json!({"id": "a", "text": words(1)});
    let mut sent = BTreeSet::new();
    for route in ROUTES.iter().filter(|route| !defaults(route).is_empty()) {
        let (target, body) = good(route);
        let mut requests = vec![(target.clone(), body)];
        if is(route, "GET", "/documents") || is(route, "GET", "/clusters") {
            requests = vec![(path(route), None), (format!("{}?id=a", path(route)), None)];
        }
        if is(route, "POST", "/batch") || is(route, "POST", "/bulk") {
            requests = ["check", "insert", "delete"]
                .map(|op| match (is(route, "POST", "/bulk"), op) {
                    (true, "delete") => (format!("{}?op={op}", path(route)), Some(json!({"id": "a"}))),
                    (true, _) => (format!("{}?op={op}", path(route)), Some(stored.clone())),
                    (false, "delete") => (target.clone(), Some(json!({"op": op, "documents": [{"id": "a"}]}))),
                    (false, _) => (target.clone(), Some(json!({"op": op, "documents": [stored]}))),
                })
                .into();
        }
        for (target, body) in requests {
            client.post(&format!("/v1/collections/{COLLECTION}/documents"), &stored).ok();
            let join = if target.contains('?') { '&' } else { '?' };
            let target = format!("{target}{join}{}", defaults(route));
            assert_eq!(send(&client, route, (target.clone(), body)), 200, "{} {target}", route.method);
            sent.extend(defaults(route).split('&').map(str::to_owned));
        }
    }
    for default in ["limit=10", "limit=100", "with=none", "on_duplicate=skip", "duplex=false", "ranks=false"] {
        assert!(sent.contains(default), "{default} was not sent: {sent:?}");
    }
}

/// Statuses that this test does not cause, each with the reason.
const NOT_PROVOKED: [(u16, &str); 3] = [
    (500, "a bug of our own, or a disk that fails"),
    (501, "it needs a Redis Cluster; redis_table.rs causes it on each route that declares it"),
    (507, "a full disk; a full memory has tests of its own"),
];

pub(super) const COLLECTION: &str = "thing";
/// A collection that is searched by containment.
pub(super) const ITEMS: &str = "items";

pub(super) fn path(route: &Route) -> String {
    route.path.replace("{collection}", COLLECTION).replace("{job}", &format!("{COLLECTION}.1")).replace("{key}", "k1")
}

pub(super) fn is(route: &Route, method: &str, end: &str) -> bool {
    route.method == method && route.path.ends_with(end)
}

/// Returns a request that is answered with 200 or 201.
pub(super) fn good(route: &Route) -> (String, Option<Value>) {
    let path = path(route);
    let document = || Some(json!({"id": "a", "text": words(1)}));
    match route.path.strip_prefix("/v1/collections/{collection}") {
        Some("/check" | "/documents" | "/sign") if route.method == "POST" => (path, document()),
        Some("/overlaps") => (path.replace(COLLECTION, ITEMS), document()),
        Some("/extract") => (path, Some(json!({"html": "<p>a page</p>"}))),
        Some("/documents") => (format!("{path}?id=a"), None),
        Some("/documents/get" | "/documents/delete") => (path, Some(json!({"ids": ["a", "b"]}))),
        Some("/batch") => (path, Some(json!({"op": "insert", "documents": [{"id": "a", "text": words(1)}]}))),
        Some("/bulk") => (format!("{path}?op=insert"), document()),
        Some("/compare") => (path, Some(json!({"a": {"text": words(1)}, "b": {"text": words(2)}}))),
        Some("/golden") if route.method == "PUT" => {
            (path, Some(json!({"pairs": [{"a": words(1), "b": words(2), "duplicate": false}]})))
        }
        Some("") if route.method == "PUT" => (path, Some(json!({}))),
        Some("") if route.method == "PATCH" => (path, Some(json!({"threshold": 0.7}))),
        Some("") if route.method == "DELETE" => (format!("{path}?confirm={COLLECTION}"), None),
        Some("/load") => (path.replace(COLLECTION, "loaded"), Some(Value::Null)),
        Some("/merge") => (path, Some(json!({"from": "default"}))),
        None if route.path == "/v1/dedup" => (path, Some(json!({"documents": [{"text": words(1)}]}))),
        None if route.path == "/v1/keys" && route.method == "POST" => {
            (path, Some(json!({"name": "more", "scopes": ["check"]})))
        }
        None if route.path == "/v1/jobs" => (format!("{path}?collection={COLLECTION}"), None),
        _ if route.method == "POST" => (path, Some(json!({}))),
        _ => (path, None),
    }
}

fn send(client: &Client, route: &Route, (target, body): (String, Option<Value>)) -> u16 {
    match body {
        None => client.send(route.method.as_str(), &target, &[], &[]).status,
        Some(body) if route.path.ends_with("/bulk") => {
            let ndjson = [("content-type", "application/x-ndjson")];
            client.send("POST", &target, &ndjson, body.to_string().as_bytes()).status
        }
        Some(body) if route.path.ends_with("/load") => {
            let one = || Table::of([("a".to_owned(), words(1))]).bytes();
            let bytes = if body.is_null() { one() } else { body.to_string().into_bytes() };
            client.send("POST", &target, &[("content-type", content_type(route))], &bytes).status
        }
        Some(body) => client.json(route.method.as_str(), &target, &body).status,
    }
}

fn content_type(route: &Route) -> &'static str {
    if route.path.ends_with("/load") { "application/vnd.apache.parquet" } else { "application/json" }
}

/// Statuses that occurred, by method and path.
#[derive(Default)]
struct Met(BTreeMap<(String, &'static str), BTreeSet<u16>>);

impl Met {
    fn by(&mut self, route: &Route, status: u16) {
        self.0.entry((route.method.to_string(), route.path)).or_default().insert(status);
    }
}

/// Returns the routes that declare a status.
fn declared(status: u16) -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().filter(move |route| route.statuses.contains(&status))
}

#[test]
fn every_declared_status_can_be_met() {
    let mut met = Met::default();
    with_a_plain_server(&mut met);
    with_keys_and_an_audit_log(&mut met);
    without_the_key(&mut met);
    with_small_bounds(&mut met);
    beyond_the_limits_of_a_client(&mut met);
    before_and_beyond_what_it_can_do(&mut met);
    beside_what_is_there(&mut met);

    for route in ROUTES {
        let met = &met.0[&(route.method.to_string(), route.path)];
        for status in route.statuses {
            let excused = NOT_PROVOKED.iter().any(|(excused, _)| excused == status);
            assert!(excused || met.contains(status), "{} {}: {status} was not met; {met:?}", route.method, route.path);
        }
    }
}

fn with_a_plain_server(met: &mut Met) {
    // Causes the statuses 200 and 201. Each route is tested with a new collection.
    let plain_dir = dir();
    let plain = Local::plain(&plain_dir);
    let client = Client::of(&plain);
    make_items(&client, &json!({}));
    let make = || client.json("PUT", &format!("/v1/collections/{COLLECTION}"), &json!({})).status;
    for route in ROUTES {
        client.delete(&format!("/v1/collections/{COLLECTION}?confirm={COLLECTION}"));
        if is(route, "PUT", "{collection}") {
            met.by(route, make());
        } else {
            assert_eq!(make(), 201);
        }
        if is(route, "GET", "/documents") {
            client.post(&format!("/v1/collections/{COLLECTION}/documents"), &json!({"id": "a", "text": words(1)})).ok();
        }
        if route.path.contains("{job}") {
            begin_job(&client);
        }
        if is(route, "DELETE", "/documents") {
            met.by(route, client.delete(&format!("{}?label=site:a", path(route))).status);
        }
        met.by(route, send(&client, route, good(route)));
    }
    make();
    refused_by_a_plain_server(met, &client);
}

/// Causes the statuses of the routes about keys, and of the audit log.
fn with_keys_and_an_audit_log(met: &mut Met) {
    let dir = dir();
    let keys = file::write(dir.path(), &[("own", &["keys", "admin"], ""), ("k1", &["check"], "")]);
    let server = Setup { keys_file: Some(keys), ..Setup::new(&dir) }.start_audited(dir.path().join("audit"));
    let client = Client::of(&server).key("own");
    let of_keys = |route: &&Route| route.path.starts_with("/v1/keys") || route.path == "/v1/audit";
    for route in ROUTES.iter().filter(of_keys) {
        let (target, body) = good(route);
        // The third key of a name is refused, and so is the second revocation of a key.
        for _ in 0..3 {
            met.by(route, send(&client, route, (target.clone(), body.clone())));
        }
        if route.path.contains("{key}") {
            met.by(route, send(&client, route, ("/v1/keys/own".to_owned(), None)));
        }
    }
}

fn make_items(client: &Client, settings: &Value) {
    let mut settings = settings.clone();
    settings["index"] = json!("containment");
    assert_eq!(client.json("PUT", &format!("/v1/collections/{ITEMS}"), &settings).status, 201);
}

/// Begins the first job of the collection.
fn begin_job(client: &Client) {
    let merge = client.post(&format!("/v1/collections/{COLLECTION}/merge"), &json!({"from": "default"}));
    assert_eq!(merge.status, 202);
}

fn refused_by_a_plain_server(met: &mut Met, client: &Client) {
    // 422 on every route: an unknown parameter.
    for route in ROUTES {
        met.by(route, send(client, route, (format!("{}?nonsense=1", path(route)), good(route).1)));
    }
    for route in declared(400) {
        let kind = [("content-type", content_type(route))];
        met.by(route, client.send(route.method.as_str(), &good(route).0.replace("loaded", "new"), &kind, b"{").status);
    }
    for route in declared(403) {
        let foreign = [("origin", "http://evil.example")];
        met.by(route, client.send(route.method.as_str(), &path(route), &foreign, b"").status);
    }
    for route in declared(404) {
        let (target, body) = good(route);
        met.by(route, send(client, route, (target.replace(COLLECTION, "none").replace(ITEMS, "none"), body)));
    }
    for route in declared(415) {
        let target = good(route).0;
        met.by(route, client.send(route.method.as_str(), &target, &[("content-type", "text/xml")], b"<p>").status);
    }
}

/// Causes status 401.
fn without_the_key(met: &mut Met) {
    let keyed_dir = dir();
    let keyed = Setup { api_key: Some("a-key-of-some-length-1"), ..Setup::new(&keyed_dir) }.start();
    for route in declared(401) {
        met.by(route, send(&Client::of(&keyed), route, good(route)));
    }
}

/// Causes the statuses 413 and 408.
fn with_small_bounds(met: &mut Met) {
    let small_dir = dir();
    let mut small = Setup::new(&small_dir).limits(|limits| {
        limits.body_bytes_max = 1000;
        limits.bulk_body_bytes_max = 1000;
        limits.load_body_bytes_max = 1000;
    });
    small.collections.collections_max = 4;
    let small = small.start();
    let small_client = Client::of(&small);
    assert_eq!(small_client.json("PUT", &format!("/v1/collections/{COLLECTION}"), &json!({})).status, 201);
    make_items(&small_client, &json!({}));
    for route in declared(413) {
        let large = json!({"text": "x".repeat(2000)});
        met.by(route, send(&small_client, route, (good(route).0, Some(large))));
    }
    assert_eq!(small_client.json("PUT", "/v1/collections/the-last-one", &json!({})).status, 201);
    let one_too_many = small_client.json("PUT", "/v1/collections/one-too-many", &json!({}));
    one_too_many.problem(429, "too_many_collections");

    // 408 needs a server with a short timeout for bodies. On a busy machine, the timeout would also affect the requests
    // above.
    assert_eq!(small.stopped(), 0);
    let hasty = Setup::new(&small_dir).limits(|limits| limits.request_timeout = Duration::from_millis(500)).start();
    for route in declared(408) {
        let mut raw = Raw::connect(hasty.address);
        raw.send(format!("{} {} HTTP/1.1\r\nHost: localhost\r\n", route.method, good(route).0));
        raw.send(format!("Content-Type: {}\r\nContent-Length: 10\r\n\r\n{{", content_type(route)));
        met.by(route, raw.status());
    }
}

/// Causes status 429: the client's address has reached a limit.
fn beyond_the_limits_of_a_client(met: &mut Met) {
    let dir = dir();
    let limits = AddressLimits { bytes_per_second: Some(1), ..AddressLimits::default() };
    let server = Setup { addresses: Addresses { limits, ..Addresses::default() }, ..Setup::new(&dir) }.start();
    let client = Client::of(&server);
    // This request uses up the allowance for far longer than the test runs.
    client.text("/v1/collections/default/check", words(1).repeat(50).as_bytes()).ok();
    for route in declared(429) {
        met.by(route, send(&client, route, good(route)));
    }
}

/// Causes status 503: the collections have not opened yet, or the limit on requests at once is 0.
fn before_and_beyond_what_it_can_do(met: &mut Met) {
    let starting_dir = dir();
    let starting = Setup { boots: false, ..Setup::new(&starting_dir) }.start();
    let full_dir = dir();
    let full = Setup::new(&full_dir).limits(|limits| limits.admin_requests_max = 0).start();
    for route in declared(503) {
        let server = if route.path == "/openapi.yaml" { &full } else { &starting };
        met.by(route, send(&Client::of(server), route, good(route)));
    }
}

/// Causes status 409: the collection was made with another secret, or it exists with other settings.
fn beside_what_is_there(met: &mut Met) {
    let secret_dir = dir();
    let secret = Setup::new(&secret_dir).secret(1).start();
    let target = format!("/v1/collections/{COLLECTION}");
    assert_eq!(Client::of(&secret).json("PUT", &target, &json!({"key": "configured"})).status, 201);
    make_items(&Client::of(&secret), &json!({"key": "configured"}));
    assert_eq!(secret.stopped(), 0);
    let secret = Setup::new(&secret_dir).secret(2).start();
    for route in declared(409) {
        if route.path == "/v1/backups" {
            // The second request gets 409, because the backup with this name is in progress or exists.
            let begin = || Client::of(&secret).json("POST", route.path, &json!({"name": "twice"})).status;
            assert_eq!(begin(), 202);
            met.by(route, begin());
            continue;
        }
        let (target, body) = good(route);
        // A load makes only collections that do not exist.
        met.by(route, send(&Client::of(&secret), route, (target.replace("loaded", COLLECTION), body)));
    }
}

#[test]
fn unknown_parameters_are_refused_on_every_route() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    for route in ROUTES {
        let target = format!("{}?{}=1", path(route), encode("näme"));
        let problem = client.send(route.method.as_str(), &target, &[], &[]).problem(422, "invalid_value");
        let detail = problem["errors"][0]["detail"].as_str().unwrap().to_owned();
        assert!(route.query.iter().all(|name| detail.contains(name)), "{detail}");
    }
}
