//! How often each operation was done.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

/// The operations that every run must have done. If one is missing, the run has tested less than it claims.
const EXPECTED: [&str; 30] = [
    "bandings",
    "checks",
    "checks of several collections",
    "checks of what has a label",
    "checks of what has no label",
    "copies",
    "deleted by id",
    "deleted by label",
    "empty",
    "expired",
    "failed",
    "inserted",
    "left",
    "linked",
    "merges",
    "merges stopped midway",
    "merged: inserted",
    "merged: linked",
    "merged: refused",
    "merged: removed",
    "merged: replaced",
    "merged: skipped",
    "merged: unchanged",
    "merged: updated",
    "relabelled",
    "removed",
    "replaced",
    "skipped",
    "unchanged",
    "updated",
];

/// Counts by name.
#[derive(Default)]
pub struct Tally(Mutex<BTreeMap<String, u64>>);

impl Tally {
    pub fn add(&self, what: impl Into<String>, count: u64) {
        *self.0.lock().unwrap().entry(what.into()).or_default() += count;
    }

    pub fn one(&self, what: impl Into<String>) {
        self.add(what, 1);
    }

    pub fn get(&self, what: &str) -> u64 {
        self.0.lock().unwrap().get(what).copied().unwrap_or_default()
    }

    /// Returns the operations that were never done.
    pub fn missing(&self) -> Vec<&'static str> {
        EXPECTED.into_iter().filter(|what| self.get(what) == 0).collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.0.lock().unwrap();
        let counts: Vec<String> = counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
        f.write_str(&counts.join(", "))
    }
}
