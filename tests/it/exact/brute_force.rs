//! Answers equal those of brute force, before and after restarts.

use std::collections::{BTreeMap, BTreeSet};

use hapax::types::{DocId, Keep, LookupTimes, Method, OnDuplicate, Outcome, Verdict, VerdictKind};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::steps::{SURE, Shingled, check, exactly, insert, open};
use crate::support::library::{self};

/// Makes a text of one of a few families, with some words that only it has. Some texts are parts of others.
fn family_text(rng: &mut ChaCha8Rng) -> String {
    let family = rng.random_range(0..8_u64);
    let mut of_family = ChaCha8Rng::seed_from_u64(family);
    let mut words: Vec<String> = (0..120).map(|_| format!("w{}", of_family.random_range(0..500_u32))).collect();
    for _ in 0..rng.random_range(0..5) {
        let place = rng.random_range(0..words.len());
        words[place] = format!("v{}", rng.random_range(0..40_u32));
    }
    if rng.random_bool(0.3) {
        words.truncate(rng.random_range(60..120));
    }
    words.join(" ")
}

/// Checks that every match is a true match, with its right similarity and in the right order, and that no certain match
/// is missing.
fn holds(verdict: &Verdict, query: &Shingled, held: &BTreeMap<String, Shingled>, own: Option<&str>) {
    let mut sure: BTreeSet<&str> = BTreeSet::new();
    for (id, other) in held.iter().filter(|(id, _)| own != Some(id.as_str())) {
        if query.overlap(other).similarity().value >= SURE {
            sure.insert(id);
        }
    }
    for found in &verdict.matches {
        let id = found.id.as_str();
        assert_ne!(own, Some(id));
        let overlap = query.overlap(&held[id]);
        assert_eq!(found.overlap, Some(overlap), "{id}");
        assert!(overlap.both * 5 >= overlap.either() * 4, "{id}: {overlap:?} is reported");
        let similarity = found.similarity;
        assert_eq!((similarity.method, similarity.value), (Method::Exact, overlap.similarity().value));
        assert_eq!((similarity.low, similarity.high), (similarity.value, similarity.value));
        assert_eq!(found.same_content, held[id].text == query.text);
        sure.remove(id);
    }
    assert!(sure.is_empty(), "{sure:?} are missing in {verdict:?}");
    assert!(
        verdict
            .matches
            .is_sorted_by(|a, b| { (a.same_content, a.similarity.value) >= (b.same_content, b.similarity.value) })
    );
    assert_eq!(verdict.similarity, verdict.matches.first().map(|best| best.similarity.value));
    let kind = match verdict.matches.first() {
        None => VerdictKind::Unique,
        Some(best) if best.same_content => VerdictKind::ExactDuplicate,
        Some(_) => VerdictKind::NearDuplicate,
    };
    assert_eq!(verdict.kind, kind);
    assert_eq!(verdict.unread, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_brute_force_before_and_after_restarts() {
    let seed = library::seed();
    for keep in [Keep::Shingles, Keep::Text] {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let dir = library::dir();
        let mut held: BTreeMap<String, Shingled> = BTreeMap::new();
        for _life in 0..3 {
            let collections = open(&dir, exactly(keep));
            let collection = library::default(&collections).await;
            for step in 0..120 {
                let text = Shingled::new(family_text(&mut rng));
                holds(&check(&collection, &text.text).await.unwrap(), &text, &held, None);
                let id = format!("id{}", rng.random_range(0..60_u32));
                if step % 5 == 4 {
                    let ticket = collection.delete(DocId::new(id.as_str()).unwrap()).await.unwrap();
                    assert_eq!(ticket.wait().await.unwrap(), held.remove(&id).is_some());
                    continue;
                }
                let on_duplicate = if rng.random_bool(0.7) { OnDuplicate::Store } else { OnDuplicate::Skip };
                let verdict = insert(&collection, &id, &text.text, on_duplicate).await.unwrap();
                if verdict.outcome != Outcome::Unchanged {
                    holds(&verdict, &text, &held, Some(&id));
                }
                match verdict.outcome {
                    Outcome::Inserted | Outcome::Replaced => drop(held.insert(id, text)),
                    Outcome::Removed => assert!(held.remove(&id).is_some(), "{id} removed and not there"),
                    _ => {}
                }
            }
            drop(collection);
            library::close(collections).await;
        }
        assert!(held.len() > 20, "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_insertion_repeats_its_verdict() {
    let dir = library::dir();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let texts: Vec<String> = (0..60).map(|_| family_text(&mut rng)).collect();
    let mut first = Vec::new();
    for life in 0..2 {
        let collections = open(&dir, exactly(Keep::Shingles));
        let collection = library::default(&collections).await;
        for (at, text) in texts.iter().enumerate() {
            let verdict = insert(&collection, &at.to_string(), text, OnDuplicate::Store).await.unwrap();
            match life {
                // A repeated insert does no lookup.
                0 => first.push(Verdict { times: LookupTimes::default(), ..verdict }),
                _ => assert_eq!(verdict, Verdict { outcome: Outcome::Unchanged, ..first[at].clone() }),
            }
        }
        assert!(first.iter().any(|verdict| verdict.matches.len() > 2));
        drop(collection);
        library::close(collections).await;
    }
}
