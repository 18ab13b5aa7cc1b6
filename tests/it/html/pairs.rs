//! Texts -> the pairs that are near-duplicates by the exact similarity of their words.

use std::collections::{HashMap, HashSet};

use xxhash_rust::xxh3::xxh3_64;

const THRESHOLD: f64 = 0.8;

/// The hashes of a text's runs of three words, sorted.
pub fn shingles(text: &str) -> Vec<u64> {
    let words: Vec<String> = text
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let mut shingles: Vec<u64> =
        words.windows(3.min(words.len()).max(1)).map(|run| xxh3_64(run.join(" ").as_bytes())).collect();
    shingles.sort_unstable();
    shingles.dedup();
    shingles
}

pub fn jaccard(a: &[u64], b: &[u64]) -> f64 {
    let (mut at, mut shared) = (b.iter().peekable(), 0);
    for shingle in a {
        while at.next_if(|other| *other < shingle).is_some() {}
        shared += usize::from(at.next_if_eq(&shingle).is_some());
    }
    let all = a.len() + b.len() - shared;
    if all == 0 { 0.0 } else { shared as f64 / all as f64 }
}

/// Returns the pairs of sets that are similar, each with the smaller index first. Only sets that share one of their
/// rarest shingles can be similar.
pub fn similar(sets: &[Vec<u64>]) -> HashSet<(usize, usize)> {
    let mut frequency: HashMap<u64, u32> = HashMap::new();
    sets.iter().flatten().for_each(|shingle| *frequency.entry(*shingle).or_default() += 1);
    let (mut holders, mut pairs) = (HashMap::<u64, Vec<usize>>::new(), HashSet::new());
    for (at, set) in sets.iter().enumerate().filter(|(_, set)| !set.is_empty()) {
        let mut rarest = set.clone();
        rarest.sort_by_key(|shingle| (frequency[shingle], *shingle));
        rarest.truncate(set.len() - (THRESHOLD * set.len() as f64).ceil() as usize + 1);
        let others: HashSet<usize> =
            rarest.iter().filter_map(|shingle| holders.get(shingle)).flatten().copied().collect();
        pairs.extend(
            others.into_iter().filter(|&other| jaccard(set, &sets[other]) >= THRESHOLD).map(|other| (other, at)),
        );
        rarest.iter().for_each(|shingle| holders.entry(*shingle).or_default().push(at));
    }
    pairs
}
