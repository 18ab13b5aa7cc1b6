//! A copy that is made while a writer works is one snapshot, and the log does not grow without limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::super::backup::{Backup, BackupError, CopyLimits, Progress};
use super::*;
use crate::types::TimestampMs;

/// Makes a store of 4,000 documents, about 2 MB, and puts its writer behind a lock.
fn filled() -> (Place, Arc<Mutex<Writer>>) {
    let place = place();
    let (_store, mut writer) = Store::create(&place.path, &meta()).unwrap();
    writer.commit(&(1..=4000).map(insert).collect::<Vec<_>>(), Seq(4000)).unwrap();
    (place, Arc::new(Mutex::new(writer)))
}

/// Whenever the copy asks whether to continue, commits `count` documents of 16 KB, up to `most` documents in all.
fn commits_between(
    writer: &Arc<Mutex<Writer>>,
    count: u64,
    most: u64,
) -> (Arc<AtomicU64>, impl Fn() -> bool + Send + use<>) {
    let (last, writer) = (Arc::new(AtomicU64::new(4000)), Arc::clone(writer));
    let its_last = Arc::clone(&last);
    let gone = move || {
        let first = its_last.load(Ordering::Relaxed) + 1;
        if first <= 4000 + most {
            let big = |seq| Record { metadata: Some(Metadata::new("x".repeat(16_000)).unwrap()), ..record(seq) };
            let changes: Vec<_> = (first..first + count).map(|seq| Change::Insert(Arc::new(big(seq)))).collect();
            writer.lock().commit(&changes, Seq(first + count - 1)).unwrap();
            its_last.store(first + count - 1, Ordering::Relaxed);
        }
        false
    };
    (last, gone)
}

#[test]
fn a_copy_is_of_the_moment_it_began() {
    let (place, writer) = filled();
    let dir = place.dir.path().join("backup");
    let limits = CopyLimits { bytes_per_second_max: Some(8 << 20), log_bytes_max: None };
    let mut backup = Backup::begin(&dir, limits, Arc::<Progress>::default()).unwrap();
    let (last, gone) = commits_between(&writer, 1, u64::MAX / 2);
    assert!(backup.add(&place.path, gone).unwrap().is_some());
    let manifest = backup.finish(TimestampMs(0)).unwrap();
    let [entry] = &manifest.collections[..] else { panic!("{manifest:?}") };
    assert!(last.load(Ordering::Relaxed) > 4000, "nothing was written meanwhile");
    // The copy may include commits that were made after the backup began, but before its first row was read.
    assert_eq!(entry.documents, entry.last_seq);
    assert!((4000..last.load(Ordering::Relaxed)).contains(&entry.last_seq), "{entry:?}");
    let (copy, _writer, opened) = Store::open(&dir.join("pages.sqlite")).unwrap();
    assert_eq!(opened.last_seq.0, entry.last_seq);
    assert_eq!(copy.record(Seq(4000)).unwrap(), Some(record(4000)));
}

#[test]
fn a_log_that_grows_too_long_ends_the_backup_and_nothing_else() {
    let (place, writer) = filled();
    let dir = place.dir.path().join("backup");
    let limits = CopyLimits { bytes_per_second_max: Some(1 << 20), log_bytes_max: Some(1 << 20) };
    let mut backup = Backup::begin(&dir, limits, Arc::<Progress>::default()).unwrap();
    // One call of `gone` makes the log longer than the limit, so the copy fails even without pauses.
    let (_, gone) = commits_between(&writer, 100, u64::MAX / 2);
    match backup.add(&place.path, gone).unwrap_err() {
        BackupError::LogGrew { collection, grown, max } => {
            assert_eq!((collection.as_str(), max), ("pages", 1 << 20));
            assert!(grown > max);
        }
        other => panic!("{other}"),
    }
    drop(backup);
    assert!(!dir.exists(), "what was written is removed");
    let mut backup = Backup::begin(&dir, CopyLimits::default(), Arc::<Progress>::default()).unwrap();
    assert!(backup.add(&place.path, || false).unwrap().is_some());
    backup.finish(TimestampMs(0)).unwrap();
}

#[test]
fn past_half_of_the_bound_the_copy_no_longer_rests() {
    let (place, writer) = filled();
    let dir = place.dir.path().join("backup");
    // At this rate the copy would take four seconds.
    let limits = CopyLimits { bytes_per_second_max: Some(512 << 10), log_bytes_max: Some(64 << 20) };
    let mut backup = Backup::begin(&dir, limits, Arc::<Progress>::default()).unwrap();
    let (_, grows) = commits_between(&writer, 2500, 2500);
    let grown = Arc::new(Mutex::new(None));
    let its_grown = Arc::clone(&grown);
    let gone = move || {
        let gone = grows();
        let mut grown = its_grown.lock();
        let (since, _) = grown.unwrap_or_else(|| (Instant::now(), Duration::ZERO));
        *grown = Some((since, since.elapsed()));
        gone
    };
    assert!(backup.add(&place.path, gone).unwrap().is_some());
    let (_, rest) = grown.lock().unwrap();
    assert!(rest < Duration::from_secs(3), "{rest:?}");
    backup.finish(TimestampMs(0)).unwrap();
}

/// Once, if the log was longer than its bound, a reader that prevented a checkpoint delayed every commit by ten
/// seconds.
#[test]
fn a_reader_in_the_way_keeps_no_commit_waiting() {
    let (place, writer) = filled();
    let mut writer = writer.lock();
    let reader = Connection::open(&place.path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM meta").unwrap();
    let _: i64 = reader.query_row("SELECT count(*) FROM signature", [], |row| row.get(0)).unwrap();
    let began = Instant::now();
    for seq in 4001..=4040 {
        writer.finish_log_at(0);
        writer.commit(&[insert(seq)], Seq(seq)).unwrap();
    }
    // If each of the forty commits waited as long as for other locks, this would take minutes.
    assert!(began.elapsed().as_secs() < 60);
    // Without the reader, the log restarts.
    drop(reader);
    writer.finish_log_at(0);
    writer.commit(&[insert(4041)], Seq(4041)).unwrap();
    assert!(writer.log_bytes() < 1 << 20, "{}", writer.log_bytes());
}

#[test]
fn a_row_that_is_not_what_was_written_makes_no_backup() {
    for (table, column) in [("signature", "bytes"), ("document", "id"), ("document", "verdict"), ("ledger", "sum")] {
        let (place, writer) = filled();
        drop(writer);
        let other = Connection::open(&place.path).unwrap();
        let at = if table == "ledger" { "tally = 'document'" } else { "seq = 17" };
        let value = if column == "bytes" {
            "zeroblob(length(bytes))"
        } else if column == "sum" {
            "1"
        } else {
            "'{}'"
        };
        other.execute(&format!("UPDATE {table} SET {column} = {value} WHERE {at}"), []).unwrap();
        let dir = place.dir.path().join("backup");
        let mut backup = Backup::begin(&dir, CopyLimits::default(), Arc::<Progress>::default()).unwrap();
        let error = backup.add(&place.path, || false).unwrap_err();
        let BackupError::Store(StoreError::Damaged { record, .. }) = &error else { panic!("{table}: {error}") };
        assert_eq!(*record, (table != "ledger").then_some(Seq(17)), "{error}");
    }
}

/// Once, a finished copy was read three times at full speed.
#[test]
fn a_copy_is_checked_at_the_rate_of_the_backup() {
    let (place, _writer) = filled();
    let bytes =
        [place.path.clone(), files::log(&place.path)].iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    let limits = CopyLimits { bytes_per_second_max: Some(bytes), log_bytes_max: None };
    let mut backup = Backup::begin(&place.dir.path().join("backup"), limits, Arc::<Progress>::default()).unwrap();
    let asked = Arc::new(Mutex::new(Instant::now()));
    let its_asked = Arc::clone(&asked);
    let gone = move || {
        *its_asked.lock() = Instant::now();
        false
    };
    assert!(backup.add(&place.path, gone).unwrap().is_some());
    // The copy calls `gone` until it ends, so `asked` is about the time of its end. The copy is a bit shorter than its
    // source. It is read once for its hash and once for its rows.
    let checked = asked.lock().elapsed();
    assert!(checked > Duration::from_millis(1500), "{checked:?}");
}
