//! Decisions by shingles: under concurrency, within limits, and with damaged files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hapax::collections::{CheckOptions, CollectionError};
use hapax::types::{Content, Keep, Method, OnDuplicate, OnExisting, Overlap, Seq, SetElement, VerdictKind, Verify};
use hapax_core::{Pipeline, SignScratch, Spec, tuning, verify};

use super::steps::{
    LOOK, Shingled, THRESHOLD, WORD1, WORD5, check, exactly, insert, open, open_with, settings, variant,
};
use crate::support::documents::{id, options};
use crate::support::library::{self, Dir};

#[tokio::test(flavor = "multi_thread")]
async fn of_many_near_identical_insertions_one_is_unique() {
    for (keep, words) in [(Keep::Shingles, 400), (Keep::Text, 400), (Keep::Shingles, 20_000)] {
        let dir = library::dir();
        let collections = open(&dir, exactly(keep));
        let collection = library::default(&collections).await;
        for (round, on_duplicate) in [OnDuplicate::Skip, OnDuplicate::Store].into_iter().enumerate() {
            let writers: Vec<_> = (0..if words > 400 { 8 } else { 64 })
                .map(|writer| {
                    let collection = collection.clone();
                    tokio::spawn(async move {
                        let text = variant(words, writer).replace('w', &format!("r{round}w"));
                        insert(&collection, &format!("{round}/{writer}"), &text, on_duplicate).await.unwrap()
                    })
                })
                .collect();
            let mut kinds = Vec::new();
            for writer in writers {
                let verdict = writer.await.unwrap();
                assert!(verdict.matches.iter().all(|found| found.overlap.is_some()));
                kinds.push(verdict.kind);
            }
            let unique = kinds.iter().filter(|kind| **kind == VerdictKind::Unique).count();
            assert_eq!(unique, 1, "{keep:?} {on_duplicate:?}: {kinds:?}");
        }
        drop(collection);
        library::close(collections).await;
    }
}

/// A replacement is one step for exact comparison too. The shingles of the old content may be gone from the disk while
/// readers can still see the content. In this case, the readers look up the new content.
#[tokio::test(flavor = "multi_thread")]
async fn documents_that_are_replaced_are_there_all_the_time() {
    const DOCUMENTS: u64 = 150;
    let dir = library::dir();
    let collections = open(&dir, exactly(Keep::Shingles));
    let collection = library::default(&collections).await;
    for at in 0..DOCUMENTS {
        insert(&collection, &at.to_string(), &variant(1200, at), OnDuplicate::Store).await.unwrap();
    }
    drop(collection);
    library::close(collections).await;

    // After a restart, no shingles are in memory.
    let collections = open(&dir, exactly(Keep::Shingles));
    let collection = library::default(&collections).await;
    let done = Arc::new(AtomicBool::new(false));
    let reader = {
        let (collection, done, text) = (collection.clone(), Arc::clone(&done), variant(1200, 399));
        tokio::spawn(async move {
            let mut looks = 0;
            while !done.load(Ordering::Relaxed) {
                let verdict = check(&collection, &text).await.unwrap();
                assert_eq!(verdict.matches.len() as u64, DOCUMENTS);
                looks += 1;
            }
            looks
        })
    };
    for at in 0..DOCUMENTS {
        insert(&collection, &at.to_string(), &variant(1200, DOCUMENTS + at), OnDuplicate::Store).await.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    assert!(reader.await.unwrap() > 0);
    drop(collection);
    library::close(collections).await;
}

/// Returns two texts with `both` words in common. The first also has `only_a` other words, and the second `only_b`.
fn two_sets(seed: u64, both: u64, only_a: u64, only_b: u64) -> (String, String) {
    let words = |name: &str, count| (0..count).map(|at| format!("{name}{seed}x{at} ")).collect::<String>();
    let shared = words("s", both);
    (shared.clone() + &words("a", only_a), shared + &words("b", only_b))
}

/// Returns the first pair of texts of these sizes for which `will_do` accepts the number of equal slots.
fn pair(sizes: (u64, u64, u64), will_do: impl Fn(u32) -> bool) -> (String, String) {
    let Spec::Text(spec) = Spec::parse(WORD1).unwrap() else { unreachable!("WORD1 is for texts") };
    let (pipeline, mut scratch) = (Pipeline::new(&spec, None).unwrap(), SignScratch::default());
    let mut sign = |text: &str| pipeline.sign(&mut scratch, text).unwrap().signature;
    (0..100_000)
        .map(|seed| two_sets(seed, sizes.0, sizes.1, sizes.2))
        .find(|(a, b)| will_do(verify::matching_slots(&sign(a), &sign(b), spec.shape)))
        .expect("some pair of a hundred thousand")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shingles_decide_where_the_estimate_errs() {
    let shape = Spec::parse(WORD1).unwrap().shape();
    let (least, survives) = (verify::matching_min(THRESHOLD, shape), tuning::survivor_min(THRESHOLD, shape, None));
    let certain = tuning::certain_min(THRESHOLD, shape, None);
    assert!(survives < least && least < certain);
    // The first pair has J = 0.79, but its estimate is over the threshold. The second pair has J = 0.8, but its
    // estimate is under the threshold.
    let over = pair((158, 21, 21), |matching| (least..certain).contains(&matching));
    let under = pair((160, 20, 20), |matching| (survives..least).contains(&matching));
    for keep in [Keep::Shingles, Keep::Text] {
        for verify in Verify::ALL {
            let dir = library::dir();
            let collections = open(&dir, settings(keep, verify, WORD1, (64, 1)));
            let collection = library::default(&collections).await;
            for (pair, similarity, is_one) in [(&over, 158.0 / 200.0, false), (&under, 0.8, true)] {
                insert(&collection, "a", &pair.0, OnDuplicate::Store).await.unwrap();
                let verdict = check(&collection, &pair.1).await.unwrap();
                let expected = if verify.compares_shingles() { is_one } else { !is_one };
                assert_eq!(verdict.kind.is_duplicate(), expected, "{verify:?}: {verdict:?}");
                assert_eq!(verdict.candidates, 1);
                if verify.compares_shingles() && is_one {
                    assert_eq!(verdict.similarity, Some(similarity));
                }
                let lower = CheckOptions { threshold: Some(0.75), ..LOOK };
                let prepared = collection.prepare(Content::Text(pair.1.clone())).await.unwrap();
                let lower = collection.check(None, prepared, lower).await.unwrap();
                if verify == Verify::Exact {
                    assert_eq!(lower.similarity, Some(similarity), "{lower:?}");
                }
            }
            drop(collection);
            library::close(collections).await;
        }
    }
}

fn tamper(dir: &Dir, sql: &str) {
    let file = rusqlite::Connection::open(dir.path().join("data/collections/default.sqlite")).unwrap();
    assert_eq!(file.execute(sql, []).unwrap(), 1);
    file.close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_that_exclude_a_match_spare_the_reading_and_damage_is_named() {
    let shape = Spec::parse(WORD1).unwrap().shape();
    let survives = tuning::survivor_min(THRESHOLD, shape, None);
    // `small` and `large` share 156 of 200 shingles, too few for 0.8. `small` and `like_small` are similar.
    let (small, large) = pair((156, 0, 44), |matching| matching >= survives);
    let like_small = small.clone() + "one-more";
    for keep in [Keep::Shingles, Keep::Text] {
        let dir = library::dir();
        let made = || settings(keep, Verify::Exact, WORD1, (64, 1));
        let collections = open(&dir, made());
        let collection = library::default(&collections).await;
        insert(&collection, "a", "something else", OnDuplicate::Store).await.unwrap();
        insert(&collection, "b", &small, OnDuplicate::Store).await.unwrap();
        drop(collection);
        library::close(collections).await;
        tamper(&dir, "UPDATE payload SET bytes = x'2e' WHERE seq = 2");

        let collections = open(&dir, made());
        let collection = library::default(&collections).await;
        let verdict = check(&collection, &large).await.unwrap();
        assert_eq!((verdict.kind, verdict.candidates), (VerdictKind::Unique, 1), "its bytes are not read");
        let errors = [
            check(&collection, &like_small).await.unwrap_err(),
            insert(&collection, "c", &like_small, OnDuplicate::Store).await.unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, CollectionError::Damaged { record: Some(Seq(2)), .. }), "{error}");
        }
        assert_eq!(check(&collection, "something else").await.unwrap().kind, VerdictKind::ExactDuplicate);
        drop(collection);
        library::close(collections).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_bound_kept_from_being_compared_is_told() {
    let dir = library::dir();
    let collections = open(&dir, exactly(Keep::Shingles));
    let collection = library::default(&collections).await;
    for at in 0..10 {
        insert(&collection, &at.to_string(), &variant(400, at), OnDuplicate::Store).await.unwrap();
    }
    drop(collection);
    library::close(collections).await;
    for (reads_max, bytes_max, read) in [(256, 1 << 20, 10), (4, 1 << 20, 4), (256, 2500, 2), (256, 1, 1)] {
        let mut limits = library::LIMITS;
        (limits.exact_reads_max, limits.exact_bytes_max) = (reads_max, bytes_max);
        let collections = open_with(&dir, exactly(Keep::Shingles), limits);
        let collection = library::default(&collections).await;
        let verdict = check(&collection, &variant(400, 50)).await.unwrap();
        assert_eq!((verdict.matches.len(), verdict.unread), (read, 10 - read as u64));
        drop(collection);
        library::close(collections).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_the_disk_is_bounded() {
    let dir = library::dir();
    let mut limits = library::LIMITS;
    // One of these documents fills the limit by itself.
    limits.commit_payload_bytes_max = 4096;
    let collections = open_with(&dir, exactly(Keep::Text), limits);
    let collection = library::default(&collections).await;
    let writers: Vec<_> = (0..24)
        .map(|writer| {
            let collection = collection.clone();
            tokio::spawn(async move {
                let id = writer.to_string();
                insert(&collection, &id, &variant(2000, writer), OnDuplicate::Store).await.unwrap().stored
            })
        })
        .collect();
    for writer in writers {
        assert!(writer.await.unwrap());
    }
    drop(collection);
    library::close(collections).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_that_kept_shingles_may_come_to_verify_exactly() {
    let dir = library::dir();
    let collections = open(&dir, settings(Keep::Text, Verify::Estimate, WORD5, (64, 4)));
    let collection = library::default(&collections).await;
    insert(&collection, "a", &variant(400, 1), OnDuplicate::Store).await.unwrap();
    let verdict = check(&collection, &variant(400, 2)).await.unwrap();
    assert_eq!(verdict.matches[0].similarity.method, Method::Estimate);
    let before = collection.describe().verdict_recall_at_threshold;
    let changes = hapax::collections::Changes { verify: Some(Verify::Exact), ..Default::default() };
    let after = collection.update(changes).await.unwrap().verdict_recall_at_threshold;
    assert!(before < 0.6 && after > 0.99, "{before} {after}");
    let verdict = check(&collection, &variant(400, 2)).await.unwrap();
    let (query, found) = (Shingled::new(variant(400, 2)), Shingled::new(variant(400, 1)));
    assert_eq!(verdict.matches[0].overlap, Some(query.overlap(&found)));
    drop(collection);
    library::close(collections).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_are_compared_by_their_elements() {
    for keep in [Keep::Shingles, Keep::Text] {
        let dir = library::dir();
        let collections = open(&dir, exactly(keep));
        let collection = library::default(&collections).await;
        let set = |from: i128, to: i128| Content::Set((from..to).map(SetElement::Integer).collect());
        let prepared = collection.prepare(set(0, 100)).await.unwrap();
        let options = options(OnDuplicate::Store, OnExisting::Conflict);
        collection.insert(id("set"), None, prepared, options).await.unwrap().wait().await.unwrap();
        drop(collection);
        library::close(collections).await;
        let collections = open(&dir, exactly(keep));
        let collection = library::default(&collections).await;
        let prepared = collection.prepare(set(5, 102)).await.unwrap();
        let verdict = collection.check(None, prepared, LOOK).await.unwrap();
        assert_eq!(verdict.matches[0].overlap, Some(Overlap { both: 95, query: 97, found: 100 }));
        drop(collection);
        library::close(collections).await;
    }
}
