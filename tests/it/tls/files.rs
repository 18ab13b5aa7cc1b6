//! The files of the certificate: which files a server refuses at the start, and its reaction when they change.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::CertificateDer;

use super::{metric, served};
use crate::support::authority::{Authority, Pair};
use crate::support::client::Client;
use crate::support::command::hapax;
use crate::support::library::dir;
use crate::support::server::Server;

const CHANGES_WITHIN: Duration = Duration::from_secs(60);

/// Returns the message of the start about these files.
fn refused(dir: &Path, cert_file: &str, key_file: &str) -> String {
    let output = hapax(&["serve", "--check-config"])
        .env("HAPAX__TLS__CERT_FILE", cert_file)
        .env("HAPAX__TLS__KEY_FILE", key_file)
        .current_dir(dir)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{cert_file} {key_file}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn files_that_cannot_be_used_stop_the_start() {
    let (dir, authority) = (dir(), Authority::new());
    let (pair, other) = (authority.sign(), authority.sign());
    pair.write(dir.path());
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("other.pem", &other.key);
    write("empty.pem", "");
    write("torn.pem", &pair.certificate[..pair.certificate.len() / 2]);
    write("locked.pem", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
    write("old.pem", "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END EC PRIVATE KEY-----\n");
    write("damaged.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    for (cert_file, key_file, said) in [
        ("cert.pem", "", "tls.cert_file = cert.pem: tls.key_file must be set, too"),
        ("", "key.pem", "tls.key_file = key.pem: tls.cert_file must be set, too"),
        ("nowhere.pem", "key.pem", "cannot read nowhere.pem: No such file"),
        ("cert.pem", "nowhere.pem", "cannot read nowhere.pem: No such file"),
        ("key.pem", "cert.pem", "key.pem has no certificate"),
        ("empty.pem", "key.pem", "empty.pem has no certificate"),
        ("torn.pem", "key.pem", "torn.pem"),
        ("damaged.pem", "key.pem", "damaged.pem is not a valid file of certificates"),
        ("cert.pem", "empty.pem", "empty.pem has no private key"),
        ("cert.pem", "locked.pem", "is protected by a password"),
        ("cert.pem", "old.pem", "is protected by a password"),
        ("cert.pem", "other.pem", "the private key in other.pem does not belong to the first certificate in cert.pem"),
    ] {
        let refusal = refused(dir.path(), cert_file, key_file);
        assert!(refusal.contains(said), "{cert_file} {key_file}: {refusal}");
    }
    let lonely = hapax(&["serve", "--check-config"]).env("HAPAX__TLS__ADMIN_LISTEN", "true").output().unwrap();
    let lonely = String::from_utf8(lonely.stderr).unwrap();
    assert!(lonely.contains("tls.admin_listen = true: must be false if tls.cert_file"), "{lonely}");
}

/// Returns the certificate that a new connection gets.
fn shown(server: &Server, authority: &Authority) -> CertificateDer<'static> {
    let tls = authority.connect(server.socket(), &["http/1.1"]).expect("each pair is from this authority");
    tls.conn.peer_certificates().unwrap()[0].clone().into_owned()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < CHANGES_WITHIN, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn count(log: &str, message: &str) -> usize {
    log.lines().filter(|line| line.contains(message)).count()
}

#[test]
fn a_renewed_certificate_is_taken_without_a_lost_request() {
    let (dir, authority) = (dir(), Arc::new(Authority::new()));
    let first = authority.sign();
    let server = served(&dir, &first, &[]);
    let kept = Client::trusting(server.url(""), &authority);
    kept.get("/livez").ok();
    let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = (0..2)
        .map(|_| {
            let (stop, asked) = (Arc::clone(&stop), Arc::clone(&asked));
            let (url, authority) = (server.url(""), Arc::clone(&authority));
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    // A new client makes a new connection.
                    Client::trusting(url.clone(), &authority).get("/livez").ok();
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let mut last = first;
    for _ in 0..3 {
        let next = authority.sign();
        assert_eq!(shown(&server, &authority), last.der());
        next.write(dir.path());
        wait_for("the new certificate is used", || shown(&server, &authority) == next.der());
        last = next;
    }
    stop.store(true, Ordering::Relaxed);
    clients.into_iter().for_each(|client| client.join().expect("no request is lost"));
    assert!(asked.load(Ordering::Relaxed) > 0);
    kept.get("/livez").ok();
    assert!(count(&server.log_tail(), "the TLS certificate was renewed") >= 1, "{}", server.log_tail());
}

#[test]
fn files_that_do_not_fit_keep_the_last_pair_until_they_do() {
    let (dir, authority) = (dir(), Authority::new());
    let (first, second) = (authority.sign(), authority.sign());
    let server = served(&dir, &first, &[]);
    let client = Client::trusting(server.url(""), &authority);
    let files = first.write(dir.path());
    let failures = || metric(&client, "hapax_tls_reload_errors_total");
    assert_eq!(failures(), 0.0);
    fs::write(files.certificate(), &second.certificate).unwrap();
    wait_for("the error is counted", || failures() >= 2.0);
    assert_eq!(shown(&server, &authority), first.der());
    fs::remove_file(files.key()).unwrap();
    let so_far = failures();
    wait_for("the error is counted", || failures() >= so_far + 2.0);
    assert_eq!(shown(&server, &authority), first.der());
    let told = "cannot use the TLS files";
    assert_eq!(count(&server.log_tail(), told), 1, "one line, however long it lasts: {}", server.log_tail());
    fs::write(files.key(), &second.key).unwrap();
    wait_for("the second pair is used", || shown(&server, &authority) == second.der());
    let ended = failures();
    fs::write(files.certificate(), "").unwrap();
    wait_for("the error is counted again", || failures() > ended);
    second.write(dir.path());
    wait_for("it is told", || count(&server.log_tail(), "the TLS files can be used again") == 1);
    assert_eq!(count(&server.log_tail(), told), 2, "{}", server.log_tail());
}

/// Kubernetes mounts a secret as links through a directory that it replaces.
#[test]
fn swapped_links_are_a_change() {
    let (dir, authority) = (dir(), Authority::new());
    let (first, second) = (authority.sign(), authority.sign());
    let version = |name: &str, pair: &Pair| {
        fs::create_dir(dir.path().join(name)).unwrap();
        pair.write(&dir.path().join(name));
    };
    version("..1", &first);
    version("..2", &second);
    let link = |name: &str, target: &str| std::os::unix::fs::symlink(target, dir.path().join(name)).unwrap();
    link("..data", "..1");
    link("cert.pem", "..data/cert.pem");
    link("key.pem", "..data/key.pem");
    let server = super::served_with(&dir, &[]);
    assert_eq!(shown(&server, &authority), first.der());
    link("..new", "..2");
    fs::rename(dir.path().join("..new"), dir.path().join("..data")).unwrap();
    wait_for("the second pair is used", || shown(&server, &authority) == second.der());
    assert_eq!(count(&server.log_tail(), "cannot use"), 0);
}

#[test]
fn metrics_tell_when_the_certificate_expires_and_which_handshakes_fail() {
    let (dir, authority) = (dir(), Authority::new());
    let pair = authority.sign_with(&["127.0.0.1"], |params| params.not_after = rcgen::date_time_ymd(2040, 5, 17));
    let server = served(&dir, &pair, &[]);
    let client = Client::trusting(server.url(""), &authority);
    wait_for("it is told", || metric(&client, "hapax_tls_certificate_expiry_timestamp_seconds") == 2_220_825_600.0);
    let failed = |reason: &str| metric(&client, &format!("hapax_tls_handshakes_failed_total{{reason=\"{reason}\"}}"));
    assert!(["closed", "invalid", "plain_http", "refused_by_client"].map(failed) == [0.0; 4]);
    Authority::new().connect(server.socket(), &[]).unwrap_err();
    wait_for("the client's alert is counted", || failed("refused_by_client") == 1.0);
    let plain = ureq::get(server.url("/livez").replace("https", "http")).call();
    assert!(matches!(plain, Err(ureq::Error::StatusCode(400))), "{plain:?}");
    wait_for("plain HTTP is counted", || failed("plain_http") == 1.0);
}
