//! TLS: a server with a certificate, as its clients see it. The server and most clients use the same library, rustls.
//! So these tests are not about TLS itself, but about hapax: its protocols, its limits, its files.

mod commands;
mod connections;
mod files;

use crate::support::authority::Pair;
use crate::support::client::Client;
use crate::support::library::Dir;
use crate::support::server::{Server, Starting};

/// Starts the real binary with this certificate.
fn served(dir: &Dir, pair: &Pair, environment: &[(&str, &str)]) -> Server {
    pair.write(dir.path());
    served_with(dir, environment)
}

/// Starts the real binary with the files `cert.pem` and `key.pem`.
fn served_with(dir: &Dir, environment: &[(&str, &str)]) -> Server {
    let files = [("HAPAX__TLS__CERT_FILE", "cert.pem"), ("HAPAX__TLS__KEY_FILE", "key.pem")];
    Starting::spawn_with(&dir.path().join("data"), &[], &[&files, environment].concat()).ready()
}

/// Returns the value of a series; NaN if there is none.
fn metric(client: &Client, series: &str) -> f64 {
    let text = client.get("/metrics").text();
    let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or(f64::NAN)
}
