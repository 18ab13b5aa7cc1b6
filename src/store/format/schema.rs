//! The file's format: its tables, its marks, how a connection to it is set up, and the two small tables, `meta` and
//! `ledger`. A change here is a new format: raise [`FORMAT`] and teach `open` to read the old one.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hapax_core::{Spec, tuning};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, params};

use super::rows;
use crate::store::data_dir::files;
use crate::store::error::{Result, StoreError};
use crate::store::log::look::{self, Look};
use crate::store::settings::{Changeable, Meta, Opened};
use crate::store::write::checkpoint;
use crate::types::{CollectionName, Keep, Seq, TimestampMs, Verify};

/// "hapx": tells our files from other SQLite files, also to `file(1)`.
const APPLICATION_ID: i32 = 0x6861_7078;
/// How every SQLite database begins.
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";
/// The format written by this version.
pub(in crate::store) const FORMAT: i32 = 3;

/// How long a connection asks again for a lock of SQLite's. Locks are held for microseconds, but recovery of a log after
/// a crash may take a while.
pub(in crate::store) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
const WRITER_CACHE_KIB: u32 = 8 * 1024;
/// Readers fetch single records at random places: the system's page cache serves that better than their own.
const READER_CACHE_KIB: u32 = 1024;

const TABLES: &str = "
CREATE TABLE meta (
    only          INTEGER PRIMARY KEY CHECK (only = 1),
    name          TEXT    NOT NULL,
    spec          TEXT    NOT NULL,
    bands         INTEGER NOT NULL,
    rows          INTEGER NOT NULL,
    threshold     REAL    NOT NULL,
    created_ms    INTEGER NOT NULL,
    sum           INTEGER NOT NULL,
    keep          TEXT    NOT NULL DEFAULT 'signature',
    verify        TEXT    NOT NULL DEFAULT 'estimate',
    ttl_ms        INTEGER,
    touch         INTEGER NOT NULL DEFAULT 0,
    seen_floor_ms INTEGER NOT NULL DEFAULT 0,
    banding_by_hand INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE ledger (
    tally         TEXT    PRIMARY KEY,
    rows          INTEGER NOT NULL,
    sum           INTEGER NOT NULL,
    last_seq      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE signature (
    seq            INTEGER PRIMARY KEY,
    id_fingerprint INTEGER NOT NULL,
    content_prefix INTEGER NOT NULL,
    flags          INTEGER NOT NULL,
    bytes          BLOB    NOT NULL,
    sum            INTEGER NOT NULL,
    cluster        INTEGER NOT NULL DEFAULT 0,
    seen_ms        INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE document (
    seq            INTEGER PRIMARY KEY,
    id             TEXT    NOT NULL,
    metadata       TEXT,
    content_hash   BLOB    NOT NULL,
    flags          INTEGER NOT NULL,
    first_seen_ms  INTEGER NOT NULL,
    shingles       INTEGER,
    verdict        TEXT    NOT NULL,
    sum            INTEGER NOT NULL,
    id_first_seen_ms INTEGER
) STRICT;
INSERT INTO ledger VALUES ('signature', 0, 0, 0), ('document', 0, 0, 0);
";

/// What format 2 has beside the columns of format 1.
const TABLES_SINCE_2: &str = "
CREATE TABLE payload (
    seq            INTEGER PRIMARY KEY,
    kind           INTEGER NOT NULL,
    shingles       INTEGER NOT NULL,
    size_sum       INTEGER NOT NULL,
    bytes          BLOB    NOT NULL,
    sum            INTEGER NOT NULL
) STRICT;
CREATE INDEX signature_by_cluster ON signature (cluster, seq) WHERE cluster <> 0;
INSERT INTO ledger SELECT 'payload', 0, 0, last_seq FROM ledger WHERE tally = 'signature';
";

/// Format 1 -> 2. Sums stay good: what the new columns say by default is in no sum.
const UPGRADE_FROM_1: &str = "
ALTER TABLE meta ADD COLUMN keep TEXT NOT NULL DEFAULT 'signature';
ALTER TABLE meta ADD COLUMN verify TEXT NOT NULL DEFAULT 'estimate';
ALTER TABLE meta ADD COLUMN ttl_ms INTEGER;
ALTER TABLE meta ADD COLUMN touch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE meta ADD COLUMN seen_floor_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE signature ADD COLUMN cluster INTEGER NOT NULL DEFAULT 0;
ALTER TABLE signature ADD COLUMN seen_ms INTEGER NOT NULL DEFAULT 0;
";

/// Format 2 -> 3. Sums stay good here too: an absent `id_first_seen_ms` says that the id was first stored with this
/// content, and is in no sum.
const UPGRADE_FROM_2: &str = "
ALTER TABLE meta ADD COLUMN banding_by_hand INTEGER NOT NULL DEFAULT 0;
ALTER TABLE document ADD COLUMN id_first_seen_ms INTEGER;
";

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Role {
    Writer,
    Checkpointer,
    Reader,
}

/// How many rows a table has and what their sums add up to, wrapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct Tally {
    pub(in crate::store) rows: u64,
    pub(in crate::store) sum: u64,
}

impl Tally {
    pub(in crate::store) fn add(&mut self, sum: u64) {
        self.rows += 1;
        self.sum = self.sum.wrapping_add(sum);
    }

    /// A row has another sum now.
    pub(in crate::store) fn exchange(&mut self, old: u64, new: u64) {
        self.sum = self.sum.wrapping_sub(old).wrapping_add(new);
    }

    pub(in crate::store) fn subtract(&mut self, sum: u64) {
        self.rows = self.rows.wrapping_sub(1);
        self.sum = self.sum.wrapping_sub(sum);
    }
}

/// What the tables must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct Ledger {
    pub(in crate::store) signatures: Tally,
    pub(in crate::store) documents: Tally,
    pub(in crate::store) payloads: Tally,
    pub(in crate::store) last_seq: Seq,
}

impl Ledger {
    fn lines(&self) -> [(&'static str, Tally); 3] {
        [("signature", self.signatures), ("document", self.documents), ("payload", self.payloads)]
    }
}

/// What to call the collection of `path` as long as its own word for it is unread.
pub(in crate::store) fn label(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(files::SUFFIX).unwrap_or(&name).to_owned()
}

/// Makes the file, whole and on disk, or leaves nothing that is taken for a collection.
pub(in crate::store) fn create(path: &Path, meta: &Meta) -> Result<()> {
    let io = |error| StoreError::from_io(meta.name.as_str(), "making its file", error);
    if path.exists() {
        return Err(StoreError::Exists { path: path.to_owned() });
    }
    files::prepare_creation(path).map_err(io)?;
    if let Some(orphan) = files::orphan(path) {
        let detail = "it is a log whose database is gone; move it away to make a collection of this name".to_owned();
        return Err(StoreError::NotAStore { path: orphan, detail });
    }
    let sqlite = |error| StoreError::from_sqlite(meta.name.as_str(), "making its file", error);
    write_new(&files::creating(path), meta).map_err(sqlite)?;
    files::finish_creation(path).map_err(io)
}

pub(in crate::store) fn write_new(path: &Path, meta: &Meta) -> rusqlite::Result<()> {
    let mut connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    let transaction = connection.transaction()?;
    transaction.execute_batch(TABLES)?;
    transaction.execute_batch(TABLES_SINCE_2)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    write_meta(&transaction, meta)?;
    transaction.commit()?;
    finish_new(connection)
}

/// Closes a new file, written without a log.
pub(in crate::store) fn finish_new(connection: Connection) -> rusqlite::Result<()> {
    // Kept in the file's header. The log is still empty, so closing leaves one whole file.
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.close().map_err(|(_, error)| error)
}

/// A connection to an existing file.
pub(in crate::store) fn connect(path: &Path, role: Role) -> Result<Connection> {
    if !path.exists() {
        return Err(StoreError::Missing { path: path.to_owned() });
    }
    let access = match role {
        Role::Reader => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Role::Writer | Role::Checkpointer => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .and_then(|connection| set_up(&connection, role).map(|()| connection))
        .map_err(|error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => {
                StoreError::NotAStore { path: path.to_owned(), detail: "it is not a SQLite database".to_owned() }
            }
            _ => StoreError::from_sqlite(&label(path), "opening its file", error),
        })
}

fn set_up(connection: &Connection, role: Role) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(32);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // Only `Writer::close` checkpoints at the end: after a failed fsync nobody may try again.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    let cache_kib = if role == Role::Writer { WRITER_CACHE_KIB } else { READER_CACHE_KIB };
    connection.pragma_update(None, "cache_size", -i64::from(cache_kib))?;
    if role != Role::Reader {
        connection.pragma_update(None, "synchronous", "full")?;
        // On macOS fsync alone leaves the data in the drive's cache. No effect elsewhere.
        connection.pragma_update(None, "fullfsync", true)?;
        connection.pragma_update(None, "checkpoint_fullfsync", true)?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        // What a log took beyond its bound while somebody was in the way goes back to the system.
        connection.pragma_update(None, "journal_size_limit", checkpoint::LOG_BYTES_MAX as i64)?;
    }
    Ok(())
}

/// What a connection writes from here on is only as lasting as the system's memory.
pub(in crate::store) fn never_sync(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "synchronous", "off")
}

/// Refuses what this version did not write.
pub(in crate::store) fn check_format(connection: &Connection, path: &Path) -> Result<()> {
    match format_of(connection, path)? {
        FORMAT => Ok(()),
        found => {
            let detail = format!("format {found} is to be upgraded first");
            Err(StoreError::NotAStore { path: path.to_owned(), detail })
        }
    }
}

/// The format of one of our files, of this version's or an older one.
pub(in crate::store) fn format_of(connection: &Connection, path: &Path) -> Result<i32> {
    let pragma = |name: &str| {
        connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0)).map_err(|error| {
            match error.sqlite_error_code() {
                Some(rusqlite::ErrorCode::NotADatabase) => {
                    StoreError::NotAStore { path: path.to_owned(), detail: "it is not a SQLite database".to_owned() }
                }
                _ => StoreError::from_sqlite(&label(path), "reading its format", error),
            }
        })
    };
    let not_ours = |detail: String| StoreError::NotAStore { path: path.to_owned(), detail };
    match (pragma("application_id")?, pragma("user_version")?) {
        (APPLICATION_ID, found @ 1..=FORMAT) => Ok(found),
        (APPLICATION_ID, found) if found > FORMAT => {
            Err(StoreError::NewerFormat { path: path.to_owned(), found, known: FORMAT })
        }
        (APPLICATION_ID, found) => Err(not_ours(format!("there is no format {found}"))),
        (found, _) => Err(not_ours(format!("its application id is {found:#x}, not {APPLICATION_ID:#x}"))),
    }
}

/// Brings a file of an older version to this one's format, in one transaction. Under the data directory's lock.
pub(in crate::store) fn upgrade(path: &Path) -> Result<()> {
    check_files(path)?;
    let mut connection = connect(path, Role::Writer)?;
    if format_of(&connection, path)? == FORMAT {
        return Ok(());
    }
    let upgrading = |error| StoreError::from_sqlite(&label(path), "bringing its file to a newer format", error);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(upgrading)?;
    // Somebody else of this process may have been faster.
    let found = format_of(&transaction, path)?;
    if found == FORMAT {
        return Ok(());
    }
    if found < 2 {
        transaction.execute_batch(UPGRADE_FROM_1).map_err(upgrading)?;
        transaction.execute_batch(TABLES_SINCE_2).map_err(upgrading)?;
    }
    transaction.execute_batch(UPGRADE_FROM_2).map_err(upgrading)?;
    let mut meta = read_meta(&transaction, &label(path))?;
    if found < 2 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        meta.seen_floor = TimestampMs(since_epoch.as_millis() as i64);
    }
    meta.changeable.banding_by_hand = !has_default_banding(&meta);
    write_meta(&transaction, &meta).map_err(upgrading)?;
    transaction.pragma_update(None, "user_version", FORMAT).map_err(upgrading)?;
    transaction.commit().map_err(upgrading)
}

/// Whether a collection of format 2 or earlier, which did not note it, has the banding that its version chose by itself.
fn has_default_banding(meta: &Meta) -> bool {
    let Changeable { bands, rows, threshold, .. } = meta.changeable;
    Spec::parse(&meta.spec).is_ok_and(|spec| {
        let default = tuning::default_banding_of_format_2(spec.shape(), threshold);
        (default.bands(), default.rows()) == (bands, rows)
    })
}

/// The writer's connection, with what the file says of itself.
pub(in crate::store) fn open_for_writing(path: &Path) -> Result<(Connection, Opened, Ledger)> {
    upgrade(path)?;
    let connection = connect(path, Role::Writer)?;
    check_format(&connection, path)?;
    let meta = read_meta(&connection, &label(path))?;
    let name = meta.name.as_str();
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
        .map_err(|error| StoreError::from_sqlite(name, "opening its write-ahead log", error))?;
    if mode != "wal" {
        let detail = format!("its file is in journal mode {mode} and cannot be brought back to a write-ahead log");
        return Err(StoreError::NotAStore { path: path.to_owned(), detail });
    }
    let ledger = read_ledger(&connection, name)?;
    let opened = Opened { last_seq: ledger.last_seq, documents: ledger.signatures.rows, meta };
    Ok((connection, opened, ledger))
}

/// Looks at the files before SQLite does: it would take what is left of a log for all of it, and a database that was cut
/// to nothing for a new one, whose log it throws away. A last transaction that is torn is let go, with a word in the log.
pub(in crate::store) fn check_files(path: &Path) -> Result<()> {
    let io = |doing, source: std::io::Error| StoreError::Io { collection: label(path), doing, source: source.into() };
    match files::begins_with(path, SQLITE_MAGIC) {
        Ok(true) => {}
        Ok(false) => {
            let detail = "it is not a SQLite database".to_owned();
            return Err(StoreError::NotAStore { path: path.to_owned(), detail });
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(StoreError::Missing { path: path.to_owned() });
        }
        Err(error) => return Err(io("reading its file", error)),
    }
    match look::look(&files::log(path), &files::shared(path)).map_err(|error| io("reading its log", error))? {
        Look::Sound => Ok(()),
        Look::Torn(detail) => {
            tracing::warn!(collection = label(path), detail, "the log ends in a torn transaction");
            Ok(())
        }
        Look::Damaged(detail) => Err(StoreError::Damaged { collection: label(path), record: None, detail }),
    }
}

/// Writes `meta` over what was there.
pub(in crate::store) fn write_meta(connection: &Connection, meta: &Meta) -> rusqlite::Result<()> {
    let Changeable { bands, rows, banding_by_hand, threshold, verify, ttl_ms, touch } = meta.changeable;
    connection.execute(
        "INSERT OR REPLACE INTO meta
         (only, name, spec, bands, rows, threshold, created_ms, keep, verify, ttl_ms, touch, seen_floor_ms,
          banding_by_hand, sum)
         VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        params![
            meta.name.as_str(),
            meta.spec,
            bands,
            rows,
            threshold,
            meta.created.0,
            meta.keep.as_str(),
            verify.as_str(),
            ttl_ms.map(|ttl| ttl as i64),
            touch,
            meta.seen_floor.0,
            banding_by_hand,
            rows::meta_sum(meta) as i64
        ],
    )?;
    Ok(())
}

/// Reads and verifies `meta`.
pub(in crate::store) fn read_meta(connection: &Connection, label: &str) -> Result<Meta> {
    let damaged = |detail: &str| StoreError::Damaged {
        collection: label.to_owned(),
        record: None,
        detail: format!("its settings cannot be trusted: {detail}"),
    };
    let columns = "name, spec, bands, rows, threshold, created_ms, keep, verify, ttl_ms, touch, seen_floor_ms, \
                   banding_by_hand, sum";
    let read = connection
        .query_row(&format!("SELECT {columns} FROM meta WHERE only = 1"), [], |row| {
            let name = CollectionName::new(&row.get::<_, String>(0)?).ok();
            let (keep, verify) = (row.get::<_, String>(6)?, row.get::<_, String>(7)?);
            let keep = Keep::ALL.into_iter().find(|known| known.as_str() == keep);
            let verify = Verify::ALL.into_iter().find(|known| known.as_str() == verify);
            let (Some(name), Some(keep), Some(verify)) = (name, keep, verify) else { return Ok(None) };
            let changeable = Changeable {
                bands: row.get(2)?,
                rows: row.get(3)?,
                banding_by_hand: row.get(11)?,
                threshold: row.get(4)?,
                verify,
                ttl_ms: row.get::<_, Option<i64>>(8)?.map(|ttl| ttl as u64),
                touch: row.get(9)?,
            };
            let (created, seen_floor) = (TimestampMs(row.get(5)?), TimestampMs(row.get(10)?));
            let meta = Meta { name, spec: row.get(1)?, keep, created, seen_floor, changeable };
            Ok(Some((meta, row.get::<_, i64>(12)?)))
        })
        .optional();
    match read {
        Ok(Some(Some((meta, sum)))) if rows::meta_sum(&meta) as i64 == sum => Ok(meta),
        Ok(Some(_)) => Err(damaged("their checksum differs")),
        Ok(None) => Err(damaged("they are missing")),
        Err(error) if error.sqlite_error().is_none() => Err(damaged(&error.to_string())),
        Err(error) => Err(StoreError::from_sqlite(label, "reading its settings", error)),
    }
}

/// Reads the ledger; its two lines must agree with each other.
pub(in crate::store) fn read_ledger(connection: &Connection, label: &str) -> Result<Ledger> {
    let line = |tally: &str| {
        connection
            .query_row("SELECT rows, sum, last_seq FROM ledger WHERE tally = ?1", [tally], |row| {
                let (rows, sum, last_seq): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok((Tally { rows: rows as u64, sum: sum as u64 }, Seq(last_seq as u64)))
            })
            .optional()
            .map_err(|error| StoreError::from_sqlite(label, "reading its ledger", error))
    };
    let damaged = |detail: String| StoreError::Damaged { collection: label.to_owned(), record: None, detail };
    let (Some((signatures, last_seq)), Some((documents, document_last_seq)), Some((payloads, payload_last_seq))) =
        (line("signature")?, line("document")?, line("payload")?)
    else {
        return Err(damaged("a line of its ledger is missing".to_owned()));
    };
    let agree = last_seq == document_last_seq && last_seq == payload_last_seq;
    if signatures.rows != documents.rows || !agree || i64::try_from(last_seq.0).is_err() {
        return Err(damaged(format!(
            "its ledger contradicts itself: {} signatures up to {}, {} documents up to {}, {} payloads up to {}",
            signatures.rows, last_seq.0, documents.rows, document_last_seq.0, payloads.rows, payload_last_seq.0
        )));
    }
    Ok(Ledger { signatures, documents, payloads, last_seq })
}

/// Moves the ledger from `old` to `new`; false if it was not at `old`: somebody else has written.
pub(in crate::store) fn move_ledger(connection: &Connection, old: &Ledger, new: &Ledger) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached(
        "UPDATE ledger SET rows = ?1, sum = ?2, last_seq = ?3
         WHERE tally = ?4 AND rows = ?5 AND sum = ?6 AND last_seq = ?7",
    )?;
    for ((tally, old_tally), (_, new_tally)) in old.lines().into_iter().zip(new.lines()) {
        let moved = statement.execute(params![
            new_tally.rows as i64,
            new_tally.sum as i64,
            new.last_seq.0 as i64,
            tally,
            old_tally.rows as i64,
            old_tally.sum as i64,
            old.last_seq.0 as i64
        ])?;
        if moved != 1 {
            return Ok(false);
        }
    }
    Ok(true)
}
