//! Writes and reads the settings, which are the only row of `meta`.

use rusqlite::{Connection, OptionalExtension, params};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::columns::{META_SEED, push_text};
use crate::store::error::{Result, StoreError};
use crate::store::settings::{Changeable, Meta};
use crate::types::{CollectionName, Extract, Keep, TimestampMs, Verify};

/// Writes the settings, in place of the earlier ones.
pub(in crate::store) fn write_meta(connection: &Connection, meta: &Meta) -> rusqlite::Result<()> {
    let Changeable { bands, rows, banding_by_hand, threshold, verify, ttl_ms, touch } = meta.changeable;
    connection.execute(
        "INSERT OR REPLACE INTO meta
         (only, name, spec, bands, rows, threshold, created_ms, keep, verify, ttl_ms, touch, seen_floor_ms,
          banding_by_hand, extract, extractor, sum)
         VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
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
            meta.extract.as_str(),
            meta.extractor,
            meta_sum(meta) as i64
        ],
    )?;
    Ok(())
}

/// Reads the settings and verifies their checksum.
pub(in crate::store) fn read_meta(connection: &Connection, label: &str) -> Result<Meta> {
    let damaged = |detail: &str| StoreError::Damaged {
        collection: label.to_owned(),
        record: None,
        detail: format!("its settings cannot be trusted: {detail}"),
    };
    let columns = "name, spec, bands, rows, threshold, created_ms, keep, verify, ttl_ms, touch, seen_floor_ms, \
                   banding_by_hand, extract, extractor, sum";
    let read = connection
        .query_row(&format!("SELECT {columns} FROM meta WHERE only = 1"), [], |row| {
            let name = CollectionName::new(&row.get::<_, String>(0)?).ok();
            let keep = Keep::parse(&row.get::<_, String>(6)?);
            let verify = Verify::parse(&row.get::<_, String>(7)?);
            let extract = Extract::parse(&row.get::<_, String>(12)?);
            let (Some(name), Some(keep), Some(verify), Some(extract)) = (name, keep, verify, extract) else {
                return Ok(None);
            };
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
            let (spec, extractor) = (row.get(1)?, row.get(13)?);
            let meta = Meta { name, spec, keep, extract, extractor, created, seen_floor, changeable };
            Ok(Some((meta, row.get::<_, i64>(14)?)))
        })
        .optional();
    match read {
        Ok(Some(Some((meta, sum)))) if meta_sum(&meta) as i64 == sum => Ok(meta),
        Ok(Some(_)) => Err(damaged("their checksum differs")),
        Ok(None) => Err(damaged("they are missing")),
        Err(error) if error.sqlite_error().is_none() => Err(damaged(&error.to_string())),
        Err(error) => Err(StoreError::from_sqlite(label, "reading its settings", error)),
    }
}

/// Computes the checksum of the row of `meta`.
pub(in crate::store) fn meta_sum(meta: &Meta) -> u64 {
    let mut buffer = Vec::new();
    push_text(&mut buffer, Some(meta.name.as_str().as_bytes()));
    push_text(&mut buffer, Some(meta.spec.as_bytes()));
    let Changeable { bands, rows, banding_by_hand, threshold, verify, ttl_ms, touch } = meta.changeable;
    buffer.extend_from_slice(&bands.to_le_bytes());
    buffer.extend_from_slice(&rows.to_le_bytes());
    buffer.extend_from_slice(&threshold.to_bits().to_le_bytes());
    buffer.extend_from_slice(&meta.created.0.to_le_bytes());
    // Format 1 did not have these settings, so its checksum does not cover them. They are included only if at least one
    // of them is not the default.
    if (meta.keep, verify, ttl_ms, touch, meta.seen_floor) != Default::default() {
        push_text(&mut buffer, Some(meta.keep.as_str().as_bytes()));
        push_text(&mut buffer, Some(verify.as_str().as_bytes()));
        push_text(&mut buffer, ttl_ms.map(u64::to_le_bytes).as_ref().map(|bytes| &bytes[..]));
        buffer.push(u8::from(touch));
        buffer.extend_from_slice(&meta.seen_floor.0.to_le_bytes());
    }
    // Formats 1 and 2 did not have this setting.
    if banding_by_hand {
        buffer.push(1);
    }
    // Formats 1 to 4 did not have these settings.
    if (meta.extract, meta.extractor) != (Extract::Article, 1) {
        push_text(&mut buffer, Some(meta.extract.as_str().as_bytes()));
        buffer.extend_from_slice(&meta.extractor.to_le_bytes());
    }
    xxh3_64_with_seed(&buffer, META_SEED)
}
