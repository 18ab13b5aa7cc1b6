//! The command line as a client of a server with TLS.

use std::process::Output;

use super::served;
use crate::support::authority::Authority;
use crate::support::client::words;
use crate::support::command::{hapax, run};
use crate::support::library::dir;
use crate::support::server::Server;

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_verbs_work_over_https() {
    let (dir, authority) = (dir(), Authority::new());
    let ca = authority.write(dir.path());
    let server = served(&dir, &authority.sign(), &[]);
    let url = server.url("");
    assert!(url.starts_with("https://"), "{url}");
    let (input, exported) = (dir.path().join("in.jsonl"), dir.path().join("out.jsonl"));
    let lines: String =
        (0..50).map(|n| format!("{}\n", serde_json::json!({"id": n.to_string(), "text": words(n)}))).collect();
    std::fs::write(&input, lines).unwrap();
    let (ca, input, exported) = (ca.to_str().unwrap(), input.to_str().unwrap(), exported.to_str().unwrap());
    for arguments in [
        &["import", input, "--server", &url, "--ca", ca][..],
        &["export", "--server", &url, "--ca", ca, "--output", exported],
        &["health", "--server", &url, "--ca", ca],
    ] {
        let output = run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    }
    assert_eq!(std::fs::read_to_string(exported).unwrap().lines().count(), 50);
    let found = hapax(&["check", input, "--server", &url]).env("HAPAX_CA_FILE", ca).output().unwrap();
    assert!(found.status.success(), "{}", said(&found));
}

#[test]
fn a_server_that_is_not_trusted_is_named_with_the_remedy() {
    let (dir, authority, other) = (dir(), Authority::new(), Authority::new());
    let ca = authority.write(dir.path());
    let ca = ca.to_str().unwrap();
    let foreign = dir.path().join("other");
    std::fs::create_dir(&foreign).unwrap();
    let foreign = other.write(&foreign);
    let server = served(&dir, &authority.sign(), &[]);
    let asked = |ca: &str, url: &str| {
        let output = run(&["health", "--server", url, "--ca", ca]);
        assert!(!output.status.success());
        said(&output)
    };
    let url = server.url("");
    let refused = asked(foreign.to_str().unwrap(), &url);
    assert!(
        refused.contains("from an authority that is not trusted. Give the certificate of that authority with --ca")
    );
    let plain = asked(ca, &url.replace("https", "http"));
    assert!(plain.contains("400: This port speaks TLS. Use https:// instead of http."), "{plain}");
    let missing = asked("/nowhere/ca.pem", &url);
    assert!(missing.contains("--ca /nowhere/ca.pem: No such file"), "{missing}");
    std::fs::write(dir.path().join("empty.pem"), "no certificate\n").unwrap();
    let empty = asked(dir.path().join("empty.pem").to_str().unwrap(), &url);
    assert!(empty.contains("the file has no certificate"), "{empty}");
    // The import repeats requests that fail, but it must not repeat a request whose certificate is refused.
    let import = hapax(&["import", "/dev/null", "--server", &url]).env("SSL_CERT_FILE", &foreign).output().unwrap();
    assert!(said(&import).contains("not trusted"), "{}", said(&import));
    server.terminate();

    let names = authority.sign_with(&["hapax.internal"], |_| {});
    let server = served(&dir, &names, &[]);
    let other_name = asked(ca, &server.url(""));
    assert!(other_name.contains("for other names than the host name of the URL: hapax.internal"), "{other_name}");
    server.terminate();

    let old = authority.sign_with(&["127.0.0.1"], |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
    let server = served(&dir, &old, &[]);
    let expired = asked(ca, &server.url(""));
    assert!(expired.contains("its certificate has expired"), "{expired}");
    assert!(server.log_tail().contains("the TLS certificate has expired"), "{}", server.log_tail());
    server.terminate();

    let server = Server::start(&dir.path().join("plain"));
    let not_tls = asked(ca, &server.url("").replace("http", "https"));
    assert!(not_tls.contains("the answer is not TLS. If the server speaks plain HTTP"), "{not_tls}");
}

/// It connects to the machine's own address, for which no public certificate exists.
#[test]
fn health_asks_the_configured_listener_in_its_own_protocol() {
    let (dir, authority) = (dir(), Authority::new());
    let files = authority.sign_with(&["hapax.internal"], |_| {}).write(dir.path());
    let config = dir.path().join("hapax.toml");
    for probes_too in [None, Some(false), Some(true)] {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut text = format!(
            "[tls]\ncert_file = {:?}\nkey_file = {:?}\nadmin_listen = {}\n[server]\n",
            files.certificate(),
            files.key(),
            probes_too.unwrap_or(false)
        );
        match probes_too {
            Some(_) => text += &format!("admin_listen = \"{free}\"\n"),
            None => text += &format!("listen = \"{free}\"\n"),
        }
        std::fs::write(&config, text).unwrap();
        let config = config.to_str().unwrap();
        let listen = if probes_too.is_some() { "127.0.0.1:0".to_owned() } else { free.to_string() };
        let server = crate::support::server::Starting::spawn_with(
            &dir.path().join("data"),
            &["--config", config, "--listen", &listen],
            &[],
        );
        let server = server.ready();
        let health = run(&["health", "--config", config]);
        assert!(health.status.success(), "{probes_too:?}: {}", said(&health));
        server.terminate();
    }
    let printed = run(&["serve", "--config", config.to_str().unwrap(), "--check-config"]);
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(printed.contains("key_file = ") && !printed.contains("BEGIN"), "{printed}");
}
