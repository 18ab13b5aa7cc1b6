//! A disk that is full to its last byte, and then is not.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::http::{Failure, agent, answer, list, whole};
use super::{Load, seed, writer};
use crate::support::disk;
use crate::support::server::{Address, Server, Starting};

/// What a full disk never takes.
const FULL_AFTER: usize = 5_000;

/// Makes the folder a small disk of its own, which only the server and its descendants see.
const MOUNT: &str = r#"mount -t tmpfs -o size=16m none "$0" && exec "$@""#;

#[test]
fn a_full_disk_refuses_writes_and_takes_them_again_when_there_is_room() {
    let parent = tempfile::tempdir().unwrap();
    let data_dir = parent.path().join("data");
    fs::create_dir(&data_dir).unwrap();
    let dir = data_dir.to_str().expect("paths of tests are UTF-8");
    let Some(unshare) =
        [&["unshare", "-m"][..], &["unshare", "-Urm"]].into_iter().find(|unshare| may_mount(unshare, dir))
    else {
        eprintln!("LEFT OUT: nobody here may mount a small disk (unshare, mount -t tmpfs)");
        return;
    };
    let by = [unshare, &["sh", "-c", MOUNT, dir]].concat();
    let server = Starting::spawn_by(&by, &data_dir, &[], &[]).ready();
    let filler = Path::new(&format!("/proc/{}/root", server.pid())).join(dir.trim_start_matches('/')).join("filler");

    let mut stored = Vec::new();
    for round in 0..3 {
        stored.extend(insert(server.address(), round * 10_000, 100));
        fill(&filler);
        stored.extend(insert_until_refused(server.address(), round * 10_000 + 5_000, FULL_AFTER));
        assert!(stored.len() < FULL_AFTER);
        let documents = list(&server.url(writer::DOCUMENTS));
        assert_eq!(documents.len(), stored.len(), "reads go on, and all that was acknowledged is there");
        let check = json!({ "text": super::random_text(0) });
        let verdict = whole(agent().post(server.url("/v1/collections/default/check")).send_json(check));
        assert_eq!(verdict["verdict"], "exact_duplicate");
        fs::remove_file(&filler).unwrap();
    }
    stored.extend(insert(server.address(), 90_000, 100));
    assert_eq!(list(&server.url(writer::DOCUMENTS)).len(), stored.len());
}

/// The same by a disk that says so, whatever it has: what was acknowledged outlives the server.
#[test]
fn what_was_acknowledged_outlives_a_full_disk() {
    let parent = tempfile::tempdir().unwrap();
    let (data_dir, full) = (parent.path().join("data"), parent.path().join("full"));
    let mut environment = disk::preloaded(&data_dir, &parent.path().join("notes")).to_vec();
    environment.push(("HAPAX_DISK_FULL", full.to_str().unwrap().to_owned()));
    let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let server = Starting::spawn_with(&data_dir, &[], &environment).ready();
    Load::prepare(server.address(), true);
    let mut load = Load::new(seed());
    for _ in 0..4 {
        work(&mut load, server.address()).unwrap();
        fs::write(&full, "").unwrap();
        let refused = (0..20).filter(|_| match work(&mut load, server.address()) {
            Ok(()) => false,
            Err(Failure::Refused(problem)) => {
                problem["code"] == "storage_full" || panic!("{problem}; {}", server.log_tail())
            }
            Err(Failure::Gone) => panic!("the server is gone; {}", server.log_tail()),
        });
        assert!(refused.count() > 0);
        fs::remove_file(&full).unwrap();
    }
    work(&mut load, server.address()).unwrap();
    server.kill();
    load.verify(&Server::start(&data_dir));
}

fn work(load: &mut Load, server: &Address) -> Result<(), Failure> {
    load.writers[0].work(server)?;
    load.citers[0].work(server)?;
    load.folders[0].work(server)
}

fn may_mount(unshare: &[&str], dir: &str) -> bool {
    let mounted = Command::new(unshare[0]).args(&unshare[1..]).args(["sh", "-c", MOUNT, dir, "true"]).output();
    mounted.is_ok_and(|output| output.status.success())
}

/// Inserts so many; their ids.
fn insert(server: &Address, first: u64, count: usize) -> Vec<String> {
    let stored = insert_until_refused(server, first, count);
    assert_eq!(stored.len(), count, "there is room");
    stored
}

/// Inserts until the disk is full, at most so many; the ids of what was stored.
fn insert_until_refused(server: &Address, first: u64, count: usize) -> Vec<String> {
    let mut stored = Vec::new();
    for number in (first..).take(count) {
        let document = json!({ "id": number.to_string(), "text": super::random_text(number) });
        match answer(agent().post(server.url(writer::DOCUMENTS)).send_json(document)) {
            Ok(verdict) => {
                assert_eq!(verdict["outcome"], "inserted", "{verdict}");
                stored.push(number.to_string());
            }
            Err(Failure::Refused(problem)) => {
                let told = (&problem["status"], &problem["code"]);
                assert_eq!(told, (&json!(507), &json!("storage_full")), "{problem}");
                break;
            }
            Err(Failure::Gone) => panic!("the server is gone"),
        }
    }
    stored
}

/// To the last byte.
fn fill(filler: &Path) {
    let mut file = OpenOptions::new().create(true).append(true).open(filler).unwrap();
    for bytes in [4096, 1] {
        while file.write_all(&vec![0; bytes]).is_ok() {}
    }
}
