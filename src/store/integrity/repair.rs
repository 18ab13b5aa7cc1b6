//! Builds a new file from all intact documents of a damaged file, and writes the readable parts of the other documents
//! to a file of JSON lines. The damaged file is kept under a name that is never opened as a collection. The caller
//! holds the data directory's lock. After a crash, the file of the collection is either the damaged file or the
//! repaired file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, ToSql};
use serde_json::{Map, Value, json};

use super::inspection::{Finding, inspect_as};
use super::walk::{RecordTable, Scratch, WalkRange, read, walk};
use crate::store::data_dir::files;
use crate::store::data_dir::files::name_of;
use crate::store::error::{Result, StoreError};
use crate::store::format::connection::{Role, connect};
use crate::store::format::creation::{begin_new, finish_new};
use crate::store::format::ledger::{Ledger, Tally, move_ledger, read_ledger};
use crate::store::format::meta::read_meta;
use crate::store::format::outside::check_files;
use crate::store::format::tables::FORMAT;
use crate::store::format::upgrade::upgrade_open;
use crate::store::format::version::format_of;
use crate::store::format::{cluster_index, golden, jobs, statistics};
use crate::store::settings::Meta;
use crate::store::write::unlink;
use crate::types::{CollectionName, Job, LabelDeletion, Seq, TimestampMs};

/// The number of positions in the commit order to skip if the last assigned position is unknown. No position may ever
/// be used for two documents.
const UNKNOWN_PLACES: u64 = 1 << 32;
/// The name of the operation in error messages.
const REPAIRING: &str = "repairing it";

/// The result of [`repair`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// The numbers of documents that are in the new file and that are missing from it.
    pub rebuilt: Rebuilt,
    /// The new path of the damaged file. Its log is next to it.
    pub kept_as: PathBuf,
    /// The file with the damaged records: a line of JSON for each row.
    pub set_aside_in: PathBuf,
}

/// The numbers of documents of a damaged file that were copied, set aside or lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// The number of documents in the new file.
    pub documents: u64,
    /// The number of damaged records. Their readable parts are in `set_aside_in`.
    pub set_aside: u64,
    /// The number of damaged pairs of the golden set. Their readable parts are in `set_aside_in` too.
    pub pairs_set_aside: u64,
    /// The number of damaged rows of jobs. If the deletion of a document was recorded only in such a row, the new file
    /// contains the document again.
    pub jobs_damaged: u64,
    /// Whether the log was damaged or cut short. All changes in the lost part of the log are undone.
    pub log_damaged: bool,
    /// The number of documents that the old ledger counted but that are in neither file. `None` if the ledger cannot be
    /// read. Also `None` if the log was damaged, because the ledger may then be as old as the rows.
    pub lost: Option<u64>,
}

/// Builds the collection again from its intact documents. Returns an error if the settings are damaged, because then
/// nothing can be repaired. An error leaves the collection unchanged.
pub fn repair(path: &Path) -> Result<Repaired> {
    let label = name_of(path);
    let log_is_sound = match check_files(path) {
        Ok(()) => true,
        Err(StoreError::Damaged { .. }) => false,
        Err(error) => return Err(error),
    };
    let io = |error| StoreError::from_io(&label, REPAIRING, error);
    let kept_as = files::next_damaged(path).map_err(io)?;
    let set_aside_in = files::records_of(&kept_as);
    let rebuilt = files::discard_repair(path).map_err(io).and_then(|()| rebuild(path, log_is_sound));
    let rebuilt = match rebuilt.and_then(|rebuilt| files::discard_copy(path).map_err(io).map(|()| rebuilt)) {
        Ok(rebuilt) => rebuilt,
        Err(error) => {
            if let Err(error) = files::discard_repair(path) {
                tracing::warn!(collection = label, %error, "could not remove the files of a failed repair");
            }
            return Err(error);
        }
    };
    files::finish_repair(path, &kept_as).map_err(io)?;
    Ok(Repaired { rebuilt, kept_as, set_aside_in })
}

/// Writes the new file and the file of damaged records, and checks the new file.
fn rebuild(path: &Path, log_is_sound: bool) -> Result<Rebuilt> {
    let label = name_of(path);
    let sqlite = |error| StoreError::from_sqlite(&label, REPAIRING, error);
    let io = |error| StoreError::from_io(&label, REPAIRING, error);
    let old = open_damaged(path, log_is_sound)?;
    let old = old.unchecked_transaction().map_err(sqlite)?;
    let meta = read_meta(&old, &label)?;
    // The file of another collection may have been copied or renamed, so the name of the collection is taken from the
    // name of the file.
    let meta = Meta { name: CollectionName::new(&label).unwrap_or(meta.name), ..meta };
    let ledger = read_ledger(&old, &label).ok();

    let out = BufWriter::new(File::create_new(files::setting_aside(path)).map_err(io)?);
    let mut aside = Aside { out, collection: &label, records: BTreeMap::new() };
    files::prepare_creation(path).map_err(io)?;
    let made = files::creating(path);
    let mut new = begin_new(&made, &meta).map_err(sqlite)?;
    let (pairs_set_aside, jobs);
    let documents = {
        let new = new.transaction().map_err(sqlite)?;
        let of = |error: Stopped| error.of(&label);
        for table in RecordTable::ALL {
            copy(&old, &new, table, &mut aside).map_err(of)?;
        }
        jobs = finish_deletions(&old, &new, &mut aside).map_err(of)?;
        set_unpaired_aside(&new, &meta, &mut aside).map_err(of)?;
        promote_the_first(&new).map_err(sqlite)?;
        let mut made = sums(&new, &meta).map_err(sqlite)?;
        made.last_seq = last_assigned(made.last_seq, ledger.as_ref(), log_is_sound);
        if !move_ledger(&new, &Ledger::default(), &made).map_err(sqlite)? {
            let detail = "another program wrote to its new file".into();
            return Err(StoreError::Busy { collection: label.clone(), detail });
        }
        // Damaged rows are not copied, so their counts begin again at 0.
        statistics::put(&new, &statistics::look(&old).0).map_err(sqlite)?;
        pairs_set_aside = copy_golden(&old, &new, &mut aside).map_err(of)?;
        new.commit().map_err(sqlite)?;
        made.signatures.rows
    };
    let set_aside = aside.records.len() as u64;
    aside.out.into_inner().map_err(|error| io(error.into_error()))?.sync_all().map_err(io)?;
    check_made(&made, &label)?;
    finish_new(new).map_err(sqlite)?;
    let Finished { removed, damaged: jobs_damaged } = jobs;
    let counted = ledger.filter(|_| log_is_sound).map(|ledger| ledger.signatures.rows);
    let lost = counted.map(|counted| counted.saturating_sub(documents + set_aside + removed));
    Ok(Rebuilt { documents, set_aside, pairs_set_aside, jobs_damaged, log_damaged: !log_is_sound, lost })
}

/// Opens a damaged file, or an upgraded copy of it. A file of an older format is copied if damage prevents its upgrade.
fn open_damaged(path: &Path, log_is_sound: bool) -> Result<Connection> {
    if log_is_sound {
        let old = connect(path, Role::Reader)?;
        if format_of(&old, path)? == FORMAT {
            return Ok(old);
        }
    }
    connect(&recover(path)?, Role::Reader)
}

/// Copies a file. SQLite replays the intact part of the copied log, and the copy is upgraded, without a look at its
/// index. If the log is damaged, the original files are not opened, because that would remove the traces of the damage.
fn recover(path: &Path) -> Result<PathBuf> {
    let label = name_of(path);
    let copied = files::copy_to_recover(path);
    let copy = copied.map_err(|error| StoreError::from_io(&label, REPAIRING, error))?;
    let sqlite = |error| StoreError::from_sqlite(&label, REPAIRING, error);
    cluster_index::unlist(&connect(&copy, Role::Writer)?).map_err(sqlite)?;
    upgrade_open(&mut connect(&copy, Role::Writer)?, path)?;
    Ok(copy)
}

/// Checks the new file before it replaces the damaged file.
fn check_made(made: &Path, label: &str) -> Result<()> {
    match inspect_as(made, label, &|_| {})?.findings.first() {
        None => Ok(()),
        Some(Finding { place, detail, .. }) => {
            Err(StoreError::damaged(label, None, format!("its new file is damaged too: {place}: {detail}")))
        }
    }
}

/// Returns the last assigned position in the commit order, or a later position if the last one is unknown.
fn last_assigned(found: Seq, ledger: Option<&Ledger>, log_is_sound: bool) -> Seq {
    match ledger {
        Some(ledger) if log_is_sound => found.max(ledger.last_seq),
        known => Seq(found.max(known.map_or(Seq(0), |ledger| ledger.last_seq)).0 + UNKNOWN_PLACES),
    }
}

/// An error that stops a repair.
enum Stopped {
    Sqlite(rusqlite::Error),
    Io(std::io::Error),
}

impl From<rusqlite::Error> for Stopped {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<std::io::Error> for Stopped {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl Stopped {
    fn of(self, collection: &str) -> StoreError {
        match self {
            Self::Sqlite(error) => StoreError::from_sqlite(collection, REPAIRING, error),
            Self::Io(source) => StoreError::Io {
                collection: collection.to_owned(),
                doing: "setting damaged records aside",
                source: source.into(),
            },
        }
    }
}

/// The output for damaged records.
struct Aside<'a> {
    out: BufWriter<File>,
    collection: &'a str,
    /// The flaw of each record, by `seq`.
    records: BTreeMap<i64, String>,
}

impl Aside<'_> {
    fn put(&mut self, table: RecordTable, row: &Row<'_>, flaw: &str) -> std::io::Result<()> {
        let seq = row.get::<_, i64>(0).unwrap_or_default();
        self.records.entry(seq).or_insert_with(|| flaw.to_owned());
        self.line(table.as_str(), (seq, row), flaw)
    }

    /// Writes a row of a table.
    fn line(&mut self, table: &str, (number, row): (i64, &Row<'_>), flaw: &str) -> std::io::Result<()> {
        let mut columns = Map::new();
        for column in 0..row.as_ref().column_count() {
            let name = row.as_ref().column_name(column).unwrap_or_default().to_owned();
            columns.insert(name, row.get_ref(column).map_or(Value::Null, shown));
        }
        let line = json!({
            "collection": self.collection, "record": number, "table": table, "flaw": flaw, "columns": columns,
        });
        writeln!(self.out, "{line}")
    }
}

/// Shows a value as JSON. Bytes, and text that is not UTF-8, become hexadecimal digits.
fn shown(value: ValueRef<'_>) -> Value {
    let hex = |bytes: &[u8]| json!({"hex": bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()});
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).map_or_else(|_| hex(bytes), |text| json!(text)),
        ValueRef::Blob(bytes) => hex(bytes),
    }
}

/// Copies the intact rows of a table from its beginning. If the table cannot be read to its end, continues from the end
/// backwards.
fn copy(old: &Connection, new: &Connection, table: RecordTable, aside: &mut Aside<'_>) -> Result<(), Stopped> {
    let mut scratch = Scratch::default();
    let mut reached = i64::MIN;
    for direction in ["ASC", "DESC"] {
        let prefix = &table.as_str()[..1];
        let mut statement = old.prepare(&format!("{} ORDER BY {prefix}.seq {direction}", table.select()))?;
        let columns: Vec<_> = statement.column_names().map(str::to_owned).collect();
        let places = (1..=columns.len()).map(|place| format!("?{place}")).collect::<Vec<_>>().join(", ");
        let insert = format!("INSERT INTO {} ({}) VALUES ({places})", table.as_str(), columns.join(", "));
        let mut insert = new.prepare(&insert)?;
        let mut rows = statement.query([])?;
        let mut last = None;
        loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) if direction == "ASC" => return Ok(()),
                Ok(None) => break,
                Err(_) => break,
            };
            let Ok(seq) = row.get::<_, i64>(0) else { break };
            let onwards = match (direction, last) {
                (_, None) => true,
                ("ASC", Some(last)) => seq > last,
                (_, Some(last)) => seq < last,
            };
            if !onwards || direction == "DESC" && seq <= reached {
                break;
            }
            last = Some(seq);
            match read(table, row, &mut scratch) {
                Ok(_) => {
                    let values: Vec<_> = (0..columns.len()).map(|at| row.get_ref(at)).collect::<Result<_, _>>()?;
                    let values: Vec<_> = values.into_iter().map(rusqlite::types::ToSqlOutput::Borrowed).collect();
                    let values: Vec<&dyn ToSql> = values.iter().map(|value| value as &dyn ToSql).collect();
                    insert.execute(values.as_slice())?;
                }
                Err(flaw) => aside.put(table, row, flaw)?,
            }
        }
        if direction == "ASC" {
            reached = last.unwrap_or(i64::MIN);
        }
    }
    Ok(())
}

/// Copies the intact pairs of the golden set. Returns the number of damaged pairs that were set aside.
fn copy_golden(old: &Connection, new: &Connection, aside: &mut Aside<'_>) -> Result<u64, Stopped> {
    let looked = golden::look(old);
    golden::write(new, &looked.pairs)?;
    let mut set_aside = 0;
    for &(pair, flaw) in &looked.flaws {
        let mut statement = old.prepare_cached("SELECT * FROM golden WHERE pair = ?1")?;
        let mut rows = statement.query([pair])?;
        // Rows that cannot be read are lost.
        if let Ok(Some(row)) = rows.next() {
            aside.line("golden", (pair, row), flaw)?;
            set_aside += 1;
        }
    }
    Ok(set_aside)
}

/// The effects of a repair on jobs.
struct Finished {
    /// The number of documents that the repair removed.
    removed: u64,
    /// The larger of two numbers: damaged rows and tables, and deletions whose list of documents to remove is
    /// incomplete.
    damaged: u64,
}

/// Finishes the deletions by label, that is, removes their remaining documents. Copies all jobs.
fn finish_deletions(old: &Connection, new: &Connection, aside: &mut Aside<'_>) -> Result<Finished, Stopped> {
    let (found, flawed) = jobs::look(old, true);
    let mut finished = Finished { removed: 0, damaged: flawed.count().max(found.miscounted().len() as u64) };
    for seq in found.doomed.iter().flat_map(|part| &part.seqs) {
        let mut removed = 0;
        for table in RecordTable::ALL {
            let mut delete = new.prepare_cached(&format!("DELETE FROM {} WHERE seq = ?1", table.as_str()))?;
            removed = removed.max(delete.execute([seq.0 as i64])?);
        }
        finished.removed += removed as u64;
    }
    for job in found.jobs {
        let job = match job {
            Job::DeleteLabel(deletion) => {
                let ended = deletion.ended.or(Some(TimestampMs::now()));
                Job::DeleteLabel(LabelDeletion { removed: deletion.documents, ended, ..deletion })
            }
            merge @ Job::Merge(_) => merge,
        };
        jobs::put(new, &job)?;
    }
    jobs::copy_reports(old, new)?;
    for &(table, key, flaw) in flawed.rows() {
        let column = match table {
            "doomed" => "first",
            "merged" => "place",
            _ => "number",
        };
        let mut statement = old.prepare(&format!("SELECT * FROM {table} WHERE {column} = ?1"))?;
        let mut rows = statement.query([key])?;
        // Rows that cannot be read are lost.
        if let Ok(Some(row)) = rows.next() {
            aside.line(table, (key, row), flaw)?;
        }
    }
    Ok(finished)
}

/// Finds the documents that lack a row or whose rows contradict each other. Moves their rows from the new file to the
/// file of damaged records.
fn set_unpaired_aside(new: &Connection, meta: &Meta, aside: &mut Aside<'_>) -> Result<(), Stopped> {
    let mut flawed = Vec::new();
    walk(new, meta.keep, WalkRange::ALL, |visit| {
        flawed.extend(visit.flaws.first().map(|(_, flaw)| (visit.seq.0 as i64, *flaw)));
        true
    })?;
    for (seq, flaw) in flawed {
        for table in RecordTable::ALL {
            let prefix = &table.as_str()[..1];
            let mut statement = new.prepare_cached(&format!("{} WHERE {prefix}.seq = ?1", table.select()))?;
            let mut rows = statement.query([seq])?;
            if let Some(row) = rows.next()? {
                aside.put(table, row, flaw)?;
            }
            drop(rows);
            new.prepare_cached(&format!("DELETE FROM {} WHERE seq = ?1", table.as_str()))?.execute([seq])?;
        }
    }
    Ok(())
}

/// Turns each link that is now the first of its cluster into an ordinary document, as deleting its predecessor does.
fn promote_the_first(new: &Connection) -> rusqlite::Result<()> {
    let mut firsts = new.prepare(
        "SELECT min(seq) FROM signature s WHERE cluster <> 0
         AND NOT EXISTS (SELECT 1 FROM signature f WHERE f.seq = s.cluster AND f.cluster = 0) GROUP BY cluster",
    )?;
    let firsts: Vec<i64> = firsts.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for seq in firsts {
        unlink::unlink(new, Seq(seq as u64))?;
    }
    Ok(())
}

fn sums(new: &Connection, meta: &Meta) -> rusqlite::Result<Ledger> {
    let (mut tallies, mut last_seq) = ([Tally::default(); 3], Seq(0));
    walk(new, meta.keep, WalkRange::ALL, |visit| {
        for (tally, row) in tallies.iter_mut().zip(&visit.rows) {
            row.iter().for_each(|row| tally.add(row.sum));
        }
        last_seq = visit.seq;
        true
    })?;
    let [signatures, documents, payloads] = tallies;
    Ok(Ledger { signatures, documents, payloads, last_seq })
}
