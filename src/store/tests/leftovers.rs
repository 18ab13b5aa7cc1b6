//! Files are created and dropped, and the leftovers of a crash are removed.

use super::*;

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
        "pages.sqlite.setting-aside",
    ];
    for name in kept.iter().chain(&left).filter(|name| !["pages.sqlite", "pages.sqlite-moved"].contains(name)) {
        fs::write(dir.join(name), "half").unwrap();
    }
    assert_eq!(list(dir).unwrap(), [meta().name]);
    let mut removed = clean_leftovers(dir).unwrap();
    removed.sort();
    assert_eq!(
        removed,
        ["new.sqlite.creating", "old.sqlite.dropped", "pages.sqlite.creating", "pages.sqlite.setting-aside"]
            .map(|name| dir.join(name))
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
