//! The index compared with a model that knows tokens and no hashes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;

/// The hash of a token. Tests use small numbers as tokens.
fn hashes(tokens: &[u8]) -> Vec<u64> {
    tokens.iter().map(|token| hapax_core::fmix64(u64::from(*token) + 1)).collect()
}

/// The distinct n-grams of an item.
fn grams(size: usize, item: &[u8]) -> BTreeSet<&[u8]> {
    item.windows(size.min(item.len())).collect()
}

/// An item with its shared n-grams, all of its n-grams, and the tokens that are covered.
type Expected = (u32, usize, usize, BTreeSet<usize>);

/// Returns what a lookup must find.
fn expected(size: usize, items: &BTreeMap<u32, Vec<u8>>, text: &[u8], min: f64) -> Vec<Expected> {
    let mut found = Vec::new();
    for (&item, tokens) in items {
        let grams = grams(size, tokens);
        let length = size.min(tokens.len());
        let shared: BTreeSet<_> = text.windows(length).filter(|gram| grams.contains(gram)).collect();
        let is_covered = |(at, gram): (usize, &[u8])| shared.contains(gram).then_some(at..at + length);
        let covered = text.windows(length).enumerate().filter_map(is_covered).flatten().collect();
        if !shared.is_empty() && shared.len() as f64 / grams.len() as f64 >= min {
            found.push((item, shared.len(), grams.len(), covered));
        }
    }
    found.sort_by(|a, b| (b.1 * a.2).cmp(&(a.1 * b.2)).then(a.0.cmp(&b.0)));
    found
}

fn found(index: &GramIndex, text: &[u8], min: f64) -> (Vec<Expected>, usize) {
    let text = hashes(text);
    let (overlaps, grams) = index.look_up(&text, min, &mut LookupScratch::default());
    let items: Vec<_> = overlaps.found().iter().map(|found| Arc::clone(index.item(found.item).unwrap())).collect();
    let all = passages(index.size(), &items, &text, &grams, usize::MAX);
    let few = passages(index.size(), &items, &text, &grams, 1);
    let mut parts = FoundGrams::default();
    for part in (0..text.len()).step_by(7) {
        index.collect(&text, part..text.len().min(part + 7), &mut LookupScratch::default(), &mut parts);
    }
    assert_eq!(index.overlaps(&parts, min).found(), overlaps.found(), "in parts");
    let found = overlaps.found().iter().zip(all).zip(few).map(|((overlap, Passages { runs, omitted }), few)| {
        assert_eq!((few.runs, few.omitted), (runs[..1].to_vec(), runs.len() - 1));
        assert_eq!(omitted, 0);
        assert!(runs.windows(2).all(|two| two[0].end < two[1].start), "the runs are the longest: {runs:?}");
        (overlap.item, overlap.shared, overlap.grams, runs.into_iter().flatten().collect())
    });
    (found.collect(), overlaps.capped())
}

fn index_of(size: usize, cap: usize, items: &BTreeMap<u32, Vec<u8>>) -> GramIndex {
    let size = GramSize::new(size).expect("in range");
    let mut index = GramIndex::new(size, cap);
    for (&item, tokens) in items {
        index.insert(item, ItemGrams::new(size, &hashes(tokens)).expect("long enough"));
    }
    index
}

/// Tokens of a small vocabulary, so that n-grams repeat.
fn tokens(length: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    let run =
        (0u8..3, 1usize..12).prop_map(|(first, length)| (0..length as u8).map(move |at| first + at % 5).collect());
    proptest::collection::vec(run, length.end).prop_flat_map(move |runs: Vec<Vec<u8>>| {
        let all = runs.concat();
        let most = all.len().min(length.end - 1).max(length.start);
        (length.start..=most).prop_map(move |length| all.iter().copied().cycle().take(length).collect())
    })
}

#[test]
fn an_item_is_found_whole_cut_and_not_by_chance() {
    let item: Vec<u8> = (0..40).collect();
    let items = BTreeMap::from([(3, item.clone()), (1, (100..109).collect())]);
    let index = index_of(13, 10, &items);
    let around = |part: &[u8]| [&[200; 30], part, &[201; 30]].concat();
    let of = |text: &[u8], min| found(&index, text, min).0;
    assert_eq!(of(&around(&item), 0.5), [(3, 28, 28, (30..70).collect())]);
    assert_eq!(of(&around(&item[..26]), 0.5), [(3, 14, 28, (30..56).collect())]);
    assert!(of(&around(&item[..25]), 0.5).is_empty());
    // Nine tokens are one n-gram.
    assert_eq!(of(&around(&items[&1]), 1.0), [(1, 1, 1, (30..39).collect())]);
    assert_eq!(of(&items[&1], 1.0), [(1, 1, 1, (0..9).collect())]);
    assert!(of(&around(&items[&1][..8]), 0.1).is_empty() && of(&[], 0.1).is_empty());
    let short = ItemGrams::new(GramSize::DEFAULT, &hashes(&item[..7]));
    assert_eq!(
        short.map_err(|error| error.to_string()),
        Err("has 7 words; an item needs at least 8 to be found".into())
    );
    assert!(GramSize::new(7).is_none() && GramSize::new(33).is_none());
}

#[test]
fn a_share_that_equals_the_minimum_is_found() {
    let item: Vec<u8> = (0..22).collect();
    let index = index_of(13, 10, &BTreeMap::from([(0, item.clone())]));
    for shared in 1..=10 {
        let text = &item[..12 + shared];
        let min = format!("0.{shared}").replace("0.10", "1").parse().expect("a number");
        assert_eq!(found(&index, text, min).0.len(), 1, "{shared} of 10");
        assert!(found(&index, text, min + 1e-9).0.is_empty());
    }
}

#[test]
fn a_gram_in_too_many_items_is_counted_and_values_stay_exact() {
    let common: Vec<u8> = (0..13).collect();
    let mut items: BTreeMap<u32, Vec<u8>> = (0..6).map(|item| (item, common.clone())).collect();
    let own: Vec<u8> = common.iter().copied().chain(50..60).collect();
    items.insert(9, own.clone());
    let index = index_of(13, 4, &items);
    // The item with an n-gram of its own is found, and all its n-grams are counted.
    let (all, capped) = found(&index, &own, 0.5);
    assert_eq!(capped, 1);
    assert_eq!(
        all.iter().map(|found| (found.0, found.1)).collect::<Vec<_>>(),
        [(0, 1), (1, 1), (2, 1), (3, 1), (9, 11)]
    );
    assert_eq!(found(&index, &own[1..], 0.5).1, 0);
    assert_eq!(found(&index_of(13, 7, &items), &own, 0.5), (expected(13, &items, &own, 0.5), 0));
}

proptest! {
    #[test]
    fn lookups_find_what_the_tokens_say(
        size in 8usize..16,
        items in proptest::collection::vec(tokens(8..40), 1..20),
        removed in proptest::collection::vec(any::<proptest::sample::Index>(), 0..10),
        text in tokens(0..120),
        min in 0.0..1.0,
    ) {
        let mut items: BTreeMap<u32, Vec<u8>> = (0..).zip(items).collect();
        let mut index = index_of(size, 1_000, &items);
        prop_assert_eq!(found(&index, &text, min), (expected(size, &items, &text, min), 0));
        for one in &removed {
            let item = one.index(items.len()) as u32;
            prop_assert_eq!(index.remove(item), items.remove(&item).is_some());
            if items.is_empty() {
                break;
            }
        }
        prop_assert_eq!(found(&index, &text, min), (expected(size, &items, &text, min), 0));
        // A number is free again.
        if let Some(free) = (0..).find(|item| !items.contains_key(item)) {
            let item: Vec<u8> = text.iter().copied().cycle().take(30).collect();
            if item.len() == 30 {
                items.insert(free, item);
                let grams = ItemGrams::new(GramSize::new(size).unwrap(), &hashes(&items[&free])).unwrap();
                index.insert(free, grams);
                prop_assert_eq!(found(&index, &text, 0.0), (expected(size, &items, &text, 0.0), 0));
            }
        }
    }

    #[test]
    fn a_cap_only_takes_items_away(
        items in proptest::collection::vec(tokens(8..40), 1..30),
        text in tokens(0..120),
        cap in 1usize..5,
    ) {
        let items: BTreeMap<u32, Vec<u8>> = (0..).zip(items).collect();
        let (found, capped) = found(&index_of(10, cap, &items), &text, 0.3);
        let expected = expected(10, &items, &text, 0.3);
        prop_assert!(found.iter().all(|one| expected.contains(one)));
        prop_assert!(capped > 0 || found == expected);
    }
}
