//! Decisions -> the documents that are kept, in the order of the input, each with its duplicates. All are
//! in memory until the end.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::value::RawValue;

use super::report::Original;
use crate::cli::corpus::named::Named;
use crate::cli::corpus::signing::SignedChunk;
use crate::cli::placed::PlaceFields;
use crate::types::{Similarity, VerdictKind, ratio};

/// The number of a file, and the number of a line, row or record in it.
type Key = (usize, u64);

/// The documents so far.
#[derive(Default)]
pub(super) struct Listing {
    /// The text of each document as JSON, until it is known whether it is kept.
    texts: HashMap<Key, Vec<u8>>,
    kept: BTreeMap<Key, Kept>,
}

#[derive(Default)]
struct Kept {
    /// The object without the list of the repeats. It is empty until the document is kept.
    head: Vec<u8>,
    repeats: BTreeMap<Key, Vec<u8>>,
}

/// A document that is kept.
#[derive(Serialize)]
struct KeptLine<'a> {
    id: String,
    #[serde(flatten)]
    place: PlaceFields<'a>,
    document: &'a RawValue,
}

/// A document that repeats a kept one.
#[derive(Serialize)]
struct Repeat<'a> {
    id: String,
    #[serde(flatten)]
    place: PlaceFields<'a>,
    verdict: &'static str,
    similarity: f64,
    low: f64,
    high: f64,
    method: &'static str,
}

impl Listing {
    /// Takes the texts of the documents of a chunk.
    pub(super) fn read(&mut self, chunk: &SignedChunk) {
        let (file, chunk) = (chunk.file(), chunk.chunk());
        for (at, origin) in chunk.origins.iter().enumerate() {
            self.texts.insert((file, origin.number()), chunk.object(at).into_owned());
        }
    }

    pub(super) fn kept(&mut self, file: usize, named: &Named) {
        let key = (file, named.origin.number());
        let text = self.texts.remove(&key).expect("it was read");
        let document = serde_json::from_slice(&text).expect("a document is JSON");
        let line = KeptLine { id: named.id(), place: PlaceFields::of(&named.origin), document };
        let head = serde_json::to_vec(&line).expect("a line is JSON");
        self.kept.entry(key).or_default().head = head;
    }

    /// Adds a document to the kept one that it repeats, which may become known later.
    pub(super) fn duplicate(&mut self, file: usize, named: &Named, of: &Original<'_>) {
        let key = (file, named.origin.number());
        self.texts.remove(&key);
        let Similarity { value, low, high, method } = of.duplicate.similarity;
        let repeat = Repeat {
            id: named.id(),
            place: PlaceFields::of(&named.origin),
            verdict: VerdictKind::of_match(of.duplicate.same_content).as_str(),
            similarity: ratio(value),
            low: ratio(low),
            high: ratio(high),
            method: method.as_str(),
        };
        let repeat = serde_json::to_vec(&repeat).expect("a repeat is JSON");
        self.kept.entry((of.file, of.kept.origin.number())).or_default().repeats.insert(key, repeat);
    }

    /// Returns a line of JSON for each document that is kept.
    pub(super) fn lines(&self) -> impl Iterator<Item = Vec<u8>> {
        self.kept.values().map(|Kept { head, repeats }| {
            let repeats = repeats.values().map(Vec::as_slice).collect::<Vec<_>>().join(&b","[..]);
            [&head[..head.len() - 1], b",\"duplicates\":[", &repeats, b"]}"].concat()
        })
    }
}
