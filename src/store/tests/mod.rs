//! The behaviour of the store on intact files.

mod backup;
mod clusters;
mod corruption;
mod damage;
mod failures;
mod golden;
mod jobs;
mod leftovers;
mod log_bound;
mod payload;
mod properties;
mod repair;
mod rollback;
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
    Capture, CaptureDate, ClusterPlace, CollectionName, DocId, Document, Extract, Keep, Label, Labels, Metadata,
    Overlap, PageMark, Payload, PayloadDigest, PayloadKind, Seq, TimestampMs, VerdictKind, Verify,
};

fn meta() -> Meta {
    Meta {
        name: CollectionName::new("pages").unwrap(),
        spec: "a spec".to_owned(),
        keep: Keep::Signature,
        extract: Extract::Article,
        extractor: 1,
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
        // Every fourth document has labels.
        labels: seq.is_multiple_of(4).then(|| Labels::parse(&format!("crawl:{}\nsite:a.example", seq % 3)).unwrap()),
        // Every fifth document has the date and the digest of a capture.
        capture: capture((seq % 5 == 1).then_some(seq), (seq % 5 == 1).then_some(seq)),
        first_seen: TimestampMs(1_700_000_000_000 + seq as i64),
        // Every seventh id had other content before.
        id_first_seen: TimestampMs(1_700_000_000_000 + seq as i64 - i64::from(seq.is_multiple_of(7))),
        seen: TimestampMs(1_700_000_000_000 + seq as i64),
        // Clusters of three: every third document is a founder, and the next two join it.
        cluster: Seq(if seq.is_multiple_of(3) { 0 } else { seq - seq % 3 }),
        shingles: Some(seq),
        // Every eleventh document is a page.
        page: seq
            .is_multiple_of(11)
            .then(|| PageMark { hash: u128::from(seq) << 70 | 3, extractor: 1 + seq as u32 % 3 }),
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

fn capture(date: Option<u64>, digest: Option<u64>) -> Capture {
    Capture {
        date: date.map(|date| CaptureDate::new(&format!("2026-11-20T10:00:00.{date}Z")).unwrap()),
        digest: digest.map(|digest| PayloadDigest::new(&format!("sha1:{digest}")).unwrap()),
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

/// Makes a closed collection with `count` records.
fn filled(count: u64) -> Place {
    let place = place();
    let (_, mut writer) = Store::create(&place.path, &meta()).unwrap();
    writer.commit(&(1..=count).map(insert).collect::<Vec<_>>(), Seq(count)).unwrap();
    writer.close().unwrap();
    place
}

/// Makes a collection that is never closed, with `commits` commits of 3 records each in its log.
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
    let heads = store.heads(&asked, None, true).unwrap();
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
    // The note matters only for an old `-shm` file.
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

/// Once, the error named the first of the 16 documents that one statement stores.
#[test]
fn an_error_names_the_document_of_a_group_that_it_is_about() {
    let place = filled(3);
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    let stray =
        "INSERT INTO document SELECT 15, id, metadata, content_hash, flags, first_seen_ms, shingles, verdict, sum,
                 id_first_seen_ms, page_hash, extractor, capture_date, payload_digest FROM document WHERE seq = 1";
    damage::tamper(&place.path, stray);
    let inserts: Vec<_> = (4..24).map(insert).collect();
    let error = writer.commit(&inserts, Seq(23)).unwrap_err();
    assert!(matches!(error, StoreError::OutOfOrder { seq: Seq(15), .. }), "{error}");
    damage::tamper(&place.path, "DELETE FROM document WHERE seq = 15");
    writer.commit(&inserts, Seq(23)).unwrap();
    assert_eq!(seqs(&store).unwrap(), (1..24).collect::<Vec<_>>());
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
