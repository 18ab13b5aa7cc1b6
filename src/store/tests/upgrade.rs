//! Files of earlier versions open with all they hold.

use super::*;

/// The tables of format 1, as that version made them.
const FORMAT_1: &str = "
CREATE TABLE meta (
    only INTEGER PRIMARY KEY CHECK (only = 1), name TEXT NOT NULL, spec TEXT NOT NULL, bands INTEGER NOT NULL,
    rows INTEGER NOT NULL, threshold REAL NOT NULL, created_ms INTEGER NOT NULL, sum INTEGER NOT NULL
) STRICT;
CREATE TABLE ledger (
    tally TEXT PRIMARY KEY, rows INTEGER NOT NULL, sum INTEGER NOT NULL, last_seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE signature (
    seq INTEGER PRIMARY KEY, id_fingerprint INTEGER NOT NULL, content_prefix INTEGER NOT NULL, flags INTEGER NOT NULL,
    bytes BLOB NOT NULL, sum INTEGER NOT NULL
) STRICT;
CREATE TABLE document (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL, metadata TEXT, content_hash BLOB NOT NULL, flags INTEGER NOT NULL,
    first_seen_ms INTEGER NOT NULL, shingles INTEGER, verdict TEXT NOT NULL, sum INTEGER NOT NULL
) STRICT;
PRAGMA application_id = 0x68617078;
PRAGMA user_version = 1;
";

/// A file of format 1 with these records.
fn write_format_1(path: &Path, records: &[Record]) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(FORMAT_1).unwrap();
    let meta = meta();
    let Changeable { bands, rows, threshold, .. } = meta.changeable;
    connection
        .execute(
            "INSERT INTO meta VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            (meta.name.as_str(), &meta.spec, bands, rows, threshold, meta.created.0, meta_sum(&meta) as i64),
        )
        .unwrap();
    let (mut signatures, mut documents, mut buffer) = (0u64, 0u64, Vec::new());
    for record in records {
        let row = SignatureRow::of(record);
        let sum = row.sum(&mut buffer);
        signatures = signatures.wrapping_add(sum);
        let [seq, id, prefix, sum] = [row.seq.0, row.id_fingerprint, row.content_prefix, sum].map(|n| n as i64);
        let insert = "INSERT INTO signature VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        connection.execute(insert, (seq, id, prefix, row.flags(), row.bytes, sum)).unwrap();
        let verdict = verdict::to_json(&record.verdict);
        let row = DocumentRow::of(record, &verdict);
        let sum = row.sum(&mut buffer);
        documents = documents.wrapping_add(sum);
        connection
            .execute(
                "INSERT INTO document VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                (
                    row.seq.0 as i64,
                    record.id.as_str(),
                    record.metadata.as_ref().map(Metadata::as_str),
                    row.content,
                    row.flags,
                    row.first_seen_ms,
                    row.shingles.map(|shingles| shingles as i64),
                    &verdict,
                    sum as i64,
                ),
            )
            .unwrap();
    }
    for (tally, sum) in [("signature", signatures), ("document", documents)] {
        let line = (tally, records.len() as i64, sum as i64, records.len() as i64);
        connection.execute("INSERT INTO ledger VALUES (?1, ?2, ?3, ?4)", line).unwrap();
    }
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
}

#[test]
fn a_file_of_format_1_opens_and_goes_on() {
    let place = place();
    let old = |seq| Record { cluster: Seq(0), seen: TimestampMs(0), ..record(seq) };
    let records: Vec<_> = (1..=5).map(old).collect();
    write_format_1(&place.path, &records);

    let peeked = Store::peek(&place.path).unwrap();
    assert_eq!(peeked.meta, Meta { seen_floor: peeked.meta.seen_floor, ..meta() });
    assert!(peeked.meta.seen_floor > TimestampMs(0));
    let (store, mut writer, opened) = Store::open(&place.path).unwrap();
    assert_eq!(opened, peeked);
    assert_eq!(seqs(&store).unwrap(), [1, 2, 3, 4, 5]);
    for record in &records {
        assert_eq!(store.record(record.seq).unwrap().as_ref(), Some(record));
    }
    writer.commit(&[insert(6), Change::Delete { seq: Seq(7), target: Seq(2), promoted: None }], Seq(7)).unwrap();
    writer.close().unwrap();

    let (store, writer, _) = Store::open(&place.path).unwrap();
    assert_eq!(seqs(&store).unwrap(), [1, 3, 4, 5, 6]);
    assert_eq!(store.record(Seq(6)).unwrap(), Some(record(6)));
    writer.close().unwrap();
}

fn old_records() -> Vec<Record> {
    (1..=5).map(|seq| Record { cluster: Seq(0), seen: TimestampMs(0), ..record(seq) }).collect()
}

fn format_at(path: &Path) -> i32 {
    Connection::open(path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

/// Writes what a crash left, and opens it: whatever it is, it ends as a file of this format with all it held.
fn opens_whole(database: &[u8], log: &[u8], format_left: i32, what: &str) {
    let place = place();
    fs::write(&place.path, database).unwrap();
    fs::write(files::log(&place.path), log).unwrap();
    // Looked at in a copy: to look is to play the log back.
    let looked = place.dir.path().join("looked.sqlite");
    fs::write(&looked, database).unwrap();
    fs::write(files::log(&looked), log).unwrap();
    assert_eq!(format_at(&looked), format_left, "{what}");
    let (store, mut writer, opened) = Store::open(&place.path).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!((opened.documents, opened.last_seq), (5, Seq(5)), "{what}");
    assert_eq!(seqs(&store).unwrap(), [1, 2, 3, 4, 5], "{what}");
    for record in old_records() {
        assert_eq!(store.record(record.seq).unwrap().as_ref(), Some(&record), "{what}");
    }
    writer.commit(&[insert(6)], Seq(6)).unwrap();
    writer.close().unwrap();
    assert_eq!(format_at(&place.path), schema::FORMAT, "{what}");
}

/// A file of format 1, the same with the upgrade in its log, and the same again with the log moved into it.
fn upgraded() -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let place = place();
    write_format_1(&place.path, &old_records());
    let old = fs::read(&place.path).unwrap();
    schema::upgrade(&place.path).unwrap();
    assert_eq!(fs::read(&place.path).unwrap(), old, "all of the upgrade is in the log");
    let log = fs::read(files::log(&place.path)).unwrap();
    let (_, writer, _) = Store::open(&place.path).unwrap();
    writer.close().unwrap();
    (old, log, fs::read(&place.path).unwrap())
}

#[test]
fn an_upgrade_cut_off_anywhere_in_its_transaction_is_done_again() {
    const HEADER: usize = 32;
    const FRAME: usize = 24 + 4096;
    let (old, log, _) = upgraded();
    let frames = (log.len() - HEADER) / FRAME;
    assert!(frames > 3 && log.len() == HEADER + frames * FRAME, "{frames} frames in {} bytes", log.len());
    let within = [0, 10, 24, 24 + 2048].map(|byte| (0..frames).map(move |frame| HEADER + frame * FRAME + byte));
    for cut in [0, 16].into_iter().chain(within.into_iter().flatten()) {
        opens_whole(&old, &log[..cut], 1, &format!("cut at {cut} of {}", log.len()));
    }
    // The file had grown before its content came.
    let mut torn = log.clone();
    torn[HEADER + (frames - 1) * FRAME..].fill(0);
    opens_whole(&old, &torn, 1, "the last frame is zeros");
    opens_whole(&old, &log, schema::FORMAT, "nothing is cut off");
}

#[test]
fn an_upgrade_cut_off_while_its_log_is_moved_is_whole() {
    const PAGE: usize = 4096;
    let (old, log, new) = upgraded();
    assert!(new.len() > old.len());
    for moved in (0..=new.len()).step_by(PAGE / 2) {
        let mut database = new[..moved].to_vec();
        database.extend(old.iter().skip(moved));
        opens_whole(&database, &log, schema::FORMAT, &format!("{moved} of {} bytes moved", new.len()));
    }
}
