//! A report as text for a terminal.

use std::io::Write;

use anyhow::Result;

use super::{Expectation, Phase};
use crate::queries::RecallAt;

/// Prints the heads of the columns. Latencies are milliseconds from the time when a request was due.
pub(super) fn head(out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "{:<24} {:<10} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>8}",
        "phase", "requests", "due/s", "good/s", "p50 ms", "p90", "p99", "p99.9", "max", "refused", "wrong", "RSS MB"
    )?;
    Ok(())
}

pub(super) fn rows(out: &mut impl Write, phase: &Phase) -> Result<()> {
    let rss = phase.memory.iter().map(|memory| memory.rss).max();
    for operation in &phase.operations {
        let ms = &operation.latency_ms;
        let due = phase.rate.map_or("-".to_owned(), |rate| format!("{rate:.0}"));
        writeln!(
            out,
            "{:<24} {:<10} {due:>8} {:>9.0} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>8}",
            phase.name,
            operation.kind,
            operation.good as f64 / phase.seconds,
            number(ms.p50),
            number(ms.p90),
            number(ms.p99),
            number(ms.p99_9),
            number(ms.max),
            operation.refused,
            operation.wrong.values().sum::<u64>(),
            rss.map_or("-".to_owned(), |rss| format!("{:.0}", rss as f64 / 1e6)),
        )?;
        for (error, count) in &operation.wrong {
            writeln!(out, "  {count} x {error}")?;
        }
    }
    if phase.unsent > 0 {
        writeln!(out, "  {} requests were due and never got a connection", phase.unsent)?;
    }
    if phase.rate.is_some() && phase.sent_late_ms.p99 > 1.0 {
        let late = number(phase.sent_late_ms.p99);
        writeln!(out, "  1 % of the requests waited {late} ms or longer for a free connection")?;
    }
    Ok(())
}

pub(super) fn recall(out: &mut impl Write, levels: &[RecallAt]) -> Result<()> {
    for level in levels {
        writeln!(
            out,
            "{:<24} {:>8} asked, J {:.3}: {:.4} found, {:.4} expected by the theory",
            level.group, level.asked, level.jaccard, level.found, level.expected
        )?;
    }
    Ok(())
}

pub(super) fn expectations(out: &mut impl Write, all: &[Expectation]) -> Result<()> {
    for one in all {
        let result = match (one.met, one.only_if_strict) {
            (true, _) => "ok",
            (false, true) => "MISSED",
            (false, false) => "FAILED",
        };
        writeln!(out, "{result:<7} {}: {}, {}", one.what, number(one.value), one.bound)?;
    }
    Ok(())
}

/// Writes a number with about three digits.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
