//! Files that were tampered with are refused, and the error names what is damaged.

use super::*;

fn scan_error(path: &Path) -> StoreError {
    let (store, _writer, _) = Store::open(path).unwrap();
    seqs(&store).unwrap_err()
}

pub(super) fn tamper(path: &Path, sql: &str) {
    let connection = Connection::open(path).unwrap();
    assert_eq!(connection.execute(sql, []).unwrap(), 1);
    connection.close().unwrap();
}

/// Like [`tamper`], but may give a column a value of another type, as damage can.
pub(super) fn tamper_with_types(path: &Path, sql: &str) {
    let change_tables = |from: &str, to: &str| {
        let connection = Connection::open(path).unwrap();
        connection.pragma_update(None, "writable_schema", true).unwrap();
        connection.execute("UPDATE sqlite_schema SET sql = replace(sql, ?1, ?2)", [from, to]).unwrap();
        connection.close().unwrap();
    };
    change_tables("STRICT", "/*loose*/");
    tamper(path, sql);
    change_tables("/*loose*/", "STRICT");
}

#[test]
fn a_lost_row_is_found_out_at_boot() {
    for sql in [
        "DELETE FROM signature WHERE seq = 7",
        "INSERT INTO signature SELECT 99, id_fingerprint, content_prefix, flags, bytes, sum, cluster, seen_ms, labels FROM signature WHERE seq = 7",
        "UPDATE ledger SET rows = rows + 1 WHERE tally = 'signature'",
        "UPDATE ledger SET sum = sum + 1 WHERE tally = 'signature'",
        "UPDATE ledger SET last_seq = 6",
    ] {
        let place = filled(10);
        let connection = Connection::open(&place.path).unwrap();
        connection.execute(sql, []).unwrap();
        connection.close().unwrap();
        let error = Store::open(&place.path).and_then(|(store, _, _)| seqs(&store)).unwrap_err();
        assert!(matches!(&error, StoreError::Damaged { collection, .. } if collection == "pages"), "{sql}: {error}");
    }
}

#[test]
fn a_changed_signature_row_is_named_at_boot_and_on_reading() {
    for column in [
        "bytes = zeroblob(256)",
        "id_fingerprint = 1",
        "content_prefix = 1",
        "flags = 3",
        "flags = 200",
        "sum = 1",
        "cluster = 1",
        "seen_ms = 0",
        "labels = 'crawl:1'",
        "labels = ''",
        "labels = CAST(x'ff' AS TEXT)",
    ] {
        let place = filled(10);
        tamper(&place.path, &format!("UPDATE signature SET {column} WHERE seq = 7"));
        let error = scan_error(&place.path);
        assert!(matches!(error, StoreError::Damaged { record: Some(Seq(7)), .. }), "{column}: {error}");
        let (store, _writer, _) = Store::open(&place.path).unwrap();
        let error = store.record(Seq(7)).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { record: Some(Seq(7)), .. }), "{column}: {error}");
        assert!(store.record(Seq(6)).unwrap().is_some());
    }
}

#[test]
fn a_changed_document_row_is_an_error_that_names_it() {
    for column in [
        "id = 'https://a.example/9'",
        "metadata = NULL",
        "metadata = '{\"n\":7}'",
        "content_hash = zeroblob(16)",
        "content_hash = x''",
        "flags = 1",
        "first_seen_ms = 0",
        "id_first_seen_ms = 5",
        "id_first_seen_ms = first_seen_ms",
        "shingles = NULL",
        "shingles = 0",
        "verdict = '{}'",
        "id = CAST(x'ff' AS TEXT)",
        "capture_date = '2026'",
        "capture_date = CAST(x'ff' AS TEXT)",
        "capture_date = 2026",
        "payload_digest = 'sha1:8'",
        "payload_digest = ''",
        "sum = 0",
    ] {
        let place = filled(10);
        tamper(&place.path, &format!("UPDATE document SET {column} WHERE seq = 8"));
        let (store, _writer, _) = Store::open(&place.path).unwrap();
        let errors = [
            store.record(Seq(8)).map(drop),
            store.head(Seq(8), false).map(drop),
            store.heads(&[Seq(7), Seq(8)], Some(usize::MAX), false).map(drop),
            store.cluster(ClusterStart::Of(Seq(7)), 9).map(drop),
            store.clusters(ClusterPlace::default(), 9).map(drop),
            store.page(Seq(0), 100).map(drop),
        ];
        for error in errors.map(Result::unwrap_err) {
            assert!(matches!(error, StoreError::Damaged { record: Some(Seq(8)), .. }), "{column}: {error}");
        }
        assert_eq!(store.page(Seq(0), 7).unwrap().len(), 7);
    }
}

#[test]
fn a_lost_document_row_is_an_error_and_not_an_absence() {
    let place = filled(10);
    tamper(&place.path, "DELETE FROM document WHERE seq = 8");
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    let errors = [
        store.record(Seq(8)).map(drop),
        store.heads(&[Seq(8)], None, true).map(drop),
        store.page(Seq(0), 100).map(drop),
    ];
    for error in errors.map(Result::unwrap_err) {
        assert!(matches!(error, StoreError::Damaged { record: Some(Seq(8)), .. }), "{error}");
    }
    writer.commit(&[Change::Delete { seq: Seq(11), target: Seq(8), promoted: None }], Seq(11)).unwrap();
    assert_eq!(store.record(Seq(8)).unwrap(), None);
    assert_eq!(store.page(Seq(0), 100).unwrap().len(), 9);
}

/// Once, a batch that met damage disabled all writes until a restart, although it was rolled back.
#[test]
fn a_batch_that_meets_damage_is_rolled_back_and_the_next_one_is_stored() {
    let place = filled(10);
    tamper(&place.path, "UPDATE document SET first_seen_ms = 0 WHERE seq = 8");
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    let update = Change::Update { seq: Seq(12), target: Seq(8), additions: Box::default() };
    let error = writer.commit(&[insert(11), update], Seq(12)).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { record: Some(Seq(8)), .. }) && !error.is_uncertain(), "{error}");
    assert_eq!(store.record(Seq(11)).unwrap(), None);
    writer.commit(&[insert(11)], Seq(11)).unwrap();
    assert_eq!(store.record(Seq(11)).unwrap(), Some(record(11)));
}

#[test]
fn changed_settings_are_refused() {
    let place = filled(1);
    tamper(&place.path, "UPDATE meta SET spec = 'another'");
    for error in [Store::open(&place.path).map(drop).unwrap_err(), Store::peek(&place.path).unwrap_err()] {
        assert!(matches!(&error, StoreError::Damaged { collection, .. } if collection == "pages"), "{error}");
    }
}

#[test]
fn what_is_not_ours_or_not_there_is_refused() {
    let newer = filled(1);
    let connection = Connection::open(&newer.path).unwrap();
    connection.pragma_update(None, "user_version", FORMAT + 1).unwrap();
    drop(connection);
    let error = Store::open(&newer.path).map(drop).unwrap_err();
    assert!(
        matches!(&error, StoreError::NewerFormat { found, known: FORMAT, path } if *found == FORMAT + 1 && *path == newer.path),
        "{error}"
    );
    assert!(matches!(Store::peek(&newer.path).unwrap_err(), StoreError::NewerFormat { .. }));

    let place = place();
    assert!(matches!(Store::open(&place.path).map(drop).unwrap_err(), StoreError::Missing { .. }));
    fs::write(&place.path, "no database at all, but long enough to look at, and then some more of it".repeat(99))
        .unwrap();
    assert!(matches!(Store::open(&place.path).map(drop).unwrap_err(), StoreError::NotAStore { .. }));
    fs::remove_file(&place.path).unwrap();
    Connection::open(&place.path).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    assert!(matches!(Store::open(&place.path).map(drop).unwrap_err(), StoreError::NotAStore { .. }));
    assert!(matches!(Store::create(&place.path, &meta()).map(drop).unwrap_err(), StoreError::Exists { .. }));
}

#[test]
fn a_bad_frame_with_commits_behind_it_is_refused() {
    for at in [3, 20, 40, 32 + 100, 32 + 5 * 4120] {
        let (place, log) = left_open(20);
        let mut bytes = fs::read(&log).unwrap();
        bytes[at] ^= 4;
        fs::write(&log, bytes).unwrap();
        let error = Store::open(&place.path).map(drop).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{at}: {error}");
    }
}

/// The end of a torn commit may remain in the log behind the commits of the next session. If a second commit is torn
/// later, these remains must not make the log look damaged.
#[test]
fn remains_of_two_torn_commits_add_up_to_no_damage() {
    let tear = |log: &Path, frame: u64| {
        // This commit was finished, so the `-shm` file counts it. A torn commit is not counted, so the test removes the
        // file.
        fs::remove_file(log.with_file_name("pages.sqlite-shm")).unwrap();
        let mut bytes = fs::read(log).unwrap();
        let at = 32 + frame as usize * 4120;
        bytes[at..at + 4120].fill(0);
        fs::write(log, bytes).unwrap();
    };
    let (place, log) = left_open(1);
    let (_, mut writer, _) = Store::open(&place.path).unwrap();
    writer.commit(&[insert(4)], Seq(4)).unwrap();
    let frames = writer.log_bytes() / 4096;
    writer.commit(&(5..=300).map(insert).collect::<Vec<_>>(), Seq(300)).unwrap();
    drop(writer);
    tear(&log, frames);
    let (_, mut writer, opened) = Store::open(&place.path).unwrap();
    assert_eq!(opened.last_seq, Seq(4));
    writer.commit(&[insert(5)], Seq(5)).unwrap();
    let frames = writer.log_bytes() / 4096;
    writer.commit(&[insert(6)], Seq(6)).unwrap();
    drop(writer);
    tear(&log, frames);
    let (store, _writer, _) = Store::open(&place.path).unwrap();
    assert_eq!(seqs(&store).unwrap(), [1, 2, 3, 4, 5]);
}

/// Stored checksums outlive versions. If the checksum of a record changes, every stored record looks damaged.
#[test]
fn sums_are_frozen() {
    let of_format_3 = Record { cluster: Seq(21), ..record(42) };
    let of_format_5 = Record { page: Some(PageMark { hash: 7 << 90, extractor: 2 }), ..of_format_3.clone() };
    let captured = Record { capture: capture(Some(1), Some(2)), ..of_format_5.clone() };
    let record = Record { id_first_seen: of_format_3.first_seen, ..of_format_3.clone() };
    let mut buffer = Vec::new();
    let of_format_1 = Record { cluster: Seq(0), seen: TimestampMs(0), ..record.clone() };
    let sums = [
        SignatureRow::of(&of_format_1).sum(&mut buffer),
        SignatureRow::of(&record).sum(&mut buffer),
        DocumentRow::of(&record, &verdict::to_json(&record.verdict)).sum(&mut buffer),
        meta_sum(&meta()),
        DocumentRow::of(&of_format_3, &verdict::to_json(&record.verdict)).sum(&mut buffer),
        meta_sum(&Meta { changeable: Changeable { banding_by_hand: true, ..meta().changeable }, ..meta() }),
        DocumentRow::of(&of_format_5, &verdict::to_json(&record.verdict)).sum(&mut buffer),
        meta_sum(&Meta { extract: Extract::Visible, ..meta() }),
        DocumentRow::of(&captured, &verdict::to_json(&record.verdict)).sum(&mut buffer),
    ];
    assert_eq!(
        sums,
        [
            1314110554811504567,
            11263155792481575178,
            17350328442067921718,
            2615956988820461857,
            12536837265343022632,
            16402566722863039472,
            1950117814275752026,
            17152489500599412719,
            4523902937532875595
        ]
    );
}

/// Returns the path of a file next to the database.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    files::with_suffix(path, suffix)
}

/// If the power fails after the log was emptied, at a close or a start, an older `-shm` file may remain. Once, such a
/// collection was refused as damaged, although it was intact.
#[test]
fn an_older_shm_beside_an_emptied_log_refuses_nothing() {
    let place = place();
    let shm = beside(&place.path, "-shm");
    let (store, mut writer) = Store::create(&place.path, &meta()).unwrap();
    let mut older = Vec::new();
    let mut seq = 0;
    // Also take `-shm` files from several logs ago.
    for _ in 0..3 {
        for _ in 0..2 {
            seq += 1;
            writer.commit(&[insert(seq)], Seq(seq)).unwrap();
            older.push(fs::read(&shm).unwrap());
        }
        checkpoint::run(writer.connection(), checkpoint::Mode::Restart).unwrap();
    }
    seq += 1;
    writer.commit(&[insert(seq)], Seq(seq)).unwrap();
    older.push(fs::read(&shm).unwrap());
    // This tests the emptying at a start. The emptying at a close follows below.
    writer.restart_log().unwrap();
    drop((store, writer));
    let opens = |older: &[u8], log: Option<&[u8]>| {
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(beside(&place.path, suffix));
        }
        log.into_iter().for_each(|log| fs::write(beside(&place.path, "-wal"), log).unwrap());
        fs::write(&shm, older).unwrap();
        let opened = Store::open(&place.path);
        let (_, writer, opened) = opened.unwrap_or_else(|error| panic!("{}", error.chain()));
        assert_eq!(opened.documents, seq);
        drop(writer);
    };
    for older in &older {
        opens(older, Some(b""));
        opens(older, None);
    }
    let (_, mut writer, _) = Store::open(&place.path).unwrap();
    seq += 1;
    writer.commit(&[insert(seq)], Seq(seq)).unwrap();
    let last = fs::read(&shm).unwrap();
    writer.close().unwrap();
    let opens = |older: &[u8]| {
        fs::write(&shm, older).unwrap();
        let (_, writer, opened) = Store::open(&place.path).unwrap_or_else(|error| panic!("{}", error.chain()));
        assert_eq!(opened.documents, seq);
        drop(writer);
    };
    opens(&last);
}

/// Because of the note, an older `-shm` file is no damage. The note must not hide that a log was lost later.
#[test]
fn a_log_lost_or_cut_after_commits_is_refused_whatever_was_emptied_before() {
    let place = place();
    let (_, mut writer) = Store::create(&place.path, &meta()).unwrap();
    let mut seq = 0;
    let mut commit = |writer: &mut Writer| {
        seq += 1;
        writer.commit(&[insert(seq)], Seq(seq)).unwrap();
    };
    commit(&mut writer);
    writer.close().unwrap();
    for _ in 0..3 {
        let (_, mut writer, _) = Store::open(&place.path).unwrap();
        commit(&mut writer);
        // The log may be emptied in the middle of a session, too.
        writer.restart_log().unwrap();
        assert!(beside(&place.path, files::MOVED).exists());
        commit(&mut writer);
        commit(&mut writer);
        let saved: Vec<_> =
            ["", "-wal", "-shm"].map(|suffix| (suffix, fs::read(beside(&place.path, suffix)).unwrap())).into();
        let note = fs::read(beside(&place.path, files::MOVED)).unwrap();
        drop(writer);
        for left in [None, Some(0), Some(32), Some(saved[1].1.len() - 1)] {
            for (suffix, bytes) in &saved {
                fs::write(beside(&place.path, suffix), bytes).unwrap();
            }
            fs::write(beside(&place.path, files::MOVED), &note).unwrap();
            let log = beside(&place.path, "-wal");
            match left {
                None => fs::remove_file(&log).unwrap(),
                Some(bytes) => fs::write(&log, &saved[1].1[..bytes]).unwrap(),
            }
            let opened = Store::open(&place.path);
            assert!(matches!(opened, Err(StoreError::Damaged { .. })), "log left: {left:?}");
        }
        for (suffix, bytes) in &saved {
            fs::write(beside(&place.path, suffix), bytes).unwrap();
        }
    }
}

/// Several threads check a file with this many documents.
#[test]
fn flaws_of_a_large_file_are_found_in_every_part_once_and_in_order() {
    let place = filled(41_000);
    assert!(inspect(&place.path, &|_| {}).unwrap().is_sound());
    let connection = Connection::open(&place.path).unwrap();
    let flawed = [1, 9_000, 20_499, 20_500, 20_501, 20_502, 41_000];
    for seq in flawed {
        let changed = connection.execute("UPDATE document SET first_seen_ms = first_seen_ms + 1 WHERE seq = ?1", [seq]);
        assert_eq!(changed.unwrap(), 1);
    }
    connection.execute("DELETE FROM signature WHERE seq = 30000", []).unwrap();
    connection.close().unwrap();
    let shares = Mutex::new(Vec::new());
    let found = inspect(&place.path, &|share| shares.lock().unwrap().push(share)).unwrap();
    let records: Vec<u64> = found.findings.iter().filter_map(|finding| finding.record).map(|seq| seq.0).collect();
    assert_eq!(records, [1, 9_000, 20_499, 20_500, 20_501, 20_502, 30_000, 41_000]);
    assert_eq!((found.documents, found.damaged), (41_000 - 8, 8));
    let places: Vec<_> = found.findings.iter().filter(|finding| finding.record.is_none()).map(|f| f.place).collect();
    assert_eq!(places, ["signature", "document"], "the ledger expects other sums: {found:?}");
    let shares = shares.into_inner().unwrap();
    assert!(shares.is_sorted() && shares.len() > 20 && shares.last() == Some(&1.0), "{shares:?}");
}
