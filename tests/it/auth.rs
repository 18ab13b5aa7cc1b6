//! If a key is set, every route except the probes requires the key.

use hapax::http::ROUTES;

use crate::support::client::Client;
use crate::support::library::dir;
use crate::support::local::Setup;

const KEY: &str = "a-key-of-some-length-1";

fn path(template: &str) -> String {
    template.replace("{collection}", "default")
}

#[test]
fn without_the_key_only_probes_answer() {
    let dir = dir();
    let server = Setup { api_key: Some(KEY), ..Setup::new(&dir) }.start();
    let (stranger, friend) = (Client::of(&server), Client::of(&server).key(KEY));
    for route in ROUTES {
        let open = ["/livez", "/readyz"].contains(&route.path);
        let answer = stranger.send(route.method.as_str(), &path(route.path), &[], b"");
        assert_eq!(answer.status == 401, !open, "{} {}", route.method, route.path);
        if !open {
            answer.problem(401, "unauthorized");
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
        }
        let answer = friend.send(route.method.as_str(), &path(route.path), &[], b"");
        assert_ne!(answer.status, 401, "{} {}", route.method, route.path);
    }
    stranger.get("/nowhere").problem(401, "unauthorized");
}

#[test]
fn only_the_very_key_will_do() {
    let dir = dir();
    let server = Setup { api_key: Some(KEY), ..Setup::new(&dir) }.start();
    let client = Client::of(&server);
    let status = |value: &str| client.send("GET", "/v1/version", &[("authorization", value)], b"").status;
    for value in [
        "".to_owned(),
        KEY.to_owned(),
        format!("Basic {KEY}"),
        format!("Bearer{KEY}"),
        "Bearer ".to_owned(),
        "Bearer".to_owned(),
        format!("Bearer {}", &KEY[1..]),
        format!("Bearer {KEY}x"),
        format!("Bearer {}", KEY.to_uppercase()),
    ] {
        assert_eq!(status(&value), 401, "{value:?}");
    }
    for value in [format!("Bearer {KEY}"), format!("bearer {KEY}"), format!("BEARER  {KEY}")] {
        assert_eq!(status(&value), 200, "{value:?}");
    }
    let answer = client.send("GET", &format!("/v1/version?key={KEY}"), &[], b"");
    assert_eq!(answer.status, 401, "a key in the query is in every proxy's log");
}
