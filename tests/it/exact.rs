//! Exact verification: what is reported is at or above the threshold by the shingles themselves, whatever is kept,
//! whatever the estimate said, before and after a restart, under concurrency.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hapax::collections::{CheckOptions, Collection, CollectionError, Collections, InsertOptions, Settings};
use hapax::types::{
    Content, DocId, Keep, Method, OnDuplicate, OnExisting, Outcome, Overlap, Seq, SetElement, Verdict, VerdictKind,
    Verify,
};
use hapax_core::{Banding, Pipeline, SignScratch, Spec, tuning, verify};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use crate::support::client::{Client, fields, words};
use crate::support::documents::{self, id, look, options};
use crate::support::library::{self, Dir};
use crate::support::local::{Local, Setup};

const THRESHOLD: f64 = 0.8;
/// Above this the estimate's spread and the bands hide nothing, ever.
const SURE: f64 = 0.87;

fn settings(keep: Keep, verify: Verify, spec: &str, banding: (u32, u32)) -> Settings {
    let spec = Spec::parse(spec).unwrap();
    let banding = Banding::new(banding.0, banding.1, spec.shape()).unwrap();
    Settings { keep, verify, ..Settings::new(spec, banding, THRESHOLD) }
}

const WORD5: &str =
    "hapax1;unicode=17;fold=nfkc_casefold;marks=keep;digits=keep;shingle=word5;sketch=fss256x8;key=none";
const WORD1: &str = "hapax1;unicode=17;fold=nfkc_casefold;marks=keep;digits=keep;shingle=word1;sketch=fss64x8;key=none";

fn exactly(keep: Keep) -> Settings {
    settings(keep, Verify::Exact, WORD5, (64, 4))
}

/// The collections of a folder, with `default` as it is to be made.
fn open(dir: &Dir, default_settings: Settings) -> Collections {
    open_with(dir, default_settings, library::LIMITS)
}

fn open_with(dir: &Dir, default_settings: Settings, limits: hapax::collections::Limits) -> Collections {
    library::open(hapax::collections::CollectionsConfig { default_settings, limits, ..library::config(dir) })
}

const LOOK: CheckOptions = look(1000);

async fn check(collection: &Collection, text: &str) -> Result<Verdict, CollectionError> {
    documents::check(collection, text, LOOK).await
}

async fn insert(
    collection: &Collection,
    id: &str,
    text: &str,
    on_duplicate: OnDuplicate,
) -> Result<Verdict, CollectionError> {
    let options = InsertOptions { limit: 1000, ..options(on_duplicate, OnExisting::Replace) };
    documents::insert(collection, id, text, options).await
}

/// A text, and its runs of five words by the definition.
struct Shingled {
    text: String,
    shingles: HashSet<String>,
}

impl Shingled {
    fn new(text: String) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        let shingles = words.windows(5).map(|run| run.join(" ")).collect();
        Self { text, shingles }
    }

    fn overlap(&self, found: &Self) -> Overlap {
        let both = self.shingles.intersection(&found.shingles).count() as u64;
        Overlap { both, query: self.shingles.len() as u64, found: found.shingles.len() as u64 }
    }
}

/// A text of one of a few families, with some words of its own; some are parts of others.
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

/// Every match is one, with the similarity that it has, in the right order; and none that is surely one is missing.
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
                0 => first.push(verdict),
                _ => assert_eq!(verdict, Verdict { outcome: Outcome::Unchanged, ..first[at].clone() }),
            }
        }
        assert!(first.iter().any(|verdict| verdict.matches.len() > 2));
        drop(collection);
        library::close(collections).await;
    }
}

/// 400 words, or many more, of which one is the variant's own.
fn variant(words: u64, variant: u64) -> String {
    let word = |at| if at == variant * 3 { format!("variant{variant}") } else { format!("w{at}") };
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}

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

/// A replacement is one step for those who compare exactly too: the shingles of the old content may be gone from the
/// disk while it is still to be seen, and then the new one is looked for.
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

    // After a restart none of them is in memory.
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

/// Two sets of words, as texts, that share `both` and have so many more of their own.
fn two_sets(seed: u64, both: u64, only_a: u64, only_b: u64) -> (String, String) {
    let words = |name: &str, count| (0..count).map(|at| format!("{name}{seed}x{at} ")).collect::<String>();
    let shared = words("s", both);
    (shared.clone() + &words("a", only_a), shared + &words("b", only_b))
}

/// The first seed whose pair of such sets has a number of equal slots that will do.
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
    assert!(survives < least);
    // J = 0.79 that looks like more; J = 0.8 that looks like less.
    let over = pair((158, 21, 21), |matching| matching >= least);
    let under = pair((160, 20, 20), |matching| (survives..least).contains(&matching));
    for keep in [Keep::Shingles, Keep::Text] {
        for verify in Verify::ALL {
            let dir = library::dir();
            let collections = open(&dir, settings(keep, verify, WORD1, (64, 1)));
            let collection = library::default(&collections).await;
            for (pair, similarity, is_one) in [(&over, 158.0 / 200.0, false), (&under, 0.8, true)] {
                insert(&collection, "a", &pair.0, OnDuplicate::Store).await.unwrap();
                let verdict = check(&collection, &pair.1).await.unwrap();
                let expected = if verify == Verify::Exact { is_one } else { !is_one };
                assert_eq!(verdict.kind.is_duplicate(), expected, "{verify:?}: {verdict:?}");
                assert_eq!(verdict.candidates, 1);
                if verify == Verify::Exact && is_one {
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
    // 156 of 200: too few to ever be four fifths; the other is alike.
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
    // One of these documents fills it, and takes it alone.
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

fn exact_server(dir: &Dir) -> (Local, Client) {
    let server = Setup::new(dir).limits(|limits| limits.body_bytes_max = 200_000).start();
    let client = Client::of(&server);
    let made = client.json("PUT", "/v1/collections/exact", &json!({ "verify": "exact", "keep": "text" }));
    assert_eq!(made.status, 201, "{}", made.text());
    (server, client)
}

#[test]
fn over_http_a_match_tells_its_method_and_containments() {
    let dir = library::dir();
    let (_server, client) = exact_server(&dir);
    let text = variant(400, 1);
    client.post("/v1/collections/exact/documents", &json!({ "id": "a", "text": text })).ok();
    let half = text.split(' ').take(350).collect::<Vec<_>>().join(" ");
    let found = client.post("/v1/collections/exact/check", &json!({ "text": half })).ok()["matches"][0].clone();
    assert_eq!(found["method"], "exact");
    assert_eq!([&found["similarity"], &found["low"], &found["high"]], [&json!(0.873737); 3]);
    assert_eq!((&found["containment_in_match"], &found["containment_of_match"]), (&json!(1.0), &json!(0.873737)));

    // Two that are stored are compared by what is kept; where nothing is, by their signatures alone.
    for (collection, exact) in [("exact", true), ("default", false)] {
        let path = |verb: &str| format!("/v1/collections/{collection}/{verb}");
        for (id, text) in [("x", words(1)), ("y", words(1).replace("w1x9 ", "other "))] {
            let store = path("documents?on_duplicate=store");
            client.post(&store, &json!({ "id": id, "text": text })).ok();
        }
        let compared = client.post(&path("compare"), &json!({ "a": { "id": "x" }, "b": { "id": "y" } })).ok();
        assert_eq!(compared["exact"].is_object(), exact, "{compared}");
        if exact {
            assert_eq!(
                (&compared["exact"]["intersection"], &compared["exact"]["shingles_b"]),
                (&json!(31), &json!(36))
            );
        }
    }
}

#[test]
fn a_signature_cannot_be_compared_exactly_nor_kept_with_shingles() {
    let dir = library::dir();
    let (_server, client) = exact_server(&dir);
    let kept = client.json("PUT", "/v1/collections/kept", &json!({ "keep": "shingles" }));
    assert_eq!(kept.status, 201);
    let signed = client.post("/v1/collections/exact/sign", &json!({ "text": words(1) })).ok();
    let signature = json!({ "id": "s", "signature": signed["signature"], "fingerprint": signed["fingerprint"] });
    for (path, refused) in
        [("exact/check", true), ("exact/documents", true), ("kept/documents", true), ("kept/check", false)]
    {
        let answer = client.post(&format!("/v1/collections/{path}"), &signature);
        if refused {
            assert_eq!(fields(&answer.problem(422, "invalid_value")), ["signature"], "{path}");
        } else {
            answer.ok();
        }
    }
    let plain = client.json("PATCH", "/v1/collections/default", &json!({ "verify": "exact" }));
    assert_eq!(fields(&plain.problem(422, "invalid_value")), ["verify"]);
    assert_eq!(client.json("PATCH", "/v1/collections/kept", &json!({ "verify": "exact" })).status, 200);
}

/// A raw text is streamed where its signature is enough; where its shingles are compared it has the bound of a body.
#[test]
fn a_raw_text_is_taken_whole_to_be_compared_exactly() {
    let dir = library::dir();
    let (_server, client) = exact_server(&dir);
    let text = variant(20_000, 1);
    client.post("/v1/collections/exact/documents", &json!({ "id": "a", "text": text })).ok();
    let found = client.text("/v1/collections/exact/check", variant(20_000, 2).as_bytes()).ok();
    assert_eq!(found["matches"][0]["method"], "exact", "{found}");
    let too_long = variant(40_000, 1);
    assert!(too_long.len() > 200_000);
    client.text("/v1/collections/exact/check", too_long.as_bytes()).problem(413, "too_large");
    client.text("/v1/collections/exact/sign", too_long.as_bytes()).ok();
    client.text("/v1/collections/default/check", too_long.as_bytes()).ok();
}
