//! A keys file that is missing or wrong never gives access to more clients.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use super::file::{self, until};
use crate::support::client::Client;
use crate::support::library::dir;
use crate::support::local::Setup;
use crate::support::server::Starting;

#[test]
fn a_server_does_not_start_without_a_good_file() {
    let dir = dir();
    let path = dir.path().join("keys.toml");
    for (content, part) in [
        (None, "No such file"),
        (Some(""), "the file is empty"),
        (Some("version = 2\n"), "version = 2; this hapax reads version 1"),
        (Some("version = 1\n[[key]]\nname = \"a\"\n"), "missing field `id`"),
    ] {
        if let Some(content) = content {
            fs::write(&path, content).unwrap();
        }
        does_not_start(dir.path(), &path, part);
    }
    fs::remove_file(&path).unwrap();
    symlink(&path, &path).unwrap();
    does_not_start(dir.path(), &path, "Too many levels of symbolic links");
    does_not_start(dir.path(), dir.path(), "it is not a file");
}

fn does_not_start(dir: &Path, keys_file: &Path, why: &str) {
    let environment = [("HAPAX__AUTH__KEYS_FILE", keys_file.to_str().unwrap())];
    let started = Starting::spawn_with(&dir.join("data"), &[], &environment).ready_or_ended();
    let (status, log) = started.err().expect("it does not start");
    assert_eq!(status.code(), Some(2));
    assert!(log.contains(why) && log.contains("auth.keys_file"), "{log}");
}

/// Removes any file or directory at this path.
fn clear(path: &Path) {
    if path.is_dir() { fs::remove_dir(path).unwrap() } else { _ = fs::remove_file(path) }
}

#[test]
fn a_broken_file_keeps_what_was_good_and_what_was_revoked() {
    let dir = dir();
    let data = dir.path().join("data");
    let path = file::write(dir.path(), &[("a", &["check", "metrics"], ""), ("b", &["check"], "")]);
    let environment = [("HAPAX__AUTH__KEYS_FILE", path.to_str().unwrap())];
    let server = Starting::spawn_with(&data, &[], &environment).ready();
    let status = |key: &str| Client::new(server.url("")).key(key).get("/v1/version").status;
    let metric = |name: &str| {
        let text = Client::new(server.url("")).key("a").get("/metrics").text();
        let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{name} in {text}")).rsplit(' ').next().unwrap().to_owned()
    };
    until(|| metric("hapax_keys_valid") == "2");
    file::write(dir.path(), &[("a", &["check", "metrics"], "")]);
    until(|| status("b") == 401);
    let both = file::text(&[("a", &["check"], ""), ("b", &["check"], "")]);
    let breaks: [&dyn Fn(); 8] = [
        &|| fs::remove_file(&path).unwrap(),
        &|| fs::write(&path, both.replace("version = 1", "version = 2")).unwrap(),
        &|| fs::write(&path, "").unwrap(),
        &|| fs::write(&path, &both[..both.len() - 20]).unwrap(),
        &|| fs::write(&path, vec![b'#'; 10 << 20]).unwrap(),
        &|| {
            fs::remove_file(&path).unwrap();
            fs::create_dir(&path).unwrap();
        },
        &|| {
            fs::remove_file(&path).unwrap();
            symlink(&path, &path).unwrap();
        },
        // This file cannot be read. Root may read every file, so the file is also cut short.
        &|| {
            fs::write(&path, &both[..both.len() - 10]).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        },
    ];
    for (at, broken) in breaks.iter().enumerate() {
        broken();
        until(|| metric("hapax_keys_file_bad") == "1");
        assert_eq!((status("a"), status("b"), status("")), (200, 401, 401), "{at}");
        clear(&path);
        file::write(dir.path(), &[("a", &["check", "metrics"], "")]);
        until(|| metric("hapax_keys_file_bad") == "0");
        assert_eq!((status("a"), status("b")), (200, 401), "{at}");
    }
    assert_ne!(metric("hapax_keys_file_errors_total"), "0");
    assert_eq!(metric("hapax_keys_valid"), "1");
}

#[test]
fn a_swapped_symlink_is_seen() {
    let dir = dir();
    for (folder, key) in [("1", "old"), ("2", "new")] {
        fs::create_dir(dir.path().join(folder)).unwrap();
        file::write(&dir.path().join(folder), &[(key, &["check"], "")]);
    }
    // The links are those of a secret that Kubernetes mounts: keys.toml -> ..data/keys.toml, ..data -> 1.
    let (path, data) = (dir.path().join("keys.toml"), dir.path().join("..data"));
    symlink("..data/keys.toml", &path).unwrap();
    symlink("1", &data).unwrap();
    let server = Setup { keys_file: Some(path), ..Setup::new(&dir) }.start();
    let status = |key: &str| Client::of(&server).key(key).get("/v1/version").status;
    assert_eq!((status("old"), status("new")), (200, 401));
    symlink("2", dir.path().join("..next")).unwrap();
    fs::rename(dir.path().join("..next"), &data).unwrap();
    until(|| status("new") == 200);
    assert_eq!(status("old"), 401);
}

#[test]
fn the_command_makes_keys_that_a_server_takes() {
    let dir = dir();
    let path = dir.path().join("keys.toml");
    let keys = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
        let output = command.arg("keys").args(arguments).arg("--keys-file").arg(&path).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let (code, key, told) = keys(&["add", "crawler", "--scopes", "check,insert", "--collections", "default,crawl-*"]);
    assert_eq!(code, 0, "{told}");
    let server = Setup { keys_file: Some(path.clone()), ..Setup::new(&dir) }.start();
    let status = |key: &str| Client::of(&server).key(key.trim()).get("/v1/collections/default").status;
    assert_eq!(status(&key), 200);
    let (_, next, _) = keys(&["add", "crawler", "--scopes", "check", "--expires", "90d"]);
    until(|| status(&next) == 200);
    assert_eq!(keys(&["add", "crawler", "--scopes", "check"]).0, 2);
    let (_, list, _) = keys(&["list"]);
    assert!(list.contains("check,insert  default,crawl-*") && !list.contains(key.trim()), "{list}");
    let id = list.lines().nth(1).unwrap().split_whitespace().nth(1).unwrap();
    assert_eq!(keys(&["revoke", id]).0, 0);
    until(|| status(&key) == 401);
    assert_eq!(status(&next), 200);
    let (code, _, told) = keys(&["revoke", "nobody"]);
    assert!(code == 2 && told.contains("no key has the name or the id"), "{told}");
    assert_eq!(keys(&["add", "spaces", "--scopes", "check, insert", "--collections", "a, b-*"]).0, 0);
}

#[test]
fn a_key_that_cannot_be_shown_is_not_kept() {
    let dir = dir();
    let path = dir.path().join("keys.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
    command.args(["keys", "add", "lost", "--scopes", "check", "--keys-file"]).arg(&path);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command.stdout(full).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && told.contains("no key was added"), "{told}");
    assert_eq!(hapax::keys::KeysFile::read(&path).unwrap().keys().len(), 0);
}
