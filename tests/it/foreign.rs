//! Without a key, the server refuses requests that a browser sends on behalf of a web page of another site. In an
//! earlier version, `Host: evil.example` and `Origin: http://evil.example` got 200. If the name of its site pointed at
//! 127.0.0.1, a page on the internet could read everything. The page could also store documents with a `text/plain`
//! POST, for which browsers send no preflight.

use std::net::{IpAddr, Ipv4Addr};

use hapax::config::hosts::{Host, Origin};
use hapax::http::{Access, ROUTES, Route};
use serde_json::Value;

use crate::support::client::{Answer, Client, DOCUMENTS, Raw, words};
use crate::support::library::dir;
use crate::support::local::{Local, Setup};

const KEY: &str = "a-key-of-some-length-1";

fn path(route: &Route) -> String {
    route.path.replace("{collection}", "default")
}

fn is_probe(route: &Route) -> bool {
    ["/livez", "/readyz"].contains(&route.path)
}

fn access(hosts: &[&str], origins: &[&str]) -> Access {
    let hosts: Vec<_> = hosts.iter().map(|host| Host::of_setting(host).unwrap()).collect();
    let origins: Vec<_> = origins.iter().map(|origin| Origin::new(origin).unwrap()).collect();
    Access::new(IpAddr::V4(Ipv4Addr::LOCALHOST), &hosts, &origins)
}

/// `/readyz` answers for any host name. If the name is foreign, the answer must not contain the names of collections.
#[test]
fn a_probe_under_another_name_tells_no_names() {
    let dir = dir();
    let server = Setup { boots: false, ..Setup::new(&dir) }.start();
    let client = Client::of(&server);
    let named = |headers: &[(&str, &str)]| client.send("GET", "/readyz", headers, b"").problem(503, "starting");
    for headers in [[("host", "evil.example")], [("origin", "http://evil.example")]] {
        assert_eq!(named(&headers).get("collections"), None);
    }
}

/// Returns the status for exactly these header lines, including `Host`. No header is added.
fn status(server: &Local, target: &str, version: &str, headers: &str) -> u16 {
    let mut raw = Raw::connect(server.address);
    raw.send(format!("GET {target} HTTP/{version}\r\n{headers}\r\n"));
    raw.status()
}

#[test]
fn every_route_but_the_probes_refuses_other_names_and_other_sites() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    for foreign in [
        [("host", "evil.example")].as_slice(),
        &[("host", "evil.example:8080")],
        &[("host", "0.0.0.0:8080")],
        &[("host", "127.0.0.1.evil.example")],
        &[("origin", "http://evil.example")],
        &[("origin", "http://localhost.evil.example:8080")],
        &[("origin", "null")],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("origin", "http://localhost:3000"), ("sec-fetch-site", "cross-site")],
    ] {
        for route in ROUTES {
            let answer = client.send(route.method.as_str(), &path(route), foreign, b"");
            if is_probe(route) {
                answer.ok();
                continue;
            }
            let detail = answer.problem(403, "foreign_request")["detail"].as_str().unwrap().to_owned();
            assert!(detail.contains("`server.hosts`") || detail.contains("`server.cors_origins`"), "{detail}");
        }
        client.send("GET", "/nowhere", foreign, b"").problem(403, "foreign_request");
    }
}

#[test]
fn a_post_that_needs_no_preflight_stores_nothing() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let headers =
        [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site"), ("content-type", "text/plain")];
    let target = format!("{DOCUMENTS}?id=planted");
    client.send("POST", &target, &headers, words(1).as_bytes()).problem(403, "foreign_request");
    client.get(&target).problem(404, "document_not_found");
}

#[test]
fn loopback_names_and_pages_of_this_machine_are_answered() {
    let dir = dir();
    let server = Local::plain(&dir);
    for headers in [
        "Host: localhost\r\n",
        "Host: LocalHost:9\r\n",
        "Host: hapax.localhost:80\r\n",
        "Host: 127.0.0.1\r\n",
        "Host: 127.1.2.3:8080\r\n",
        "Host: [::1]:8080\r\n",
        "Host: localhost\r\nOrigin: http://localhost:3000\r\n",
        "Host: localhost\r\nOrigin: http://localhost:3000\r\nSec-Fetch-Site: same-site\r\n",
        "Host: localhost\r\nSec-Fetch-Site: none\r\n",
        "Host: localhost\r\nSec-Fetch-Site: same-origin\r\n",
    ] {
        assert_eq!(status(&server, "/v1/version", "1.1", headers), 200, "{headers}");
    }
    assert_eq!(status(&server, "/v1/version", "1.0", ""), 200, "HTTP/1.0 has no Host");
    for (target, headers) in [
        ("/v1/version", "Host: localhost\r\nHost: evil.example\r\n"),
        ("http://evil.example/v1/version", "Host: localhost\r\n"),
        ("http://localhost/v1/version", "Host: evil.example\r\n"),
        ("/v1/version", "Host: localhost@evil.example\r\n"),
        ("/v1/version", "Host: \r\n"),
        ("/v1/version", "Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example\r\n"),
    ] {
        assert_eq!(status(&server, target, "1.1", headers), 403, "{target} {headers}");
    }
}

#[test]
fn hosts_and_origins_that_are_listed_are_answered() {
    let dir = dir();
    let access = access(&["hapax.internal", "192.0.2.7"], &["https://app.example:8443", "null"]);
    let server = Setup { access, ..Setup::new(&dir) }.start();
    for (headers, expected) in [
        ("Host: hapax.internal:8080\r\n", 200),
        ("Host: HAPAX.internal\r\nOrigin: http://hapax.internal\r\n", 200),
        ("Host: 192.0.2.7\r\n", 200),
        ("Host: x.hapax.internal\r\n", 403),
        ("Host: localhost\r\nOrigin: https://app.example:8443\r\nSec-Fetch-Site: cross-site\r\n", 200),
        ("Host: localhost\r\nOrigin: null\r\nSec-Fetch-Site: cross-site\r\n", 200),
        ("Host: localhost\r\nOrigin: https://app.example\r\n", 403),
        ("Host: localhost\r\nOrigin: http://app.example:8443\r\n", 403),
        ("Host: app.example\r\nOrigin: https://app.example:8443\r\n", 403),
    ] {
        assert_eq!(status(&server, "/v1/version", "1.1", headers), expected, "{headers}");
    }
}

#[test]
fn with_a_key_the_key_alone_decides() {
    let dir = dir();
    let server = Setup { api_key: Some(KEY), ..Setup::new(&dir) }.start();
    let headers = [("host", "evil.example"), ("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")];
    Client::of(&server).key(KEY).send("GET", "/v1/version", &headers, b"").ok();
    Client::of(&server).send("GET", "/v1/version", &headers, b"").problem(401, "unauthorized");
}

/// Sends a browser's preflight for a page of `origin`; it never contains `key`.
fn preflight(server: &Local, origin: &str) -> (u16, String) {
    let mut raw = Raw::connect(server.address);
    raw.send(format!(
        "OPTIONS {DOCUMENTS} HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\nAccess-Control-Request-Method: POST\r\n\
         Access-Control-Request-Headers: authorization,content-type\r\nConnection: close\r\n\r\n"
    ));
    let answer = String::from_utf8(raw.read_until(|_| false)).unwrap().to_lowercase();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

fn allowed_origin(answer: &Answer) -> Option<&str> {
    answer.headers.get("access-control-allow-origin").map(|value| value.to_str().unwrap())
}

#[test]
fn cors_is_off_until_an_origin_is_listed() {
    const APP: &str = "https://app.example";
    for key in [None, Some(KEY)] {
        let off_dir = dir();
        let off = Setup { api_key: key, ..Setup::new(&off_dir) }.start();
        let (status, answer) = preflight(&off, APP);
        assert!(status >= 400 && !answer.contains("access-control-allow"), "{answer}");

        let dir = dir();
        let server = Setup { api_key: key, access: access(&[], &[APP]), ..Setup::new(&dir) }.start();
        let (status, answer) = preflight(&server, APP);
        assert_eq!(status, 200, "{answer}");
        assert!(answer.contains(&format!("access-control-allow-origin: {APP}\r\n")), "{answer}");
        let line = |name: &str| answer.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        assert!(line("access-control-allow-methods").contains("post"), "{answer}");
        let headers = line("access-control-allow-headers");
        assert!(headers.contains("authorization") && headers.contains("content-type"), "{answer}");
        let (_, answer) = preflight(&server, "https://evil.example");
        assert!(!answer.contains("access-control-allow-origin"), "{answer}");

        let client = key.map_or(Client::of(&server), |key| Client::of(&server).key(key));
        let answer = client.send("GET", "/v1/version", &[("origin", APP)], b"");
        answer.ok();
        assert_eq!(allowed_origin(&answer), Some(APP));
        assert!(answer.headers["vary"].to_str().unwrap().to_lowercase().contains("origin"));
        let answer = client.send("GET", "/v1/version", &[("origin", "http://localhost:3000")], b"");
        assert_eq!((answer.status, allowed_origin(&answer)), (200, None));
        if key.is_some() {
            // The page must be able to read the reason.
            let answer = Client::of(&server).send("GET", "/v1/version", &[("origin", APP)], b"");
            answer.problem(401, "unauthorized");
            assert_eq!(allowed_origin(&answer), Some(APP));
        }
    }
}

#[test]
fn http2_names_its_host_in_the_authority() {
    let dir = dir();
    let server = Local::plain(&dir);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ask = |authority: &str| {
        let uri = format!("http://{authority}/v1/version");
        runtime.block_on(async {
            let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
            let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            let request = ureq::http::Request::get(uri).version(ureq::http::Version::HTTP_2).body(()).unwrap();
            let (answer, _) = sender.send_request(request, true).unwrap();
            let mut answer = answer.await.unwrap();
            let mut body = Vec::new();
            while let Some(piece) = answer.body_mut().data().await {
                body.extend_from_slice(&piece.unwrap());
            }
            (answer.status().as_u16(), serde_json::from_slice::<Value>(&body).unwrap()["code"].clone())
        })
    };
    assert_eq!(ask("localhost:1").0, 200);
    assert_eq!(ask("evil.example"), (403, "foreign_request".into()));
}
