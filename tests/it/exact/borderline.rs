//! Borderline verification: shingles are compared only if the estimate is uncertain.

use hapax::types::{Keep, Method, OnDuplicate, Verdict, VerdictKind, Verify};
use hapax_core::{Spec, tuning, verify};

use super::steps::{THRESHOLD, WORD5, check, insert, open, settings};
use crate::support::library::{self, Dir};

const WORDS: u64 = 400;

/// Returns a text of 400 words. The first `changed` of them occur in no other text. Shingles have five words, so the
/// text's similarity to the unchanged text is `J = (396 - changed)/(396 + changed)`.
fn changed(name: &str, changed: u64) -> String {
    (0..WORDS).map(|at| if at < changed { format!("{name}{at} ") } else { format!("w{at} ") }).collect()
}

fn jaccard(changed: u64) -> f64 {
    (WORDS - 4 - changed) as f64 / (WORDS - 4 + changed) as f64
}

/// Stores texts with decreasing similarity to the query. Then it opens the collection again, so that shingles are only
/// on disk.
async fn stored(dir: &Dir, verify: Verify, changes: &[u64]) {
    let collections = open(dir, settings(Keep::Shingles, verify, WORD5, (64, 4)));
    let collection = library::default(&collections).await;
    for &changes in changes {
        let text = changed(&format!("v{changes}x"), changes);
        insert(&collection, &changes.to_string(), &text, OnDuplicate::Store).await.unwrap();
    }
    drop(collection);
    library::close(collections).await;
}

async fn verdict(dir: &Dir, verify: Verify) -> Verdict {
    let collections = open(dir, settings(Keep::Shingles, verify, WORD5, (64, 4)));
    let collection = library::default(&collections).await;
    let verdict = check(&collection, &changed("", 0)).await.unwrap();
    drop(collection);
    library::close(collections).await;
    verdict
}

#[tokio::test(flavor = "multi_thread")]
async fn only_doubtful_matches_are_compared() {
    let changes = [0, 2, 5, 10, 20, 30, 38, 42, 43, 44, 45, 46, 50, 60, 90];
    let spec = Spec::parse(WORD5).unwrap();
    let certain = verify::similarity(tuning::certain_min(THRESHOLD, spec.shape(), spec.sketch()), spec.shape());
    let dir = library::dir();
    stored(&dir, Verify::Borderline, &changes).await;
    let (verdict, by_all) = (verdict(&dir, Verify::Borderline).await, verdict_exact(&changes).await);
    assert_eq!(verdict.kind, VerdictKind::ExactDuplicate);
    let mut methods = [0, 0];
    for found in &verdict.matches {
        let changes: u64 = found.id.as_str().parse().unwrap();
        let similarity = found.similarity;
        match similarity.method {
            // The estimate was certain, so the shingles were not compared.
            Method::Estimate => assert!(similarity.value >= certain && found.overlap.is_none(), "{found:?}"),
            Method::Exact => assert!((similarity.value - jaccard(changes)).abs() < 1e-9, "{found:?}"),
        }
        methods[usize::from(similarity.method == Method::Exact)] += 1;
        assert!(jaccard(changes) >= THRESHOLD, "{found:?}");
    }
    assert!(methods.iter().all(|count| *count > 0), "{methods:?}");
    assert!(verdict.matches.windows(2).all(|pair| pair[0].similarity.value >= pair[1].similarity.value));
    let sorted = |verdict: &Verdict| {
        let mut ids: Vec<String> = verdict.matches.iter().map(|found| found.id.as_str().to_owned()).collect();
        ids.sort();
        ids
    };
    assert_eq!(sorted(&verdict), sorted(&by_all), "the same documents as by exact verification");
}

async fn verdict_exact(changes: &[u64]) -> Verdict {
    let dir = library::dir();
    stored(&dir, Verify::Exact, changes).await;
    verdict(&dir, Verify::Exact).await
}

/// A check does not read the shingles of a clear match, so it does not notice that they are damaged.
#[tokio::test(flavor = "multi_thread")]
async fn shingles_of_clear_matches_are_not_read() {
    let dir = library::dir();
    stored(&dir, Verify::Borderline, &[3]).await;
    let file = rusqlite::Connection::open(dir.path().join("data/collections/default.sqlite")).unwrap();
    assert_eq!(file.execute("UPDATE payload SET bytes = x'2e' WHERE seq = 1", []).unwrap(), 1);
    file.close().unwrap();
    let verdict = verdict(&dir, Verify::Borderline).await;
    assert_eq!((verdict.kind, verdict.unread), (VerdictKind::NearDuplicate, 0));
    assert_eq!(verdict.matches[0].similarity.method, Method::Estimate);
}
