//! Upgrades a file of an older format to the format of this version.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use hapax_core::{Spec, tuning};
use rusqlite::{Connection, TransactionBehavior};

use super::cluster_index;
use super::connection::{Role, connect};
use super::meta::{read_meta, write_meta};
use super::outside::check_files;
use super::tables::{FORMAT, TABLES_SINCE_2, TABLES_SINCE_4, TABLES_SINCE_6};
use super::version::format_of;
use crate::store::data_dir::files::name_of;
use crate::store::error::{Result, StoreError};
use crate::store::settings::{Changeable, Meta};
use crate::types::TimestampMs;

/// Format 1 -> 2. Checksums stay valid, because they do not cover the new columns as long as these have their defaults.
const UPGRADE_FROM_1: &str = "
ALTER TABLE meta ADD COLUMN keep TEXT NOT NULL DEFAULT 'signature';
ALTER TABLE meta ADD COLUMN verify TEXT NOT NULL DEFAULT 'estimate';
ALTER TABLE meta ADD COLUMN ttl_ms INTEGER;
ALTER TABLE meta ADD COLUMN touch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE meta ADD COLUMN seen_floor_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE signature ADD COLUMN cluster INTEGER NOT NULL DEFAULT 0;
ALTER TABLE signature ADD COLUMN seen_ms INTEGER NOT NULL DEFAULT 0;
";

/// Format 2 -> 3. Checksums stay valid here, too: if `id_first_seen_ms` is absent, the id was first stored with this
/// content, and the checksum does not cover the column.
const UPGRADE_FROM_2: &str = "
ALTER TABLE meta ADD COLUMN banding_by_hand INTEGER NOT NULL DEFAULT 0;
ALTER TABLE document ADD COLUMN id_first_seen_ms INTEGER;
";

/// Format 4 -> 5. Checksums stay valid: older files hold no page, no labels and no capture, and a checksum does not
/// cover absent values.
const UPGRADE_FROM_4: &str = "
ALTER TABLE meta ADD COLUMN extract TEXT NOT NULL DEFAULT 'article';
ALTER TABLE meta ADD COLUMN extractor INTEGER NOT NULL DEFAULT 1;
ALTER TABLE document ADD COLUMN page_hash BLOB;
ALTER TABLE document ADD COLUMN extractor INTEGER;
ALTER TABLE document ADD COLUMN capture_date TEXT;
ALTER TABLE document ADD COLUMN payload_digest TEXT;
ALTER TABLE signature ADD COLUMN labels TEXT;
";

/// Upgrades a file to the format of this version, in one transaction. The caller holds the data directory's lock.
pub(in crate::store) fn upgrade(path: &Path) -> Result<()> {
    check_files(path)?;
    upgrade_open(&mut connect(path, Role::Writer)?, path)
}

/// Upgrades the file of `connection`. Errors name the file `path`.
pub(in crate::store) fn upgrade_open(connection: &mut Connection, path: &Path) -> Result<()> {
    if format_of(connection, path)? == FORMAT {
        return Ok(());
    }
    let upgrading = |error| StoreError::from_sqlite(&name_of(path), "upgrading the format of its file", error);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(upgrading)?;
    // Another thread of this process may have upgraded the file meanwhile.
    let found = format_of(&transaction, path)?;
    if found == FORMAT {
        return Ok(());
    }
    if found < 2 {
        transaction.execute_batch(UPGRADE_FROM_1).map_err(upgrading)?;
        transaction.execute_batch(TABLES_SINCE_2).map_err(upgrading)?;
    }
    if found < 3 {
        transaction.execute_batch(UPGRADE_FROM_2).map_err(upgrading)?;
    }
    if found < 5 {
        transaction.execute_batch(UPGRADE_FROM_4).map_err(upgrading)?;
    }
    if found < 3 {
        let mut meta = read_meta(&transaction, &name_of(path))?;
        if found < 2 {
            let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            meta.seen_floor = TimestampMs(since_epoch.as_millis() as i64);
        }
        meta.changeable.banding_by_hand = !has_default_banding(&meta);
        write_meta(&transaction, &meta).map_err(upgrading)?;
    }
    if found < 4 {
        // Format 4 also has one more value of `verify`. No older file can contain this value.
        transaction.execute_batch(TABLES_SINCE_4).map_err(upgrading)?;
    }
    if found < 6 {
        // Older files have no jobs and no statistics.
        transaction.execute_batch(TABLES_SINCE_6).map_err(upgrading)?;
    }
    let removed = cluster_index::remove(&transaction).map_err(upgrading)?;
    removed.map_err(|flaw| StoreError::damaged(&name_of(path), None, flaw))?;
    transaction.pragma_update(None, "user_version", FORMAT).map_err(upgrading)?;
    transaction.commit().map_err(upgrading)
}

/// Returns whether a collection of format 2 or earlier has the default banding of the version that created it. These
/// formats did not store whether the banding was chosen by hand.
fn has_default_banding(meta: &Meta) -> bool {
    let Changeable { bands, rows, threshold, .. } = meta.changeable;
    Spec::parse(&meta.spec).is_ok_and(|spec| {
        let default = tuning::default_banding_of_format_2(spec.shape(), threshold);
        (default.bands(), default.rows()) == (bands, rows)
    })
}
