//! Files of earlier versions open with all their content.

use hapax_core::{Spec, tuning};

use super::*;

/// The tables of format 1, as the version of that time created them.
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

/// Writes a file of format 1 with these records.
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

/// Returns the parts of a document that formats 1 and 2 could store.
fn of_format_2(seq: u64) -> Record {
    let record = of_format_4(seq);
    Record { id_first_seen: record.first_seen, ..record }
}

/// Returns the parts of a document that formats 3 and 4 could store.
fn of_format_4(seq: u64) -> Record {
    Record { labels: None, capture: Capture::default(), page: None, ..record(seq) }
}

fn old_records(format: i32) -> Vec<Record> {
    let records = (1..=5).map(of_format_2);
    match format {
        1 => records.map(|record| Record { cluster: Seq(0), seen: TimestampMs(0), ..record }).collect(),
        2 => records.collect(),
        3 | 4 => (1..=5).map(of_format_4).collect(),
        _ => (1..=5).map(record).collect(),
    }
}

/// Changes the tables or the format of a file.
fn change(path: &Path, sql: &str) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(sql).unwrap();
    connection.close().unwrap();
}

/// Writes a file of format 2 with these records: a file of format 3 without the additions of format 3.
fn write_format_2(path: &Path, meta: &Meta, records: &[Record]) {
    write_format_3(path, meta, records);
    change(
        path,
        "ALTER TABLE meta DROP COLUMN banding_by_hand; ALTER TABLE document DROP COLUMN id_first_seen_ms;
         PRAGMA user_version = 2",
    );
}

/// Writes a file of format 7 with these records: a file of the present format, in which no payload has n-grams.
fn write_format_7(path: &Path, meta: &Meta, records: &[Record]) {
    let (_, mut writer) = Store::create(path, meta).unwrap();
    let inserts: Vec<_> = records.iter().map(|record| Change::Insert(Arc::new(record.clone()))).collect();
    writer.commit(&inserts, Seq(records.len() as u64)).unwrap();
    writer.close().unwrap();
    change(path, "PRAGMA user_version = 7");
}

/// Writes a file of format 6 with these records: a file of format 7 with an index of clusters.
fn write_format_6(path: &Path, meta: &Meta, records: &[Record]) {
    write_format_7(path, meta, records);
    change(
        path,
        "CREATE INDEX signature_by_cluster ON signature (cluster, seq) WHERE cluster <> 0;
         PRAGMA user_version = 6",
    );
}

/// Writes a file of format 5 with these records: a file of format 6 without the additions of format 6.
fn write_format_5(path: &Path, meta: &Meta, records: &[Record]) {
    write_format_6(path, meta, records);
    change(
        path,
        "DROP TABLE job; DROP TABLE doomed; DROP TABLE merged; DROP TABLE statistics;
         DELETE FROM ledger WHERE tally IN ('job', 'doomed', 'merged', 'statistics');
         PRAGMA user_version = 5",
    );
}

/// Writes a file of format 4 with these records: a file of format 5 without the additions of format 5.
fn write_format_4(path: &Path, meta: &Meta, records: &[Record]) {
    write_format_5(path, meta, records);
    change(
        path,
        "ALTER TABLE meta DROP COLUMN extract; ALTER TABLE meta DROP COLUMN extractor;
         ALTER TABLE document DROP COLUMN page_hash; ALTER TABLE document DROP COLUMN extractor;
         ALTER TABLE document DROP COLUMN capture_date; ALTER TABLE document DROP COLUMN payload_digest;
         ALTER TABLE signature DROP COLUMN labels;
         PRAGMA user_version = 4",
    );
}

/// Writes a file of format 3 with these records: a file of format 4 without the additions of format 4.
fn write_format_3(path: &Path, meta: &Meta, records: &[Record]) {
    write_format_4(path, meta, records);
    change(path, "DROP TABLE golden; DELETE FROM ledger WHERE tally = 'golden'; PRAGMA user_version = 3");
}

fn write_old(path: &Path, format: i32) {
    match format {
        1 => write_format_1(path, &old_records(1)),
        2 => write_format_2(path, &meta(), &old_records(2)),
        3 => write_format_3(path, &meta(), &old_records(3)),
        4 => write_format_4(path, &meta(), &old_records(4)),
        5 => write_format_5(path, &meta(), &old_records(5)),
        6 => write_format_6(path, &meta(), &old_records(6)),
        _ => write_format_7(path, &meta(), &old_records(7)),
    }
}

#[test]
fn files_of_older_formats_open_and_go_on() {
    for format in 1..FORMAT {
        opens_and_goes_on(format);
    }
}

fn opens_and_goes_on(format: i32) {
    let place = place();
    write_old(&place.path, format);
    let records = old_records(format);

    let peeked = Store::peek(&place.path).unwrap();
    // Format 3 stores whether the banding was chosen by hand. In older files, only a default banding counts as not
    // chosen by hand. The files here have no default banding, because these tests use no real spec.
    let changeable = Changeable { banding_by_hand: format < 3, ..meta().changeable };
    assert_eq!(peeked.meta, Meta { seen_floor: peeked.meta.seen_floor, changeable, ..meta() });
    assert_eq!(peeked.meta.seen_floor > TimestampMs(0), format == 1);
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

fn format_at(path: &Path) -> i32 {
    Connection::open(path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

/// Writes the files that a crash left and opens them. The result must have the present format and all records.
fn opens_whole(format: i32, database: &[u8], log: &[u8], format_left: i32, what: &str) {
    let place = place();
    fs::write(&place.path, database).unwrap();
    fs::write(files::log(&place.path), log).unwrap();
    // Look at a copy, because SQLite replays the log when it opens the file.
    let looked = place.dir.path().join("looked.sqlite");
    fs::write(&looked, database).unwrap();
    fs::write(files::log(&looked), log).unwrap();
    assert_eq!(format_at(&looked), format_left, "{what}");
    let (store, mut writer, opened) = Store::open(&place.path).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!((opened.documents, opened.last_seq), (5, Seq(5)), "{what}");
    assert_eq!(seqs(&store).unwrap(), [1, 2, 3, 4, 5], "{what}");
    for record in old_records(format) {
        assert_eq!(store.record(record.seq).unwrap().as_ref(), Some(&record), "{what}");
    }
    writer.commit(&[insert(6)], Seq(6)).unwrap();
    writer.close().unwrap();
    assert_eq!(format_at(&place.path), FORMAT, "{what}");
}

/// Returns a file of an older format, the log with its upgrade, and the file after the log was moved into it.
fn upgraded(format: i32) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let place = place();
    write_old(&place.path, format);
    let old = fs::read(&place.path).unwrap();
    crate::store::format::upgrade::upgrade(&place.path).unwrap();
    assert_eq!(fs::read(&place.path).unwrap(), old, "all of the upgrade is in the log");
    let log = fs::read(files::log(&place.path)).unwrap();
    let (_, writer, _) = Store::open(&place.path).unwrap();
    writer.close().unwrap();
    (old, log, fs::read(&place.path).unwrap())
}

#[test]
fn an_upgrade_cut_off_anywhere_in_its_transaction_is_done_again() {
    for format in 1..FORMAT {
        is_done_again(format);
    }
}

fn is_done_again(format: i32) {
    const HEADER: usize = 32;
    const FRAME: usize = 24 + 4096;
    let (old, log, _) = upgraded(format);
    let frames = (log.len() - HEADER) / FRAME;
    // Every upgrade changes at least one page: the page that lists the tables.
    assert!(frames > 0 && log.len() == HEADER + frames * FRAME, "{frames} frames in {} bytes", log.len());
    let within = [0, 10, 24, 24 + 2048].map(|byte| (0..frames).map(move |frame| HEADER + frame * FRAME + byte));
    for cut in [0, 16].into_iter().chain(within.into_iter().flatten()) {
        opens_whole(format, &old, &log[..cut], format, &format!("{format}: cut at {cut} of {}", log.len()));
    }
    // The log file grew before its last frame was written.
    let mut torn = log.clone();
    torn[HEADER + (frames - 1) * FRAME..].fill(0);
    opens_whole(format, &old, &torn, format, "the last frame is zeros");
    opens_whole(format, &old, &log, FORMAT, "nothing is cut off");
}

#[test]
fn an_upgrade_cut_off_while_its_log_is_moved_is_whole() {
    for format in 1..FORMAT {
        is_whole(format);
    }
}

fn is_whole(format: i32) {
    const PAGE: usize = 4096;
    let (old, log, new) = upgraded(format);
    assert!(new.len() >= old.len());
    for moved in (0..=new.len()).step_by(PAGE / 2) {
        let mut database = new[..moved].to_vec();
        database.extend(old.iter().skip(moved));
        opens_whole(format, &database, &log, FORMAT, &format!("{moved} of {} bytes moved", new.len()));
    }
}

#[test]
fn a_banding_counts_as_set_by_hand_unless_it_was_the_default() {
    let spec = Spec::default();
    let default = tuning::default_banding_of_format_2(spec.shape(), 0.8);
    assert_eq!((default.bands(), default.rows()), (31, 8), "the default of formats 1 and 2");
    for (bands, rows, threshold, by_hand) in [
        (31, 8, 0.8, false),
        (32, 8, 0.8, true),
        (31, 8, 0.3, true),
        // The default of formats 1 and 2 at this threshold. Today's default is 31x7.
        (25, 7, 0.775, false),
        (31, 7, 0.775, true),
    ] {
        let place = place();
        let changeable = Changeable { bands, rows, threshold, ..meta().changeable };
        write_format_2(&place.path, &Meta { spec: spec.to_string(), changeable, ..meta() }, &old_records(2));
        let (_store, writer, opened) = Store::open(&place.path).unwrap();
        let expected = Changeable { banding_by_hand: by_hand, ..changeable };
        assert_eq!(opened.meta.changeable, expected, "{bands}x{rows} at {threshold}");
        writer.close().unwrap();
        assert_eq!(Store::peek(&place.path).unwrap().meta.changeable, expected);
    }
}

/// Once, such a file was refused: only an opened file is upgraded, and a damaged log prevented the opening.
#[test]
fn a_file_of_an_older_format_with_a_damaged_log_can_be_repaired() {
    let place = place();
    write_old(&place.path, 5);
    let connection = Connection::open(&place.path).unwrap();
    connection.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    for name in ["a", "b", "c", "d"] {
        connection.execute_batch(&format!("CREATE TABLE {name} (x)")).unwrap();
    }
    let log = files::log(&place.path);
    let mut damaged = fs::read(&log).unwrap();
    damaged[32 + 100] ^= 4;
    std::mem::forget(connection);
    fs::write(&log, &damaged).unwrap();
    assert!(matches!(Store::open(&place.path).map(drop).unwrap_err(), StoreError::Damaged { .. }));
    let repaired = repair(&place.path).unwrap();
    assert_eq!((repaired.rebuilt.documents, repaired.rebuilt.log_damaged), (5, true));
    assert_eq!(fs::read(files::log(&repaired.kept_as)).unwrap(), damaged);
    let (store, _writer, _) = Store::open(&place.path).unwrap();
    assert_eq!(seqs(&store).unwrap(), [1, 2, 3, 4, 5]);
}

/// Damages the index of clusters: its root points to another page.
fn damage_index(path: &Path, damage: impl FnOnce(&mut [u8])) {
    let root: i64 = {
        let connection = Connection::open(path).unwrap();
        let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'signature_by_cluster'";
        connection.query_row(root, [], |row| row.get(0)).unwrap()
    };
    let mut bytes = fs::read(path).unwrap();
    damage(&mut bytes[(root as usize - 1) * 4096..][..4096]);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_file_with_a_damaged_index_of_clusters_is_refused_until_it_is_repaired() {
    for (format, unreadable) in [(2, true), (5, true), (6, true), (6, false)] {
        let place = place();
        write_old(&place.path, format);
        // A page of another kind, or an entry with another document.
        damage_index(&place.path, |page| if unreadable { page.fill(7) } else { *page.last_mut().unwrap() ^= 1 });
        let error = Store::open(&place.path).map(drop).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{format}: {error}");
        assert!(!crate::store::inspect(&place.path, &|_| {}).unwrap().is_sound());
        assert_eq!(format_at(&place.path), format, "nothing is upgraded");
        let repaired = repair(&place.path).unwrap();
        assert_eq!((repaired.rebuilt.documents, repaired.rebuilt.lost), (5, Some(0)), "{format}");
        let (store, ..) = Store::open(&place.path).unwrap();
        assert_eq!(seqs(&store).unwrap(), [1, 2, 3, 4, 5]);
        assert_eq!(format_at(&place.path), FORMAT);
    }
}

/// SQLite frees the pages to which an index points. A start once did this without a look at the index, and later
/// documents were written over others.
#[test]
fn an_index_that_points_to_a_page_of_documents_is_not_removed() {
    let place = place();
    write_format_6(&place.path, &meta(), &[]);
    let connection = Connection::open(&place.path).unwrap();
    let many = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2000)
                INSERT INTO signature SELECT n, n, 0, 0, zeroblob(16), n, 1, 0, NULL FROM n";
    connection.execute_batch(many).unwrap();
    connection.execute("UPDATE signature SET cluster = 1 WHERE seq > 1", []).unwrap();
    connection.close().unwrap();
    let before = fs::read(&place.path).unwrap();
    // The first child of the root: the pointers to the cells begin after 12 bytes, and a cell begins with its child.
    damage_index(&place.path, |page| {
        assert_eq!(page[0], 2, "an inner page of an index");
        let cell = usize::from(u16::from_be_bytes([page[12], page[13]]));
        page[cell + 3] ^= 1;
    });
    let damaged = fs::read(&place.path).unwrap();
    assert_ne!(before, damaged);
    let error = crate::store::format::upgrade::upgrade(&place.path).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert_eq!(fs::read(&place.path).unwrap(), damaged);
}
