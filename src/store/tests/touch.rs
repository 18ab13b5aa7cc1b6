//! If a document is seen again or gets other metadata, its row, its checksum and the ledger change together.

use super::*;

fn touch(target: u64, seen: i64) -> Change {
    Change::Touch { target: Seq(target), seen: TimestampMs(seen) }
}

#[test]
fn a_sight_is_kept_beside_other_changes_and_the_ledger_goes_with_it() {
    let place = filled(5);
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    let delete = Change::Delete { seq: Seq(7), target: Seq(4), promoted: None };
    writer.commit(&[insert(6), delete, touch(2, 77), touch(6, 78), touch(2, 79)], Seq(7)).unwrap();
    writer.commit(&[touch(3, 80)], Seq(7)).unwrap();
    for (seq, seen) in [(2, 79), (3, 80), (6, 78)] {
        let expected = Record { seen: TimestampMs(seen), ..record(seq) };
        assert_eq!(store.record(Seq(seq)).unwrap(), Some(expected));
    }
    writer.close().unwrap();
    let (store, _writer, opened) = Store::open(&place.path).unwrap();
    assert_eq!(opened.last_seq, Seq(7));
    assert_eq!(seqs(&store).unwrap(), [1, 2, 3, 5, 6]);
}

#[test]
fn a_sight_of_a_document_that_is_gone_changes_nothing() {
    let place = filled(3);
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    let delete = Change::Delete { seq: Seq(4), target: Seq(1), promoted: None };
    writer.commit(&[delete, touch(1, 77), touch(99, 77)], Seq(4)).unwrap();
    assert_eq!(seqs(&store).unwrap(), [2, 3]);
}

#[test]
fn a_sight_of_a_damaged_record_costs_no_writes() {
    let place = filled(3);
    Connection::open(&place.path).unwrap().execute("UPDATE signature SET flags = 7 WHERE seq = 2", []).unwrap();
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    writer.commit(&[touch(2, 77), insert(4)], Seq(4)).unwrap();
    assert!(store.record(Seq(4)).unwrap().is_some());
    assert!(matches!(store.record(Seq(2)), Err(StoreError::Damaged { record: Some(Seq(2)), .. })));
}

fn update(seq: u64, target: u64, metadata: Option<&str>) -> Change {
    let metadata = metadata.map(|json| Metadata::new(json).unwrap());
    let additions = Additions { metadata, ..record(target).additions() };
    Change::Update { seq: Seq(seq), target: Seq(target), additions: Box::new(additions) }
}

#[test]
fn other_metadata_is_kept_beside_other_changes_and_the_ledger_goes_with_it() {
    let place = filled(7);
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    let delete = Change::Delete { seq: Seq(10), target: Seq(4), promoted: None };
    let changes = [insert(8), update(9, 2, None), delete, update(11, 7, Some("{}")), update(12, 8, Some(r#"{"a":1}"#))];
    writer.commit(&changes, Seq(12)).unwrap();
    writer.commit(&[update(13, 7, Some(r#"{"b":2}"#))], Seq(14)).unwrap();
    let expected = |seq, metadata: Option<&str>| {
        let metadata = metadata.map(|json| Metadata::new(json).unwrap());
        Some(Record { metadata, ..record(seq) })
    };
    let held = |store: &Store| [2, 7, 8].map(|seq| store.record(Seq(seq)).unwrap());
    let wanted = [expected(2, None), expected(7, Some(r#"{"b":2}"#)), expected(8, Some(r#"{"a":1}"#))];
    assert_eq!(held(&store), wanted);
    writer.close().unwrap();
    let (store, writer, opened) = Store::open(&place.path).unwrap();
    assert_eq!((opened.last_seq, held(&store)), (Seq(14), wanted));
    writer.close().unwrap();
    assert!(inspect(&place.path, &|_| {}).unwrap().is_sound());
}

#[test]
fn metadata_for_a_document_that_is_gone_fails_the_whole_batch() {
    let place = filled(3);
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    let delete = Change::Delete { seq: Seq(4), target: Seq(1), promoted: None };
    let error = writer.commit(&[delete, update(5, 1, None)], Seq(5)).unwrap_err();
    assert!(matches!(error, StoreError::OutOfOrder { seq: Seq(5), .. }), "{error}");
    assert_eq!(seqs(&store).unwrap(), [1, 2, 3]);
    let early = writer.commit(&[update(3, 1, None)], Seq(3)).unwrap_err();
    assert!(matches!(early, StoreError::OutOfOrder { seq: Seq(3), .. }), "it needs a place of its own: {early}");
    writer.commit(&[update(6, 1, None)], Seq(6)).unwrap();
}
