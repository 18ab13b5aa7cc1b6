//! The golden set is stored completely or not at all. It survives changes of documents and reopening. Damage to it is
//! found.

use super::*;
use crate::store::tests::damage::tamper;
use crate::types::GoldenPair;

pub(super) fn pairs(count: usize) -> Vec<GoldenPair> {
    let name = |at: usize| at.is_multiple_of(2).then(|| format!("pair {at}"));
    let text = |at, side| format!("text {at} of side {side} 🦀");
    (0..count)
        .map(|at| GoldenPair { name: name(at), a: text(at, 'a'), b: text(at, 'b'), duplicate: at.is_multiple_of(3) })
        .collect()
}

/// Makes a closed collection with ten records and a golden set of five pairs.
fn with_golden() -> Place {
    let place = filled(10);
    let (_, mut writer, _) = Store::open(&place.path).unwrap();
    writer.set_golden(&pairs(5)).unwrap();
    writer.close().unwrap();
    place
}

#[test]
fn a_set_takes_the_place_of_the_earlier_one() {
    let place = filled(10);
    let (store, mut writer, _) = Store::open(&place.path).unwrap();
    assert_eq!(store.golden().unwrap(), []);
    for count in [5, 7, 2, 0, 3] {
        writer.set_golden(&pairs(count)).unwrap();
        assert_eq!(store.golden().unwrap(), pairs(count));
    }
    // An insert changes the other lines of the ledger.
    writer.commit(&[insert(11)], Seq(11)).unwrap();
    assert_eq!(store.golden().unwrap(), pairs(3));
    // The last connection is dropped without being closed, as by a crash.
    drop((store, writer));
    let (store, writer, opened) = Store::open(&place.path).unwrap();
    assert_eq!((store.golden().unwrap(), opened.documents), (pairs(3), 11));
    writer.close().unwrap();
}

/// Each of these changes or deletes one pair, or changes the set's line in the ledger.
const DAMAGE: [&str; 9] = [
    "UPDATE golden SET a = 'other' WHERE pair = 3",
    "UPDATE golden SET b = a WHERE pair = 3",
    "UPDATE golden SET name = NULL WHERE pair = 3",
    "UPDATE golden SET duplicate = 1 - duplicate WHERE pair = 3",
    "UPDATE golden SET duplicate = 2 WHERE pair = 3",
    "UPDATE golden SET sum = 1 WHERE pair = 3",
    "UPDATE golden SET pair = 9 WHERE pair = 3",
    "DELETE FROM golden WHERE pair = 3",
    "UPDATE ledger SET sum = sum + 1 WHERE tally = 'golden'",
];

#[test]
fn damage_is_found_by_reading_scrubbing_and_inspecting_and_documents_stay_readable() {
    for sql in DAMAGE {
        let place = with_golden();
        assert!(inspect(&place.path, &|_| ()).unwrap().is_sound());
        tamper(&place.path, sql);
        let (store, writer, _) = Store::open(&place.path).unwrap();
        let error = store.golden().unwrap_err();
        assert!(matches!(&error, StoreError::Damaged { detail, .. } if detail.contains("golden")), "{sql}: {error}");
        let scrubbed = store.scrub(Keep::Signature, Seq(0), u64::MAX).unwrap();
        assert!(!scrubbed.golden.is_empty() && scrubbed.damaged.is_empty(), "{sql}: {scrubbed:?}");
        assert_eq!(seqs(&store).unwrap().len(), 10, "{sql}");
        writer.close().unwrap();
        let inspection = inspect(&place.path, &|_| ()).unwrap();
        assert_eq!((inspection.documents, inspection.damaged), (10, 0), "{sql}");
        assert!(inspection.findings.iter().all(|finding| finding.place == "golden"), "{sql}: {inspection:?}");
        assert!(!inspection.is_sound(), "{sql}");
    }
}

#[test]
fn a_repair_keeps_the_intact_pairs_and_sets_the_others_aside() {
    for sql in DAMAGE {
        let place = with_golden();
        tamper(&place.path, sql);
        let repaired = repair(&place.path).unwrap();
        let (store, writer, _) = Store::open(&place.path).unwrap();
        let left = store.golden().unwrap();
        let whole = sql.contains("ledger");
        assert_eq!(left.len(), if whole { 5 } else { 4 }, "{sql}");
        assert!(left.iter().all(|pair| pairs(5).contains(pair)), "{sql}");
        let damaged = !whole && !sql.starts_with("DELETE");
        assert_eq!(repaired.rebuilt.pairs_set_aside, u64::from(damaged), "{sql}");
        let aside = fs::read_to_string(&repaired.set_aside_in).unwrap();
        assert_eq!(aside.contains(r#""table":"golden""#), damaged, "{sql}: {aside}");
        assert_eq!(
            (repaired.rebuilt.documents, repaired.rebuilt.set_aside, repaired.rebuilt.lost),
            (10, 0, Some(0)),
            "{sql}"
        );
        writer.close().unwrap();
        assert!(inspect(&place.path, &|_| ()).unwrap().is_sound(), "{sql}");
    }
}
