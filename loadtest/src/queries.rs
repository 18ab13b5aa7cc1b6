//! Prepared checks whose right answers are known, and the count of right answers. Some texts are new to the collection.
//! The others are near-duplicates of imported documents at known similarities.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use hapax_core::tuning::{SketchedPair, default_banding, verdict_probability};
use hapax_core::{SketchKind, TextSpec};
use serde::Serialize;

use crate::answers::Verdict;
use crate::texts::{Nearness, Texts, words_to_replace};

/// The similarities of near-duplicates, around the default threshold of 0.8.
const LEVELS: [f64; 6] = [0.95, 0.9, 0.85, 0.8, 0.7, 0.6];
/// The number of levels, from the first, at which only one match in thousands is missed.
const CLEAR: usize = 1;
const THRESHOLD: f64 = 0.8;
/// The first number of the texts that are in no document.
pub(crate) const NEW: u64 = 1 << 40;

/// The right answer to a query.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Truth {
    /// No document resembles the query.
    New,
    /// The query resembles this document, with the similarity of this level.
    Near { original: u64, level: usize },
}

#[derive(Clone)]
pub(crate) struct Query {
    pub(crate) text: Bytes,
    pub(crate) truth: Truth,
}

/// One level of similarity.
#[derive(Default)]
struct Level {
    /// The number of prepared queries.
    prepared: u64,
    jaccard_sum: f64,
    expected_sum: f64,
    asked: AtomicU64,
    found: AtomicU64,
}

/// Recall at one level, as it is in the report.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RecallAt {
    pub(crate) group: String,
    pub(crate) asked: u64,
    /// The number of different texts among the queries.
    pub(crate) texts: u64,
    /// The mean exact similarity.
    pub(crate) jaccard: f64,
    /// The share of queries whose matches include the right document; for new texts, the share that was reported.
    pub(crate) found: f64,
    /// The share of such queries that theory predicts for the banding and the sketch.
    pub(crate) expected: f64,
}

pub(crate) struct Queries {
    all: Vec<Query>,
    levels: Vec<Level>,
    new_asked: AtomicU64,
    new_reported: AtomicU64,
}

impl Queries {
    /// Prepares `count` queries about the first `documents` documents; every second query is new.
    pub(crate) fn prepare(texts: &Texts, documents: u64, count: u64) -> Self {
        let mut made = Self {
            all: Vec::with_capacity(count as usize),
            levels: LEVELS.iter().map(|_| Level::default()).collect(),
            new_asked: AtomicU64::new(0),
            new_reported: AtomicU64::new(0),
        };
        let (mut nearness, mut theory) = (Nearness::new(), HashMap::new());
        for n in 0..count {
            if n % 2 == 0 || documents == 0 {
                made.all.push(Query { text: texts.fresh(NEW + n).into(), truth: Truth::New });
                continue;
            }
            let level = (n / 2) as usize % LEVELS.len();
            let mut random = texts.random(2, n);
            let original = Texts::some_original(documents, &mut random);
            let document = texts.fresh(original);
            let shingles = nearness.shingles(&document);
            let text = texts.near(&document, words_to_replace(shingles, LEVELS[level]), &mut random);
            let jaccard = nearness.jaccard(&document, &text);
            // Similarities that differ by less than this have the same prediction.
            let rounded = (jaccard * 2_000.0).round() as u64;
            let expected = *theory.entry(rounded).or_insert_with(|| expected(jaccard, shingles));
            let counts = &mut made.levels[level];
            counts.prepared += 1;
            counts.jaccard_sum += jaccard;
            counts.expected_sum += expected;
            made.all.push(Query { text: text.into(), truth: Truth::Near { original, level } });
        }
        made
    }

    /// Returns query `n`. After the last query, the first one follows again.
    pub(crate) fn get(&self, n: u64) -> &Query {
        &self.all[(n % self.all.len() as u64) as usize]
    }

    /// Returns the texts whose similarity is far above the threshold, with the numbers of their originals.
    pub(crate) fn clear_copies(&self) -> Vec<(Bytes, u64)> {
        let clear = |query: &Query| match query.truth {
            Truth::Near { original, level } if level < CLEAR => Some((query.text.clone(), original)),
            _ => None,
        };
        self.all.iter().filter_map(clear).collect()
    }

    /// Counts an answer. A wrong answer is not an error, because some near-duplicates are missed and some texts are
    /// reported by chance. Only the shares can be judged.
    pub(crate) fn count(&self, truth: Truth, verdict: &Verdict<'_>) {
        match truth {
            Truth::New => {
                self.new_asked.fetch_add(1, Ordering::Relaxed);
                self.new_reported.fetch_add(u64::from(verdict.verdict != "unique"), Ordering::Relaxed);
            }
            Truth::Near { original, level } => {
                let level = &self.levels[level];
                level.asked.fetch_add(1, Ordering::Relaxed);
                level.found.fetch_add(u64::from(verdict.names(original)), Ordering::Relaxed);
            }
        }
    }

    /// Returns the recall at each level, and then the share of new texts that were reported.
    pub(crate) fn recall(&self) -> Vec<RecallAt> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let level = |level: &Level| RecallAt {
            group: "near-duplicates".to_owned(),
            asked: read(&level.asked),
            texts: level.prepared.min(read(&level.asked)),
            jaccard: level.jaccard_sum / level.prepared.max(1) as f64,
            found: share(read(&level.found), read(&level.asked)),
            expected: level.expected_sum / level.prepared.max(1) as f64,
        };
        let new = RecallAt {
            group: "new texts".to_owned(),
            asked: read(&self.new_asked),
            texts: (self.all.len() as u64).div_ceil(2).min(read(&self.new_asked)),
            jaccard: 0.0,
            found: share(read(&self.new_reported), read(&self.new_asked)),
            expected: 0.0,
        };
        self.levels.iter().map(level).chain([new]).filter(|level| level.asked > 0).collect()
    }
}

impl RecallAt {
    /// Returns how far the share may differ by chance: five standard deviations, plus half a percent for the theory
    /// itself.
    pub(crate) fn tolerance(&self) -> f64 {
        let variance = (self.expected * (1.0 - self.expected)).max(0.0) / self.texts.max(1) as f64;
        5.0 * variance.sqrt() + if self.jaccard > 0.0 { 0.005 } else { 0.0 }
    }
}

/// Returns the probability that a check in a collection with default settings reports a pair.
fn expected(jaccard: f64, shingles: u64) -> f64 {
    let shape = TextSpec::default().shape;
    let union = (2.0 * shingles as f64 / (1.0 + jaccard)) as u64;
    let pair = SketchedPair { sketch: SketchKind::Fss, shingles: union };
    verdict_probability(jaccard, default_banding(shape, THRESHOLD), shape, THRESHOLD, pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_theory_is_sure_of_clear_cases_only() {
        let expected = [0.95, 0.8, 0.6].map(|jaccard| expected(jaccard, 340));
        assert!(expected[0] > 0.999 && (0.3..0.7).contains(&expected[1]) && expected[2] < 1e-6, "{expected:?}");
    }

    #[test]
    fn answers_are_counted_by_level() {
        let queries = Queries::prepare(&Texts::new(1, 2048), 1_000, 24);
        let near: Vec<Truth> = (0..24).map(|n| queries.get(n).truth).collect();
        for truth in near {
            let id = match truth {
                Truth::New => None,
                Truth::Near { original, .. } => Some(format!("{{\"id\":\"doc-{original}\"}}")),
            };
            let kind = if id.is_some() { "near_duplicate" } else { "unique" };
            let text = format!(r#"{{"verdict":"{kind}","stored":false,"matches":[{}]}}"#, id.unwrap_or_default());
            queries.count(truth, &Verdict::parse(text.as_bytes()).unwrap());
        }
        let recall = queries.recall();
        assert_eq!(recall.len(), LEVELS.len() + 1);
        assert!(recall[..LEVELS.len()].iter().all(|level| level.asked == 2 && level.found == 1.0), "{recall:?}");
        let new = &recall[LEVELS.len()];
        assert_eq!((new.asked, new.found), (12, 0.0));
        assert!((recall[0].jaccard - 0.95).abs() < 0.02);
    }
}
