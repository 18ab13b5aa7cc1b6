//! Reads every row of a file that has no writer. Checks each row against its checksum and the other rows of its
//! document, and all rows against the ledger. A backup does this with each of its copies. A restore compares the
//! checksums of whole files (`restore.rs`).

use std::path::Path;
use std::sync::atomic::AtomicU64;

use rusqlite::{Connection, Row};

use super::pace::Pace;
use super::progress::Stage;
use crate::store::data_dir::files::name_of;
use crate::store::error::{Result, StoreError};
use crate::store::format::columns::{Flaw, integer};
use crate::store::format::connection::{Role, connect};
use crate::store::format::golden;
use crate::store::format::jobs;
use crate::store::format::ledger::{Ledger, Tally, read_ledger};
use crate::store::format::meta::read_meta;
use crate::store::format::opening::opened;
use crate::store::format::payload;
use crate::store::format::rows::{
    DOCUMENT_COLUMN_COUNT, DocumentRow, SignatureRow, document_columns, signature_columns,
};
use crate::store::format::statistics;
use crate::store::format::tables::FORMAT;
use crate::store::format::version::{check_format, format_of};
use crate::store::integrity::scan::scan;
use crate::store::read::readers::Readers;
use crate::store::settings::Opened;
use crate::types::Seq;

/// The column of `document` with the checksum. It follows the other columns.
const DOCUMENT_SUM: usize = DOCUMENT_COLUMN_COUNT - 1;
/// The number of steps of SQLite's virtual machine between two checks for a cancellation.
const STEPS: i32 = 10_000;
/// The approximate size of a row of `signature` without the signature.
const SIGNATURE_ROW_BYTES: usize = 64;
/// The number of rows between two progress reports.
const PROGRESS_ROWS: u64 = 1024;

/// Reads the settings and the counts of a file, but not its rows. `None` if the file has an older format, which a
/// server will upgrade. Writes nothing, not even a log next to the file.
pub(super) fn head(path: &Path) -> Result<Option<Opened>> {
    let connection = connect(path, Role::Reader)?;
    if format_of(&connection, path)? < FORMAT {
        return Ok(None);
    }
    read_head(&connection, path).map(|(opened, _)| Some(opened))
}

fn read_head(connection: &Connection, path: &Path) -> Result<(Opened, Ledger)> {
    check_format(connection, path)?;
    let meta = read_meta(connection, &name_of(path))?;
    let ledger = read_ledger(connection, &name_of(path))?;
    payload::check_count(&meta, &ledger)?;
    let opened = opened(connection, meta, &ledger)?;
    Ok((opened, ledger))
}

/// Checks every row. If a record is damaged, the error names it. Reads at the pace of the backup. Only SQLite's own
/// check runs at full speed, because it does not report its progress.
pub(super) fn every_row(path: &Path, bytes: u64, stage: &Stage, pace: &Pace) -> Result<Opened> {
    let name = name_of(path);
    let mut connection = connect(path, Role::Reader)?;
    let (opened, ledger) = read_head(&connection, path)?;
    let progress = stage.progress();
    let called_off = connection.progress_handler(STEPS, Some(move || progress.is_cancelled()));
    called_off.map_err(|error| checking(&name, error))?;
    let said = connection
        .query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0))
        .map_err(|error| checking(&name, error))?;
    if said != "ok" {
        return Err(StoreError::Damaged { collection: name, record: None, detail: said });
    }
    let readers = Readers::new(path, &name);
    let goes_on = |row: SignatureRow<'_>| pace.read((SIGNATURE_ROW_BYTES + row.bytes.len()) as u64).is_ok();
    scan(&readers, 1, goes_on, &AtomicU64::new(0))?;
    let total = ledger.documents.rows + ledger.payloads.rows;
    let mut rows = Rows { name: &name, total, row_bytes: bytes / total.max(1), seen: 0, stage, pace };
    let documents = concat!(
        "SELECT ",
        document_columns!(),
        ", ",
        signature_columns!(),
        " FROM document d LEFT JOIN signature s ON s.seq = d.seq ORDER BY d.seq"
    );
    let mut buffer = Vec::new();
    let found = rows.tally(&connection, documents, |row| {
        let document = DocumentRow::read(row, 0, &mut buffer)?;
        let (signature, _) = SignatureRow::read(row, DOCUMENT_COLUMN_COUNT, &mut buffer)?;
        document.record(&signature)?;
        Ok(integer(row, DOCUMENT_SUM)? as u64)
    })?;
    rows.compare("documents", found, ledger.documents)?;
    let payloads = "SELECT p.seq, p.kind, p.shingles, p.size_sum, p.bytes, p.sum, s.seq
                    FROM payload p LEFT JOIN signature s ON s.seq = p.seq ORDER BY p.seq";
    let found = rows.tally(&connection, payloads, |row| {
        integer(row, 6).map_err(|_| "its document is gone")?;
        payload::checked_sum(row)
    })?;
    rows.compare("payloads", found, ledger.payloads)?;
    golden::read(&connection, &name)?;
    jobs::read(&connection, &name, true)?;
    statistics::read(&connection, &name)?;
    Ok(opened)
}

struct Rows<'a> {
    name: &'a str,
    total: u64,
    /// The average number of bytes of the file for each row.
    row_bytes: u64,
    seen: u64,
    stage: &'a Stage,
    pace: &'a Pace,
}

impl Rows<'_> {
    fn tally(
        &mut self,
        connection: &Connection,
        sql: &str,
        mut sum: impl FnMut(&Row<'_>) -> Result<u64, Flaw>,
    ) -> Result<Tally> {
        let failed = |error| checking(self.name, error);
        let mut statement = connection.prepare(sql).map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        let mut tally = Tally::default();
        while let Some(row) = rows.next().map_err(failed)? {
            let seq = row.get::<_, i64>(0).map_err(failed)?;
            tally.add(sum(row).map_err(|flaw| StoreError::damaged(self.name, Seq(seq as u64), flaw))?);
            self.pace
                .read(self.row_bytes)
                .map_err(|error| StoreError::from_io(self.name, "checking its rows", error))?;
            self.seen += 1;
            if self.seen.is_multiple_of(PROGRESS_ROWS) {
                self.stage.at(self.seen as f64 / self.total as f64);
            }
        }
        Ok(tally)
    }

    fn compare(&self, what: &str, found: Tally, told: Tally) -> Result<()> {
        if found == told {
            return Ok(());
        }
        let detail = format!(
            "it holds {} {what} with sum {:016x}, but its ledger says {} with sum {:016x}",
            found.rows, found.sum, told.rows, told.sum
        );
        Err(StoreError::Damaged { collection: self.name.to_owned(), record: None, detail })
    }
}

fn checking(name: &str, error: rusqlite::Error) -> StoreError {
    StoreError::from_sqlite(name, "checking its rows", error)
}
