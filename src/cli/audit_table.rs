//! Prints lines of the audit log, and comparisons of their evidence, as columns for people.

use std::io::{self, Write};

use super::audit_compare::Compared;
use super::plural::plural;
use crate::audit::AuditLine;

/// The column heads of decisions, and of comparisons.
const OF_DECISIONS: [&str; 7] = ["TIME", "OP", "VERDICT", "OUTCOME", "SIMILARITY", "KEY", "ID AND BEST MATCH"];
const OF_COMPARISONS: [&str; 5] = ["TIME", "WAS", "NOW", "STATE", "ID AND MATCH"];
/// The widths of the columns. The last column has no fixed width.
const WIDTHS: [usize; 6] = [24, 6, 15, 9, 10, 12];
const WIDTHS_COMPARED: [usize; 4] = [24, 8, 8, 19];

pub(super) struct Table {
    compares: bool,
}

impl Table {
    /// Makes a table of comparisons if `compares` is true, else of decisions.
    pub(super) fn new(compares: bool) -> Self {
        Self { compares }
    }

    pub(super) fn head(&self, out: &mut impl Write) -> io::Result<()> {
        if self.compares { row(out, &OF_COMPARISONS, &WIDTHS_COMPARED) } else { row(out, &OF_DECISIONS, &WIDTHS) }
    }

    pub(super) fn decision(&self, out: &mut impl Write, line: &AuditLine<'_>) -> io::Result<()> {
        let outcome = line.outcome.as_deref().unwrap_or(match line.deleted {
            Some(true) => "deleted",
            Some(false) => "not found",
            None if line.label.is_some() => "deleted",
            None if line.from.is_some() => "begun",
            None => "-",
        });
        let similarity = line.similarity.map_or_else(|| "-".to_owned(), |similarity| format!("{similarity:.4}"));
        let documents = line.documents.unwrap_or_default();
        let documents = format!("{}: {documents} document{}", line.collection, plural(documents));
        let ids = match (&line.label, &line.from) {
            (Some(label), _) => {
                let label = label.escape_debug();
                format!("{documents} with {label}")
            }
            (None, Some(from)) => {
                let from = from.escape_debug();
                format!("{documents} from {from}")
            }
            (None, None) => ids(&line.collection, line.id.as_deref(), line.duplicate_of.as_deref()),
        };
        let (verdict, key) = (line.verdict.as_deref().unwrap_or("-"), line.key.as_deref().unwrap_or("-"));
        row(out, &[&line.time, &line.op, verdict, outcome, &similarity, key, &ids], &WIDTHS)
    }

    pub(super) fn compared(&self, out: &mut impl Write, compared: &Compared<'_>) -> io::Result<()> {
        let number = |number: f64| format!("{number:.4}");
        let now = compared.now().map_or_else(|| "-".to_owned(), number);
        let (line, found) = (compared.line(), compared.found());
        let ids = ids(&line.collection, line.id.as_deref(), Some(&found.id));
        let cells = [&*line.time, &number(found.similarity), &now, compared.state().as_str(), &ids];
        row(out, &cells, &WIDTHS_COMPARED)
    }
}

/// Returns a cell such as `news: b ~ a`. Ids may contain any characters, so characters that would break the layout of
/// the table are escaped.
fn ids(collection: &str, id: Option<&str>, other: Option<&str>) -> String {
    let shown = |id: &str| id.escape_debug().to_string();
    let id = id.map_or_else(|| "-".to_owned(), shown);
    let other = other.map(|other| format!(" ~ {}", shown(other))).unwrap_or_default();
    format!("{collection}: {id}{other}")
}

fn row(out: &mut impl Write, cells: &[&str], widths: &[usize]) -> io::Result<()> {
    for (cell, width) in cells.iter().zip(widths) {
        write!(out, "{cell:width$}  ")?;
    }
    writeln!(out, "{}", cells.last().copied().unwrap_or_default())
}
