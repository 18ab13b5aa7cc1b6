//! Deletions by label, and the documents that they have yet to remove from the disk, in rows of their own. Each of the
//! two tables has a line in the ledger that documents do not touch.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, params};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::columns::{
    DELETION_SEED, DOOMED_SEED, Flaw, OUT_OF_ORDER, WRONG_SUM, WRONG_TYPE, bytes, integer, is_null, push_text, utf8,
};
use super::ledger::Tally;
use crate::store::error::{Result, StoreError};
use crate::types::{Label, LabelDeletion, Seq, TimestampMs};

/// The documents in a row of `doomed`, which leave the disk in one transaction.
const PART_DOCUMENTS: usize = 512;
/// The deletions that have ended and are still listed.
const ENDED_MAX: usize = 100;

const SELECT_DELETIONS: &str =
    "SELECT number, label, accepted_ms, ended_ms, documents, removed, sum FROM deletion ORDER BY number";
const SELECT_DOOMED: &str = "SELECT first, deletion, seqs, sum FROM doomed ORDER BY first";

/// Documents that a deletion has yet to remove, in order of `seq`. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoomedPart {
    /// The number of the deletion.
    pub deletion: Seq,
    pub seqs: Vec<Seq>,
}

/// The deletions of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deletions {
    /// In order of their numbers.
    pub deletions: Vec<LabelDeletion>,
    pub doomed: Vec<DoomedPart>,
}

impl DoomedPart {
    /// Divides the documents of a deletion, in order of `seq`, into parts.
    pub fn all(deletion: Seq, seqs: &[Seq]) -> Vec<Self> {
        seqs.chunks(PART_DOCUMENTS).map(|part| Self { deletion, seqs: part.to_vec() }).collect()
    }

    fn first(&self) -> Seq {
        self.seqs[0]
    }

    fn bytes(&self) -> Vec<u8> {
        self.seqs.iter().flat_map(|seq| seq.0.to_le_bytes()).collect()
    }
}

/// Stores a new deletion. The caller has begun a transaction.
pub(in crate::store) fn begin(
    connection: &Connection,
    deletion: &LabelDeletion,
    doomed: &[DoomedPart],
) -> rusqlite::Result<()> {
    put_deletion(connection, deletion)?;
    let mut tally = tally_of(connection, "doomed")?;
    for part in doomed {
        tally.add(put_doomed(connection, part)?);
    }
    set_tally(connection, "doomed", tally)?;
    forget_ended(connection)
}

/// Notes that the documents of a part are removed. The caller has begun a transaction, and removes them in it. Returns
/// the deletion as it is then, which has ended at `now` if this was its last part. `None` if the part is not there.
pub(in crate::store) fn removed(
    connection: &Connection,
    part: &DoomedPart,
    now: TimestampMs,
) -> rusqlite::Result<Option<LabelDeletion>> {
    let mut taken = connection.prepare_cached("DELETE FROM doomed WHERE first = ?1 AND deletion = ?2 RETURNING sum")?;
    let mut rows = taken.query([part.first().0 as i64, part.deletion.0 as i64])?;
    let Some(sum) = rows.next()?.map(|row| row.get::<_, i64>(0)).transpose()? else { return Ok(None) };
    drop(rows);
    let mut tally = tally_of(connection, "doomed")?;
    tally.subtract(sum as u64);
    set_tally(connection, "doomed", tally)?;
    let of_number = SELECT_DELETIONS.replace("ORDER BY", "WHERE number = ?1 ORDER BY");
    let mut statement = connection.prepare_cached(&of_number)?;
    let mut rows = statement.query([part.deletion.0 as i64])?;
    let Some(Ok((mut deletion, sum))) = rows.next()?.map(read_deletion) else { return Ok(None) };
    drop(rows);
    deletion.removed = (deletion.removed + part.seqs.len() as u64).min(deletion.documents);
    deletion.ended = (deletion.left() == 0).then_some(now);
    let mut tally = tally_of(connection, "deletion")?;
    tally.subtract(sum);
    set_tally(connection, "deletion", tally)?;
    put_deletion(connection, &deletion)?;
    Ok(Some(deletion))
}

/// Stores a deletion, in place of an earlier row that the ledger no longer counts.
pub(in crate::store) fn put_deletion(connection: &Connection, deletion: &LabelDeletion) -> rusqlite::Result<()> {
    let sum = deletion_sum(deletion);
    let mut insert =
        connection.prepare_cached("INSERT OR REPLACE INTO deletion VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    insert.execute(params![
        deletion.number.0 as i64,
        deletion.label.as_str(),
        deletion.accepted.0,
        deletion.ended.map(|ended| ended.0),
        deletion.documents as i64,
        deletion.removed as i64,
        sum as i64
    ])?;
    let mut tally = tally_of(connection, "deletion")?;
    tally.add(sum);
    set_tally(connection, "deletion", tally)
}

fn put_doomed(connection: &Connection, part: &DoomedPart) -> rusqlite::Result<u64> {
    let (seqs, sum) = (part.bytes(), doomed_sum(part));
    let mut insert = connection.prepare_cached("INSERT INTO doomed VALUES (?1, ?2, ?3, ?4)")?;
    insert.execute(params![part.first().0 as i64, part.deletion.0 as i64, seqs, sum as i64])?;
    Ok(sum)
}

/// Forgets the oldest deletions that have ended, if there are too many.
fn forget_ended(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "DELETE FROM deletion WHERE number IN
               (SELECT number FROM deletion WHERE ended_ms IS NOT NULL ORDER BY number DESC LIMIT -1 OFFSET ?1)
               RETURNING sum";
    let mut statement = connection.prepare_cached(sql)?;
    let forgotten = statement.query_map([ENDED_MAX as i64], |row| row.get::<_, i64>(0))?;
    let forgotten: Vec<i64> = forgotten.collect::<rusqlite::Result<_>>()?;
    if forgotten.is_empty() {
        return Ok(());
    }
    let mut tally = tally_of(connection, "deletion")?;
    forgotten.into_iter().for_each(|sum| tally.subtract(sum as u64));
    set_tally(connection, "deletion", tally)
}

fn tally_of(connection: &Connection, table: &str) -> rusqlite::Result<Tally> {
    let mut told = connection.prepare_cached("SELECT rows, sum FROM ledger WHERE tally = ?1")?;
    told.query_row([table], |row| Ok(Tally { rows: row.get::<_, i64>(0)? as u64, sum: row.get::<_, i64>(1)? as u64 }))
}

fn set_tally(connection: &Connection, table: &str, tally: Tally) -> rusqlite::Result<()> {
    let mut set = connection.prepare_cached("UPDATE ledger SET rows = ?2, sum = ?3 WHERE tally = ?1")?;
    set.execute(params![table, tally.rows as i64, tally.sum as i64]).map(drop)
}

/// The deletions of a file, as far as they are intact.
#[derive(Debug, Default)]
pub(in crate::store) struct DeletionRows {
    pub(in crate::store) intact: Deletions,
    /// The damaged rows: table, key and flaw.
    pub(in crate::store) flaws: Vec<(&'static str, i64, Flaw)>,
    /// The tables whose intact rows are not those that the ledger counts.
    differing: Vec<&'static str>,
    /// Why the rest could not be read.
    broken: Option<rusqlite::Error>,
}

/// Reads the deletions, as far as they are intact.
pub(in crate::store) fn look(connection: &Connection) -> DeletionRows {
    let mut looked = DeletionRows::default();
    looked.broken = look_at_rows(connection, &mut looked).err();
    looked
}

fn look_at_rows(connection: &Connection, looked: &mut DeletionRows) -> rusqlite::Result<()> {
    let DeletionRows { intact: Deletions { deletions, doomed }, flaws, differing, .. } = looked;
    look_at_table(connection, "deletion", SELECT_DELETIONS, flaws, differing, |row| {
        let (deletion, sum) = read_deletion(row)?;
        deletions.push(deletion);
        Ok(sum)
    })?;
    look_at_table(connection, "doomed", SELECT_DOOMED, flaws, differing, |row| {
        let (part, sum) = read_doomed(row)?;
        doomed.push(part);
        Ok(sum)
    })
}

fn look_at_table(
    connection: &Connection,
    table: &'static str,
    select: &str,
    flaws: &mut Vec<(&'static str, i64, Flaw)>,
    differing: &mut Vec<&'static str>,
    mut read: impl FnMut(&Row<'_>) -> Result<u64, Flaw>,
) -> rusqlite::Result<()> {
    let mut found = Tally::default();
    let mut statement = connection.prepare(select)?;
    let mut rows = statement.query([])?;
    let mut last = 0;
    while let Some(row) = rows.next()? {
        let key = integer(row, 0).unwrap_or_default();
        // A broken tree may lead in circles.
        if key <= last {
            flaws.push((table, key, OUT_OF_ORDER));
            break;
        }
        last = key;
        match read(row) {
            Ok(sum) => found.add(sum),
            Err(flaw) => flaws.push((table, key, flaw)),
        }
    }
    if tally_of(connection, table)? != found {
        differing.push(table);
    }
    Ok(())
}

impl DeletionRows {
    /// Returns everything that is wrong with the deletions. An error that says nothing about the file is returned as such.
    pub(in crate::store) fn complaints(self, collection: &str) -> Result<Vec<String>> {
        let named = |(table, key, flaw): &(&str, i64, Flaw)| format!("row {key} of `{table}`: {flaw}");
        let mut complaints: Vec<String> = self.flaws.iter().map(named).collect();
        let differs = |table: &&str| format!("the intact rows of `{table}` are not those that the ledger counts");
        complaints.extend(self.differing.iter().map(differs));
        if complaints.is_empty() && self.broken.is_none() {
            complaints.extend(self.intact.miscounted());
        }
        match self.broken.map(|error| StoreError::from_sqlite(collection, "reading its deletions by label", error)) {
            None => {}
            Some(StoreError::Damaged { detail, .. } | StoreError::NotAStore { detail, .. }) => complaints.push(detail),
            Some(other) => return Err(other),
        }
        Ok(complaints)
    }
}

impl Deletions {
    /// Returns the documents that each deletion has yet to remove, in order of `seq`.
    pub fn doomed_of_each(&self) -> BTreeMap<Seq, Vec<Seq>> {
        let mut of_each = BTreeMap::<Seq, Vec<Seq>>::new();
        for part in &self.doomed {
            of_each.entry(part.deletion).or_default().extend(&part.seqs);
        }
        of_each
    }

    /// Returns the deletions that do not have as many documents left as they say.
    fn miscounted(&self) -> impl Iterator<Item = String> {
        let of = |number| self.doomed.iter().filter(move |part| part.deletion == number);
        let left = move |number| of(number).map(|part| part.seqs.len() as u64).sum::<u64>();
        let wrong = self.deletions.iter().filter(move |deletion| left(deletion.number) != deletion.left());
        wrong.map(|deletion| format!("deletion {} has other documents left than it says", deletion.number.0))
    }
}

/// Returns how many documents have yet to be removed, without checking any row.
pub(in crate::store) fn left(connection: &Connection, collection: &str) -> Result<u64> {
    let sql = "SELECT coalesce(sum(documents - removed), 0) FROM deletion";
    let left = connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    left.map(|left| left as u64).map_err(|error| StoreError::from_sqlite(collection, "reading its deletions", error))
}

/// Reads the deletions. Damage is an error, because deleted documents might come back.
pub(in crate::store) fn read(connection: &Connection, collection: &str) -> Result<Deletions> {
    let looked = look(connection);
    let intact = looked.intact.clone();
    match looked.complaints(collection)?.first() {
        None => Ok(intact),
        Some(first) => Err(StoreError::damaged(collection, None, format!("its deletions by label: {first}"))),
    }
}

/// Reads a row of [`SELECT_DELETIONS`] and verifies its checksum. Returns the checksum too.
fn read_deletion(row: &Row<'_>) -> Result<(LabelDeletion, u64), Flaw> {
    let deletion = LabelDeletion {
        number: Seq(integer(row, 0)? as u64),
        label: Label::parse(utf8(bytes(row, 1)?)?).map_err(|_| "its label is none")?,
        accepted: TimestampMs(integer(row, 2)?),
        ended: if is_null(row, 3)? { None } else { Some(TimestampMs(integer(row, 3)?)) },
        documents: integer(row, 4)? as u64,
        removed: integer(row, 5)? as u64,
    };
    let sum = deletion_sum(&deletion);
    if sum as i64 != integer(row, 6)? {
        return Err(WRONG_SUM);
    }
    if deletion.removed > deletion.documents {
        return Err("it has removed more documents than it has");
    }
    Ok((deletion, sum))
}

/// Reads a row of [`SELECT_DOOMED`] and verifies its checksum. Returns the checksum too.
fn read_doomed(row: &Row<'_>) -> Result<(DoomedPart, u64), Flaw> {
    let (seqs, odd) = bytes(row, 2)?.as_chunks();
    let seqs: Vec<Seq> = seqs.iter().map(|&seq| Seq(u64::from_le_bytes(seq))).collect();
    let part = DoomedPart { deletion: Seq(integer(row, 1)? as u64), seqs };
    if !odd.is_empty() || part.seqs.first() != Some(&Seq(integer(row, 0)? as u64)) {
        return Err(WRONG_TYPE);
    }
    let sum = doomed_sum(&part);
    if sum as i64 != integer(row, 3)? {
        return Err(WRONG_SUM);
    }
    if !part.seqs.is_sorted_by(|a, b| a < b) {
        return Err("its documents are out of order");
    }
    Ok((part, sum))
}

fn deletion_sum(deletion: &LabelDeletion) -> u64 {
    let LabelDeletion { number, label, accepted, ended, documents, removed } = deletion;
    let mut buffer = Vec::with_capacity(64 + label.as_str().len());
    buffer.extend_from_slice(&number.0.to_le_bytes());
    push_text(&mut buffer, Some(label.as_str().as_bytes()));
    buffer.extend_from_slice(&accepted.0.to_le_bytes());
    push_text(&mut buffer, ended.map(|ended| ended.0.to_le_bytes()).as_ref().map(|bytes| &bytes[..]));
    buffer.extend_from_slice(&documents.to_le_bytes());
    buffer.extend_from_slice(&removed.to_le_bytes());
    xxh3_64_with_seed(&buffer, DELETION_SEED)
}

fn doomed_sum(part: &DoomedPart) -> u64 {
    let mut buffer = part.deletion.0.to_le_bytes().to_vec();
    buffer.extend_from_slice(&part.bytes());
    xxh3_64_with_seed(&buffer, DOOMED_SEED)
}
