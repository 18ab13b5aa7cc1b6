//! The three ways to verify, compared on the given corpora: recall by similarity, precision, the bytes that a check
//! reads and the time that it takes. `make quality` prints the table, which docs/exact.md shows.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Instant;

use serde_json::json;

use crate::quality::{Document, Pair, Service, THRESHOLD, corpora, documents, ordered, pairs, read_zst, start, stream};

/// The recall, the precision and the cost of one way to verify.
struct Way {
    /// The recall in each stretch of [`STRETCHES`]. A document belongs to a stretch by its similarity to the most
    /// similar earlier document.
    recall: [f64; 2],
    precision: f64,
    /// The time of a check in microseconds, in a stream on all processors.
    check_us: f64,
    /// The number of comparisons of a check.
    compared: f64,
    read_bytes: f64,
}

/// Two stretches of similarity: the similarity of a document to its most similar earlier document.
const STRETCHES: [(f64, f64); 2] = [(THRESHOLD, 0.85), (0.85, 1.1)];

#[test]
#[ignore = "minutes; `make quality` runs it"]
fn recall_precision_and_cost_of_each() {
    let Some(corpora) = corpora() else { return };
    println!(
        "| corpus | verify | recall 0.80 to 0.85 | recall from 0.85 | precision | compared | bytes read | a check, µs |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|--:|");
    for (file, mode) in [("licences", "w3"), ("chinese_poems", "c3"), ("django_docs_5_versions", "w3")] {
        let ways = ["estimate", "borderline", "exact"].map(|verify| (verify, way(&corpora, file, mode, verify)));
        for (verify, way) in &ways {
            let Way { recall, precision, check_us, compared, read_bytes } = way;
            println!(
                "| {file} | `{verify}` | {:.3} | {:.3} | {precision:.4} | {compared:.1} | {read_bytes:.0} | {check_us:.0} |",
                recall[0], recall[1]
            );
        }
        let [_, (_, borderline), (_, exact)] = &ways;
        assert!(borderline.recall[0] >= exact.recall[0] - 0.01 && borderline.recall[1] >= exact.recall[1] - 0.001);
        assert!(borderline.precision >= 0.998 && exact.precision == 1.0);
        assert!(borderline.read_bytes <= exact.read_bytes);
    }
}

fn way(corpora: &Path, file: &str, mode: &str, verify: &str) -> Way {
    let documents = documents(&corpora.join(format!("{file}.jsonl.zst")));
    let truth = pairs(&read_zst(&corpora.join(format!("{file}.{mode}.j50.tsv.zst"))));
    let service = start();
    let kind = if mode.starts_with('w') { "word" } else { "char" };
    let settings = json!({ "shingle": format!("{kind}{}", &mode[1..]), "threshold": THRESHOLD, "verify": verify });
    assert_eq!(service.client.json("PUT", "/v1/collections/ways", &settings).status, 201);
    let answers = stream(&service, "ways", &documents);
    let mut flagged = HashSet::new();
    let mut found = HashSet::new();
    for (document, matches) in documents.iter().zip(&answers) {
        flagged.extend((!matches.is_empty()).then_some(document.id.as_str()));
        found.extend(matches.iter().map(|(id, _)| ordered(&document.id, id)));
    }
    let best = best_earlier(&documents, &truth);
    let recall = STRETCHES.map(|(from, to)| {
        let inside: Vec<&str> =
            best.iter().filter(|(_, jaccard)| (from..to).contains(*jaccard)).map(|(id, _)| *id).collect();
        inside.iter().filter(|id| flagged.contains(*id)).count() as f64 / inside.len().max(1) as f64
    });
    let true_ones: HashSet<_> = truth.iter().filter(|pair| pair.jaccard >= THRESHOLD).map(|pair| &pair.ids).collect();
    let right = found.iter().filter(|ids| true_ones.contains(ids)).count();
    let (check_us, compared, read_bytes) = cost(&service, &documents);
    Way { recall, precision: right as f64 / found.len().max(1) as f64, check_us, compared, read_bytes }
}

/// Returns, for each document, the similarity of the most similar earlier one, if it is at least the threshold.
fn best_earlier<'a>(documents: &'a [Document], truth: &[Pair]) -> HashMap<&'a str, f64> {
    let place: HashMap<&str, usize> =
        documents.iter().enumerate().map(|(at, document)| (document.id.as_str(), at)).collect();
    let mut best: HashMap<&str, f64> = HashMap::new();
    for pair in truth.iter().filter(|pair| pair.jaccard >= THRESHOLD) {
        let later = place[pair.ids.0.as_str()].max(place[pair.ids.1.as_str()]);
        let best = best.entry(&documents[later].id).or_default();
        *best = best.max(pair.jaccard);
    }
    best
}

/// Checks all documents without their ids. Returns the time, the comparisons and the bytes read for one check.
fn cost(service: &Service, documents: &[Document]) -> (f64, f64, f64) {
    let lines: String = documents.iter().map(|document| json!({ "text": document.text }).to_string() + "\n").collect();
    let metric = |name: &str| {
        let scrape = service.client.get("/metrics").text();
        let series = format!("{name}{{collection=\"ways\"}} ");
        let value = scrape.lines().find_map(|line| line.strip_prefix(&series)?.parse::<f64>().ok());
        value.unwrap_or_default()
    };
    let counted = || (metric("hapax_exact_compared_sum"), metric("hapax_exact_read_bytes_total"));
    let (before, begun) = (counted(), Instant::now());
    let headers = [("content-type", "application/x-ndjson")];
    let answers =
        service.client.send("POST", "/v1/collections/ways/bulk?op=check&limit=10", &headers, lines.as_bytes());
    assert_eq!(answers.lines().len(), documents.len() + 1);
    let (after, count) = (counted(), documents.len() as f64);
    (begun.elapsed().as_micros() as f64 / count, (after.0 - before.0) / count, (after.1 - before.1) / count)
}
