//! The command line, used as people use it: the real binary, its output and its exit status.

use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::support::command::{hapax, run};
use crate::support::server::{Server, Starting};

pub(crate) fn run_with_input(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = hapax(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("the binary ends");
    // A process may close its stdin after it has read enough.
    let _ = writer.join().expect("the writer does not panic");
    output
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("ended by a signal: {output:?}"))
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

pub(crate) fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Reads a row of the table that `import` prints.
pub(crate) fn row(output: &Output, name: &str) -> u64 {
    let table = text(&output.stdout);
    let line = table.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {table}"));
    // The row of failed lines continues with the reasons.
    let number = line[name.len()..].split_whitespace().next().unwrap_or_else(|| panic!("{line}"));
    number.replace(',', "").parse().unwrap_or_else(|_| panic!("{line}"))
}

/// Returns 24 words that no other `n` has.
pub(crate) fn words(n: usize) -> String {
    (0..24).map(|place| format!("w{}", n * 100 + place)).collect::<Vec<_>>().join(" ")
}

/// Returns 100 originals, each with one near-duplicate (its last word changed), one empty document, and one exact copy.
fn corpus() -> Vec<String> {
    let mut lines = Vec::new();
    for n in 0..100 {
        lines.push(json!({ "url": format!("original-{n}"), "body": words(n), "extra": [1, 2] }).to_string());
    }
    for n in 0..100 {
        let text = words(n);
        let (kept, _) = text.rsplit_once(' ').expect("several words");
        lines.push(json!({ "url": format!("near-{n}"), "body": format!("{kept} other") }).to_string());
    }
    lines.push(json!({ "url": 7, "body": "… !" }).to_string());
    lines.push(json!({ "url": "copy", "body": words(3) }).to_string());
    lines
}

#[test]
fn help_teaches_with_examples() {
    let help = run(&["--help"]);
    assert_eq!(code(&help), 0);
    assert!(text(&help.stdout).contains("hapax serve"));
    for verb in ["serve", "import", "check", "export", "tune", "health"] {
        let help = run(&[verb, "--help"]);
        assert_eq!(code(&help), 0, "{verb}");
        let help = text(&help.stdout);
        assert!(help.contains("Examples:") && help.contains("Exit status:") || verb == "tune", "{verb}: {help}");
        assert!(help.lines().all(|line| line.chars().count() <= 140), "{verb}");
    }
    assert_eq!(text(&run(&["--version"]).stdout).trim(), concat!("hapax ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_usage_exits_with_2() {
    for arguments in [
        ["frobnicate"].as_slice(),
        &["serve", "--no-such-flag"],
        &["serve", "--lock-wait", "60"],
        &["import"],
        &["check", "--threshold", "7", "x"],
        &["tune", "--threshold", "0"],
        &["tune", "--k", "100"],
        &["tune", "--bands", "3"],
        &["health", "--server", "ftp://127.0.0.1"],
    ] {
        let output = run(arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {output:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn settings_that_cannot_be_refuse_to_start_and_name_the_key() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let file = dir.path().join("hapax.toml");
    std::fs::write(&file, "[server]\nlisten_adress = \"127.0.0.1:0\"\n").expect("write");
    let data = dir.path().join("data");
    let serve = |more: &[&str], environment: &[(&str, &str)]| {
        let mut arguments = vec!["serve", "--data-dir", path(&data)];
        arguments.extend(more);
        let output = hapax(&arguments).envs(environment.iter().copied()).output().expect("the binary runs");
        assert_eq!(code(&output), 2, "{output:?}");
        assert!(output.stdout.is_empty());
        text(&output.stderr)
    };
    let message = serve(&["--config", path(&file)], &[]);
    assert!(message.contains("server.listen_adress") && message.contains("hapax.toml"), "{message}");
    let message = serve(&["--config", "no-such-file.toml"], &[]);
    assert!(message.contains("no-such-file.toml"), "{message}");
    let message = serve(&["--listen", "everywhere"], &[]);
    assert!(message.contains("server.listen") && message.contains("127.0.0.1:8080"), "{message}");
    let message = serve(&[], &[("HAPAX__COLLECTIONS__MAX", "0")]);
    assert!(message.contains("collections.max"), "{message}");
    let message = serve(&[], &[("HAPAX__COLECTIONS__MAX", "5")]);
    assert!(message.contains("HAPAX__COLECTIONS__MAX"), "{message}");
    let message = serve(&["--listen", "0.0.0.0:0"], &[]);
    assert!(message.contains("API key") && message.contains("HAPAX__AUTH__API_KEY_FILE"), "{message}");
    assert!(!data.exists(), "nothing is made by a server that does not start");
}

#[test]
fn check_config_shows_what_would_be_used_and_masks_secrets() {
    let output = hapax(&["serve", "--check-config", "--listen", "0.0.0.0:9999"])
        .envs([
            ("HAPAX__AUTH__API_KEY", "a-key-that-must-not-be-seen"),
            ("HAPAX__HASHING__SECRET", "00112233445566778899aabbccddeeff"),
            ("HAPAX__LIMITS__CANDIDATES_MAX", "99"),
        ])
        .output()
        .expect("the binary runs");
    assert_eq!(code(&output), 0, "{output:?}");
    let shown = text(&output.stdout);
    assert!(shown.contains("listen = \"0.0.0.0:9999\"") && shown.contains("the flag --listen"), "{shown}");
    assert!(shown.contains("candidates_max = 99") && shown.contains("HAPAX__LIMITS__CANDIDATES_MAX"), "{shown}");
    assert!(shown.contains("api_key = \"********\""), "{shown}");
    assert!(!shown.contains("must-not-be-seen") && !shown.contains("00112233"), "{shown}");
    let refused = run(&["serve", "--check-config", "--log-format", "xml"]);
    assert_eq!(code(&refused), 2);
    assert!(text(&refused.stderr).contains("log.format"));
}

#[test]
fn a_second_process_on_the_same_data_is_refused_or_waits() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let data = dir.path().join("data");
    let first = Server::start(&data);
    let second = run(&["serve", "--listen", "127.0.0.1:0", "--data-dir", path(&data)]);
    assert_eq!(code(&second), 2, "{second:?}");
    assert!(text(&second.stderr).contains(path(&data)), "{second:?}");
    assert!(text(&second.stderr).contains("or wait with --lock-wait"), "{second:?}");
    assert!(second.stdout.is_empty(), "no ready line");
    let (target, in_use) = (dir.path().join("target"), format!("{} is in use by process ", path(&data)));
    for (verb, advice) in [
        (["check", path(&data)].as_slice(), "stop it, or leave out --data-dir"),
        (&["export", "--output", path(&target)], "stop it, or leave out --data-dir"),
        (&["backup", path(&target)], "stop it, or leave out --data-dir"),
        (&["verify"], "stop it first"),
    ] {
        let offline = run(&[verb, &["--data-dir", path(&data)]].concat());
        assert_eq!(code(&offline), 2, "{offline:?}");
        let said = text(&offline.stderr);
        assert!(said.contains(&in_use) && said.contains(advice) && !said.contains("--lock-wait"), "{said}");
    }

    let waiting = Starting::spawn_with(&data, &["--lock-wait", "60s"], &[]);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(first.terminate().success());
    let third = waiting.ready();
    assert_eq!(third.documents(), 0);
    third.hang_up();
    crate::support::until::until("the log tells what SIGHUP does not do", || {
        std::fs::read_to_string(data.with_extension("log")).unwrap().contains("SIGHUP does nothing")
    });
    assert_eq!(third.documents(), 0);
    assert!(third.terminate().success(), "SIGTERM drains and exits 0");
}

#[test]
fn import_then_check_finds_what_was_planted() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let url = server.url("");
    let fields = ["--server", &url, "--id-field", "url", "--text-field", "body"];
    let with = |verb: &'static str, more: &[&'static str]| {
        let mut arguments = vec![verb];
        arguments.extend(fields);
        arguments.extend(more);
        arguments
    };
    imports_and_names_bad_lines(&with("import", &["--connections", "1", "-"]), &with("import", &["-"]));
    let near: Vec<_> = corpus()[100..110].to_vec();
    let verdicts = checks_and_names_bad_lines(&with("check", &["-"]), &near);

    let page = dir.path().join("page.txt");
    std::fs::write(&page, format!("\u{FEFF}{}\n", words(42))).expect("write");
    let check = run(&["check", "--server", &url, "--text", path(&page)]);
    assert_eq!(code(&check), 1, "{check:?}");
    assert!(text(&check.stdout).contains("\"exact_duplicate\""));

    // Without a server, the answers are the same.
    assert!(server.terminate().success());
    let offline = ["check", "--id-field", "url", "--text-field", "body", "--data-dir", path(&data), "-"];
    let check = run_with_input(&offline, near.join("\n").as_bytes());
    assert_eq!(code(&check), 1, "{check:?}");
    let again: Vec<Value> =
        text(&check.stdout).lines().map(|line| serde_json::from_str(line).expect("JSON lines")).collect();
    assert_eq!(again, verdicts);
}

fn imports_and_names_bad_lines(one_by_one: &[&str], at_once: &[&str]) {
    let clean = (corpus().join("\n") + "\n").into_bytes();
    let import = run_with_input(one_by_one, &clean);
    assert_eq!(code(&import), 0, "{import:?}");
    let counts = ["documents", "unique", "near", "exact", "empty", "unchanged", "updated", "failed"];
    assert_eq!(counts.map(|name| row(&import, name)), [202, 100, 100, 1, 1, 0, 0, 0]);

    // The same corpus is imported again, compressed, and with bad lines in it. The good lines change nothing, and the
    // bad ones are reported.
    let mut lines = corpus();
    lines.insert(0, String::new());
    lines.insert(5, "{\"url\": \"broken\"".into());
    lines.insert(10, "{\"url\": \"no text\"}".into());
    lines.insert(20, json!({ "url": "original-0", "body": words(5000) }).to_string());
    let bad = zstd::encode_all(lines.join("\n").as_bytes(), 3).expect("compress");
    let import = run_with_input(at_once, &bad);
    assert_eq!(code(&import), 1, "{import:?}");
    assert_eq!(counts.map(|name| row(&import, name)), [205, 0, 100, 1, 1, 100, 0, 3]);
    let words_said = text(&import.stderr);
    assert!(
        words_said.contains("-:6 at byte 623: not a complete JSON object: it ends too early (column"),
        "{words_said}"
    );
    assert!(words_said.contains("-:11 at byte 1296: no field \"body\""), "{words_said}");
    assert!(words_said.contains("-:21 at byte 2966 (id \"original-0\")"), "{words_said}");
    assert!(!words_said.contains("w500000"), "no text of a document: {words_said}");
}

/// Returns the verdicts on `near`.
fn checks_and_names_bad_lines(check_lines: &[&str], near: &[String]) -> Vec<Value> {
    let check = run_with_input(check_lines, near.join("\n").as_bytes());
    assert_eq!(code(&check), 1, "{check:?}");
    let verdicts: Vec<Value> =
        text(&check.stdout).lines().map(|line| serde_json::from_str(line).expect("JSON lines")).collect();
    assert_eq!(verdicts.len(), 10);
    for (n, verdict) in verdicts.iter().enumerate() {
        assert_eq!(verdict["line"], n + 1);
        assert_eq!(verdict["verdict"], "near_duplicate");
        assert_eq!(verdict["duplicate_of"], format!("original-{n}"));
    }

    let fresh = json!({ "body": words(9999) }).to_string();
    let check = run_with_input(check_lines, fresh.as_bytes());
    assert_eq!(code(&check), 0, "{check:?}");
    let mixed = format!("{fresh}\nnonsense\n{}\n", near[0]);
    let check = run_with_input(check_lines, mixed.as_bytes());
    assert_eq!(code(&check), 2, "{check:?}");
    let kinds: Vec<_> = text(&check.stdout)
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).expect("JSON lines");
            (line["kind"].as_str().expect("a kind").to_owned(), line["line"].as_u64().expect("a number"))
        })
        .collect();
    assert_eq!(kinds, [("verdict".into(), 1), ("error".into(), 2), ("verdict".into(), 3)]);
    verdicts
}

#[test]
fn clients_say_what_to_do_where_there_is_no_server_or_no_key() {
    // The port is bound and then released, so no program listens on it.
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its number");
    let url = format!("http://{free}");
    for arguments in [["import", "--server", &url, "-"], ["check", "--server", &url, "-"]] {
        let output = run_with_input(&arguments, b"{\"id\":\"a\",\"text\":\"b\"}\n");
        assert_eq!(code(&output), 2, "{output:?}");
        let words = text(&output.stderr);
        assert!(words.contains(&url) && words.contains("hapax serve"), "{words}");
    }
    assert_eq!(code(&run(&["health", "--server", &url])), 1);

    let dir = tempfile::tempdir().expect("temporary directory");
    let key = dir.path().join("key");
    std::fs::write(&key, "a-key-of-the-tests\n").expect("write");
    let data = dir.path().join("data");
    let server = Starting::spawn_with(&data, &[], &[("HAPAX__AUTH__API_KEY_FILE", path(&key))]).ready();
    let url = server.url("");
    assert_eq!(code(&run(&["health", "--server", &url])), 0, "probes need no key");
    let document = b"{\"id\":\"a\",\"text\":\"some words of a document\"}\n";
    let refused = run_with_input(&["import", "--server", &url, "-"], document);
    assert_eq!(code(&refused), 2, "{refused:?}");
    assert!(text(&refused.stderr).contains("--api-key-file"), "{refused:?}");
    let taken = run_with_input(&["import", "--server", &url, "--api-key-file", path(&key), "-"], document);
    assert_eq!(code(&taken), 0, "{taken:?}");
    assert_eq!(row(&taken, "unique"), 1);
    // A key in the environment variable may end in a newline, but may have no newline before its end.
    let by_variable = |key: &str| {
        let file = dir.path().join("in.jsonl");
        std::fs::write(&file, document).expect("write");
        let arguments = ["import", "--server", &url, path(&file)];
        hapax(&arguments).env("HAPAX__AUTH__API_KEY", key).output().expect("the binary runs")
    };
    assert_eq!(code(&by_variable("a-key-of-the-tests\n")), 0);
    let refused = by_variable("a-key\nof-the-tests");
    assert_eq!(code(&refused), 2, "{refused:?}");
    assert!(text(&refused.stderr).contains("HAPAX__AUTH__API_KEY: must be one line of printable"), "{refused:?}");
    let elsewhere = ["import", "--server", &url, "--api-key-file", path(&key), "--collection", "no-such", "-"];
    let missing = run_with_input(&elsewhere, document);
    assert_eq!(code(&missing), 2, "{missing:?}");
    assert!(text(&missing.stderr).contains("no-such"), "{missing:?}");
    assert!(text(&missing.stderr).contains("--create"), "the server names a request: {missing:?}");
}

#[test]
fn an_import_outlives_a_restart_of_the_server() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let url = server.url("");
    let listen = url.strip_prefix("http://").expect("a URL").to_owned();
    let count = 20_000;
    let lines: Vec<_> = (0..count).map(|n| json!({ "id": format!("{n}"), "text": words(n) }).to_string()).collect();
    let input = lines.join("\n").into_bytes();
    let import = std::thread::spawn(move || run_with_input(&["import", "--server", &url, "-"], &input));
    std::thread::sleep(std::time::Duration::from_millis(700));
    server.kill();
    let again = Starting::spawn_with(&data, &["--listen", &listen], &[]).ready();
    let import = import.join().expect("it does not panic");
    assert_eq!(code(&import), 0, "{import:?}\n{}", again.log_tail());
    assert_eq!(row(&import, "documents"), count as u64);
    assert_eq!(row(&import, "unique") + row(&import, "unchanged"), count as u64, "{import:?}");
    assert!(again.terminate().success());
    let third = Server::start(&data);
    assert_eq!(third.documents(), count as u64);
}

#[test]
fn tune_prints_a_banding_and_draws_it() {
    let json = run(&["tune", "--json", "--bands", "31", "--rows", "8"]);
    assert_eq!(code(&json), 0, "{json:?}");
    let report: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(report["banding"], serde_json::json!({"bands": 31, "rows": 8}));
    let candidate = report["candidate_recall_at_threshold"].as_f64().expect("a number");
    let verdict = report["verdict_recall_at_threshold"].as_f64().expect("a number");
    assert!(candidate > 0.99 && (0.4..0.6).contains(&verdict), "{report}");
    assert!(report["warnings"][0].as_str().is_some_and(|warning| warning.contains("threshold")), "{report}");

    let dir = tempfile::tempdir().expect("temporary directory");
    let (theory, both) = (dir.path().join("theory.svg"), dir.path().join("both.svg"));
    let words = run(&["tune", "--plot", path(&theory)]);
    assert_eq!(code(&words), 0, "{words:?}");
    let said = text(&words.stdout);
    assert!(said.contains("bands of") && said.contains("<- threshold") && said.contains("note:"), "{said}");
    let simulated = run(&["tune", "--simulate", "--pairs", "100", "--plot", path(&both)]);
    assert_eq!(code(&simulated), 0, "{simulated:?}");
    assert!(text(&simulated.stdout).contains("measured"));
    let [theory, both] = [theory, both].map(|path| std::fs::read_to_string(path).expect("an SVG"));
    for svg in [&theory, &both] {
        assert!(svg.starts_with("<svg") && svg.contains("Jaccard similarity") && svg.contains("threshold 0.8"));
    }
    assert!(!theory.contains("measured") && both.contains("measured"));
    let impossible = run(&["tune", "--plot", "/no-such-folder/x.svg"]);
    assert_eq!(code(&impossible), 2);
    assert!(text(&impossible.stderr).contains("/no-such-folder/x.svg"));
}

/// Returns an address on which no program listens.
fn free() -> std::net::SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its number")
}

/// In an earlier version, `hapax health` asked 127.0.0.1:8080, whatever address the server's configuration had.
#[test]
fn health_asks_where_the_server_is_configured_to_listen() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let (listen, probes, nobody) = (free().to_string(), free().to_string(), free());
    let config = dir.path().join("hapax.toml");
    let secret = dir.path().join("no-such-file");
    let settings = format!("[server]\nlisten = \"{listen}\"\nadmin_listen = \"{probes}\"\n");
    std::fs::write(&config, &settings).expect("write");
    let arguments = ["--config", path(&config), "--listen", &listen];
    let server = Starting::spawn_with(&dir.path().join("data"), &arguments, &[]).ready();
    assert_eq!(server.url(""), format!("http://{listen}"));
    let health = |arguments: &[&str], environment: &[(&str, &str)]| {
        let mut command = hapax(&[&["health"], arguments].concat());
        command.envs(environment.iter().copied()).output().expect("the binary runs")
    };
    let everywhere = format!("0.0.0.0:{}", listen.rsplit_once(':').expect("a port").1);
    for (arguments, environment) in [
        (["--config", path(&config)].as_slice(), [].as_slice()),
        (&[], &[("HAPAX__SERVER__LISTEN", &*listen)]),
        (&[], &[("HAPAX__SERVER__ADMIN_LISTEN", &*probes)]),
        (&["--listen", &listen], &[]),
        // As in a container, the probe cannot read the key's file, and does not need it.
        (&[], &[("HAPAX__SERVER__LISTEN", &*everywhere), ("HAPAX__AUTH__API_KEY_FILE", path(&secret))]),
    ] {
        let output = health(arguments, environment);
        assert_eq!(code(&output), 0, "{arguments:?} {environment:?} {output:?}");
    }
    let asked = health(&["--config", path(&config)], &[("HAPAX__SERVER__ADMIN_LISTEN", &nobody.to_string())]);
    assert_eq!(code(&asked), 1, "{asked:?}");
    assert!(text(&asked.stderr).contains(&nobody.to_string()), "{asked:?}");
    let any_port = health(&["--listen", "127.0.0.1:0"], &[]);
    assert_eq!(code(&any_port), 2, "{any_port:?}");
    assert!(text(&any_port.stderr).contains("--server"), "{any_port:?}");
}
