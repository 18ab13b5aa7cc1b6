//! Checks a whole file: its log, format and settings, every row of every table, the rows of a document against each
//! other, and all rows against the ledger. Also runs SQLite's own check. The check changes nothing, except that it
//! upgrades a file of an older format. The caller holds the data directory's lock.

use std::mem;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use rusqlite::Connection;

use super::walk::{RecordTable, WalkRange, walk};
use crate::store::data_dir::files::name_of;
use crate::store::error::{Result, StoreError};
use crate::store::format::connection::{Role, connect};
use crate::store::format::ledger::{Ledger, Tally, read_ledger};
use crate::store::format::meta::read_meta;
use crate::store::format::outside::check_files;
use crate::store::format::tables::FORMAT;
use crate::store::format::upgrade::upgrade;
use crate::store::format::version::format_of;
use crate::store::format::{golden, jobs, statistics};
use crate::types::{Keep, Seq};

/// The maximum number of findings that are kept. Further findings are only counted.
const FINDINGS_MAX: usize = 10_000;
/// The maximum number of complaints taken from SQLite's own check.
const COMPLAINTS_MAX: u32 = 100;
/// The share of the work that is reported as done when all rows are read. SQLite's own check may still run then.
const ROWS_SHARE: f64 = 0.9;
/// The number of records between two progress reports.
const PROGRESS_RECORDS: u64 = 1024;
/// The maximum number of threads that read rows. More threads would slow down a server that checks a newly loaded file.
const PARTS_MAX: usize = 4;
/// The minimum number of documents for each of these threads.
const PART_DOCUMENTS_MIN: u64 = 10_000;

/// A flaw in a collection's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// A table, or `file`, `log`, `settings`, `ledger`, `golden`, `jobs` or `statistics`.
    pub place: &'static str,
    /// The damaged record, if the flaw is in a record.
    pub record: Option<Seq>,
    pub detail: String,
}

/// The result of [`inspect`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// The number of intact documents, without those that a deletion by label must still remove.
    pub documents: u64,
    /// The number of damaged records.
    pub damaged: u64,
    /// The flaws, at most 10,000 of them.
    pub findings: Vec<Finding>,
    /// The number of all flaws.
    pub findings_total: u64,
    /// Whether the check reached the end of the file.
    pub complete: bool,
}

impl Inspection {
    /// Returns whether no flaw was found.
    pub fn is_sound(&self) -> bool {
        self.findings_total == 0
    }

    fn found(&mut self, place: &'static str, record: Option<Seq>, detail: impl Into<String>) {
        self.findings_total += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { place, record, detail: detail.into() });
        }
    }

    /// Adds the findings of a check of later documents.
    fn merge(&mut self, later: Self) {
        self.documents += later.documents;
        self.damaged += later.damaged;
        self.findings_total += later.findings_total;
        let room = FINDINGS_MAX - self.findings.len();
        self.findings.extend(later.findings.into_iter().take(room));
    }

    /// Notes an error that says something about the file. Any other error is returned.
    fn note(&mut self, place: &'static str, error: StoreError) -> Result<()> {
        match error {
            StoreError::Damaged { record, detail, .. } => self.found(place, record, detail),
            StoreError::NotAStore { detail, .. } => self.found(place, None, detail),
            other => return Err(other),
        }
        Ok(())
    }
}

/// Checks a collection's file. `progress` is called with shares from 0 to 1. An error means that the file could not be
/// checked.
pub fn inspect(path: &Path, progress: &dyn Fn(f64)) -> Result<Inspection> {
    inspect_as(path, &name_of(path), progress)
}

/// Like [`inspect`], for a file that may not have its final name yet. `label` is the name of its collection.
pub(in crate::store) fn inspect_as(path: &Path, label: &str, progress: &dyn Fn(f64)) -> Result<Inspection> {
    let mut inspection = Inspection::default();
    // If the log is damaged, the database is not opened. SQLite would drop the transactions after the flaw and remove
    // the traces of the loss.
    if let Err(error) = check_files(path) {
        inspection.note("log", error)?;
        return Ok(inspection);
    }
    let looked = connect_upgraded(path).and_then(|connection| {
        thread::scope(|scope| {
            // SQLite's own check has its own thread, because it takes nearly as long as reading all rows.
            let own = scope.spawn(|| own_check(path, label));
            look_inside(&connection, (path, label), &mut inspection, progress)?;
            for complaint in own.join().expect("SQLite's check does not panic") {
                match complaint {
                    Ok(complaint) => inspection.found("file", None, complaint),
                    Err(error) => inspection.note("file", error)?,
                }
            }
            Ok(())
        })
    });
    match looked {
        Ok(()) => inspection.complete = true,
        Err(error) => inspection.note("file", error)?,
    }
    progress(1.0);
    Ok(inspection)
}

/// Opens a file, and upgrades it first if its format is older.
fn connect_upgraded(path: &Path) -> Result<Connection> {
    let connection = connect(path, Role::Reader)?;
    if format_of(&connection, path)? < FORMAT {
        upgrade(path)?;
    }
    Ok(connection)
}

fn look_inside(
    connection: &Connection,
    (path, label): (&Path, &str),
    inspection: &mut Inspection,
    progress: &dyn Fn(f64),
) -> Result<()> {
    let sqlite = |error| StoreError::from_sqlite(label, "reading it", error);
    let snapshot = connection.unchecked_transaction().map_err(sqlite)?;
    let keep = match read_meta(&snapshot, label) {
        Ok(meta) => {
            meta.other_than(label).into_iter().for_each(|detail| inspection.found("settings", None, detail));
            Some(meta.keep)
        }
        Err(error) => inspection.note("settings", error).map(|()| None)?,
    };
    let ledger = match read_ledger(&snapshot, label) {
        Ok(ledger) => Some(ledger),
        Err(error) => inspection.note("ledger", error).map(|()| None)?,
    };
    // If the settings are unreadable, the table `payload` shows whether the collection keeps payloads.
    let has_payloads = || snapshot.prepare("SELECT 1 FROM payload").and_then(|mut any| any.exists([])).map_err(sqlite);
    let keep = match keep {
        Some(keep) => keep,
        None if has_payloads()? => Keep::Text,
        None => Keep::Signature,
    };
    let (expected, last) = ledger.map_or((0, Seq(0)), |ledger| (ledger.signatures.rows, ledger.last_seq));
    let told = |read: u64| progress((read as f64 / expected.max(1) as f64).min(1.0) * ROWS_SHARE);
    let rows = Rows { path, label, keep };
    let seen = rows.check_all(&parts(expected, last), inspection, told)?;
    if let Some(ledger) = ledger {
        against_ledger(inspection, &ledger, &seen);
    }
    for complaint in golden::look(&snapshot).complaints(label)? {
        inspection.found("golden", None, complaint);
    }
    let (found, flawed) = jobs::look(&snapshot, true);
    let doomed = found.doomed.iter().map(|part| part.seqs.len() as u64).sum();
    inspection.documents = inspection.documents.saturating_sub(doomed);
    for complaint in jobs::complaints((&found, flawed), label)? {
        inspection.found("jobs", None, complaint);
    }
    for complaint in statistics::look(&snapshot).1.complaints(label)? {
        inspection.found("statistics", None, complaint);
    }
    Ok(())
}

/// The sums over the intact rows.
#[derive(Default)]
struct Seen {
    tallies: [Tally; 3],
    last: Seq,
}

impl Seen {
    fn merge(&mut self, later: &Self) {
        self.tallies.iter_mut().zip(later.tallies).for_each(|(tally, later)| tally.merge(later));
        self.last = self.last.max(later.last);
    }
}

/// Divides all documents among threads. According to the ledger, there are `documents` documents, and `last` is the
/// last assigned position.
fn parts(documents: u64, last: Seq) -> Vec<WalkRange> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(PARTS_MAX) as u64;
    let parts = (documents / PART_DOCUMENTS_MIN).clamp(1, threads);
    let cut = |part| Seq((u128::from(last.0) * u128::from(part) / u128::from(parts)) as u64);
    let mut ranges: Vec<WalkRange> =
        (0..parts).map(|part| WalkRange { after: cut(part), through: cut(part + 1) }).collect();
    // The file may have rows that the ledger does not expect.
    ranges.iter_mut().next_back().expect("there is a part").through = WalkRange::ALL.through;
    ranges
}

/// The rows of a file. Errors call the file `label`.
#[derive(Clone, Copy)]
struct Rows<'a> {
    path: &'a Path,
    label: &'a str,
    keep: Keep,
}

impl Rows<'_> {
    /// Checks each row against its checksum and the other rows of its document, with one thread for each part. Calls
    /// `read` from time to time with the number of documents read.
    fn check_all(self, parts: &[WalkRange], inspection: &mut Inspection, read: impl Fn(u64)) -> Result<Seen> {
        let (sender, records) = channel();
        thread::scope(|scope| {
            let check = |&part| {
                let sender = sender.clone();
                scope.spawn(move || self.check(part, &sender))
            };
            let threads: Vec<_> = parts.iter().map(check).collect();
            drop(sender);
            records.into_iter().fold(0, |sum, records: u64| {
                read(sum + records);
                sum + records
            });
            let mut all = Seen::default();
            for thread in threads {
                let (found, seen) = thread.join().expect("a check does not panic")?;
                inspection.merge(found);
                all.merge(&seen);
            }
            Ok(all)
        })
    }

    /// Checks the rows of some documents. Sends from time to time how many more documents were read.
    fn check(self, range: WalkRange, read: &Sender<u64>) -> Result<(Inspection, Seen)> {
        let sqlite = |error| StoreError::from_sqlite(self.label, "reading it", error);
        let connection = connect(self.path, Role::Reader)?;
        let snapshot = connection.unchecked_transaction().map_err(sqlite)?;
        let (mut found, mut seen, mut records) = (Inspection::default(), Seen::default(), 0);
        let visited = walk(&snapshot, self.keep, range, |visit| {
            for (tally, row) in seen.tallies.iter_mut().zip(&visit.rows) {
                row.iter().for_each(|row| tally.add(row.sum));
            }
            found.documents += u64::from(visit.flaws.is_empty());
            found.damaged += u64::from(!visit.flaws.is_empty());
            for (table, flaw) in visit.flaws {
                found.found(table.as_str(), Some(visit.seq), flaw);
            }
            seen.last = visit.seq;
            records += 1;
            if records == PROGRESS_RECORDS {
                // Sending fails only if the thread that shows progress has ended.
                let _ = read.send(mem::take(&mut records));
            }
            true
        });
        for broken in visited.map_err(sqlite)? {
            let detail = format!("it cannot be read after record {}: {}", broken.behind.0, broken.detail);
            found.found(broken.table.as_str(), None, detail);
        }
        Ok((found, seen))
    }
}

/// Runs SQLite's own check. Returns its complaints, and the error that ended it, if any.
fn own_check(path: &Path, label: &str) -> Vec<Result<String>> {
    let sqlite = |error| StoreError::from_sqlite(label, "reading it", error);
    let mut complaints = Vec::new();
    let checked = connect(path, Role::Reader).and_then(|connection| {
        let mut check = connection.prepare(&format!("PRAGMA integrity_check({COMPLAINTS_MAX})")).map_err(sqlite)?;
        let lines = check.query_map([], |row| row.get::<_, String>(0)).map_err(sqlite)?;
        complaints.extend(lines.map(|line| line.map_err(sqlite)));
        Ok(())
    });
    complaints.extend(checked.err().map(Err));
    complaints.retain(|complaint| !complaint.as_ref().is_ok_and(|text| text == "ok"));
    complaints
}

fn against_ledger(inspection: &mut Inspection, ledger: &Ledger, seen: &Seen) {
    let lines = [ledger.signatures, ledger.documents, ledger.payloads];
    for ((table, told), found) in RecordTable::ALL.into_iter().zip(lines).zip(seen.tallies) {
        if told != found {
            let detail = format!(
                "{} rows with sum {:016x} are intact, but the ledger says {} with sum {:016x}",
                found.rows, found.sum, told.rows, told.sum
            );
            inspection.found(table.as_str(), None, detail);
        }
    }
    if seen.last > ledger.last_seq {
        let detail =
            format!("there is a record {}, but the ledger says that {} is the last", seen.last.0, ledger.last_seq.0);
        inspection.found("ledger", Some(seen.last), detail);
    }
}
