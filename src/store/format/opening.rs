//! A file -> a connection to it, with what the file says of itself.

use std::path::Path;

use rusqlite::Connection;

use super::connection::{Role, connect};
use super::ledger::{Ledger, read_ledger};
use super::meta::read_meta;
use super::outside::check_files;
use super::tables::FORMAT;
use super::upgrade::upgrade;
use super::version::{check_format, format_of};
use crate::store::data_dir::files::name_of;
use crate::store::error::{Result, StoreError};
use crate::store::settings::Opened;

/// The writer's connection, with what the file says of itself.
pub(in crate::store) fn open_for_writing(path: &Path) -> Result<(Connection, Opened, Ledger)> {
    upgrade(path)?;
    let connection = connect(path, Role::Writer)?;
    check_format(&connection, path)?;
    let meta = read_meta(&connection, &name_of(path))?;
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

/// The settings and the counts of a collection that need not be open.
pub(in crate::store) fn peek(path: &Path) -> Result<Opened> {
    check_files(path)?;
    let connection = connect(path, Role::Reader)?;
    if format_of(&connection, path)? < FORMAT {
        upgrade(path)?;
    }
    check_format(&connection, path)?;
    let label = name_of(path);
    let meta = read_meta(&connection, &label)?;
    let ledger = read_ledger(&connection, &label)?;
    Ok(Opened { meta, last_seq: ledger.last_seq, documents: ledger.signatures.rows })
}
