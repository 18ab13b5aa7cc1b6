//! Makes backups between inserts into its own collection. A backup that was reported as done can be restored, even
//! after crashes, and contains the documents of its time. A backup that was in progress can be restored too, or is
//! refused.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::http::{Failure, agent, answer, whole};
use crate::support::command;
use crate::support::server::Address;

pub const COLLECTION: &str = "/v1/collections/marked";
const BACKUPS: &str = "/v1/backups";

#[derive(Clone)]
pub struct Backups {
    /// The folder in which the server puts the backups.
    dir: PathBuf,
    /// The number of documents that were sent. The insert of the last one may be unanswered.
    sent: u64,
    /// The backups since the last crash, each with the number of documents that it must contain. The request for the
    /// last backup may be unanswered.
    made: Vec<Backup>,
    done: u64,
}

#[derive(Clone)]
struct Backup {
    name: String,
    documents: u64,
    done: bool,
}

impl Backups {
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, sent: 0, made: Vec::new(), done: 0 }
    }

    /// Returns how many backups were reported as done.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Inserts a document, and makes a backup that contains it.
    pub fn work(&mut self, server: &Address) -> Result<(), Failure> {
        self.sent += 1;
        let text = super::random_text(0xBACC << 32 | self.sent);
        let url = server.url(&format!("{COLLECTION}/documents"));
        let verdict = answer(agent().post(url).send_json(json!({ "id": self.sent.to_string(), "text": text })))?;
        assert_eq!(verdict["outcome"], "inserted", "{verdict}");

        let name = format!("after-{}", self.sent);
        self.made.push(Backup { name: name.clone(), documents: self.sent, done: false });
        answer(agent().post(server.url(BACKUPS)).send_json(json!({ "name": name })))?;
        loop {
            let latest = answer(agent().get(server.url(BACKUPS)).call())?["latest"].take();
            assert_eq!(latest["name"], name);
            match latest["state"].as_str() {
                Some("running") => thread::sleep(Duration::from_millis(5)),
                Some("done") => break,
                // A collection was merged and dropped during the backup.
                Some("failed") if latest.to_string().contains("merged") => return Ok(()),
                _ => panic!("{latest}"),
            }
        }
        self.made.last_mut().expect("just made").done = true;
        self.done += 1;
        Ok(())
    }

    /// Restores the backups made since the last crash.
    pub fn verify(&mut self, server: &Address) {
        let held = whole(agent().get(server.url(COLLECTION)).call());
        let held = held["documents"].as_u64().expect("a number");
        assert!(held == self.sent || held + 1 == self.sent, "{held} of {} are there", self.sent);
        self.sent = held;
        for backup in self.made.drain(..) {
            let ids = restored(&self.dir.join(&backup.name));
            assert!(ids.is_some() || !backup.done, "{}: it was done, and can't be restored", backup.name);
            let wanted = (1..=backup.documents).map(|n| n.to_string()).collect::<BTreeSet<_>>();
            assert!(ids.is_none_or(|ids| ids == wanted), "{}: other documents than of its moment", backup.name);
        }
    }
}

/// Returns the documents in a backup, unless it is refused.
fn restored(backup: &Path) -> Option<BTreeSet<String>> {
    let parent = tempfile::tempdir().unwrap();
    let data_dir = parent.path().join("data");
    let [backup, data_dir] = [backup, &data_dir].map(|path| path.to_str().expect("paths of tests are UTF-8"));
    let restored = command::run(&["restore", backup, "--data-dir", data_dir]);
    if !restored.status.success() {
        assert_eq!(restored.status.code(), Some(2), "{restored:?}");
        return None;
    }
    let exported = command::run(&["export", "--data-dir", data_dir, "--collection", "marked"]);
    assert!(exported.status.success(), "{exported:?}");
    let lines = std::str::from_utf8(&exported.stdout).unwrap().lines();
    let ids = lines.map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().expect("an id").to_owned());
    Some(ids.collect())
}
