//! A document that is seen again: its row, checksum and ledger move together.

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
