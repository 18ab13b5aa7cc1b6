//! Tests which changes are refused, and which data survives, if the disk is full, if it fails, or if another program
//! writes.

use super::*;

#[test]
fn a_full_disk_refuses_the_batch_and_spoils_nothing() {
    let place = filled(100);
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    let pages: i64 = writer.connection().pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    let limit = |writer: &Writer, pages: i64| {
        writer.connection().pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
    };
    limit(&writer, pages + 2);
    let batch: Vec<_> = (101..=1100).map(insert).collect();
    for _ in 0..2 {
        let error = writer.commit(&batch, Seq(1100)).unwrap_err();
        assert!(matches!(error, StoreError::Full { .. }), "{error}");
        assert_eq!(store.page(Seq(0), 1000).unwrap().len(), 100);
    }
    limit(&writer, pages + 10_000);
    writer.commit(&batch, Seq(1100)).unwrap();
    assert_eq!(seqs(&store).unwrap().len(), 1100);
}

#[test]
fn a_writer_whose_disk_failed_takes_no_more_and_the_file_keeps_what_it_had() {
    let place = place();
    let (store, mut writer) = Store::create(&place.path, &meta()).unwrap();
    writer.commit(&[insert(1)], Seq(1)).unwrap();
    writer.poison().note(&StoreError::Io {
        collection: "pages".to_owned(),
        doing: "committing",
        source: "fsync said no".into(),
    });
    for error in
        [writer.commit(&[insert(2)], Seq(2)).unwrap_err(), writer.set_changeable(meta().changeable).unwrap_err()]
    {
        assert!(matches!(&error, StoreError::Poisoned { reason, .. } if reason.contains("fsync said no")), "{error}");
    }
    assert!(store.record(Seq(1)).unwrap().is_some());
    assert!(matches!(writer.close().unwrap_err(), StoreError::Poisoned { .. }));
    let (store, _writer, _) = Store::open(&place.path).unwrap();
    assert_eq!(seqs(&store).unwrap(), [1]);
}

#[test]
fn a_second_writer_is_found_out() {
    let place = filled(1);
    let (_, mut one, _) = Store::open(&place.path).unwrap();
    let (_, mut other, _) = Store::open(&place.path).unwrap();
    one.commit(&[insert(2)], Seq(2)).unwrap();
    let error = other.commit(&[insert(3)], Seq(3)).unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    assert!(matches!(other.commit(&[insert(4)], Seq(4)).unwrap_err(), StoreError::Poisoned { .. }));
    one.commit(&[insert(3)], Seq(3)).unwrap();
}

/// Once, an open transaction of an operator poisoned the writer: no write was accepted until a restart, although
/// nothing had been written.
#[test]
fn a_file_held_by_another_program_refuses_one_batch_and_not_the_next() {
    let place = place();
    let (store, mut writer) = Store::create(&place.path, &meta()).unwrap();
    writer.set_patience(std::time::Duration::from_millis(20));
    let other = Connection::open(&place.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = writer.commit(&[insert(1)], Seq(1)).unwrap_err();
    assert!(matches!(refused, StoreError::NotBegun { .. }) && !refused.is_uncertain(), "{refused}");
    other.execute_batch("ROLLBACK").unwrap();
    writer.commit(&[insert(2)], Seq(2)).unwrap();
    assert!(store.record(Seq(1)).unwrap().is_none() && store.record(Seq(2)).unwrap().is_some());
}
