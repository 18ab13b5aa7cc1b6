//! A file of documents -> the similarities of random pairs of them. Only a bounded sample is in memory, even for a long
//! file. Knows nothing of bandings.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use hapax_core::tuning::Unrelated;
use hapax_core::{Pipeline, SignScratch, SplitMix64, TextSpec, verify};
use rayon::prelude::*;

use super::arguments::Args;
use crate::cli::files::{FieldArgs, unreadable};
use crate::cli::plural::plural;
use crate::cli::progress;
use crate::collections::element_hashes;
use crate::extract::extract;
use crate::http::Caller;
use crate::http::dto::document::{Invalid, from_json};
use crate::input::{Chunk, Reason, input_bytes, read_chunks};
use crate::types::{Content, Extract};

/// The most documents in the sample.
const DOCUMENTS_MAX: usize = 2_000;
/// The most shingles of all documents in the sample, at 8 bytes each. If documents are long, the sample has fewer
/// documents.
const SHINGLES_MAX: usize = 32_000_000;
/// The most pairs that are compared.
const PAIRS_MAX: usize = 200_000;

/// A sample of documents, and how similar they are to each other.
pub(super) struct Sample {
    /// The number of documents in the file.
    pub read: u64,
    /// The number of lines without a text. They are not documents.
    pub without_text: u64,
    /// The number of documents of the sample that have shingles.
    pub documents: u64,
    /// The median of the documents' numbers of distinct shingles.
    pub shingles: u64,
    /// The number of pairs below the threshold.
    pub pairs: u64,
    /// The number of pairs at or above the threshold. They are duplicates, so they do not count as unrelated.
    pub duplicates: u64,
    pub unrelated: Unrelated,
}

impl Sample {
    /// Reads the file to its end, and compares pairs of a sample. Counts lines without a text. Fails if a line is not
    /// JSON, or if a line with invalid content is chosen for the sample.
    pub(super) fn read(path: &Path, args: &Args) -> Result<Self> {
        let spec = TextSpec { shingling: args.shingle, ..TextSpec::default() };
        let pipeline = Pipeline::new(&spec, None).context("--shingle")?;
        let mut scratch = SignScratch::default();
        let fields =
            FieldArgs { id_field: "id".to_owned(), text_field: args.text_field.clone(), html_field: "html".to_owned() };
        let mut reservoir = Reservoir::new(args.seed, DOCUMENTS_MAX, SHINGLES_MAX);
        let (mut wrong, mut without_text) = (None, 0);
        let (bar, begun) = (progress::of_files(input_bytes(&[path.to_owned()])), Instant::now());
        let read = read_chunks(path, &fields.wanted(false), |chunk| {
            without_text += chunk.failures.iter().filter(|(_, reason)| is_without_text(reason)).count() as u64;
            wrong = take(&chunk, &mut reservoir, &pipeline, &mut scratch).err();
            bar.inc(chunk.input_bytes);
            bar.set_message(progress::documents(reservoir.seen, begun));
            wrong.is_none()
        });
        bar.finish_and_clear();
        read.map_err(|error| unreadable(error, path))?;
        match wrong {
            Some(error) => Err(error),
            None => Ok(Self { without_text, ..Self::compare(path, reservoir, args.threshold())? }),
        }
    }

    fn compare(path: &Path, mut reservoir: Reservoir, threshold: f64) -> Result<Self> {
        let (path, read) = (path.display(), reservoir.seen);
        let mut sets = std::mem::take(&mut reservoir.sets);
        sets.retain(|set| !set.is_empty());
        if sets.len() < 2 {
            let (s, have) = (plural(read), sets.len());
            bail!("{path} has {read} document{s}, {have} of them with shingles; --from-data needs at least two");
        }
        let pairs = pairs(sets.len(), PAIRS_MAX, &mut reservoir.random);
        let jaccard = |&(a, b): &(usize, usize)| verify::exact(&sets[a], &sets[b]).jaccard;
        let mut similarities: Vec<f64> = pairs.par_iter().map(jaccard).collect();
        similarities.retain(|&jaccard| jaccard < threshold);
        let Some(unrelated) = Unrelated::measured(&similarities) else {
            bail!("{path}: all documents are duplicates of each other; --from-data needs some that are not");
        };
        let mut sizes: Vec<usize> = sets.iter().map(Vec::len).collect();
        sizes.sort_unstable();
        Ok(Self {
            read,
            without_text: 0,
            documents: sets.len() as u64,
            shingles: sizes[sizes.len() / 2] as u64,
            pairs: similarities.len() as u64,
            duplicates: (pairs.len() - similarities.len()) as u64,
            unrelated,
        })
    }
}

fn is_without_text(reason: &Reason) -> bool {
    matches!(reason, Reason::NoField(_))
}

/// Puts randomly chosen documents of a chunk into the sample.
fn take(chunk: &Chunk, reservoir: &mut Reservoir, pipeline: &Pipeline, scratch: &mut SignScratch) -> Result<()> {
    if let Some((origin, reason)) = chunk.failures.iter().find(|(_, reason)| !is_without_text(reason)) {
        bail!("{origin}: {reason}");
    }
    for (line, origin) in chunk.lines.iter().zip(&chunk.origins) {
        let Some(place) = reservoir.place() else { continue };
        let text = std::str::from_utf8(line).expect("lines are made of UTF-8");
        let document = from_json(text, Invalid::Refuse, &Caller::anyone());
        let document = document.map_err(|problem| anyhow!("{origin}: {}", problem.detail))?;
        let set = match document.content {
            Content::Text(text) => pipeline.shingle_set(scratch, &text),
            Content::Html(html) => pipeline.shingle_set(scratch, &extract(&html, Extract::default()).text),
            Content::Set(elements) => distinct(element_hashes(pipeline, &elements)),
            Content::Signature { .. } => bail!("{origin}: a signature has no shingles; give a text or a set"),
        };
        reservoir.put(place, set);
    }
    Ok(())
}

fn distinct(mut hashes: Vec<u64>) -> Vec<u64> {
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

/// A sample of a stream. Each document is in the sample with the same probability (Vitter 1985, algorithm R).
struct Reservoir {
    random: SplitMix64,
    /// The number of documents so far.
    seen: u64,
    documents_max: usize,
    shingles_max: usize,
    shingles: usize,
    sets: Vec<Vec<u64>>,
}

impl Reservoir {
    fn new(seed: u64, documents_max: usize, shingles_max: usize) -> Self {
        Self { random: SplitMix64::new(seed), seen: 0, documents_max, shingles_max, shingles: 0, sets: Vec::new() }
    }

    /// Counts the next document. If the document is chosen for the sample, returns the place for its shingles.
    fn place(&mut self) -> Option<usize> {
        self.seen += 1;
        if self.sets.len() < self.documents_max {
            return Some(self.sets.len());
        }
        let place = below(&mut self.random, self.seen) as usize;
        (place < self.sets.len()).then_some(place)
    }

    /// Puts the shingles in their place. If there are now too many shingles, removes random documents. From then on,
    /// the sample does not grow beyond the number of documents that are left.
    fn put(&mut self, place: usize, mut set: Vec<u64>) {
        set.shrink_to_fit();
        self.shingles += set.len();
        match self.sets.get_mut(place) {
            Some(other) => self.shingles -= std::mem::replace(other, set).len(),
            None => self.sets.push(set),
        }
        while self.shingles > self.shingles_max && self.sets.len() > 2 {
            let place = below(&mut self.random, self.sets.len() as u64) as usize;
            self.shingles -= self.sets.swap_remove(place).len();
            self.documents_max = self.sets.len();
        }
    }
}

/// Returns a number from 0 to `end - 1`. All these numbers have the same probability.
fn below(random: &mut SplitMix64, end: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(end)) >> 64) as u64
}

/// Returns all pairs of this many documents. If there are more than `most`, returns `most` random pairs.
fn pairs(documents: usize, most: usize, random: &mut SplitMix64) -> Vec<(usize, usize)> {
    if documents * (documents - 1) / 2 <= most {
        return (0..documents).flat_map(|a| (a + 1..documents).map(move |b| (a, b))).collect();
    }
    let other = |random: &mut SplitMix64, end: usize| below(random, end as u64) as usize;
    (0..most)
        .map(|_| {
            let (a, b) = (other(random, documents), other(random, documents - 1));
            (a, if b < a { b } else { b + 1 })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_document_comes_into_the_sample_equally_often() {
        let mut counts = [0u32; 20];
        for seed in 0..4_000 {
            let mut reservoir = Reservoir::new(seed, 5, usize::MAX);
            for document in 0..20 {
                if let Some(place) = reservoir.place() {
                    reservoir.put(place, vec![document]);
                }
            }
            assert_eq!((reservoir.seen, reservoir.sets.len(), reservoir.shingles), (20, 5, 5));
            reservoir.sets.iter().for_each(|set| counts[set[0] as usize] += 1);
        }
        // Each document is expected 1,000 times in a sample. Five standard deviations are 137 times.
        assert!(counts.iter().all(|count| (863..1137).contains(count)), "{counts:?}");
    }

    #[test]
    fn long_documents_make_the_sample_small() {
        let mut reservoir = Reservoir::new(1, 10, 1_000);
        for document in 0..200 {
            if let Some(place) = reservoir.place() {
                reservoir.put(place, vec![document; 90 + document as usize]);
            }
            let held: usize = reservoir.sets.iter().map(Vec::len).sum();
            assert!(held <= 1_000 && held == reservoir.shingles, "{held}");
        }
        assert!((2..10).contains(&reservoir.sets.len()), "{}", reservoir.sets.len());
        let mut reservoir = Reservoir::new(1, 10, 1_000);
        for _ in 0..3 {
            let place = reservoir.place();
            reservoir.put(place.unwrap_or_default(), vec![7; 5_000]);
        }
        assert_eq!(reservoir.sets.len(), 2, "two are needed to compare");
    }

    #[test]
    fn pairs_are_of_two_documents_and_cover_all() {
        let mut random = SplitMix64::new(4);
        assert_eq!(pairs(3, 3, &mut random), [(0, 1), (0, 2), (1, 2)]);
        let some = pairs(4, 5, &mut random);
        assert_eq!(some.len(), 5);
        let mut counts = [[0u32; 4]; 4];
        for _ in 0..2_000 {
            for (a, b) in pairs(4, 5, &mut random) {
                assert_ne!(a, b);
                counts[a.min(b)][a.max(b)] += 1;
            }
        }
        // Each of the six pairs is expected 1,667 times. Five standard deviations are 187 times.
        let found: Vec<_> = counts.iter().flatten().filter(|count| **count > 0).collect();
        assert!(found.len() == 6 && found.iter().all(|count| count.abs_diff(1667) < 187), "{counts:?}");
    }
}
