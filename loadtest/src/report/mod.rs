//! The results of a run, as a table, as JSON and as a picture.

mod machine;
mod phase;
mod picture;
mod table;

use std::io::Write;

use anyhow::{Context, Result};
use serde::Serialize;

pub(crate) use phase::{Percentiles, Phase, Setting};

use crate::client::Tally;
use crate::memory::Memory;
use crate::options::Args;
use crate::queries::RecallAt;

/// A condition that must hold.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Expectation {
    pub(crate) what: String,
    pub(crate) value: f64,
    pub(crate) bound: String,
    pub(crate) met: bool,
    /// Whether the condition is a bound on time or memory, which a run may exceed because the machine is busy. If it is
    /// exceeded, the run fails only with `--strict`.
    pub(crate) only_if_strict: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) scenario: String,
    pub(crate) command: String,
    pub(crate) machine: String,
    pub(crate) seed: u64,
    pub(crate) documents: u64,
    pub(crate) document_bytes: usize,
    pub(crate) phases: Vec<Phase>,
    pub(crate) recall: Vec<RecallAt>,
    pub(crate) figures: Vec<(String, f64)>,
    pub(crate) expectations: Vec<Expectation>,
}

impl Report {
    pub(crate) fn new(scenario: &str, args: &Args) -> Self {
        Self {
            scenario: scenario.to_owned(),
            command: std::env::args().collect::<Vec<_>>().join(" "),
            machine: machine::describe(),
            seed: args.seed,
            documents: args.documents,
            document_bytes: args.bytes,
            phases: Vec::new(),
            recall: Vec::new(),
            figures: Vec::new(),
            expectations: Vec::new(),
        }
    }

    /// Adds a phase and prints its rows.
    pub(crate) fn phase(&mut self, setting: Setting<'_>, tally: &Tally, memory: Vec<Memory>) -> Result<()> {
        let phase = Phase::of(setting, tally, memory);
        if self.phases.is_empty() {
            table::head(&mut std::io::stdout().lock())?;
        }
        table::rows(&mut std::io::stdout().lock(), &phase)?;
        self.phases.push(phase);
        Ok(())
    }

    /// Adds one figure and prints it.
    pub(crate) fn figure(&mut self, name: &str, value: f64) -> Result<()> {
        writeln!(std::io::stdout().lock(), "{name}: {}", table::number(value))?;
        self.figures.push((name.to_owned(), value));
        Ok(())
    }

    /// Requires that a value is at most `bound`.
    pub(crate) fn at_most(&mut self, what: &str, value: f64, bound: f64, only_if_strict: bool) {
        let bound_text = format!("at most {}", table::number(bound));
        let expectation =
            Expectation { what: what.to_owned(), value, bound: bound_text, met: value <= bound, only_if_strict };
        self.expectations.push(expectation);
    }

    /// Requires that a value is at least `bound`.
    pub(crate) fn at_least(&mut self, what: &str, value: f64, bound: f64, only_if_strict: bool) {
        let bound_text = format!("at least {}", table::number(bound));
        let expectation =
            Expectation { what: what.to_owned(), value, bound: bound_text, met: value >= bound, only_if_strict };
        self.expectations.push(expectation);
    }

    /// Requires that this tally has no wrong answers and no errors.
    pub(crate) fn nothing_wrong(&mut self, what: &str, tally: &Tally) {
        self.at_most(&format!("{what}: wrong answers and errors"), tally.wrongs() as f64, 0.0, false);
    }

    /// Prints and writes the report, and returns whether all conditions hold.
    pub(crate) fn finish(&self, args: &Args) -> Result<bool> {
        table::recall(&mut std::io::stdout().lock(), &self.recall)?;
        table::expectations(&mut std::io::stdout().lock(), &self.expectations)?;
        if let Some(path) = &args.json {
            let text = serde_json::to_string_pretty(self)?;
            write(path, &text)?;
        }
        if let Some(path) = &args.svg {
            let picture = picture::draw(self).map_err(|error| anyhow::anyhow!("cannot draw: {error}"))?;
            write(path, &picture)?;
        }
        Ok(self.expectations.iter().all(|one| one.met || (one.only_if_strict && !args.strict)))
    }
}

fn write(path: &std::path::Path, text: &str) -> Result<()> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;

    use super::*;
    use crate::client::{Entry, Fate};

    #[derive(Parser)]
    struct Wrapped {
        #[command(flatten)]
        args: Args,
    }

    fn report(args: &Args) -> Report {
        let mut report = Report::new("check", args);
        let mut tally = Tally::default();
        for ms in 1..=1_000 {
            let [due, done] = [ms, ms + ms / 10].map(Duration::from_millis);
            let entry = Entry { kind: "check", due, sent: due, done, counts: true };
            tally.enter(&entry, if ms == 500 { Fate::Refused } else { Fate::Good });
        }
        let setting = Setting {
            name: "at a rate",
            begun_s: 3.0,
            seconds: 2.0,
            counted_s: 1.6,
            rate: Some(500.0),
            connections: 8,
        };
        let memory = vec![Memory { at_s: 3.0, rss: 5 << 20, anonymous: 3 << 20 }];
        report.phase(setting, &tally, memory).unwrap();
        report.nothing_wrong("at a rate", &tally);
        report
    }

    #[test]
    fn a_report_is_written_as_json_and_as_a_picture() {
        let dir = tempfile::tempdir().unwrap();
        let [json, svg] = ["made/report.json", "made/report.svg"].map(|name| dir.path().join(name));
        let paths = [json.to_str().unwrap(), svg.to_str().unwrap()];
        let args = Wrapped::parse_from(["x", "--json", paths[0], "--svg", paths[1]]).args;
        assert!(report(&args).finish(&args).unwrap());
        let read: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
        let check = &read["phases"][0]["operations"][0];
        assert_eq!((&check["kind"], &check["good"], &check["refused"]), (&"check".into(), &999.into(), &1.into()));
        assert!((98.0..102.0).contains(&check["latency_ms"]["p99"].as_f64().unwrap()), "{check}");
        let picture = std::fs::read_to_string(svg).unwrap();
        assert!(picture.starts_with("<svg") && picture.contains("at a rate: check"), "{picture}");
    }

    #[test]
    fn a_bound_on_time_fails_only_a_strict_run() {
        let mut args = Wrapped::parse_from(["x"]).args;
        let mut report = report(&args);
        report.at_most("p99, ms", 300.0, 250.0, true);
        assert!(report.finish(&args).unwrap());
        args.strict = true;
        assert!(!report.finish(&args).unwrap());
        args.strict = false;
        report.at_most("wrong answers", 1.0, 0.0, false);
        assert!(!report.finish(&args).unwrap());
    }
}
