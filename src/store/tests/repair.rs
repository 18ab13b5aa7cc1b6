//! A repair keeps all intact documents, reports an unknown loss as unknown, and changes nothing if it fails.

use super::damage::tamper;
use super::*;

fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    };
    fs::read_dir(dir).unwrap().map(read).collect()
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 4;
    fs::write(path, bytes).unwrap();
}

/// Once, a repair said that 0 documents were lost, although commits of the log were lost.
#[test]
fn what_a_damaged_log_cost_is_unknown() {
    let (place, log) = left_open(20);
    flip(&log, 32 + 20 * 4120);
    let damaged = contents(place.dir.path());
    let repaired = repair(&place.path).unwrap();
    assert_eq!((repaired.rebuilt.log_damaged, repaired.rebuilt.lost), (true, None));
    assert!((1..60).contains(&repaired.rebuilt.documents), "{repaired:?}");
    let kept = contents(place.dir.path());
    assert!(inspect(&place.path, &|_| {}).unwrap().is_sound());
    for (suffix, before) in [("", "pages.sqlite"), ("-wal", "pages.sqlite-wal")] {
        assert_eq!(kept[&format!("pages.sqlite.damaged-1{suffix}")], damaged[before], "{suffix}");
    }
    let names: Vec<_> = kept.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["pages.sqlite", "pages.sqlite.damaged-1", "pages.sqlite.damaged-1-wal", "pages.sqlite.damaged-1.jsonl"]
    );

    let place = filled(10);
    tamper(&place.path, "DELETE FROM ledger WHERE tally = 'document'");
    let repaired = repair(&place.path).unwrap().rebuilt;
    assert_eq!((repaired.documents, repaired.log_damaged, repaired.lost), (10, false, None));
}

/// Opening the damaged files would remove the traces of the damage, and a later start would serve the incomplete rest.
#[test]
fn a_repair_that_fails_leaves_everything_as_it_was() {
    let (place, log) = left_open(20);
    // If the settings are damaged, nothing can be repaired. The settings are in the database, and the documents are in
    // the log.
    let database = fs::read(&place.path).unwrap();
    flip(&place.path, database.windows(6).position(|window| window == b"a spec").unwrap());
    flip(&log, 32 + 20 * 4120);
    let before = contents(place.dir.path());
    let mut last = BTreeMap::new();
    for _ in 0..2 {
        repair(&place.path).unwrap_err();
        last = contents(place.dir.path());
    }
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&last), names(&before));
    assert!(last == before);
}

/// Once, the number of a file with set-aside records was used again after the damaged file next to it was removed.
#[test]
fn a_later_repair_keeps_the_records_that_an_earlier_one_set_aside() {
    let place = filled(10);
    let mut set_aside = Vec::new();
    for seq in [3, 4] {
        tamper(&place.path, &format!("UPDATE document SET first_seen_ms = 0 WHERE seq = {seq}"));
        let repaired = repair(&place.path).unwrap();
        assert_eq!(repaired.rebuilt.set_aside, 1);
        fs::remove_file(&repaired.kept_as).unwrap();
        set_aside.push(repaired.set_aside_in);
    }
    for (seq, file) in [3, 4].into_iter().zip(&set_aside) {
        let lines = fs::read_to_string(file).unwrap();
        assert!(lines.contains(&format!("\"record\":{seq}")), "{}: {lines}", file.display());
    }
}

#[test]
fn an_interrupted_repair_is_finished_under_its_own_number() {
    let place = filled(10);
    let whole = fs::read(&place.path).unwrap();
    for keeps in [false, true] {
        let number = 1 + u64::from(keeps);
        let named = |suffix: &str| files::with_suffix(&place.path, suffix);
        fs::write(named(&format!(".damaged-{number}.jsonl")), "records").unwrap();
        fs::write(named(".repaired"), &whole).unwrap();
        if keeps {
            fs::hard_link(&place.path, named(".damaged-2")).unwrap();
        }
        finish_repairs(place.dir.path()).unwrap();
        assert!(named(&format!(".damaged-{number}")).exists() && !named(".damaged-3").exists());
        assert!(!named(".repaired").exists());
        Store::open(&place.path).unwrap().1.close().unwrap();
    }
}

/// Once, a repair that was killed left an empty file with the number of the next repair.
#[test]
fn a_repair_that_was_killed_leaves_no_records() {
    let place = filled(10);
    tamper(&place.path, "UPDATE document SET first_seen_ms = 0 WHERE seq = 3");
    let named = |suffix: &str| files::with_suffix(&place.path, suffix);
    for suffix in [".setting-aside", ".creating", ".recovering"] {
        fs::write(named(suffix), "half").unwrap();
    }
    let repaired = repair(&place.path).unwrap();
    assert_eq!(repaired.set_aside_in, named(".damaged-1.jsonl"));
    assert!(fs::read_to_string(&repaired.set_aside_in).unwrap().contains("\"record\":3"));
    let names: Vec<_> = contents(place.dir.path()).into_keys().collect();
    let kept = [".damaged-1", ".damaged-1-wal", ".damaged-1.jsonl"].map(|suffix| format!("pages.sqlite{suffix}"));
    assert_eq!(names[1..], kept);

    // Killed after the repair was certain, and before its records had their final name.
    let whole = fs::read(&place.path).unwrap();
    fs::remove_file(&repaired.kept_as).unwrap();
    fs::write(named(".setting-aside"), "later records").unwrap();
    fs::write(named(".repaired"), &whole).unwrap();
    finish_repairs(place.dir.path()).unwrap();
    assert_eq!(fs::read(named(".damaged-2.jsonl")).unwrap(), b"later records");
    assert!(fs::read(&repaired.set_aside_in).unwrap() != b"later records");
    assert_eq!(fs::read(named(".damaged-2")).unwrap(), whole);
}

/// Once, a copy under another name was served as a second collection with the same name.
#[test]
fn a_file_that_was_copied_is_refused_until_it_is_repaired() {
    let place = filled(10);
    let copy = place.dir.path().join("copy.sqlite");
    fs::copy(&place.path, &copy).unwrap();
    let errors = [Store::open(&copy).map(drop), Store::peek(&copy).map(drop)];
    for error in errors.map(Result::unwrap_err) {
        assert!(matches!(&error, StoreError::Damaged { collection, .. } if collection == "copy"), "{error}");
    }
    let found = inspect(&copy, &|_| {}).unwrap();
    assert_eq!((found.documents, found.findings_total, found.findings[0].place), (10, 1, "settings"));
    assert_eq!(repair(&copy).unwrap().rebuilt.documents, 10);
    let (store, _writer, opened) = Store::open(&copy).unwrap();
    assert_eq!((opened.meta.name.as_str(), seqs(&store).unwrap().len()), ("copy", 10));
}
