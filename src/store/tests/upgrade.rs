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
