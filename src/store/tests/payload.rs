//! Payloads are stored and removed with their documents. Reading a payload returns the bytes that were written, or an
//! error.

use super::*;

fn with_payload(seq: u64) -> Record {
    let kind = if seq.is_multiple_of(2) { PayloadKind::Shingles } else { PayloadKind::Text };
    // Some payloads fit into the page of their row, and some have pages of their own.
    let bytes = (0..seq * 700).map(|at| (at * seq % 251) as u8).collect();
    Record { payload: Some(Arc::new(Payload { kind, shingles: seq * 10, bytes })), ..record(seq) }
}

fn insert(seq: u64) -> Change {
    Change::Insert(Arc::new(with_payload(seq)))
}

fn keeping(keep: Keep) -> Place {
    let place = place();
    let (_, mut writer) = Store::create(&place.path, &Meta { keep, ..meta() }).unwrap();
    writer.commit(&(1..=10).map(insert).collect::<Vec<_>>(), Seq(10)).unwrap();
    writer.close().unwrap();
    place
}

fn read(store: &Store, seqs: std::ops::RangeInclusive<u64>) -> Result<Vec<(Seq, Looked<Payload>)>> {
    store.payloads(&seqs.map(Seq).collect::<Vec<_>>(), |_| Ok(()), |_, payload| Ok(payload))
}

/// Compares the rows of the table and the sum of their checksums with the ledger.
fn ledger_agrees(place: &Place) {
    let connection = Connection::open(&place.path).unwrap();
    let two = |sql: &str| connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let (ledger, rows): ((i64, i64), (i64, i64)) =
        (two("SELECT rows, sum FROM ledger WHERE tally = 'payload'"), two("SELECT count(*), 0 FROM payload"));
    let mut sums = connection.prepare("SELECT sum FROM payload").unwrap();
    let sum = sums.query_map([], |row| row.get(0)).unwrap().fold(0i64, |sum, one| sum.wrapping_add(one.unwrap()));
    assert_eq!(ledger, (rows.0, sum));
}

#[test]
fn a_payload_comes_and_goes_with_its_document() {
    for keep in [Keep::Shingles, Keep::Text] {
        let place = keeping(keep);
        let (store, mut writer, _) = Store::open(&place.path).unwrap();
        let replace = Change::Replace { record: Arc::new(with_payload(12)), target: Seq(4), promoted: None };
        writer.commit(&[Change::Delete { seq: Seq(11), target: Seq(3), promoted: None }, replace], Seq(12)).unwrap();
        for (seq, looked) in read(&store, 1..=13).unwrap() {
            match seq.0 {
                3 | 4 | 11 | 13 => assert_eq!(looked, Looked::Gone),
                _ => {
                    let wanted = Payload::clone(&with_payload(seq.0).payload.unwrap());
                    assert_eq!(looked, Looked::At(wanted));
                }
            }
        }
        let unread = store.payloads(&[Seq(5)], Err, |_, _| unreachable!("the size is enough")).unwrap();
        assert_eq!(unread, [(Seq(5), Looked::At(50))]);
        writer.close().unwrap();
        ledger_agrees(&place);
        Store::open(&place.path).unwrap();
    }
}

#[test]
fn a_payload_that_was_changed_or_lost_is_an_error_that_names_it() {
    for sql in [
        "UPDATE payload SET kind = 2 WHERE seq = 8",
        "UPDATE payload SET kind = 9 WHERE seq = 8",
        "UPDATE payload SET shingles = 79 WHERE seq = 8",
        "UPDATE payload SET size_sum = 1 WHERE seq = 8",
        "UPDATE payload SET bytes = zeroblob(5600) WHERE seq = 8",
        "UPDATE payload SET bytes = x'' WHERE seq = 8",
        "UPDATE payload SET sum = 1 WHERE seq = 8",
        "DELETE FROM payload WHERE seq = 8",
    ] {
        let place = keeping(Keep::Shingles);
        damage::tamper(&place.path, sql);
        let (store, _writer, _) = Store::open(&place.path).unwrap();
        let error = read(&store, 7..=9).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { record: Some(Seq(8)), .. }), "{sql}: {error}");
        // Reading only the size finds this damage, too, except in the bytes and their checksum.
        let unfit = store.payloads(&[Seq(8)], Err, |_, _| unreachable!("the size is enough"));
        assert_eq!(unfit.is_err(), !sql.contains("bytes") && !sql.contains("SET sum"), "{sql}: {unfit:?}");
        assert_eq!(read(&store, 1..=7).unwrap().len(), 7);
    }
    let place = keeping(Keep::Text);
    let (store, _writer, _) = Store::open(&place.path).unwrap();
    let error = store.payloads(&[Seq(2)], |_| Ok(()), |_, _| Err::<(), _>("it reads like nothing")).unwrap_err();
    assert!(error.to_string().contains("record 2: it reads like nothing"), "{error}");
}

#[test]
fn the_ledger_knows_how_many_payloads_there_are_to_be() {
    let place = keeping(Keep::Shingles);
    damage::tamper(&place.path, "UPDATE ledger SET rows = rows - 1 WHERE tally = 'payload'");
    let error = Store::open(&place.path).map(drop).unwrap_err();
    assert!(error.to_string().contains("9 payloads, but there must be 10"), "{error}");
}

#[test]
fn a_record_brings_a_payload_where_one_is_kept_and_only_there() {
    let (kept, plain) = (keeping(Keep::Text), filled(10));
    for (place, change) in [(kept, super::insert(11)), (plain, insert(11))] {
        let (_store, mut writer, _) = Store::open(&place.path).unwrap();
        let error = writer.commit(&[change], Seq(11)).unwrap_err();
        assert!(matches!(error, StoreError::OutOfOrder { seq: Seq(11), .. }), "{error}");
    }
}

#[test]
fn sums_of_payloads_and_verdicts_with_overlaps_are_frozen() {
    let place = keeping(Keep::Shingles);
    let connection = Connection::open(&place.path).unwrap();
    let sums: (i64, i64) = connection
        .query_row("SELECT size_sum, sum FROM payload WHERE seq = 7", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    assert_eq!(sums, (8614115198402927865, -6878538284632049960));
    let overlap = Some(Overlap { both: 3, query: 4, found: 5 });
    let matches = vec![StoredMatch { seq: Seq(9), matching: 200, exact: false, overlap }];
    let verdict = StoredVerdict { kind: VerdictKind::NearDuplicate, matches, ..record(1).verdict };
    let json = verdict::to_json(&verdict);
    assert!(json.ends_with(r#""matches":[{"seq":9,"matching":200,"exact":false,"shingles":[3,4,5]}]}"#), "{json}");
    assert_eq!(verdict::from_json(json.as_bytes()), Some(verdict));
    let before = json.replace(r#","shingles":[3,4,5]"#, "");
    assert_eq!(verdict::from_json(before.as_bytes()).unwrap().matches[0].overlap, None);
}

/// Damages a file.
type Damage<'a> = &'a dyn Fn(&Path);

/// Damages the chain of pages that contains these bytes: the chain then leads to a page that does not exist.
fn lead_astray(path: &Path, bytes: &[u8]) {
    const PAGE: usize = 4096;
    let mut file = fs::read(path).unwrap();
    let at = file.windows(bytes.len()).position(|window| window == bytes).expect("the bytes are in the file");
    // Each page of a chain begins with the number of the next page.
    file[at / PAGE * PAGE..][..4].copy_from_slice(&0x00ff_ffffu32.to_be_bytes());
    fs::write(path, file).unwrap();
}

/// Once, if a document had a lost or damaged payload, deleting the document disabled all writes, even after a restart.
#[test]
fn a_document_with_a_damaged_payload_can_be_removed_and_writes_go_on() {
    // The payload has six pages, so that there is a page in the middle of the chain.
    let long = |seq| {
        let bytes: Vec<u8> = (0..24_000u32).map(|at| (at * at % 251) as u8 ^ (at >> 8) as u8).collect();
        Record { payload: Some(Arc::new(Payload { kind: PayloadKind::Text, shingles: 5, bytes })), ..record(seq) }
    };
    let damages: [(&str, Damage<'_>); 3] = [
        ("lost", &|path| super::damage::tamper(path, "DELETE FROM payload WHERE seq = 11")),
        ("changed", &|path| {
            super::damage::tamper(path, "UPDATE payload SET bytes = zeroblob(length(bytes)) WHERE seq = 11");
        }),
        ("astray", &|path| lead_astray(path, &long(11).payload.unwrap().bytes[12_000..12_100])),
    ];
    for (what, damage) in damages {
        let place = keeping(Keep::Text);
        let (_, mut writer, _) = Store::open(&place.path).unwrap();
        writer.commit(&[Change::Insert(Arc::new(long(11)))], Seq(11)).unwrap();
        writer.close().unwrap();
        damage(&place.path);
        let (store, mut writer, _) = Store::open(&place.path).unwrap();
        let removal = Change::Delete { seq: Seq(12), target: Seq(11), promoted: None };
        writer.commit(&[removal, insert(13)], Seq(13)).unwrap_or_else(|error| panic!("{what}: {error}"));
        writer.commit(&[insert(14)], Seq(14)).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(seqs(&store).unwrap(), (1..=10).chain([13, 14]).collect::<Vec<_>>(), "{what}");
        writer.close().unwrap();
        assert!(!inspect(&place.path, &|_| {}).unwrap().is_sound(), "{what}: the damage is still found");
        assert_eq!(repair(&place.path).unwrap().rebuilt.documents, 12, "{what}");
        assert!(inspect(&place.path, &|_| {}).unwrap().is_sound(), "{what}");
    }
}
