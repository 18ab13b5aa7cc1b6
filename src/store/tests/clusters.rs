//! Links and the clusters that they belong to.

use super::damage::tamper_with_types;
use super::*;

#[test]
fn a_link_that_is_promoted_is_none_any_more_and_nothing_else_of_it_changes() {
    let place = filled(5);
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    assert!(store.record(Seq(5)).unwrap().unwrap().linked);
    let delete =
        |seq, target, promoted| Change::Delete { seq: Seq(seq), target: Seq(target), promoted: Some(promoted) };
    let error = writer.commit(&[delete(6, 3, Seq(4))], Seq(6)).unwrap_err();
    assert!(matches!(error, StoreError::OutOfOrder { .. }), "4 is no link: {error}");
    writer.commit(&[delete(6, 3, Seq(5))], Seq(6)).unwrap();
    let wanted = Record { linked: false, ..record(5) };
    assert_eq!(store.record(Seq(5)).unwrap().as_ref(), Some(&wanted));
    let error = writer.commit(&[delete(7, 4, Seq(5))], Seq(7)).unwrap_err();
    assert!(matches!(error, StoreError::OutOfOrder { .. }), "5 is none any more: {error}");
    drop((store, writer));
    let (store, _writer, _) = Store::open(&place.path).unwrap();
    assert_eq!(seqs(&store).unwrap(), [1, 2, 4, 5]);
    assert_eq!(store.record(Seq(5)).unwrap(), Some(wanted));
}

#[test]
fn a_cluster_is_paged_in_order_and_its_first_document_stands_for_it() {
    let place = filled(11);
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    let page = |start, limit| {
        let ClusterRows { stretch, documents, next } = store.cluster(start, limit).unwrap()?;
        let members: Vec<_> = stretch.members.iter().map(|member| member.head.seq.0).collect();
        Some((stretch.cluster.0, stretch.representative.head.seq.0, members, documents, next))
    };
    // The clusters are 3 4 5, 6 7 8 and 9 10 11. 1 and 2 are alone.
    let behind = |cluster, seq| ClusterPlace { cluster: Seq(cluster), seq: Seq(seq) };
    assert_eq!(page(ClusterStart::Of(Seq(1)), 9), Some((1, 1, vec![1], Some(1), None)));
    assert_eq!(page(ClusterStart::Of(Seq(12)), 9), None);
    for any in 6..=8 {
        let two = page(ClusterStart::Of(Seq(any)), 2);
        assert_eq!(two, Some((6, 6, vec![6, 7], Some(3), Some(behind(6, 7)))));
    }
    assert_eq!(page(ClusterStart::After(behind(6, 7)), 2), Some((6, 6, vec![8], None, None)));

    let all = |limit| {
        let (mut pages, mut after) = (Vec::new(), Some(ClusterPlace::default()));
        while let Some(place) = after {
            let (stretches, next) = store.clusters(place, limit).unwrap();
            let seqs = |stretch: &Stretch| {
                let members: Vec<_> = stretch.members.iter().map(|member| member.head.seq.0).collect();
                (stretch.representative.head.seq.0, members)
            };
            pages.push(stretches.iter().map(seqs).collect::<Vec<_>>());
            after = next;
        }
        pages
    };
    assert_eq!(all(100), [[(3, vec![3, 4, 5]), (6, vec![6, 7, 8]), (9, vec![9, 10, 11])]]);
    let pieces: Vec<_> = all(1).concat();
    assert_eq!(pieces.len(), 9);
    assert_eq!(pieces[3..6], [(6, vec![6]), (6, vec![7]), (6, vec![8])]);
    let delete = |seq, target| Change::Delete { seq: Seq(seq), target: Seq(target), promoted: None };
    writer.commit(&[delete(12, 6), delete(13, 3), delete(14, 4), delete(15, 10)], Seq(15)).unwrap();
    assert_eq!(page(ClusterStart::Of(Seq(8)), 9), Some((6, 7, vec![7, 8], Some(2), None)));
    assert_eq!(page(ClusterStart::Of(Seq(6)), 9), None);
    assert_eq!(page(ClusterStart::After(behind(6, 6)), 9), Some((6, 7, vec![7, 8], None, None)));
    assert_eq!(all(100).concat(), [(7, vec![7, 8]), (9, vec![9, 11])], "5 is alone now");
    for limit in 1..6 {
        let documents: Vec<u64> = all(limit).concat().into_iter().flat_map(|(_, members)| members).collect();
        assert_eq!(documents, [7, 8, 9, 11], "pages of {limit}");
    }
    let listed = store.page(Seq(0), 100).unwrap();
    let stands = |document: &Document| document.representative.as_ref().map(|id| id.as_str().to_owned());
    let named: Vec<_> = listed.iter().map(stands).collect();
    let [seven, nine] = [7, 9].map(|seq| Some(record(seq).id.as_str().to_owned()));
    assert_eq!(named, [None, None, None, None, seven, None, nine]);
}

#[test]
fn clusters_are_the_same_after_commits_failures_and_starts() {
    let place = filled(11);
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    let pages = |store: &Store| store.clusters(ClusterPlace::default(), 100).unwrap().0;
    let scanned = || {
        let (store, ..) = Store::open(&place.path).unwrap();
        store.scan(2, |_| {}, &AtomicU64::new(0)).unwrap();
        store
    };
    assert_eq!(pages(&store), pages(&scanned()));
    let delete = |seq, target| Change::Delete { seq: Seq(seq), target: Seq(target), promoted: None };
    let before = pages(&store);
    // 8 and 12 leave and join, but then the transaction fails, because there is no document 99.
    let stored = || Change::Insert(Arc::new(Record { cluster: Seq(6), ..record(12) }));
    let failing = [stored(), delete(13, 8), delete(14, 99)];
    assert!(writer.commit(&failing, Seq(14)).is_err());
    assert_eq!(pages(&store), before);
    // 12 is stored and removed by one transaction.
    writer.commit(&[stored(), delete(13, 8), delete(14, 12)], Seq(14)).unwrap();
    assert_eq!(pages(&store)[1].members.iter().map(|member| member.head.seq.0).collect::<Vec<_>>(), [6, 7]);
    assert_eq!(pages(&store), pages(&scanned()));
}

#[test]
fn a_document_that_is_missing_from_its_cluster_is_damage() {
    let place = filled(11);
    let (store, _writer, _) = Store::open(&place.path).unwrap();
    assert_eq!(store.cluster(ClusterStart::Of(Seq(6)), 9).unwrap().unwrap().stretch.members.len(), 3);
    let connection = Connection::open(&place.path).unwrap();
    connection.execute("DELETE FROM signature WHERE seq = 7", []).unwrap();
    let error = store.cluster(ClusterStart::Of(Seq(6)), 9).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { record: Some(Seq(7)), .. }), "{error}");
}

#[test]
fn a_document_with_a_damaged_row_leaves_its_cluster() {
    for damage in [
        "UPDATE signature SET cluster = 9 WHERE seq = 7",
        "UPDATE signature SET cluster = 'six', sum = 'none' WHERE seq = 7",
        "UPDATE document SET sum = 'none' WHERE seq = 7",
        "DELETE FROM signature WHERE seq = 7",
    ] {
        let place = filled(11);
        let (store, mut writer, _) = Store::open(&place.path).unwrap();
        store.scan(1, |_| {}, &AtomicU64::new(0)).unwrap();
        tamper_with_types(&place.path, damage);
        let delete = |seq, target| Change::Delete { seq: Seq(seq), target: Seq(target), promoted: None };
        assert!(writer.commit(&[delete(12, 7), delete(13, 99)], Seq(13)).is_err());
        let page = store.cluster(ClusterStart::Of(Seq(6)), 9);
        assert!(page.is_err() || damage.contains("document"), "{damage}");
        writer.commit(&[delete(12, 7)], Seq(12)).unwrap();
        let page = store.cluster(ClusterStart::Of(Seq(6)), 9).unwrap().unwrap();
        assert_eq!(page.stretch.members.iter().map(|member| member.head.seq.0).collect::<Vec<_>>(), [6, 8]);
    }
}

/// Once, a document that was replaced was in no cluster until the commit was on disk, neither in its old nor in its new
/// form.
#[test]
fn a_cluster_is_shown_at_one_moment_while_its_documents_are_replaced() {
    let place = filled(11);
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    store.scan(1, |_| {}, &AtomicU64::new(0)).unwrap();
    let ended = AtomicBool::new(false);
    let members = |stretch: &Stretch| stretch.members.iter().map(|member| member.head.seq.0).collect::<Vec<_>>();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut pages, behind) = (0, ClusterPlace { cluster: Seq(6), seq: Seq(6) });
            while !ended.load(Ordering::Relaxed) {
                let page = store.cluster(ClusterStart::Of(Seq(6)), 9).unwrap().unwrap();
                assert_eq!((members(&page.stretch).len(), page.documents), (3, Some(3)), "{page:?}");
                let rest = store.clusters(behind, 9).unwrap().0;
                assert_eq!((members(&rest[0]).len(), rest.len()), (2, 2), "{rest:?}");
                pages += 1;
            }
            pages
        });
        let mut last = 8;
        for seq in (12..400).step_by(2) {
            let fails = [
                Change::Delete { seq: Seq(seq), target: Seq(last), promoted: None },
                Change::Delete { seq: Seq(seq + 1), target: Seq(9999), promoted: None },
            ];
            assert!(writer.commit(&fails, Seq(seq + 1)).is_err());
            let record = Arc::new(Record { cluster: Seq(6), seq: Seq(seq), ..record(8) });
            writer.commit(&[Change::Replace { record, target: Seq(last), promoted: None }], Seq(seq)).unwrap();
            last = seq;
        }
        ended.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
}
