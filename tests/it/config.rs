//! Settings: how they are merged, which values are refused, and that each refusal names its key.

use std::ffi::OsString;
use std::time::Duration;

use hapax::config::{ApiKey, Config, ConfigError, Loaded, Sources, load};
use serde_json::json;

use crate::support::client::Client;
use crate::support::library::dir;
use crate::support::local::{Local, Setup};

fn environment(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
}

fn with_environment(pairs: &[(&str, &str)]) -> Result<Loaded, ConfigError> {
    load(&Sources { environment: environment(pairs), ..Sources::default() })
}

fn with_file(text: &str) -> Result<Loaded, ConfigError> {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("hapax.toml");
    std::fs::write(&path, text).expect("write");
    load(&Sources { file: Some(path), ..Sources::default() })
}

/// In an earlier version, `HAPAX__DEFAULT_COLLECTION__TOUCH=true` was refused: "must be true or false; it is \"true\"".
#[test]
fn true_and_false_can_be_set_by_variables() {
    for touch in [true, false] {
        let loaded = with_environment(&[("HAPAX__DEFAULT_COLLECTION__TOUCH", &touch.to_string())]).expect("a boolean");
        assert_eq!(loaded.config.collections.default_settings.touch, touch);
    }
    assert!(refusal(with_environment(&[("HAPAX__DEFAULT_COLLECTION__TOUCH", "yes")])).contains("true or false"));
}

fn refusal(loaded: Result<Loaded, ConfigError>) -> String {
    loaded.map(|loaded| loaded.effective).expect_err("must be refused").to_string()
}

#[test]
fn defaults_alone_are_a_valid_configuration() {
    let Config { server, api_key, collections, cpu, .. } = load(&Sources::default()).expect("defaults").config;
    assert_eq!(server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(api_key, None);
    assert_eq!(collections.data_dir.to_str(), Some("./hapax-data"));
    assert_eq!(collections.collections_max, 64);
    assert_eq!(server.limits.text_body_bytes_max, 1 << 30);
    assert!(cpu.threads >= 1 && cpu.queue_max == 1024);
    assert_eq!(collections.default_settings.banding.bands(), 31);
    assert_eq!(collections.default_settings.banding.rows(), 8);
    assert!(
        collections
            .default_settings
            .spec
            .to_string()
            .ends_with("fold=nfkc_casefold;marks=keep;digits=keep;shingle=word5;sketch=fss256x8;key=none")
    );
}

#[test]
fn flags_win_over_environment_over_file_over_defaults() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("hapax.toml");
    std::fs::write(&path, "[server]\nlisten = \"127.0.0.1:1\"\ndrain_timeout_ms = 1\nbody_bytes_max = 2048\n")
        .expect("write");
    let sources = Sources {
        file: Some(path),
        environment: environment(&[
            ("HAPAX__SERVER__LISTEN", "127.0.0.1:2"),
            ("HAPAX__SERVER__DRAIN_TIMEOUT_MS", "2"),
            ("HAPAX_PORT", "tcp://10.0.0.1:80"),
            ("PATH", "/bin"),
        ]),
        flags: vec![("--listen", "server.listen", "127.0.0.1:3".into())],
    };
    let Loaded { config, effective } = load(&sources).expect("all possible");
    assert_eq!(config.server.listen.port(), 3);
    assert_eq!(config.server.limits.drain_timeout, Duration::from_millis(2));
    assert_eq!(config.server.limits.body_bytes_max, 2048);
    assert_eq!(config.server.limits.batch_documents_max, 1000);
    let line = |key: &str| effective.lines().find(|line| line.starts_with(key)).expect(key).to_owned();
    assert!(line("listen").ends_with("# the flag --listen"), "{effective}");
    assert!(line("drain_timeout_ms").ends_with("# the environment variable HAPAX__SERVER__DRAIN_TIMEOUT_MS"));
    assert!(line("body_bytes_max").contains("hapax.toml"), "{effective}");
    assert!(!line("batch_documents_max").contains('#'), "{effective}");
}

/// If `keep` is not set, it follows from `verify`, so it has no default in config/default.toml. In an earlier version,
/// `keep` was missing in the effective settings. An operator could not see it in advance, although it cannot be changed
/// later.
#[test]
fn the_effective_settings_say_what_is_kept_of_a_document_even_if_it_is_not_set() {
    for (file, shown) in [
        ("", "keep = \"signature\""),
        ("[default_collection]\nverify = \"exact\"", "keep = \"shingles\""),
        ("[default_collection]\nkeep = \"text\"", "keep = \"text\" "),
    ] {
        let effective = with_file(file).expect("possible").effective;
        let lines: Vec<_> = effective.lines().filter(|line| line.starts_with("keep = ")).collect();
        assert!(matches!(lines[..], [line] if line.starts_with(shown)), "{file}: {lines:?}");
    }
}

#[test]
fn the_effective_settings_are_a_configuration_that_means_the_same() {
    let shown = with_environment(&[("HAPAX__DEFAULT_COLLECTION__THRESHOLD", "0.7")]).expect("possible").effective;
    let again = with_file(&shown).expect("what is shown can be read");
    assert_eq!(again.config.collections.default_settings.threshold, 0.7);
}

#[test]
fn lists_come_from_files_and_from_variables_with_commas() {
    let lists = "[server]\nhosts = [\"a.example\", \"::1\"]\ncors_origins = [\"https://a.example:8443\"]\n";
    let from_file = with_file(lists).expect("possible");
    let variables =
        [("HAPAX__SERVER__HOSTS", "a.example, ::1"), ("HAPAX__SERVER__CORS_ORIGINS", "https://a.example:8443")];
    let from_environment = with_environment(&variables).expect("possible");
    for loaded in [&from_file, &from_environment] {
        assert_eq!((loaded.config.server.hosts.len(), loaded.config.server.cors_origins.len()), (2, 1));
        let again = with_file(&loaded.effective).expect("what is shown can be read");
        assert_eq!(again.config.server.hosts, from_file.config.server.hosts);
    }
    assert!(with_environment(&[("HAPAX__SERVER__HOSTS", "")]).expect("possible").config.server.hosts.is_empty());
    assert!(refusal(with_file("[server]\nhosts = \"a.example\"\n")).contains("server.hosts"));
}

#[test]
fn unknown_keys_are_refused_with_key_and_origin() {
    let message = refusal(with_file("[server]\nlisten_adress = \"127.0.0.1:1\"\n"));
    assert!(message.contains("server.listen_adress") && message.contains("hapax.toml"), "{message}");
    assert!(message.contains("listen, "), "says what there is: {message}");
    let message = refusal(with_file("[sever]\nlisten = \"127.0.0.1:1\"\n"));
    assert!(message.contains("sever") && message.contains("hapax.toml"), "{message}");
    assert!(message.contains("; did you mean server? The sections are address_limits, audit, auth, "), "{message}");
    for (wrong, right) in [
        ("server.listn", Some("server.listen")),
        ("server.listen_adress", Some("server.listen")),
        ("server.body_bytes", Some("server.body_bytes_max")),
        ("limits.max_candidates", None),
        ("limits.candidates_limit", Some("limits.candidates_max")),
        ("default_collection.treshold", Some("default_collection.threshold")),
        ("data.path", None),
    ] {
        let variable = format!("HAPAX__{}", wrong.to_uppercase().replace('.', "__"));
        let message = refusal(with_environment(&[(&variable, "1")]));
        let meant = message.split("did you mean ").nth(1).and_then(|rest| rest.split('?').next());
        assert_eq!(meant, right, "{message}");
    }
    let message = refusal(with_environment(&[("HAPAX__LOG__COLOUR", "1")]));
    assert!(message.contains("log.colour") && message.contains("HAPAX__LOG__COLOUR"), "{message}");
    let message = refusal(with_environment(&[("HAPAX__LISTEN", "127.0.0.1:1")]));
    assert!(message.contains("HAPAX__LISTEN"), "{message}");
    let message = refusal(with_environment(&[("HAPAX__SERVER", "127.0.0.1:1")]));
    assert!(message.contains("HAPAX__SERVER"), "{message}");
    let message = refusal(with_environment(&[("HAPAX__SERVER__LISTEN__PORT", "1")]));
    assert!(message.contains("HAPAX__SERVER__LISTEN__PORT"), "{message}");
    let message = refusal(with_environment(&[("HAPAX__", "1")]));
    assert!(message.contains("HAPAX__"), "{message}");
}

/// In an earlier version, `HAPAX_AUTH_API_KEY`, with one underscore too few, was ignored, and the server was open.
#[test]
fn variables_that_are_nearly_a_setting_are_refused_and_set_right() {
    for (wrong, right) in [
        ("HAPAX_AUTH_API_KEY", "HAPAX__AUTH__API_KEY"),
        ("HAPAX__AUTH_API_KEY", "HAPAX__AUTH__API_KEY"),
        ("HAPAX_AUTH__API_KEY", "HAPAX__AUTH__API_KEY"),
        ("HAPAX___AUTH__API__KEY", "HAPAX__AUTH__API_KEY"),
        ("hapax__auth__api_key", "HAPAX__AUTH__API_KEY"),
        ("Hapax_Auth_Api_Key", "HAPAX__AUTH__API_KEY"),
        ("HAPAX.AUTH.API_KEY", "HAPAX__AUTH__API_KEY"),
        ("HAPAX_API_KEY", "HAPAX__AUTH__API_KEY"),
        ("HAPAX_AUTH_API_KEY_FILE", "HAPAX__AUTH__API_KEY_FILE"),
        ("HAPAX_HASHING_SECRET", "HAPAX__HASHING__SECRET"),
        ("HAPAX_SERVER_LISTEN", "HAPAX__SERVER__LISTEN"),
        ("HAPAX_DATA_DIR", "HAPAX__DATA__DIR"),
        ("HAPAX_COLLECTIONS_MAX", "HAPAX__COLLECTIONS__MAX"),
    ] {
        let message = refusal(with_environment(&[(wrong, "0123456789abcdef")]));
        assert!(message.contains(&format!(" {wrong} ")) && message.contains(&format!(" {right}?")), "{message}");
        assert!(!message.contains("0123456789abcdef"), "{message}");
    }
}

#[test]
fn variables_of_others_are_passed_over() {
    let kubernetes = [
        ("HAPAX_PORT", "tcp://10.0.0.1:80"),
        ("HAPAX_SERVICE_HOST", "10.0.0.1"),
        ("HAPAX_SERVICE_PORT", "80"),
        ("HAPAX_SERVICE_PORT_HTTP", "80"),
        ("HAPAX_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
        ("HAPAX_PORT_8080_TCP_ADDR", "10.0.0.1"),
        ("HAPAX_SERVER_PORT", "tcp://10.0.0.1:80"),
        ("HAPAX_SERVER_SERVICE_HOST", "10.0.0.1"),
        ("HAPAX_CORPORA", "/corpora"),
        ("MY_HAPAX_AUTH_API_KEY", "x"),
        ("HAPAX", "x"),
    ];
    assert!(with_environment(&kubernetes).is_ok());
    let lower = with_environment(&[("HAPAX__server__Drain_Timeout_MS", "3")]).expect("section and key in any case");
    assert_eq!(lower.config.server.limits.drain_timeout, Duration::from_millis(3));
}

#[test]
fn values_of_the_wrong_type_are_refused_with_key_and_origin() {
    let message = refusal(with_file("[server]\nlisten = 8080\n"));
    assert!(message.contains("server.listen") && message.contains("hapax.toml"), "{message}");
    let message = refusal(with_environment(&[("HAPAX__COLLECTIONS__MAX", "many")]));
    assert!(message.contains("collections.max") && message.contains("HAPAX__COLLECTIONS__MAX"), "{message}");
    assert!(message.ends_with(": must be a whole number; it is \"many\""), "{message}");
    let message = refusal(with_environment(&[("HAPAX__COLLECTIONS__MAX", "-5")]));
    assert!(message.ends_with(": must be a whole number of at least 0; it is -5"), "{message}");
    let message = refusal(with_file("server = 5\n"));
    assert!(message.contains("server"), "{message}");
    let message = refusal(with_file("[server\n"));
    assert!(message.contains("hapax.toml") && message.contains("TOML"), "{message}");
}

#[test]
fn impossible_values_are_refused_with_key_and_what_is_allowed() {
    for (variable, value, key, allowed) in [
        ("HAPAX__SERVER__LISTEN", "localhost", "server.listen", "127.0.0.1:8080"),
        ("HAPAX__SERVER__ADMIN_LISTEN", "8081", "server.admin_listen", "127.0.0.1:8080"),
        ("HAPAX__SERVER__ADMIN_LISTEN", "127.0.0.1:8080", "server.admin_listen", "must differ"),
        ("HAPAX__SERVER__KEEP_ALIVE_TIMEOUT_MS", "0", "server.keep_alive_timeout_ms", "100 and"),
        ("HAPAX__SERVER__HOSTS", "a.example,b.example:80", "server.hosts", "without a port"),
        ("HAPAX__SERVER__HOSTS", "http://a.example", "server.hosts", "without a port"),
        ("HAPAX__SERVER__CORS_ORIGINS", "*", "server.cors_origins", "https://app.example"),
        ("HAPAX__SERVER__CORS_ORIGINS", "https://app.example/", "server.cors_origins", "without a path"),
        ("HAPAX__SERVER__CONNECTIONS_MAX", "0", "server.connections_max", "1 and 1000000"),
        ("HAPAX__SERVER__BODY_BYTES_MAX", "12", "server.body_bytes_max", "1024 and"),
        ("HAPAX__SERVER__TEXT_BODY_BYTES_MAX", "1023", "server.text_body_bytes_max", "1024 and 1099511627776"),
        ("HAPAX__SERVER__BODY_BYTES_PER_SECOND_MIN", "0", "server.body_bytes_per_second_min", "1 and"),
        ("HAPAX__SERVER__TEXT_BYTES_PER_SECOND_MIN", "0", "server.text_bytes_per_second_min", "1 and"),
        ("HAPAX__CPU__THREADS", "1025", "cpu.threads", "0 and 1024"),
        ("HAPAX__CPU__QUEUE_MAX", "0", "cpu.queue_max", "1 and"),
        ("HAPAX__SERVER__BULK_LINE_BYTES_MAX", "134217728", "server.bulk_line_bytes_max", "server.bulk_body_bytes_max"),
        ("HAPAX__SERVER__BODIES_BYTES_MAX", "1048576", "server.bodies_bytes_max", "server.body_bytes_max"),
        ("HAPAX__SERVER__ANSWER_BYTES_MAX", "1024", "server.answer_bytes_max", "65536 and"),
        ("HAPAX__SERVER__ANSWER_BYTES_PER_SECOND_MIN", "0", "server.answer_bytes_per_second_min", "1 and"),
        ("HAPAX__SERVER__ANSWERS_BYTES_MAX", "33554432", "server.answers_bytes_max", "four times"),
        ("HAPAX__SERVER__BODIES_BYTES_MAX", "33554431", "server.bodies_bytes_max", "twice server.bulk_line_bytes_max"),
        ("HAPAX__SERVER__HEADER_TIMEOUT_MS", "1", "server.header_timeout_ms", "100 and"),
        ("HAPAX__AUTH__API_KEY", "two words", "auth.api_key", "without spaces"),
        ("HAPAX__AUTH__API_KEY", "", "auth.api_key", "one or more"),
        ("HAPAX__AUTH__API_KEY", "a key with some spaces", "auth.api_key", "without spaces"),
        ("HAPAX__DATA__DIR", "", "data.dir", "a path"),
        ("HAPAX__COLLECTIONS__MAX", "0", "collections.max", "1 and"),
        ("HAPAX__DEFAULT_COLLECTION__FOLD", "nfc", "default_collection.fold", "\"nfkc_casefold\", \"nfkc\", \"none\""),
        ("HAPAX__DEFAULT_COLLECTION__MARKS", "drop", "default_collection.marks", "\"strip\""),
        ("HAPAX__DEFAULT_COLLECTION__DIGITS", "drop", "default_collection.digits", "\"zero\""),
        ("HAPAX__DEFAULT_COLLECTION__SHINGLE", "word33", "default_collection.shingle", "word32"),
        ("HAPAX__DEFAULT_COLLECTION__SHINGLE", "word05", "default_collection.shingle", "word32"),
        ("HAPAX__DEFAULT_COLLECTION__SHINGLE", "line", "default_collection.shingle", "word32"),
        ("HAPAX__DEFAULT_COLLECTION__SKETCH", "fss100x8", "default_collection.sketch", "power of two"),
        ("HAPAX__DEFAULT_COLLECTION__SKETCH", "simhash64", "default_collection.sketch", "classic"),
        ("HAPAX__DEFAULT_COLLECTION__KEY", "secret", "default_collection.key", "hashing.secret"),
        ("HAPAX__DEFAULT_COLLECTION__KEY", "yes", "default_collection.key", "\"none\""),
        ("HAPAX__DEFAULT_COLLECTION__BANDS", "300", "default_collection.bands", ""),
        ("HAPAX__DEFAULT_COLLECTION__THRESHOLD", "0", "default_collection.threshold", "above 0"),
        ("HAPAX__DEFAULT_COLLECTION__THRESHOLD", "1.01", "default_collection.threshold", "at most 1"),
        ("HAPAX__DEFAULT_COLLECTION__THRESHOLD", "NaN", "default_collection.threshold", "above 0"),
        ("HAPAX__HASHING__SECRET", "abc", "hashing.secret", "32 hexadecimal"),
        ("HAPAX__LIMITS__CANDIDATES_MAX", "0", "limits.candidates_max", "1 and"),
        ("HAPAX__COMMIT__BATCH_MAX", "9000", "commit.batch_max", "commit.queue_max"),
        ("HAPAX__COMMIT__WINDOW_MS", "1001", "commit.window_ms", "0 and 1000"),
        ("HAPAX__DATA__STORE", "tape", "data.store", "\"disk\", \"memory\""),
        ("HAPAX__BACKUP__BYTES_PER_SECOND_MAX", "1", "backup.bytes_per_second_max", "65536 and"),
        ("HAPAX__BACKUP__LOG_BYTES_MAX", "0", "backup.log_bytes_max", "1048576 and"),
        ("HAPAX__LOG__FORMAT", "xml", "log.format", "\"json\""),
        ("HAPAX__LOG__LEVEL", "hapax=loud", "log.level", "info"),
        ("HAPAX__LOG__LEVEL", "warning", "log.level", "error, warn, info"),
    ] {
        let message = refusal(with_environment(&[(variable, value)]));
        assert!(message.contains(key), "{variable}={value}: {message}");
        assert!(message.contains(allowed), "{variable}={value}: {message}");
    }
}

#[test]
fn secrets_are_read_from_files_and_shown_nowhere() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let file = dir.path().join("key");
    // The value has only digits: a parser that guesses types would read a number.
    std::fs::write(&file, "00112233445566778899\n").expect("write");
    let path = file.to_str().expect("UTF-8");
    let secret = "00112233445566778899001122334455";
    let loaded = with_environment(&[
        ("HAPAX__AUTH__API_KEY_FILE", path),
        ("HAPAX__HASHING__SECRET", secret),
        ("HAPAX__DEFAULT_COLLECTION__KEY", "secret"),
    ])
    .expect("possible");
    let key = "00112233445566778899";
    assert_eq!(loaded.config.api_key, Some(ApiKey::new(key).expect("it can be one")));
    for shown in [loaded.effective.clone(), format!("{loaded:?}")] {
        assert!(!shown.contains(secret) && !shown.contains(key), "{shown}");
    }
    assert!(loaded.effective.contains("secret = \"********\""), "{}", loaded.effective);
    let refused = refusal(with_environment(&[("HAPAX__HASHING__SECRET", "0011223344556677889900112233445z")]));
    assert!(!refused.contains("00112233"), "{refused}");
    // Mistakes in a file: a value without quotes, with an open quote, or a number.
    for line in ["api_key = s3cr3t-s3cr3t-s3cr3t", "api_key = \"s3cr3t", "api_key = 1234567890123456"] {
        let refused = refusal(with_file(&format!("# one\n[auth]\n{line}\n")));
        assert!(!refused.contains("s3cr3t") && !refused.contains("1234"), "{refused}");
        assert!(refused.contains("line 3") || refused.contains("auth.api_key"), "{refused}");
    }
}

#[test]
fn secrets_that_are_doubled_empty_or_missing_are_refused() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let empty = dir.path().join("empty");
    std::fs::write(&empty, "\n").expect("write");
    let empty = empty.to_str().expect("UTF-8");
    let missing = dir.path().join("missing");
    let missing = missing.to_str().expect("UTF-8");
    for (key, good) in [("AUTH__API_KEY", "0123456789abcdef"), ("HASHING__SECRET", "00112233445566778899aabbccddeeff")]
    {
        let (variable, file) = (format!("HAPAX__{key}"), format!("HAPAX__{key}_FILE"));
        let name = key.to_ascii_lowercase().replace("__", ".");
        for pairs in [
            [(&*variable, good), (&*file, missing)].as_slice(),
            [(&*file, missing)].as_slice(),
            [(&*file, empty)].as_slice(),
        ] {
            let message = refusal(with_environment(pairs));
            assert!(message.contains(&name), "{message}");
        }
    }
}

#[test]
fn listening_beyond_loopback_needs_a_key() {
    let message = refusal(with_environment(&[("HAPAX__SERVER__LISTEN", "0.0.0.0:8080")]));
    assert!(message.contains("0.0.0.0:8080") && message.contains("HAPAX__AUTH__API_KEY_FILE"), "{message}");
    assert!(with_environment(&[("HAPAX__SERVER__LISTEN", "[::]:8080")]).is_err());
    assert!(with_environment(&[("HAPAX__SERVER__LISTEN", "[::1]:8080")]).is_ok());
    assert!(with_environment(&[("HAPAX__SERVER__LISTEN", "127.1.2.3:8080")]).is_ok());
    let probes = with_environment(&[("HAPAX__SERVER__ADMIN_LISTEN", "0.0.0.0:8081")]);
    assert!(refusal(probes).contains("0.0.0.0:8081"), "metrics are not for strangers either");
    let keyed = [("HAPAX__SERVER__LISTEN", "0.0.0.0:8080"), ("HAPAX__AUTH__API_KEY", "0123456789abcdef")];
    assert!(with_environment(&keyed).is_ok());
}

#[test]
fn exact_verification_without_keep_is_what_http_makes_of_it() {
    let dir = dir();
    let server = Local::plain(&dir);
    let made = Client::of(&server).json("PUT", "/v1/collections/exact", &json!({"verify": "exact"})).json();
    let settings = with_environment(&[("HAPAX__DEFAULT_COLLECTION__VERIFY", "exact")]).expect("possible");
    let settings = settings.config.collections.default_settings;
    assert_eq!(json!([settings.verify.as_str(), settings.keep.as_str()]), json!([made["verify"], made["keep"]]));
    assert_eq!(settings.keep.as_str(), "shingles");

    let estimate = with_environment(&[]).expect("possible").config.collections.default_settings;
    assert_eq!(estimate.keep.as_str(), "signature");
    let asked = [("HAPAX__DEFAULT_COLLECTION__VERIFY", "exact"), ("HAPAX__DEFAULT_COLLECTION__KEEP", "signature")];
    assert!(refusal(with_environment(&asked)).contains("default_collection.verify"));
    let asked = [("HAPAX__DEFAULT_COLLECTION__VERIFY", "exact"), ("HAPAX__DEFAULT_COLLECTION__KEEP", "text")];
    let text = with_environment(&asked).expect("possible").config.collections.default_settings;
    assert_eq!(text.keep.as_str(), "text");
}

#[test]
fn a_key_has_two_names_here_and_over_http() {
    let spec = |name| {
        let secret = ("HAPAX__HASHING__SECRET", "07070707070707070707070707070707");
        let loaded = with_environment(&[secret, ("HAPAX__DEFAULT_COLLECTION__KEY", name)]).expect("possible");
        loaded.config.collections.default_settings.spec.to_string()
    };
    assert_eq!(spec("configured"), spec("secret"));
    assert!(!spec("configured").ends_with("key=none"));

    let dir = dir();
    let server = Setup::new(&dir).secret(7).start();
    let client = Client::of(&server);
    for name in ["configured", "secret"] {
        let made = client.json("PUT", &format!("/v1/collections/{name}"), &json!({"key": name}));
        assert_eq!((made.status, &made.json()["spec"]), (201, &json!(spec(name))));
    }
}
