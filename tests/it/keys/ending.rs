//! The server warns about keys and certificates that expire soon.

use std::time::Duration;

use jiff::Timestamp;

use super::file::{self, until};
use crate::support::authority::Authority;
use crate::support::client::Client;
use crate::support::command::hapax;
use crate::support::library::dir;
use crate::support::server::Starting;

fn expires_in(days: u64) -> (Timestamp, String) {
    let end = Timestamp::now() + Duration::from_hours(24 * days);
    let end = Timestamp::from_second(end.as_second()).unwrap();
    (end, format!("expires = \"{end}\""))
}

#[test]
fn the_next_key_to_end_is_a_metric_and_a_warning() {
    let dir = dir();
    let ([(soon, expires_soon), (late, expires_late)], all) = ([3, 100].map(expires_in), &["check", "metrics"]);
    let keys = file::write(dir.path(), &[("lasts", all, ""), ("ends", all, &expires_soon)]);
    let environment = [("HAPAX__AUTH__KEYS_FILE", keys.to_str().unwrap())];
    let server = Starting::spawn_with(&dir.path().join("data"), &[], &environment).ready();
    let shows = |wanted: f64| {
        let text = Client::new(server.url("")).key("lasts").get("/metrics").text();
        let line = text.lines().find_map(|line| line.strip_prefix("hapax_keys_next_expiry_timestamp_seconds "));
        line.is_some_and(|value| {
            let value: f64 = value.parse().unwrap();
            value == wanted || value.is_nan() && wanted.is_nan()
        })
    };
    until(|| shows(soon.as_second() as f64));
    assert!(server.log_tail().contains("the last key of this name expires soon"), "{}", server.log_tail());
    file::write(dir.path(), &[("lasts", all, ""), ("ends", all, &expires_late)]);
    until(|| shows(late.as_second() as f64));
    file::write(dir.path(), &[("lasts", all, "")]);
    until(|| shows(f64::NAN));
}

#[test]
fn settings_that_are_possible_and_probably_a_mistake_are_told() {
    let (dir, authority) = (dir(), Authority::new());
    let over = authority.sign_with(&["127.0.0.1"], |params| params.not_after = rcgen::date_time_ymd(2025, 5, 17));
    over.write(dir.path());
    file::write(dir.path(), &[("ended", &["check"], "expires = \"2025-01-01T00:00:00Z\"")]);
    let told = |settings: &str| {
        std::fs::write(dir.path().join("hapax.toml"), settings).unwrap();
        let output = hapax(&["serve", "--check-config", "--config", "hapax.toml"]).current_dir(dir.path()).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(told(""), "");
    let all = told(
        "[server]\ntrusted_proxies = [\"10.0.0.1\", \"::/0\"]\n[auth]\nkeys_file = \"keys.toml\"\n\
         [tls]\ncert_file = \"cert.pem\"\nkey_file = \"key.pem\"\n",
    );
    for part in ["server.trusted_proxies has ::/0", "certificate expired at 2025-05-17", "no key is valid"] {
        assert!(all.contains(part), "{part}: {all}");
    }
    assert_eq!(all.lines().filter(|line| line.starts_with("hapax: warning: ")).count(), 3, "{all}");
    let soon = expires_in(3).1;
    file::write(dir.path(), &[("ends", &["check"], &soon)]);
    let key = told("[auth]\napi_key = \"short\"\nkeys_file = \"keys.toml\"\n");
    assert!(
        key.contains("short enough to be guessed") && key.contains("the last key named \"ends\" expires at"),
        "{key}"
    );
}
