//! The audit log, written by a real server and read by `hapax audit`.

mod comparing;
mod files;
#[cfg(target_os = "linux")]
mod full_disk;
mod leaving;
mod lines;
mod reading;

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::support::command;
use crate::support::library::{Dir, dir};
use crate::support::server::{Server, Starting};

/// A server with an audit log, in a folder of its own.
struct Audited {
    dir: Dir,
    variables: Vec<(String, String)>,
}

impl Audited {
    fn new(variables: &[(&str, &str)]) -> Self {
        let dir = dir();
        let mut all = vec![("HAPAX__AUDIT__DIR".to_owned(), dir.path().join("audit").to_str().unwrap().to_owned())];
        all.extend(variables.iter().map(|(name, value)| (format!("HAPAX__{name}"), (*value).to_owned())));
        Self { dir, variables: all }
    }

    /// The directory of the log.
    fn log(&self) -> PathBuf {
        self.dir.path().join("audit")
    }

    fn starting(&self, data: &str) -> Starting {
        let variables: Vec<_> = self.variables.iter().map(|(name, value)| (&**name, &**value)).collect();
        Starting::spawn_with(&self.dir.path().join(data), &[], &variables)
    }

    fn start(&self) -> Server {
        self.starting("data").ready()
    }

    /// The text of all files.
    fn text(&self) -> String {
        self.files().iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
    }

    /// The files, the oldest first.
    fn files(&self) -> Vec<PathBuf> {
        hapax::audit::files(&self.log()).unwrap()
    }

    fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
    }
}

/// Runs `hapax audit` on this directory.
fn audit(log: &Path, arguments: &[&str]) -> Output {
    command::run(&[&["audit", log.to_str().unwrap()], arguments].concat())
}

/// The status and the lines of JSON that `hapax audit` prints.
fn printed(output: &Output) -> (i32, Vec<Value>) {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{output:?}"))).collect();
    (output.status.code().unwrap(), lines)
}

/// A text that shares most of its words with `words(number)`.
fn near(number: u64) -> String {
    crate::support::client::words(number).replacen(&format!("w{number}x39"), "changed", 1)
}
