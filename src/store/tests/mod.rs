//! What the store promises, where nothing is damaged.

mod backup;
mod corruption;
mod damage;
mod payload;
mod properties;
mod touch;
mod upgrade;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use hapax_core::ContentHash;
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::store::data_dir::files;
use crate::store::format::meta::meta_sum;
use crate::store::format::rows::DocumentRow;
use crate::store::format::tables::FORMAT;
use crate::store::format::verdict;
use crate::store::write::checkpoint;
use crate::store::write::log_bound::WAKE_BYTES;
use crate::types::{
    ClusterPlace, CollectionName, DocId, Document, Keep, Metadata, Overlap, Payload, PayloadKind, Seq, TimestampMs,
    VerdictKind, Verify,
};

fn meta() -> Meta {
    Meta {
        name: CollectionName::new("pages").unwrap(),
        spec: "a spec".to_owned(),
        keep: Keep::Signature,
        created: TimestampMs(1_700_000_000_123),
        seen_floor: TimestampMs(0),
        changeable: Changeable {
            bands: 31,
            rows: 8,
            banding_by_hand: false,
            threshold: 0.8,
            verify: Verify::Estimate,
            ttl_ms: None,
            touch: false,
        },
    }
}

fn record(seq: u64) -> Record {
    Record {
        seq: Seq(seq),
        id: DocId::new(format!("https://a.example/{seq}")).unwrap(),
        id_fingerprint: seq.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        signature: (0..256u64).map(|slot| (slot * seq % 251) as u8).collect(),
        content: ContentHash(u128::from(seq) << 77 | 5),
        given: false,
        linked: seq.is_multiple_of(5),
        metadata: seq.is_multiple_of(2).then(|| Metadata::new(format!(r#"{{"n":{seq}}}"#)).unwrap()),
        first_seen: TimestampMs(1_700_000_000_000 + seq as i64),
        // Every seventh id had another content before.
        id_first_seen: TimestampMs(1_700_000_000_000 + seq as i64 - i64::from(seq.is_multiple_of(7))),
        seen: TimestampMs(1_700_000_000_000 + seq as i64),
        // Three in a cluster: every third is a founder, and the next two join it.
        cluster: Seq(if seq.is_multiple_of(3) { 0 } else { seq - seq % 3 }),
        shingles: Some(seq),
        verdict: StoredVerdict {
            kind: VerdictKind::Unique,
            duplicate_of: None,
            threshold: 0.8,
            candidates: 0,
            unread: 0,
            matches: Vec::new(),
        },
        payload: None,
    }
}

fn insert(seq: u64) -> Change {
    Change::Insert(Arc::new(record(seq)))
}

struct Place {
    dir: TempDir,
    path: PathBuf,
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let path = path_of(dir.path(), &meta().name);
    Place { dir, path }
}

/// A closed collection of `count` records.
fn filled(count: u64) -> Place {
    let place = place();
    let (_, mut writer) = Store::create(&place.path, &meta()).unwrap();
    writer.commit(&(1..=count).map(insert).collect::<Vec<_>>(), Seq(count)).unwrap();
    writer.close().unwrap();
    place
}

/// A collection that was never closed, its `commits` commits of 3 records each in the log.
fn left_open(commits: u64) -> (Place, PathBuf) {
    let place = place();
    let (_store, mut writer) = Store::create(&place.path, &meta()).unwrap();
    for commit in 0..commits {
        let changes: Vec<_> = (commit * 3 + 1..=commit * 3 + 3).map(insert).collect();
        writer.commit(&changes, Seq(commit * 3 + 3)).unwrap();
    }
    let log = place.dir.path().join("pages.sqlite-wal");
    (place, log)
}

fn seqs(store: &Store) -> Result<Vec<u64>> {
    let seen = Mutex::new(Vec::new());
    let totals = store.scan(3, |row| seen.lock().unwrap().push(row.seq.0), &AtomicU64::new(0))?;
    let mut seen = seen.into_inner().unwrap();
    seen.sort_unstable();
    assert_eq!(totals.documents, seen.len() as u64);
    Ok(seen)
}

fn hostile_ids() -> Vec<String> {
    [
        "..",
        "//",
        "%2F",
        "?a=b#c",
        "'; DROP TABLE document; --",
        "a\0b",
        "\0",
        "\u{1}\u{7f}\u{202e}",
        " ",
        "\u{feff}",
        "ß\u{301}",
    ]
    .into_iter()
    .map(str::to_owned)
    .chain(["🦀".repeat(512)])
    .collect()
}

#[test]
fn hostile_ids_and_metadata_come_back_as_they_were() {
    let place = place();
    let (store, mut writer) = Store::create(&place.path, &meta()).unwrap();
    let records: Vec<_> = hostile_ids()
        .into_iter()
        .zip(1..)
        .map(|(id, seq)| Record {
            id: DocId::new(id.as_str()).unwrap(),
            metadata: Some(Metadata::new(serde_json::json!({ "id": id }).to_string()).unwrap()),
            verdict: StoredVerdict {
                kind: VerdictKind::ExactDuplicate,
                duplicate_of: Some(DocId::new(id).unwrap()),
                threshold: 0.1 + 0.2,
                candidates: u32::MAX,
                unread: 7,
                matches: vec![StoredMatch { seq: Seq(u64::MAX >> 1), matching: 256, exact: true, overlap: None }],
            },
            ..record(seq)
        })
        .collect();
    let changes: Vec<_> = records.iter().cloned().map(Arc::new).map(Change::Insert).collect();
    writer.commit(&changes, Seq(records.len() as u64)).unwrap();
    for wanted in &records {
        assert_eq!(store.record(wanted.seq).unwrap().as_ref(), Some(wanted));
    }
    let wanted: Vec<_> = records.iter().map(|record| Some(record.id.clone())).chain([None]).collect();
    let asked: Vec<_> = (1..=records.len() as u64 + 1).map(Seq).collect();
    let heads = store.heads(&asked, None).unwrap();
    assert!(heads.iter().flatten().all(|head| head.metadata.is_none()));
    assert_eq!(heads.into_iter().map(|head| head.map(|head| head.id)).collect::<Vec<_>>(), wanted);
    let head = store.head(Seq(1), true).unwrap().unwrap();
    assert_eq!(head.metadata, records[0].metadata);
}

#[test]
fn a_closed_collection_is_one_file_and_a_note_and_opens_as_it_was() {
    let place = filled(2500);
    let names: Vec<_> = fs::read_dir(place.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        names.len() == 2 && ["pages.sqlite", "pages.sqlite-moved"].iter().all(|name| names.contains(&(*name).into()))
    );
    // The note is for an old `-shm` file only.
    fs::remove_file(place.dir.path().join("pages.sqlite-moved")).unwrap();
    assert_eq!(list(place.dir.path()).unwrap(), [meta().name]);
    assert_eq!(Store::peek(&place.path).unwrap().meta, meta());
    let (store, mut writer, opened) = Store::open(&place.path).unwrap();
    assert_eq!(opened, Opened { meta: meta(), last_seq: Seq(2500), documents: 2500 });
    let progress = AtomicU64::new(0);
    let seen = Mutex::new(BTreeMap::new());
    let visit = |row: SignatureRow<'_>| {
        let before = seen.lock().unwrap().insert(row.seq.0, (row.id_fingerprint, row.linked, row.bytes.to_vec()));
        assert_eq!(before, None);
    };
    let totals = store.scan(2, visit, &progress).unwrap();
    assert_eq!(totals, ScanTotals { documents: 2500, linked: 500, last_seq: Seq(2500) });
    assert_eq!(progress.into_inner(), 2500);
    for (seq, (id_fingerprint, linked, signature)) in seen.into_inner().unwrap() {
        let wanted = record(seq);
        assert_eq!((id_fingerprint, linked, signature), (wanted.id_fingerprint, wanted.linked, wanted.signature));
    }
    writer.commit(&[insert(2501)], Seq(2501)).unwrap();
}

#[test]
fn a_writer_that_was_never_closed_loses_nothing() {
    let place = place();
    let (store, mut writer) = Store::create(&place.path, &meta()).unwrap();
    writer.commit(&[insert(1), insert(2)], Seq(2)).unwrap();
    writer.commit(&[Change::Delete { seq: Seq(3), target: Seq(1), promoted: None }], Seq(4)).unwrap();
    drop((store, writer));
    let (store, _writer, opened) = Store::open(&place.path).unwrap();
    assert_eq!((opened.last_seq, opened.documents), (Seq(4), 1));
    assert_eq!(seqs(&store).unwrap(), [2]);
}

#[test]
fn an_empty_collection_scans_to_nothing() {
    let place = filled(0);
    let (store, _writer, opened) = Store::open(&place.path).unwrap();
    assert_eq!((opened.last_seq, opened.documents), (Seq(0), 0));
    assert_eq!(store.scan(4, |_| panic!("no row"), &AtomicU64::new(0)).unwrap(), ScanTotals::default());
    assert_eq!(store.page(Seq(0), 10).unwrap(), []);
    assert_eq!(store.record(Seq(1)).unwrap(), None);
}

#[test]
fn replacing_takes_the_old_record_away() {
    let place = filled(3);
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    let new = Record { id: record(2).id, ..record(4) };
    writer
        .commit(&[Change::Replace { record: Arc::new(new.clone()), target: Seq(2), promoted: None }], Seq(4))
        .unwrap();
    assert_eq!(store.record(Seq(2)).unwrap(), None);
    assert_eq!(store.record(Seq(4)).unwrap(), Some(new));
    assert_eq!(seqs(&store).unwrap(), [1, 3, 4]);
}

#[test]
fn one_batch_may_insert_replace_and_delete_the_same_document() {
    let place = filled(1);
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    let replace = Change::Replace { record: Arc::new(record(3)), target: Seq(2), promoted: None };
    writer
        .commit(
            &[insert(2), replace, Change::Delete { seq: Seq(4), target: Seq(3), promoted: None }, insert(5)],
            Seq(5),
        )
        .unwrap();
    assert_eq!(seqs(&store).unwrap(), [1, 5]);
}

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
    // 3 4 5, 6 7 8 and 9 10 11 are clusters; 1 and 2 are alone.
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
fn clusters_are_found_by_their_index() {
    let place = filled(10);
    let connection = Connection::open(&place.path).unwrap();
    for sql in [
        "SELECT * FROM signature s WHERE s.cluster = ?1 AND s.cluster <> 0 AND s.seq > ?2 ORDER BY s.seq LIMIT 9",
        "SELECT cluster FROM signature WHERE cluster > ?1 AND cluster <> 0 ORDER BY cluster LIMIT 1",
        "SELECT count(*) FROM signature WHERE cluster = ?1 AND cluster <> 0",
    ] {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let plan: Vec<String> = statement.raw_query().mapped(|row| row.get(3)).map(Result::unwrap).collect();
        assert!(plan.len() == 1 && plan[0].contains("signature_by_cluster (cluster"), "{sql}: {plan:?}");
    }
}

#[test]
fn an_error_in_the_middle_leaves_nothing_of_the_batch() {
    let place = filled(3);
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    let error = writer
        .commit(
            &[
                insert(4),
                Change::Delete { seq: Seq(5), target: Seq(1), promoted: None },
                Change::Delete { seq: Seq(6), target: Seq(1), promoted: None },
            ],
            Seq(6),
        )
        .unwrap_err();
    assert!(matches!(error, StoreError::OutOfOrder { seq: Seq(6), .. }), "{error}");
    assert_eq!(seqs(&store).unwrap(), [1, 2, 3]);
    writer.commit(&[insert(4)], Seq(4)).unwrap();
    assert_eq!(seqs(&store).unwrap(), [1, 2, 3, 4]);
}

#[test]
fn a_batch_out_of_order_is_refused() {
    let place = filled(3);
    let (_store, mut writer, _) = Store::open(&place.path).unwrap();
    for (changes, last_seq) in [
        (vec![insert(3)], 3),
        (vec![insert(5), insert(4)], 5),
        (vec![insert(5)], 4),
        (vec![Change::Delete { seq: Seq(u64::MAX), target: Seq(1), promoted: None }], u64::MAX),
    ] {
        let error = writer.commit(&changes, Seq(last_seq)).unwrap_err();
        assert!(matches!(error, StoreError::OutOfOrder { .. }), "{error}");
    }
    writer.commit(&[insert(9)], Seq(12)).unwrap();
}

#[test]
fn pages_follow_each_other_in_order_of_seq() {
    let place = filled(10);
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    writer.commit(&[Change::Delete { seq: Seq(11), target: Seq(4), promoted: None }, insert(12)], Seq(12)).unwrap();
    let (mut after, mut pages) = (Seq(0), Vec::new());
    loop {
        let page = store.page(after, 3).unwrap();
        let Some(last) = page.last() else { break };
        after = last.seq;
        pages.push(page.iter().map(|document| document.seq.0).collect::<Vec<_>>());
    }
    assert_eq!(pages, [vec![1, 2, 3], vec![5, 6, 7], vec![8, 9, 10], vec![12]]);
    assert_eq!(store.page(Seq(u64::MAX), usize::MAX).unwrap(), []);
}

#[test]
fn settings_that_may_change_are_kept() {
    let place = filled(1);
    let (_store, mut writer, _) = Store::open(&place.path).unwrap();
    let changeable = Changeable {
        bands: 21,
        rows: 6,
        banding_by_hand: true,
        threshold: 0.7,
        verify: Verify::Exact,
        ttl_ms: Some(1500),
        touch: true,
    };
    writer.set_changeable(changeable).unwrap();
    writer.close().unwrap();
    let wanted = Meta { changeable, ..meta() };
    assert_eq!(Store::peek(&place.path).unwrap().meta, wanted);
}

#[test]
fn half_made_and_half_dropped_collections_are_cleared_away() {
    let place = filled(2);
    let dir = place.dir.path();
    let kept = ["LOCK", "notes.creating", "pages.sqlite", "pages.sqlite-moved"];
    let left = [
        "new.sqlite.creating",
        "new.sqlite.creating-journal",
        "old.sqlite-wal",
        "old.sqlite-shm",
        "old.sqlite.dropped",
        "pages.sqlite.creating",
    ];
    for name in kept.iter().chain(&left).filter(|name| !["pages.sqlite", "pages.sqlite-moved"].contains(name)) {
        fs::write(dir.join(name), "half").unwrap();
    }
    assert_eq!(list(dir).unwrap(), [meta().name]);
    let mut removed = clean_leftovers(dir).unwrap();
    removed.sort();
    assert_eq!(
        removed,
        ["new.sqlite.creating", "old.sqlite.dropped", "pages.sqlite.creating"].map(|name| dir.join(name))
    );
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, kept);
    assert_eq!(clean_leftovers(dir).unwrap(), Vec::<PathBuf>::new());
    let _open = Store::open(&place.path).unwrap();
    assert_eq!(strangers(dir).unwrap(), ["LOCK", "notes.creating"].map(|name| dir.join(name)));
    fs::write(dir.join("gone.sqlite-wal"), "whose?").unwrap();
    fs::write(dir.join("pages.sqlite.damaged-1.jsonl"), "a repair's").unwrap();
    assert_eq!(strangers(dir).unwrap(), ["LOCK", "gone.sqlite-wal", "notes.creating"].map(|name| dir.join(name)));
}

#[test]
fn a_log_without_its_database_blocks_a_new_collection_of_that_name() {
    let place = place();
    fs::write(place.dir.path().join("pages.sqlite-wal"), "whose?").unwrap();
    let error = Store::create(&place.path, &meta()).map(drop).unwrap_err();
    assert!(matches!(&error, StoreError::NotAStore { path, .. } if path.ends_with("pages.sqlite-wal")), "{error}");
}

#[test]
fn a_dropped_collection_leaves_nothing_and_its_name_is_free() {
    let place = place();
    let (store, mut writer) = Store::create(&place.path, &meta()).unwrap();
    writer.commit(&[insert(1)], Seq(1)).unwrap();
    writer.close().unwrap();
    Store::remove(&place.path).unwrap();
    assert_eq!(fs::read_dir(place.dir.path()).unwrap().count(), 0);
    assert!(matches!(Store::remove(&place.path).unwrap_err(), StoreError::Missing { .. }));
    let (new, _writer) = Store::create(&place.path, &meta()).unwrap();
    assert_eq!(seqs(&new).unwrap(), Vec::<u64>::new());
    assert!(matches!(store.record(Seq(1)).unwrap_err(), StoreError::Closed { .. }));
    assert!(matches!(seqs(&store).unwrap_err(), StoreError::Closed { .. }));
}

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

#[test]
fn readers_see_whole_batches_while_the_writer_goes_on() {
    let place = place();
    let (store, mut writer) = Store::create(&place.path, &meta()).unwrap();
    let done = AtomicBool::new(false);
    let committed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        // More readers than connections.
        let readers: Vec<_> = (0..12)
            .map(|_| {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let floor = committed.load(Ordering::Acquire);
                        let page = store.page(Seq(floor.saturating_sub(30)), 1000).unwrap();
                        let last = page.last().map_or(0, |document| document.seq.0);
                        assert!(last >= floor && last.is_multiple_of(10), "{last} after {floor}");
                    }
                })
            })
            .collect();
        for batch in 0..60 {
            let changes: Vec<_> = (batch * 10 + 1..=batch * 10 + 10).map(insert).collect();
            writer.commit(&changes, Seq(batch * 10 + 10)).unwrap();
            committed.store(batch * 10 + 10, Ordering::Release);
        }
        done.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
    assert_eq!(seqs(&store).unwrap().len(), 600);
}

#[test]
fn the_log_stays_bounded_under_a_stream_of_commits() {
    let place = place();
    let (store, mut writer) = Store::create(&place.path, &meta()).unwrap();
    writer.finish_log_at(1 << 20);
    let log = place.dir.path().join("pages.sqlite-wal");
    let mut finished = 0;
    for seq in 1..=400 {
        let big = Record { metadata: Some(Metadata::new("x".repeat(16_000)).unwrap()), ..record(seq) };
        let before = writer.log_bytes();
        writer.commit(&[Change::Insert(Arc::new(big))], Seq(seq)).unwrap();
        if writer.log_bytes() < before {
            finished += 1;
            writer.finish_log_at(1 << 20);
        }
    }
    assert!(finished >= 4, "finished {finished} times");
    assert!(fs::metadata(log).unwrap().len() < 2 << 20);
    assert_eq!(seqs(&store).unwrap().len(), 400);
}

#[test]
fn the_background_thread_moves_the_log_into_the_database() {
    let place = place();
    let (_store, mut writer) = Store::create(&place.path, &meta()).unwrap();
    let batch: Vec<_> = (1..=20_000).map(insert).collect();
    writer.commit(&batch, Seq(20_000)).unwrap();
    assert!(writer.log_bytes() > WAKE_BYTES);
    let waited = std::time::Instant::now();
    while fs::metadata(&place.path).unwrap().len() < 4 << 20 {
        assert!(waited.elapsed().as_secs() < 30);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// An operator's open transaction once poisoned the writer: no write was taken until a restart, though nothing had
/// been written that could be in doubt.
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
