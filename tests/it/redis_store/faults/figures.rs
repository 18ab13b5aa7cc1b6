//! The figures of a run: the answers, the faults, and the longest times without a certain answer.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::calls::{Call, Said};
use super::history::Record;

#[derive(Default)]
pub struct Figures {
    rounds: u64,
    answers: BTreeMap<String, u64>,
    faults: BTreeMap<String, u64>,
    /// The longest time between two certain answers of some clients in a round, by what they asked.
    gaps: BTreeMap<&'static str, Duration>,
}

impl Figures {
    /// Adds the answers of a round, which has faults until `quiet`.
    pub fn add(&mut self, records: &[Record], quiet: Duration) {
        self.rounds += 1;
        for record in records {
            *self.answers.entry(answer(record)).or_default() += 1;
        }
        let mut last = BTreeMap::new();
        let mut ends: Vec<_> = records.iter().filter(|record| record.begin < quiet && is_certain(record)).collect();
        ends.sort_by_key(|record| record.end);
        for record in ends {
            let what = asked(record);
            if let Some(last) = last.insert(what, record.end) {
                let gap = self.gaps.entry(what).or_default();
                *gap = (*gap).max(record.end - last);
            }
        }
    }

    /// Adds so many faults of a kind.
    pub fn add_faults(&mut self, fault: &str, count: u64) {
        *self.faults.entry(fault.to_owned()).or_default() += count;
    }

    /// Returns how often an answer was given.
    pub fn count(&self, answer: &str) -> u64 {
        self.answers.get(answer).copied().unwrap_or(0)
    }
}

/// Returns whether the answer says what has happened.
fn is_certain(record: &Record) -> bool {
    !matches!(record.said, Said::Refused { .. } | Said::Uncertain(_))
}

fn asked(record: &Record) -> &'static str {
    match record.call {
        Call::Insert { replaces: false, .. } => "insert",
        Call::Insert { replaces: true, .. } => "replace",
        Call::Delete(_) => "delete",
        Call::Check(_) => "check",
        Call::Get(_) => "get",
    }
}

fn answer(record: &Record) -> String {
    let said = match &record.said {
        Said::Named(_) => "duplicate",
        Said::Stored => "stored",
        Said::Repeated => "updated",
        Said::Replaced => "replaced",
        Said::Removed(_) => "removed",
        Said::Conflict => "id_conflict",
        Said::Deleted => "deleted",
        Said::NotFound | Said::Shown(None) => "not found",
        Said::Unique => "unique",
        Said::Shown(Some(_)) => "shown",
        Said::Refused { code, .. } => code,
        Said::Uncertain(why) => why,
    };
    format!("{}: {said}", asked(record))
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, answers, faults, gaps } = self;
        writeln!(f, "{rounds} rounds, {} operations: {answers:?}", answers.values().sum::<u64>())?;
        writeln!(f, "{} faults: {faults:?}", faults.values().sum::<u64>())?;
        write!(f, "longest time without a certain answer to any client: {gaps:.1?}")
    }
}
