//! Jobs and statistics are still there after the file is opened again, and damage to them is found. A damaged deletion
//! must not bring documents back.

use super::*;
use crate::store::tests::damage::tamper;
use crate::types::{Job, LabelDeletion, Merge, MergeReport, MergeSource, Merged, OnDuplicate, OnExisting, Statistics};

fn deletion(number: u64, documents: u64) -> LabelDeletion {
    LabelDeletion {
        number: Seq(number),
        label: Label::new("site", "a.example").unwrap(),
        accepted: TimestampMs(1_700_000_000_500),
        ended: None,
        documents,
        removed: 0,
    }
}

/// Deletes these documents by label.
fn deletes(number: u64, seqs: &[u64]) -> Change {
    let seqs: Vec<Seq> = seqs.iter().copied().map(Seq).collect();
    Change::DeleteLabelled {
        deletion: Arc::new(deletion(number, seqs.len() as u64)),
        doomed: DoomedPart::all(Seq(number), &seqs).into(),
        promoted: Vec::new(),
    }
}

fn merge(number: u64) -> Merge {
    Merge {
        number: Seq(number),
        source: MergeSource {
            name: CollectionName::new("crawl").unwrap(),
            created: TimestampMs(1_700_000_000_000),
            through: Seq(9),
            documents: 9,
        },
        after: Seq(0),
        on_duplicate: OnDuplicate::Link,
        on_existing: OnExisting::Replace,
        accepted: TimestampMs(1_700_000_000_600),
        ended: None,
        aborted: None,
        outcomes: BTreeMap::new(),
        verdicts: BTreeMap::new(),
    }
}

pub(super) fn report(merge: u64, source: u64) -> Change {
    let report = MergeReport {
        id: DocId::new(format!("d{source}")).unwrap(),
        outcome: "inserted",
        verdict: Some("unique"),
        duplicate_of: None,
        similarity: Some(0.5),
        representative: None,
        error: None,
    };
    Change::Merged(Arc::new(Merged { merge: Seq(merge), source: Seq(source), report }))
}

pub(super) fn begin_merge(number: u64) -> Change {
    Change::BeginMerge(Arc::new(merge(number)))
}

pub(super) fn statistics(places: i64) -> Vec<StoredStatistics> {
    let counts = |place| Statistics { documents: place as u64, bytes: 7, ..Statistics::default() };
    let label = |place| (place > 1).then(|| format!("site:{place}"));
    (1..=places).map(|place| StoredStatistics { place, label: label(place), counts: counts(place) }).collect()
}

/// Makes a closed collection with ten records, a merge with two reports, and statistics. Records 3 to 5 are deleted by
/// label and still on disk.
fn with_jobs() -> Place {
    let place = filled(10);
    let (_, mut writer, _) = Store::open(&place.path).unwrap();
    writer.commit(&[deletes(11, &[3, 4, 5]), begin_merge(12), report(12, 1), report(12, 2)], Seq(12)).unwrap();
    writer.set_statistics(&statistics(4)).unwrap();
    writer.close().unwrap();
    place
}

#[test]
fn documents_that_are_deleted_by_label_are_not_listed_and_leave_part_by_part() {
    let place = filled(1200);
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    let gone: Vec<u64> = (1..=1100).collect();
    writer.commit(&[deletes(1201, &gone)], Seq(1201)).unwrap();
    drop((store, writer));
    let (store, mut writer, opened) = Store::open(&place.path).unwrap();
    assert_eq!((opened.documents, opened.last_seq), (100, Seq(1201)));
    let page = store.page(Seq(0), 3).unwrap();
    assert_eq!(page.iter().map(|document| document.seq.0).collect::<Vec<_>>(), [1101, 1102, 1103]);
    assert!(store.record(Seq(5)).unwrap().is_some(), "a reader that began before may need it");
    let jobs = store.jobs().unwrap();
    assert_eq!(jobs.doomed.iter().map(|part| part.seqs.len()).collect::<Vec<_>>(), [512, 512, 76]);
    let mut left = 1100;
    for part in &jobs.doomed {
        let after = writer.remove_doomed(part, TimestampMs(5)).unwrap();
        left -= part.seqs.len() as u64;
        assert_eq!((after.left(), after.ended), (left, (left == 0).then_some(TimestampMs(5))));
        assert_eq!(store.record(part.seqs[0]).unwrap(), None);
    }
    assert!(matches!(writer.remove_doomed(&jobs.doomed[0], TimestampMs(6)), Err(StoreError::Damaged { .. })));
    drop((store, writer));
    let (store, writer, opened) = Store::open(&place.path).unwrap();
    assert_eq!((opened.documents, store.jobs().unwrap().doomed.len()), (100, 0));
    assert_eq!(seqs(&store).unwrap().len(), 100);
    writer.close().unwrap();
    assert!(inspect(&place.path, &|_| ()).unwrap().is_sound());
}

#[test]
fn a_merge_keeps_its_progress_and_reports() {
    let place = with_jobs();
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    let of = |store: &Store| match &store.jobs().unwrap().jobs[1] {
        Job::Merge(merge) => merge.clone(),
        Job::DeleteLabel(deletion) => panic!("{deletion:?}"),
    };
    assert_eq!((of(&store).after, of(&store).merged()), (Seq(2), 2));
    writer.commit(&[insert(13), report(12, 7)], Seq(13)).unwrap();
    let ended = Merge { ended: Some(TimestampMs(9)), aborted: Some("dropped".to_owned()), ..of(&store) };
    writer.set_job(&Job::Merge(ended.clone())).unwrap();
    drop((store, writer));
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    assert_eq!(of(&store), ended);
    let sources =
        |after| store.reports(Seq(12), Seq(after), 2).unwrap().iter().map(|(seq, _)| seq.0).collect::<Vec<_>>();
    assert_eq!((sources(0), sources(2), sources(7)), (vec![1, 2], vec![7], vec![]));
    assert!(!writer.forget_job(Seq(12), 2).unwrap());
    assert_eq!(sources(0), [7]);
    assert!(writer.forget_job(Seq(12), 2).unwrap());
    assert_eq!(store.jobs().unwrap().jobs.len(), 1);
    writer.close().unwrap();
    assert!(inspect(&place.path, &|_| ()).unwrap().is_sound());
}

#[test]
fn statistics_take_the_place_of_earlier_ones() {
    let place = with_jobs();
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    assert_eq!(store.statistics().unwrap(), statistics(4));
    let mut later = statistics(5);
    later[1].counts.unique = 4;
    writer.set_statistics(&later[1..]).unwrap();
    later[0] = statistics(1).remove(0);
    assert_eq!(store.statistics().unwrap(), later);
    writer.close().unwrap();
    assert!(inspect(&place.path, &|_| ()).unwrap().is_sound());
}

/// Each of these changes or deletes one row of the tables of jobs, or a line of these tables in the ledger.
const DAMAGE: [&str; 11] = [
    "UPDATE job SET job = replace(job, 'a.example', 'b.example') WHERE number = 11",
    "UPDATE job SET sum = 1 WHERE number = 12",
    "UPDATE job SET number = 99 WHERE number = 12",
    "DELETE FROM job WHERE number = 11",
    "UPDATE doomed SET seqs = x'0300000000000000' WHERE first = 3",
    "UPDATE doomed SET deletion = 12 WHERE first = 3",
    "UPDATE doomed SET first = 4 WHERE first = 3",
    "DELETE FROM doomed WHERE first = 3",
    "UPDATE ledger SET rows = rows + 1 WHERE tally = 'job'",
    "UPDATE ledger SET sum = sum + 1 WHERE tally = 'doomed'",
    "UPDATE job SET job = '{}' WHERE number = 11",
];

#[test]
fn a_damaged_job_is_found_and_its_collection_is_not_opened() {
    for sql in DAMAGE {
        let place = with_jobs();
        assert!(inspect(&place.path, &|_| ()).unwrap().is_sound());
        tamper(&place.path, sql);
        let inspection = inspect(&place.path, &|_| ()).unwrap();
        assert!(!inspection.is_sound(), "{sql}");
        assert!(inspection.findings.iter().all(|finding| finding.place == "jobs"), "{sql}: {inspection:?}");
        let error = Store::open(&place.path).unwrap_err();
        assert!(matches!(&error, StoreError::Damaged { detail, .. } if detail.contains("jobs")), "{sql}: {error}");
    }
}

#[test]
fn damaged_reports_and_statistics_are_found_and_documents_stay_readable() {
    for (sql, what) in [
        ("UPDATE merged SET report = '{}' WHERE source = 2", "jobs"),
        ("UPDATE merged SET source = 3 WHERE source = 2", "jobs"),
        ("DELETE FROM merged WHERE source = 2", "jobs"),
        ("UPDATE ledger SET rows = 9 WHERE tally = 'merged'", "jobs"),
        ("UPDATE statistics SET counts = '{}' WHERE place = 2", "statistics"),
        ("UPDATE statistics SET label = 'site:b' WHERE place = 2", "statistics"),
        ("DELETE FROM statistics WHERE place = 2", "statistics"),
        ("UPDATE ledger SET sum = 1 WHERE tally = 'statistics'", "statistics"),
    ] {
        let place = with_jobs();
        tamper(&place.path, sql);
        let inspection = inspect(&place.path, &|_| ()).unwrap();
        assert!(inspection.findings.iter().all(|finding| finding.place == what), "{sql}: {inspection:?}");
        assert!(!inspection.is_sound(), "{sql}");
        let (store, writer, _) = Store::open(&place.path).unwrap();
        let scrubbed = store.scrub(Keep::Signature, Seq(0), u64::MAX).unwrap();
        let found = if what == "jobs" { &scrubbed.jobs } else { &scrubbed.statistics };
        assert!(!found.is_empty() && scrubbed.damaged.is_empty(), "{sql}: {scrubbed:?}");
        if what == "statistics" {
            let label = |row: StoredStatistics| row.label;
            let intact: Vec<_> = store.intact_statistics().unwrap().into_iter().map(label).collect();
            let spared = sql.contains("ledger");
            assert_eq!(intact.contains(&Some("site:2".to_owned())), spared, "{sql}: {intact:?}");
        }
        assert_eq!(store.page(Seq(0), 100).unwrap().len(), 7, "{sql}");
        writer.close().unwrap();
    }
}

#[test]
fn a_repair_finishes_the_deletions_that_are_intact() {
    for sql in ["UPDATE signature SET flags = 3 WHERE seq = 7"].into_iter().chain(DAMAGE) {
        let place = with_jobs();
        tamper(&place.path, sql);
        let repaired = repair(&place.path).unwrap().rebuilt;
        assert_eq!(repaired.lost, Some(0), "{sql}");
        let (store, writer, opened) = Store::open(&place.path).unwrap();
        assert_eq!(opened.last_seq, Seq(12), "{sql}");
        let listed = store.page(Seq(0), 100).unwrap().len() as u64;
        assert_eq!((listed, opened.documents), (repaired.documents, repaired.documents), "{sql}");
        // If the row that lists the doomed documents is intact, the documents are gone.
        let intact = !(sql.contains("doomed SET") || sql.contains("FROM doomed"));
        assert_eq!(store.record(Seq(4)).unwrap().is_none(), intact, "{sql}");
        assert!(intact || repaired.jobs_damaged > 0, "{sql}: documents are back, and nobody says so");
        let jobs = store.jobs().unwrap();
        assert!(jobs.doomed.is_empty(), "{sql}");
        for job in jobs.jobs {
            assert_eq!(job.is_running(), matches!(job, Job::Merge(_)), "{sql}");
        }
        writer.close().unwrap();
        assert!(inspect(&place.path, &|_| ()).unwrap().is_sound(), "{sql}");
    }
}
