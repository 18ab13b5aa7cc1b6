//! Reads the rows of all three tables side by side, in order of `seq`. Checks each row against its own checksum, and
//! the rows of a document against each other. In: one connection with an open transaction, so that all rows are from
//! one snapshot. Out: the rows of each document, and its flaws. This file does not know about the ledger, or how damage
//! is handled.

use rusqlite::{Connection, Row, Rows};

use crate::store::format::columns::{Flaw, OUT_OF_ORDER, integer};
use crate::store::format::payload;
use crate::store::format::rows::{DocumentRow, SignatureRow, document_columns, signature_columns};
use crate::types::{Keep, Seq, content_prefix};

/// A table with one row per document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum RecordTable {
    Signature,
    Document,
    Payload,
}

impl RecordTable {
    pub(in crate::store) const ALL: [Self; 3] = [Self::Signature, Self::Document, Self::Payload];

    pub(in crate::store) fn as_str(self) -> &'static str {
        match self {
            Self::Signature => "signature",
            Self::Document => "document",
            Self::Payload => "payload",
        }
    }

    /// Returns SQL that selects all columns in the order of [`read`]. The alias of the table is the first letter of its
    /// name.
    pub(in crate::store) fn select(self) -> &'static str {
        match self {
            Self::Signature => concat!("SELECT ", signature_columns!(), " FROM signature s"),
            Self::Document => concat!("SELECT ", document_columns!(), " FROM document d"),
            Self::Payload => "SELECT p.seq, p.kind, p.shingles, p.size_sum, p.bytes, p.sum FROM payload p",
        }
    }

    fn gone(self) -> Flaw {
        match self {
            Self::Signature => "its signature is gone",
            Self::Document => "its document is gone",
            Self::Payload => "its payload is gone",
        }
    }
}

/// The part of an intact row that a check needs.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Sound {
    pub(in crate::store) sum: u64,
    /// The approximate number of bytes read.
    bytes: u64,
    /// The values that the signature and the document both store.
    shared: Option<Shared>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shared {
    flags: u8,
    /// Absent if the client gave the signature.
    content_prefix: Option<u64>,
}

/// Memory that is used again for the next row.
#[derive(Default)]
pub(in crate::store) struct Scratch {
    sum: Vec<u8>,
    /// The last verdict that was read without an error. Most rows have the same verdict as the row before.
    verdict: Vec<u8>,
}

/// Reads a row of [`RecordTable::select`].
pub(in crate::store) fn read(table: RecordTable, row: &Row<'_>, scratch: &mut Scratch) -> Result<Sound, Flaw> {
    match table {
        RecordTable::Signature => {
            let (row, sum) = SignatureRow::read(row, 0, &mut scratch.sum)?;
            let content_prefix = (!row.given).then_some(row.content_prefix);
            let shared = Some(Shared { flags: row.flags(), content_prefix });
            Ok(Sound { sum, bytes: 64 + row.bytes.len() as u64, shared })
        }
        RecordTable::Document => {
            let (row, sum) = DocumentRow::read_summed(row, 0, &mut scratch.sum)?;
            row.check(&mut scratch.verdict)?;
            let content_prefix = (!row.given()).then(|| content_prefix(row.content()));
            let shared = Some(Shared { flags: row.flags, content_prefix });
            let bytes = row.id.len() + row.metadata.map_or(0, <[u8]>::len) + row.verdict.len();
            Ok(Sound { sum, bytes: 64 + bytes as u64, shared })
        }
        RecordTable::Payload => {
            let (sum, bytes) = payload::read_row(row)?;
            Ok(Sound { sum, bytes: 48 + bytes, shared: None })
        }
    }
}

/// The rows and the flaws of one document.
pub(in crate::store) struct Visit {
    pub(in crate::store) seq: Seq,
    /// The rows, indexed by table; `None` if the row is missing or damaged.
    pub(in crate::store) rows: [Option<Sound>; 3],
    /// The flaws, each with its table.
    pub(in crate::store) flaws: Vec<(RecordTable, Flaw)>,
}

impl Visit {
    /// Returns the approximate number of bytes read.
    pub(in crate::store) fn bytes(&self) -> u64 {
        self.rows.iter().flatten().map(|row| row.bytes).sum()
    }
}

/// A table that could not be read to its end.
#[derive(Clone, Debug)]
pub(in crate::store) struct Broken {
    pub(in crate::store) table: RecordTable,
    /// The last row that could be read.
    pub(in crate::store) behind: Seq,
    pub(in crate::store) detail: String,
}

/// The documents that a walk visits.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct WalkRange {
    /// Only documents after this one.
    pub(in crate::store) after: Seq,
    pub(in crate::store) through: Seq,
}

impl WalkRange {
    pub(in crate::store) const ALL: Self = Self::after(Seq(0));

    pub(in crate::store) const fn after(after: Seq) -> Self {
        Self { after, through: Seq(u64::MAX) }
    }
}

/// Calls `visit` with every document in `range` until it returns false. Returns the tables that could not be read to
/// the end of the range. Rows that follow a place where reading failed are not reported as missing.
pub(in crate::store) fn walk(
    connection: &Connection,
    keep: Keep,
    range: WalkRange,
    mut visit: impl FnMut(Visit) -> bool,
) -> rusqlite::Result<Vec<Broken>> {
    let mut statements = Vec::new();
    for table in RecordTable::ALL {
        let prefix = &table.as_str()[..1];
        let sql = format!("{} WHERE {prefix}.seq > ?1 AND {prefix}.seq <= ?2 ORDER BY {prefix}.seq", table.select());
        statements.push(connection.prepare(&sql)?);
    }
    let [after, through] = [range.after, range.through].map(|seq| i64::try_from(seq.0).unwrap_or(i64::MAX));
    let mut sides = Vec::new();
    for (table, statement) in RecordTable::ALL.into_iter().zip(&mut statements) {
        let rows = statement.query([after, through])?;
        sides.push(Side { table, rows, last: after, through, head: None, broken: None });
    }
    let mut scratch = Scratch::default();
    sides.iter_mut().for_each(|side| side.advance(&mut scratch));
    while let Some(seq) = sides.iter().filter_map(|side| side.head.as_ref().map(|(seq, _)| *seq)).min() {
        let mut seen = Visit { seq: Seq(seq as u64), rows: [None; 3], flaws: Vec::new() };
        for (side, row) in sides.iter_mut().zip(&mut seen.rows) {
            let wanted = side.table != RecordTable::Payload || keep != Keep::Signature;
            match side.head.take_if(|(at, _)| *at == seq) {
                Some((_, Ok(_))) if !wanted => {
                    seen.flaws.push((side.table, "it has a payload, but this collection keeps none"));
                }
                Some((_, Ok(sound))) => *row = Some(sound),
                Some((_, Err(flaw))) => seen.flaws.push((side.table, flaw)),
                None if wanted && side.broken.is_none() => seen.flaws.push((side.table, side.table.gone())),
                None => {}
            }
        }
        if let [Some(signature), Some(document), _] = &seen.rows
            && signature.shared != document.shared
        {
            seen.flaws.push((RecordTable::Document, "it contradicts its signature"));
        }
        if !visit(seen) {
            break;
        }
        sides.iter_mut().filter(|side| side.head.is_none()).for_each(|side| side.advance(&mut scratch));
    }
    let broken = |side: Side<'_>| {
        side.broken.map(|detail| Broken { table: side.table, behind: Seq(side.last.max(0) as u64), detail })
    };
    Ok(sides.into_iter().filter_map(broken).collect())
}

/// One of the tables during a walk.
struct Side<'s> {
    table: RecordTable,
    rows: Rows<'s>,
    last: i64,
    through: i64,
    head: Option<(i64, Result<Sound, Flaw>)>,
    broken: Option<String>,
}

impl Side<'_> {
    /// Reads the next row, if there is one.
    fn advance(&mut self, scratch: &mut Scratch) {
        if self.broken.is_some() {
            return;
        }
        match self.rows.next() {
            Ok(None) => {}
            Ok(Some(row)) => match integer(row, 0) {
                Ok(seq) if seq > self.last && seq <= self.through => {
                    self.last = seq;
                    self.head = Some((seq, read(self.table, row, scratch)));
                }
                _ => self.broken = Some(OUT_OF_ORDER.to_owned()),
            },
            Err(error) => self.broken = Some(error.to_string()),
        }
    }
}
