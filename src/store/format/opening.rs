//! Opens a collection's file, and reads its settings and counts.

use std::path::Path;

use rusqlite::Connection;

use super::connection::{Role, connect};
use super::jobs;
use super::ledger::{Ledger, read_ledger};
use super::meta::read_meta;
use super::outside::check_files;
use super::tables::FORMAT;
use super::upgrade::upgrade;
use super::version::{check_format, format_of};
use crate::store::data_dir::files::name_of;
use crate::store::error::{Result, StoreError};
use crate::store::settings::{Meta, Opened};

/// Opens the writer's connection, and reads the settings and the ledger.
pub(in crate::store) fn open_for_writing(path: &Path) -> Result<(Connection, Opened, Ledger)> {
    upgrade(path)?;
    let connection = connect(path, Role::Writer)?;
    check_format(&connection, path)?;
    let meta = read_own_meta(&connection, path)?;
    let name = meta.name.as_str();
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
        .map_err(|error| StoreError::from_sqlite(name, "opening its write-ahead log", error))?;
    if mode != "wal" {
        let detail = format!("its file is in journal mode `{mode}` and cannot be switched to `wal`");
        return Err(StoreError::NotAStore { path: path.to_owned(), detail });
    }
    let ledger = read_ledger(&connection, name)?;
    let opened = opened(&connection, meta, &ledger)?;
    Ok((connection, opened, ledger))
}

/// Reads the settings and the counts of a collection. The collection need not be open.
pub(in crate::store) fn peek(path: &Path) -> Result<Opened> {
    check_files(path)?;
    let connection = connect(path, Role::Reader)?;
    if format_of(&connection, path)? < FORMAT {
        upgrade(path)?;
    }
    check_format(&connection, path)?;
    let meta = read_own_meta(&connection, path)?;
    let ledger = read_ledger(&connection, meta.name.as_str())?;
    opened(&connection, meta, &ledger)
}

/// Reads the settings, and refuses a file with the settings of another collection. Such a file was copied or renamed.
/// If the file and its original were both served, they could not be told apart.
fn read_own_meta(connection: &Connection, path: &Path) -> Result<Meta> {
    let label = name_of(path);
    let meta = read_meta(connection, &label)?;
    match meta.other_than(&label) {
        Some(detail) => Err(StoreError::damaged(&label, None, detail)),
        None => Ok(meta),
    }
}

/// Returns the settings and the counts of a file.
pub(in crate::store) fn opened(connection: &Connection, meta: Meta, ledger: &Ledger) -> Result<Opened> {
    let doomed = jobs::left(connection, meta.name.as_str())?;
    Ok(Opened { meta, last_seq: ledger.last_seq, documents: ledger.signatures.rows.saturating_sub(doomed) })
}
