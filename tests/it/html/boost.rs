//! Pairs of pages from two versions of real documentation: a page, and the page with the same path in the other
//! version.

use std::collections::{HashMap, HashSet};

use hapax::extract::extract;
use hapax::types::{Extract, Html, Syntax};
use serde_json::Value;

use super::pairs::{shingles, similar};
use crate::quality::{corpora, read_zst};

/// A run uses every twelfth path. `make quality` uses all paths.
const PATHS_EACH: usize = 12;

/// Figures of one way to extract.
struct Figures {
    pages: usize,
    /// The number of pairs of versions of the same page.
    versions: usize,
    found: usize,
    /// The number of other pairs that are reported.
    others: usize,
    given_up: usize,
}

fn figures(asked: Extract, every: usize) -> Option<Figures> {
    let corpus = corpora()?.join("boost_html_2_versions.jsonl.zst");
    let mut versions: HashMap<String, Vec<String>> = HashMap::new();
    for line in read_zst(&corpus).lines() {
        let page: Value = serde_json::from_str(line).unwrap();
        let path = page["id"].as_str().unwrap().splitn(5, '/').nth(4).unwrap().to_owned();
        versions.entry(path).or_default().push(page["html"].as_str().unwrap().to_owned());
    }
    let mut paths: Vec<_> = versions.into_iter().collect();
    paths.sort();
    let (mut sets, mut pairs, mut given_up) = (Vec::new(), HashSet::new(), 0);
    for (_, pages) in paths.into_iter().step_by(every) {
        if pages.len() == 2 {
            pairs.insert((sets.len(), sets.len() + 1));
        }
        for markup in pages {
            let page = extract(&Html { markup, syntax: Syntax::Html }, asked);
            given_up += usize::from(page.facts.extracted != asked);
            sets.push(shingles(&page.text));
        }
    }
    let similar = similar(&sets);
    let found = similar.intersection(&pairs).count();
    let others = similar.len() - found;
    Some(Figures { pages: sets.len(), versions: pairs.len(), found, others, given_up })
}

fn compare(every: usize) {
    let (Some(article), Some(visible)) = (figures(Extract::Article, every), figures(Extract::Visible, every)) else {
        return;
    };
    for (name, Figures { pages, versions, found, others, given_up }) in [("article", &article), ("visible", &visible)] {
        println!(
            "{name}: {pages} pages, {found} of {versions} versions found, {others} other pairs, {given_up} given up"
        );
    }
    assert!(article.found * 100 >= article.versions * 93, "{} of {}", article.found, article.versions);
    assert!(article.others < visible.others, "{} other pairs, {} by visible text", article.others, visible.others);
    assert!(article.given_up * 50 <= article.pages, "{} of {} pages given up", article.given_up, article.pages);
}

#[test]
fn versions_of_some_pages_are_found() {
    compare(PATHS_EACH);
}

#[test]
#[ignore = "slow without optimisation; `make quality` runs it"]
fn quality_versions_of_all_pages_are_found() {
    compare(1);
}
