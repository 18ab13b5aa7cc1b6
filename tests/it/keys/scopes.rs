//! Each key may do what its scopes allow, in its own collections, and nothing else.

use hapax::http::{ROUTES, Requires, Route};
use hapax::keys::Scope;
use hapax::types::CollectionName;
use serde_json::{Value, json};

use super::file;
use crate::support::client::{Client, words};
use crate::support::library::dir;
use crate::support::local::{Local, Setup};

const ALL: [&str; 10] = ["check", "read", "insert", "delete", "admin", "metrics", "sign", "explain", "load", "keys"];

/// Starts a server with several keys. For each scope, one key has only this scope and is named after it. Another key has
/// all other scopes. The key `all` has all scopes. The key `some` has all scopes too, but only for some collections.
fn server(dir: &crate::support::library::Dir) -> Local {
    let one = ALL.map(|scope| [scope]);
    let without =
        ALL.map(|out| (format!("no{out}"), ALL.into_iter().filter(|scope| *scope != out).collect::<Vec<_>>()));
    let mut keys: Vec<file::Line<'_>> = one.iter().map(|scopes| (scopes[0], &scopes[..], "")).collect();
    keys.extend(without.iter().map(|(name, scopes)| (&**name, &scopes[..], "")));
    keys.push(("all", &ALL, ""));
    keys.push(("some", &ALL, "collections = [\"pages\", \"crawl-*\"]"));
    Setup { keys_file: Some(file::write(dir.path(), &keys)), ..Setup::new(dir) }.start()
}

fn send(server: &Local, key: &str, route: &Route, target: &str) -> (u16, Value) {
    // The refusal of a key comes before the refusal of an empty body.
    let answer = Client::of(server).key(key).send(route.method.as_str(), target, &[], b"");
    let json = serde_json::from_slice(&answer.body).unwrap_or_default();
    (answer.status, json)
}

#[test]
fn each_route_takes_the_keys_with_its_scope_and_no_others() {
    let dir = dir();
    let server = server(&dir);
    for route in ROUTES {
        let target = route.path.replace("{collection}", "nothing-here");
        for key in ALL {
            let (status, problem) = send(&server, key, route, &target);
            let scopes = route.requires.scopes();
            let allowed = scopes.is_empty() || scopes.iter().any(|scope| scope.as_str() == key);
            let forbidden = (status, problem["code"].as_str()) == (403, Some("forbidden"));
            assert_eq!(forbidden, !allowed, "{} {} with {key}: {status} {problem}", route.method, route.path);
            if forbidden {
                let detail = problem["detail"].as_str().unwrap();
                assert!(detail.contains(&format!("`{}`", scopes[0])) && detail.ends_with(key), "{detail}");
            }
        }
        let (_, problem) = send(&server, "all", route, &target);
        assert_ne!(problem["code"], "forbidden", "{} {}", route.method, route.path);
    }
}

#[test]
fn a_head_request_needs_the_scope_too() {
    let dir = dir();
    let server = server(&dir);
    let head = |key: &str, path: &str| Client::of(&server).key(key).send("HEAD", path, &[], b"").status;
    assert_eq!((head("read", "/metrics"), head("metrics", "/metrics")), (403, 200));
    assert_eq!(head("check", "/v1/collections/default/documents"), 403);
    assert_eq!(head("read", "/v1/collections/default/documents"), 200);
}

#[test]
fn the_operation_of_many_documents_needs_its_own_scope() {
    let dir = dir();
    let server = server(&dir);
    for (op, others) in
        [("check", ["insert", "delete"]), ("insert", ["check", "delete"]), ("delete", ["check", "insert"])]
    {
        let batch = json!({"op": op, "documents": []});
        let bulk = format!("/v1/collections/default/bulk?op={op}");
        let lines = [("content-type", "application/x-ndjson")];
        let client = Client::of(&server).key(op);
        client.post("/v1/collections/default/batch", &batch).ok();
        assert_eq!(client.send("POST", &bulk, &lines, b"").status, 200);
        for other in others {
            let client = Client::of(&server).key(other);
            client.post("/v1/collections/default/batch", &batch).problem(403, "forbidden");
            client.send("POST", &bulk, &lines, b"").problem(403, "forbidden");
        }
    }
}

#[test]
fn a_signature_and_a_set_need_the_scope_to_sign_wherever_they_are() {
    let dir = dir();
    let server = server(&dir);
    let base = "/v1/collections/default";
    let signed = Client::of(&server).key("sign").post(&format!("{base}/sign"), &json!({"text": words(1)})).ok();
    for content in [json!({"signature": signed["signature"]}), json!({"set": ["a", "b", "c"]})] {
        let mut document = content.clone();
        document["id"] = json!("a");
        for (path, body) in [
            ("check", document.clone()),
            ("documents", document.clone()),
            ("compare", json!({"a": {"text": words(1)}, "b": content})),
        ] {
            let target = format!("{base}/{path}");
            let problem = Client::of(&server).key("nosign").post(&target, &body).problem(403, "forbidden");
            assert!(problem["detail"].as_str().unwrap().contains("the scope `sign`"), "{problem}");
            assert_ne!(Client::of(&server).key("all").post(&target, &body).status, 403, "{path}");
        }
        let documents = json!([document, {"id": "b", "text": words(2)}]);
        for op in ["check", "insert"] {
            let body = json!({"op": op, "documents": documents});
            let answer = Client::of(&server).key("nosign").post(&format!("{base}/batch"), &body).ok();
            assert_eq!(answer["results"][0]["error"]["code"], "forbidden", "{answer}");
            assert_eq!(answer["results"][1]["error"], Value::Null, "{answer}");
            let lines: String = documents.as_array().unwrap().iter().map(|line| format!("{line}\n")).collect();
            let lines = Client::of(&server).key("nosign").bulk(&format!("op={op}"), &lines);
            assert_eq!(lines[0]["error"]["code"], "forbidden", "{lines:?}");
            assert_eq!(lines[1]["kind"], "verdict", "{lines:?}");
        }
    }
    Client::of(&server).key("nosign").post(&format!("{base}/sign"), &json!({"text": "x"})).problem(403, "forbidden");
}

#[test]
fn what_shows_or_removes_more_needs_a_second_scope() {
    let dir = dir();
    let server = server(&dir);
    let base = "/v1/collections/default";
    let text = json!({"id": "a", "text": words(1)});
    Client::of(&server).key("all").post(&format!("{base}/documents"), &text).ok();
    let compare = json!({"a": {"id": "a"}, "b": {"text": words(2)}});
    let ids = json!({"op": "check", "documents": []});
    let signed = Client::of(&server).key("all").post(&format!("{base}/sign"), &json!({"text": words(1)})).ok();
    let mut hashed = json!({"id": "a"});
    for field in ["signature", "fingerprint", "content_hash", "shingles"] {
        hashed[field] = signed[field].clone();
    }
    for (missing, target, body) in [
        ("read", format!("{base}/check?with=metadata"), &text),
        ("read", format!("{base}/documents?with=metadata"), &text),
        ("read", format!("{base}/batch?with=metadata"), &ids),
        ("read", format!("{base}/compare"), &compare),
        ("delete", format!("{base}/documents?on_existing=replace"), &text),
        ("explain", format!("{base}/check?explain=true"), &text),
        ("explain", format!("{base}/documents?explain=true"), &text),
        ("load", format!("{base}/check"), &hashed),
        ("load", format!("{base}/documents"), &hashed),
    ] {
        let problem = Client::of(&server).key(&format!("no{missing}")).post(&target, body).problem(403, "forbidden");
        assert!(problem["detail"].as_str().unwrap().contains(&format!("the scope `{missing}`")), "{problem}");
        Client::of(&server).key("all").post(&target, body).ok();
    }
}

#[test]
fn a_key_for_some_collections_sees_no_trace_of_others() {
    let dir = dir();
    let server = server(&dir);
    let (all, some) = (Client::of(&server).key("all"), Client::of(&server).key("some"));
    for name in ["pages", "crawl-1", "private"] {
        assert_eq!(all.json("PUT", &format!("/v1/collections/{name}"), &json!({})).status, 201);
    }
    for route in ROUTES.iter().filter(|route| route.path.contains("{collection}")) {
        let send = |name: &str| send(&server, "some", route, &route.path.replace("{collection}", name));
        for name in ["pages", "crawl-1", "crawl-none"] {
            assert_ne!(send(name).1["code"], "forbidden", "{} {}", route.method, route.path);
        }
        let (mut private, mut none) = (send("private"), send("no-such-0"));
        assert_eq!((private.0, private.1["code"].as_str()), (403, Some("forbidden")), "{}", route.path);
        for problem in [&mut private.1, &mut none.1] {
            problem["request_id"].take();
            let detail = problem["detail"].as_str().unwrap().replace("private", "NAME").replace("no-such-0", "NAME");
            problem["detail"] = json!(detail);
        }
        assert_eq!(private, none, "{}", route.path);
    }
    let names = |client: &Client| {
        let list = client.get("/v1/collections").ok();
        let names = list["collections"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&some), ["crawl-1", "pages"]);
    assert_eq!(names(&all), ["crawl-1", "default", "pages", "private"]);
    assert_eq!(some.json("PUT", "/v1/collections/crawl-2", &json!({})).status, 201);
    some.json("PUT", "/v1/collections/other", &json!({})).problem(403, "forbidden");
    // A name with percent-encoding is the same name.
    some.get("/v1/collections/%70rivate").problem(403, "forbidden");
    some.get("/v1/collections/%70ages").ok();
    for route in ROUTES.iter().filter(|route| matches!(route.requires, Requires::ScopeForAll(_))) {
        let (status, problem) = send(&server, "some", route, route.path);
        assert_eq!((status, problem["code"].as_str()), (403, Some("forbidden")), "{} {}", route.method, route.path);
    }
}

#[test]
fn a_star_is_all_collections() {
    let dir = dir();
    let keys = [("star", &["admin", "metrics", "keys"][..], "collections = [\"pages\", \"*\"]")];
    let server = Setup { keys_file: Some(file::write(dir.path(), &keys)), ..Setup::new(&dir) }.start();
    let star = Client::of(&server).key("star");
    for route in ROUTES.iter().filter(|route| matches!(route.requires, Requires::ScopeForAll(_))) {
        let (_, problem) = send(&server, "star", route, route.path);
        assert_ne!(problem["code"], "forbidden", "{} {}", route.method, route.path);
    }
    assert_eq!(star.json("PUT", "/v1/collections/any", &json!({})).status, 201);
}

#[test]
fn every_scope_opens_a_route() {
    // These two scopes do not belong to a route. They allow a parameter and fields of documents.
    for scope in Scope::ALL.into_iter().filter(|scope| ![Scope::Explain, Scope::Load].contains(scope)) {
        assert!(ROUTES.iter().any(|route| route.requires.scopes().contains(&scope)), "{scope}");
    }
    let open: Vec<_> =
        ROUTES.iter().filter(|route| route.requires == Requires::Nothing).map(|route| route.path).collect();
    assert_eq!(open, ["/livez", "/readyz"]);
}

#[test]
fn a_probe_tells_of_the_collections_of_its_key_only() {
    let dir = dir();
    let keys_file = file::write(dir.path(), &[("all", &ALL, ""), ("some", &["check"], "collections = [\"pages\"]")]);
    let server = Setup { keys_file: Some(keys_file), boots: false, ..Setup::new(&dir) }.start();
    let names = ["pages", "private"].map(|name| (CollectionName::new(name).unwrap(), 1));
    server.state.boot().opening().expect(names);
    let seen = |client: Client| {
        let problem = client.get("/readyz").problem(503, "starting");
        let names = problem["collections"].as_array().into_iter().flatten();
        names.map(|one| one["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(seen(Client::of(&server).key("all")), ["pages", "private"]);
    assert_eq!(seen(Client::of(&server).key("some")), ["pages"]);
    assert!(seen(Client::of(&server)).is_empty() && seen(Client::of(&server).key("wrong")).is_empty());
}

#[test]
fn a_probe_counts_the_faults_of_the_collections_of_its_key_only() {
    let dir = dir();
    let keys_file = file::write(dir.path(), &[("all", &ALL, ""), ("some", &["check"], "collections = [\"pages\"]")]);
    let setup = || Setup { keys_file: Some(keys_file.clone()), ..Setup::new(&dir) };
    let server = setup().start();
    assert_eq!(Client::of(&server).key("all").json("PUT", "/v1/collections/private", &json!({})).status, 201);
    server.stop();
    assert_eq!(server.stopped(), 0);
    std::fs::remove_file(dir.path().join("data/collections/private.sqlite")).unwrap();
    let server = setup().start();
    let missing = |client: Client| client.get("/readyz").ok()["missing"].clone();
    // An orchestrator sends no key, and must be able to see every fault.
    assert_eq!((missing(Client::of(&server)), missing(Client::of(&server).key("all"))), (json!(1), json!(1)));
    assert_eq!(missing(Client::of(&server).key("some")), Value::Null);
}

/// Each request on a connection is checked with its own key.
#[tokio::test(flavor = "multi_thread")]
async fn requests_of_one_http_2_connection_have_keys_of_their_own() {
    let dir = dir();
    let server = server(&dir);
    let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let (mut requests, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let mut answers = Vec::new();
    for key in ["metrics", "check", "", "metrics", "wrong", "all", "some"] {
        let mut request = axum::http::Request::get(format!("http://{}/metrics", server.address));
        if !key.is_empty() {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        answers.push(requests.send_request(request.body(()).unwrap(), true).unwrap().0);
    }
    let mut statuses = Vec::new();
    for answer in answers {
        statuses.push(answer.await.unwrap().status().as_u16());
    }
    assert_eq!(statuses, [200, 403, 401, 200, 401, 200, 403]);
}

/// If a request has two keys, a proxy may check one key, and the server could use the other one.
#[test]
fn a_request_with_two_keys_is_refused() {
    let dir = dir();
    let server = server(&dir);
    let two = [("authorization", "Bearer check"), ("authorization", "Bearer all")];
    let problem = Client::of(&server).send("GET", "/v1/version", &two, b"").problem(401, "unauthorized");
    assert!(problem["detail"].as_str().unwrap().contains("several `Authorization` fields"), "{problem}");
    Client::of(&server).send("GET", "/v1/version", &two[..1], b"").ok();
}
