//! The end of a run that reads documents: the failures that are shown, and the rows of the summary.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::HumanCount;

use super::plural::plural;

/// The number of failures that are shown in full. Further failures are only counted.
const FAILURES_SHOWN: usize = 10;

/// The documents that have failed.
#[derive(Debug, Default)]
pub(super) struct Failures {
    count: u64,
    shown: Vec<String>,
}

impl Failures {
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Counts a failure. The first ones are also shown, with the text that `shown` returns.
    pub(super) fn add(&mut self, shown: impl FnOnce() -> String) {
        self.add_hidden();
        if self.shown.len() < FAILURES_SHOWN {
            self.shown.push(shown());
        }
    }

    /// Counts a failure that is not shown.
    pub(super) fn add_hidden(&mut self) {
        self.count += 1;
    }

    /// Writes the failures, for people.
    pub(super) fn write(&self, words: &mut impl Write) -> io::Result<()> {
        self.write_as("failed", words)
    }

    /// Writes them, each after a name for all of them.
    pub(super) fn write_as(&self, name: &str, words: &mut impl Write) -> io::Result<()> {
        for shown in &self.shown {
            writeln!(words, "{name}: {shown}")?;
        }
        let hidden = self.count - self.shown.len() as u64;
        if hidden > 0 {
            writeln!(words, "{name}: {} more document{}", HumanCount(hidden), plural(hidden))?;
        }
        Ok(())
    }
}

/// Writes a summary to stdout, or to stderr if an output is on stdout.
pub(super) fn summarise(is_output_on_stdout: bool, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    // The summary must not follow the documents into the pipe.
    let written = if is_output_on_stdout { write(&mut io::stderr().lock()) } else { write(&mut io::stdout().lock()) };
    match written {
        // The reader has read enough. The output is written.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("the output is written, but the summary cannot be"),
    }
}

/// Writes a row with a count, and after it `more`.
pub(super) fn write_count(out: &mut impl Write, name: &str, count: u64, more: impl Display) -> io::Result<()> {
    writeln!(out, "{name:<12}{:>16}{more}", HumanCount(count).to_string())
}

/// Writes the rows with the time and the speeds. `text_bytes`: the size of the input after decompression.
pub(super) fn write_speed(out: &mut impl Write, documents: u64, text_bytes: u64, elapsed: Duration) -> io::Result<()> {
    let seconds = elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
    writeln!(out, "{:<12}{seconds:>16.1}", "seconds")?;
    write_count(out, "documents/s", (documents as f64 / seconds) as u64, "")?;
    writeln!(out, "{:<12}{:>16.1}", "MB/s", text_bytes as f64 / 1e6 / seconds)
}
