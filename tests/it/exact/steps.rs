//! Collections that verify exactly, with helpers to insert and look up.

use std::collections::HashSet;

use hapax::collections::{CheckOptions, Collection, CollectionError, Collections, InsertOptions, Settings};
use hapax::types::{Keep, OnDuplicate, OnExisting, Overlap, Verdict, Verify};
use hapax_core::{Banding, Spec};

use crate::support::documents::{self, look, options};
use crate::support::library::{self, Dir};

pub(super) const THRESHOLD: f64 = 0.8;
/// A pair above this similarity is always found, in spite of the estimate's spread and of the bands.
pub(super) const SURE: f64 = 0.87;

pub(super) fn settings(keep: Keep, verify: Verify, spec: &str, banding: (u32, u32)) -> Settings {
    let spec = Spec::parse(spec).unwrap();
    let banding = Banding::new(banding.0, banding.1, spec.shape()).unwrap();
    Settings { keep, verify, ..Settings::new(spec, banding, THRESHOLD) }
}

pub(super) const WORD5: &str =
    "hapax1;unicode=17;fold=nfkc_casefold;marks=keep;digits=keep;shingle=word5;sketch=fss256x8;key=none";
pub(super) const WORD1: &str =
    "hapax1;unicode=17;fold=nfkc_casefold;marks=keep;digits=keep;shingle=word1;sketch=fss64x8;key=none";

pub(super) fn exactly(keep: Keep) -> Settings {
    settings(keep, Verify::Exact, WORD5, (64, 4))
}

/// Opens the collections of a folder; `default` is made with these settings.
pub(super) fn open(dir: &Dir, default_settings: Settings) -> Collections {
    open_with(dir, default_settings, library::LIMITS)
}

pub(super) fn open_with(dir: &Dir, default_settings: Settings, limits: hapax::collections::Limits) -> Collections {
    library::open(hapax::collections::CollectionsConfig { default_settings, limits, ..library::config(dir) })
}

pub(super) const LOOK: CheckOptions = look(1000);

pub(super) async fn check(collection: &Collection, text: &str) -> Result<Verdict, CollectionError> {
    documents::check(collection, text, LOOK).await
}

pub(super) async fn insert(
    collection: &Collection,
    id: &str,
    text: &str,
    on_duplicate: OnDuplicate,
) -> Result<Verdict, CollectionError> {
    let options = InsertOptions { limit: 1000, ..options(on_duplicate, OnExisting::Replace) };
    documents::insert(collection, id, text, options).await
}

/// Returns 400 words, or many more. Only one of them is different in each variant.
pub(super) fn variant(words: u64, variant: u64) -> String {
    let word = |at| if at == variant * 3 { format!("variant{variant}") } else { format!("w{at}") };
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}

/// A text, and its runs of five words by the definition.
pub(super) struct Shingled {
    pub(super) text: String,
    pub(super) shingles: HashSet<String>,
}

impl Shingled {
    pub(super) fn new(text: String) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        let shingles = words.windows(5).map(|run| run.join(" ")).collect();
        Self { text, shingles }
    }

    pub(super) fn overlap(&self, found: &Self) -> Overlap {
        let both = self.shingles.intersection(&found.shingles).count() as u64;
        Overlap { both, query: self.shingles.len() as u64, found: found.shingles.len() as u64 }
    }
}
