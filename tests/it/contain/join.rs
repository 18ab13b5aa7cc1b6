//! The exact join of n-grams: sets of the words themselves, without hashes. It is what `hapax contain` must find.

use std::collections::{BTreeMap, HashMap, HashSet};

use hapax_core::{Pipeline, TextSpec};
use serde_json::Value;

/// The fewest words of an item.
pub(crate) const ITEM_WORDS_MIN: usize = 8;

pub(crate) fn words(text: &str) -> Vec<String> {
    Pipeline::new(&TextSpec::default(), None).expect("valid").tokens(text)
}

/// The items that a document contains, by their ids: the shared n-grams, all n-grams of the item, and the number of words
/// of the document that the shared n-grams cover.
pub(crate) type Contained = BTreeMap<String, (usize, usize, usize)>;

pub(crate) struct Join<'a> {
    size: usize,
    items: Vec<(&'a str, Vec<String>)>,
}

impl<'a> Join<'a> {
    pub(crate) fn new(size: usize, items: &'a [Value]) -> Self {
        let id_and_words =
            |item: &'a Value| (item["id"].as_str().expect("an id"), words(item["text"].as_str().expect("a text")));
        Self { size, items: items.iter().map(id_and_words).collect() }
    }

    pub(crate) fn too_short(&self) -> Vec<&str> {
        let short = self.items.iter().filter(|(_, words)| words.len() < ITEM_WORDS_MIN);
        short.map(|(id, _)| *id).collect()
    }

    /// Returns the items of which each document has at least the share `min`.
    pub(crate) fn of(&self, documents: &[Value], min: f64) -> Vec<Contained> {
        let length = |words: &[String]| words.len().min(self.size);
        let usable = || self.items.iter().filter(|(_, words)| words.len() >= ITEM_WORDS_MIN);
        let mut of_gram: HashMap<&[String], Vec<usize>> = HashMap::new();
        let grams: Vec<HashSet<&[String]>> =
            usable().map(|(_, words)| words.windows(length(words)).collect()).collect();
        for (item, grams) in grams.iter().enumerate() {
            grams.iter().for_each(|gram| of_gram.entry(gram).or_default().push(item));
        }
        let items: Vec<_> = usable().collect();
        let contained = |document: &Value| {
            let words = words(document["text"].as_str().expect("a text"));
            let mut shared: HashMap<usize, (HashSet<&[String]>, HashSet<usize>)> = HashMap::new();
            for length in ITEM_WORDS_MIN..=self.size {
                for (at, gram) in words.windows(length).enumerate() {
                    for item in of_gram.get(gram).into_iter().flatten() {
                        let (grams, covered) = shared.entry(*item).or_default();
                        grams.insert(gram);
                        covered.extend(at..at + length);
                    }
                }
            }
            let enough = shared.into_iter().map(|(item, (shared, covered))| {
                (items[item].0.to_owned(), (shared.len(), grams[item].len(), covered.len()))
            });
            enough.filter(|(_, (shared, all, _))| *shared as f64 / *all as f64 >= min).collect()
        };
        documents.iter().map(contained).collect()
    }
}
