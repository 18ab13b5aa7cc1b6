//! The jobs of a collection, in rows of their own: `job` has their states, `doomed` has the documents that deletions by
//! label must still remove, and `merged` has the reports of merges. Each of the three tables has a line of its own in
//! the ledger. Changes of documents do not change these lines.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, OptionalExtension, Row, params};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::columns::{
    DOOMED_SEED, Flaw, JOB_SEED, MERGED_SEED, WRONG_SUM, WRONG_TYPE, bytes, integer, push_text, utf8,
};
use super::job_json::{from_json, report_json, to_json};
use super::ledger::Tally;
use super::side_tables::{Flawed, set_tally, tally_of};
use crate::store::error::{Result, StoreError};
use crate::types::{Job, LabelDeletion, Merged, Seq, TimestampMs};

/// One row of the table `doomed` contains at most this many documents. One transaction removes all documents of a row
/// from the disk.
const PART_DOCUMENTS: usize = 512;

const SELECT_JOBS: &str = "SELECT number, job, sum FROM job ORDER BY number";
const SELECT_DOOMED: &str = "SELECT first, deletion, seqs, sum FROM doomed ORDER BY first";
const SELECT_MERGED: &str = "SELECT place, merge, source, report, sum FROM merged ORDER BY place";

/// Documents that a deletion must still remove, in order of `seq`. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoomedPart {
    /// The number of the deletion.
    pub deletion: Seq,
    pub seqs: Vec<Seq>,
}

/// The jobs of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredJobs {
    /// The jobs, in order of their numbers.
    pub jobs: Vec<Job>,
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

// Writing. The caller has begun a transaction.

/// Stores a new deletion by label.
pub(in crate::store) fn begin_deletion(
    connection: &Connection,
    deletion: &LabelDeletion,
    doomed: &[DoomedPart],
) -> rusqlite::Result<()> {
    put(connection, &Job::DeleteLabel(deletion.clone()))?;
    let mut tally = tally_of(connection, "doomed")?;
    let mut insert = connection.prepare_cached("INSERT INTO doomed VALUES (?1, ?2, ?3, ?4)")?;
    for part in doomed {
        let sum = doomed_sum(part);
        insert.execute(params![part.first().0 as i64, part.deletion.0 as i64, part.bytes(), sum as i64])?;
        tally.add(sum);
    }
    set_tally(connection, "doomed", tally)
}

/// Removes the row of a part from `doomed`, and counts its documents as removed. The caller removes the documents in
/// the same transaction. Returns the new state of the deletion. If this was its last part, the deletion has ended at
/// `now`. Returns `None` if a row is damaged or missing.
pub(in crate::store) fn removed(
    connection: &Connection,
    part: &DoomedPart,
    now: TimestampMs,
) -> rusqlite::Result<Option<LabelDeletion>> {
    let mut taken = connection.prepare_cached("DELETE FROM doomed WHERE first = ?1 AND deletion = ?2 RETURNING sum")?;
    let sum =
        taken.query_row([part.first().0 as i64, part.deletion.0 as i64], |row| row.get::<_, i64>(0)).optional()?;
    let Some(sum) = sum else { return Ok(None) };
    let mut tally = tally_of(connection, "doomed")?;
    tally.subtract(sum as u64);
    set_tally(connection, "doomed", tally)?;
    let Some(Job::DeleteLabel(mut deletion)) = take(connection, part.deletion)? else { return Ok(None) };
    deletion.removed = (deletion.removed + part.seqs.len() as u64).min(deletion.documents);
    deletion.ended = (deletion.left() == 0).then_some(now);
    put(connection, &Job::DeleteLabel(deletion.clone()))?;
    Ok(Some(deletion))
}

/// Stores the report of a merge about one document, and the progress of the merge. Returns false if there is no such
/// merge.
pub(in crate::store) fn merged(connection: &Connection, merged: &Merged) -> rusqlite::Result<bool> {
    let Some(Job::Merge(merge)) = take(connection, merged.merge)? else { return Ok(false) };
    put(connection, &Job::Merge(merge.with(merged)))?;
    let sql = "INSERT INTO merged (merge, source, report, sum) VALUES (?1, ?2, ?3, ?4)";
    let report = report_json(merged);
    let sum = merged_sum(merged.merge, merged.source, &report);
    let mut insert = connection.prepare_cached(sql)?;
    insert.execute(params![merged.merge.0 as i64, merged.source.0 as i64, report, sum as i64])?;
    let mut tally = tally_of(connection, "merged")?;
    tally.add(sum);
    set_tally(connection, "merged", tally)?;
    Ok(true)
}

/// Stores a job. No row may exist for it yet.
pub(in crate::store) fn put(connection: &Connection, job: &Job) -> rusqlite::Result<()> {
    let (number, json) = (job.number(), to_json(job));
    let sum = job_sum(number, &json);
    let mut insert = connection.prepare_cached("INSERT INTO job VALUES (?1, ?2, ?3)")?;
    insert.execute(params![number.0 as i64, json, sum as i64])?;
    let mut tally = tally_of(connection, "job")?;
    tally.add(sum);
    set_tally(connection, "job", tally)
}

/// Removes the row of a job and returns the job, so that the caller can store it again with changes. `None` if there is
/// no such job, or if its row is damaged.
pub(in crate::store) fn take(connection: &Connection, number: Seq) -> rusqlite::Result<Option<Job>> {
    let mut taken = connection.prepare_cached("DELETE FROM job WHERE number = ?1 RETURNING number, job, sum")?;
    let mut rows = taken.query([number.0 as i64])?;
    let read = rows.next()?.map(read_job);
    drop(rows);
    match read {
        None => Ok(None),
        Some(Ok((job, sum))) => {
            let mut tally = tally_of(connection, "job")?;
            tally.subtract(sum);
            set_tally(connection, "job", tally)?;
            Ok(Some(job))
        }
        Some(Err(_)) => {
            // The checksum that the ledger counts for this row is unknown, but the checksums of the other rows are
            // known.
            let mut tally = Tally::default();
            let mut others = connection.prepare_cached("SELECT sum FROM job")?;
            others
                .query_map([], |row| row.get::<_, i64>(0))?
                .try_for_each(|sum| sum.map(|sum| tally.add(sum as u64)))?;
            set_tally(connection, "job", tally)?;
            Ok(None)
        }
    }
}

/// Removes up to `reports_max` reports of a job that has ended. If no reports are left, also removes the job. Returns
/// whether the job was removed.
pub(in crate::store) fn forget(connection: &Connection, number: Seq, reports_max: usize) -> rusqlite::Result<bool> {
    let sql = "DELETE FROM merged WHERE place IN (SELECT place FROM merged WHERE merge = ?1 LIMIT ?2) RETURNING sum";
    let mut forget = connection.prepare_cached(sql)?;
    let sums = forget.query_map([number.0 as i64, reports_max as i64], |row| row.get::<_, i64>(0))?;
    let sums: Vec<i64> = sums.collect::<rusqlite::Result<_>>()?;
    let mut tally = tally_of(connection, "merged")?;
    sums.iter().for_each(|&sum| tally.subtract(sum as u64));
    set_tally(connection, "merged", tally)?;
    if sums.len() == reports_max {
        return Ok(false);
    }
    take(connection, number).map(|_| true)
}

/// Copies intact reports to the new file of a repair, if their merges were copied before.
pub(in crate::store) fn copy_reports(old: &Connection, new: &Connection) -> rusqlite::Result<()> {
    let mut merges = new.prepare("SELECT number FROM job")?;
    let merges: BTreeSet<i64> = merges.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let mut insert = new.prepare("INSERT INTO merged VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let mut tally = Tally::default();
    let mut statement = old.prepare(SELECT_MERGED)?;
    let mut rows = statement.query([])?;
    let mut last = 0;
    while let Ok(Some(row)) = rows.next() {
        let place = integer(row, 0).unwrap_or_default();
        if place <= last {
            break;
        }
        last = place;
        if let Ok((merge, source, report, sum)) = read_merged(row)
            && merges.contains(&(merge.0 as i64))
        {
            insert.execute(params![place, merge.0 as i64, source.0 as i64, report, sum as i64])?;
            tally.add(sum);
        }
    }
    set_tally(new, "merged", tally)
}

// Reading.

/// Reads the intact jobs. If `with_reports`, also checks the reports of merges, of which there may be many. Returns the
/// flaws of all damaged rows.
pub(in crate::store) fn look(connection: &Connection, with_reports: bool) -> (StoredJobs, Flawed) {
    let (StoredJobs { mut jobs, mut doomed }, mut flawed) = Default::default();
    flawed = Flawed::look(flawed, connection, ("job", SELECT_JOBS), |row| {
        let (job, sum) = read_job(row)?;
        jobs.push(job);
        Ok(sum)
    });
    flawed = Flawed::look(flawed, connection, ("doomed", SELECT_DOOMED), |row| {
        let (part, sum) = read_doomed(row)?;
        doomed.push(part);
        Ok(sum)
    });
    if with_reports {
        let select = ("merged", SELECT_MERGED);
        flawed = Flawed::look(flawed, connection, select, |row| read_merged(row).map(|(.., sum)| sum));
    }
    (StoredJobs { jobs, doomed }, flawed)
}

/// Returns the number of reports of merges, according to the ledger.
pub(in crate::store) fn reports_counted(connection: &Connection) -> rusqlite::Result<u64> {
    tally_of(connection, "merged").map(|tally| tally.rows)
}

/// Returns a sentence for each flaw in the jobs that [`look`] found. An error that says nothing about the file is
/// returned as an error.
pub(in crate::store) fn complaints((jobs, flawed): (&StoredJobs, Flawed), collection: &str) -> Result<Vec<String>> {
    let miscounted = if flawed.is_nothing() { jobs.miscounted() } else { Vec::new() };
    let mut complaints = flawed.complaints(collection)?;
    complaints.extend(miscounted);
    Ok(complaints)
}

impl StoredJobs {
    /// Returns the documents that each deletion must still remove, in order of `seq`.
    pub fn doomed_of_each(&self) -> BTreeMap<Seq, Vec<Seq>> {
        let mut of_each = BTreeMap::<Seq, Vec<Seq>>::new();
        for part in &self.doomed {
            of_each.entry(part.deletion).or_default().extend(&part.seqs);
        }
        of_each
    }

    /// Compares the number of remaining documents of each deletion with the number in its job. Returns a sentence for
    /// each difference.
    pub(in crate::store) fn miscounted(&self) -> Vec<String> {
        let of_each = self.doomed_of_each();
        let left = |number| of_each.get(number).map_or(0, |seqs| seqs.len() as u64);
        let said: BTreeMap<Seq, u64> = self
            .jobs
            .iter()
            .filter_map(|job| match job {
                Job::DeleteLabel(deletion) => Some((deletion.number, deletion.left())),
                Job::Merge(_) => None,
            })
            .collect();
        let wrong = said.iter().filter(|(number, said)| left(number) != **said).map(|(number, _)| number);
        let unknown = of_each.keys().filter(|number| !said.contains_key(number));
        wrong.chain(unknown).map(|number| format!("job {} miscounts its documents to delete", number.0)).collect()
    }
}

/// Reads the jobs. Damage is an error, because deleted documents might otherwise reappear.
pub(in crate::store) fn read(connection: &Connection, collection: &str, with_reports: bool) -> Result<StoredJobs> {
    let (jobs, flawed) = look(connection, with_reports);
    match complaints((&jobs, flawed), collection)?.first() {
        None => Ok(jobs),
        Some(first) => Err(StoreError::damaged(collection, None, format!("its jobs: {first}"))),
    }
}

/// Returns the number of documents that deletions by label must still remove.
pub(in crate::store) fn left(connection: &Connection, collection: &str) -> Result<u64> {
    let sql = "SELECT coalesce(sum(length(seqs) / 8), 0) FROM doomed";
    let left = connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    left.map(|left| left as u64).map_err(|error| StoreError::from_sqlite(collection, "reading its jobs", error))
}

/// Reads up to `limit` reports of a merge, in the order of their documents, from the first document after `after`.
pub(in crate::store) fn reports(
    connection: &Connection,
    collection: &str,
    (merge, after): (Seq, Seq),
    limit: usize,
) -> Result<Vec<(Seq, String)>> {
    let reading = |error| StoreError::from_sqlite(collection, "reading the reports of a merge", error);
    let sql = "SELECT place, merge, source, report, sum FROM merged WHERE merge = ?1 AND source > ?2
               ORDER BY source LIMIT ?3";
    let mut statement = connection.prepare_cached(sql).map_err(reading)?;
    let mut rows = statement.query([merge.0 as i64, after.0 as i64, limit as i64]).map_err(reading)?;
    let mut reports = Vec::new();
    while let Some(row) = rows.next().map_err(reading)? {
        let damaged = |flaw| StoreError::damaged(collection, None, format!("a report of job {}: {flaw}", merge.0));
        let (_, source, report, _) = read_merged(row).map_err(damaged)?;
        reports.push((source, report.to_owned()));
    }
    Ok(reports)
}

/// Reads a row of [`SELECT_JOBS`] and verifies its checksum. Returns the checksum too.
fn read_job(row: &Row<'_>) -> Result<(Job, u64), Flaw> {
    let (number, json) = (Seq(integer(row, 0)? as u64), utf8(bytes(row, 1)?)?);
    let sum = job_sum(number, json);
    if sum as i64 != integer(row, 2)? {
        return Err(WRONG_SUM);
    }
    Ok((from_json(number, json).ok_or("it is not a job")?, sum))
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

/// Reads a row of [`SELECT_MERGED`] and verifies its checksum. Returns the merge, the document, the report and the
/// checksum.
fn read_merged<'a>(row: &'a Row<'_>) -> Result<(Seq, Seq, &'a str, u64), Flaw> {
    let (merge, source) = (Seq(integer(row, 1)? as u64), Seq(integer(row, 2)? as u64));
    let report = utf8(bytes(row, 3)?)?;
    let sum = merged_sum(merge, source, report);
    if sum as i64 != integer(row, 4)? {
        return Err(WRONG_SUM);
    }
    Ok((merge, source, report, sum))
}

fn job_sum(number: Seq, json: &str) -> u64 {
    let mut buffer = number.0.to_le_bytes().to_vec();
    push_text(&mut buffer, Some(json.as_bytes()));
    xxh3_64_with_seed(&buffer, JOB_SEED)
}

fn doomed_sum(part: &DoomedPart) -> u64 {
    let mut buffer = part.deletion.0.to_le_bytes().to_vec();
    buffer.extend_from_slice(&part.bytes());
    xxh3_64_with_seed(&buffer, DOOMED_SEED)
}

fn merged_sum(merge: Seq, source: Seq, report: &str) -> u64 {
    let mut buffer = merge.0.to_le_bytes().to_vec();
    buffer.extend_from_slice(&source.0.to_le_bytes());
    push_text(&mut buffer, Some(report.as_bytes()));
    xxh3_64_with_seed(&buffer, MERGED_SEED)
}
