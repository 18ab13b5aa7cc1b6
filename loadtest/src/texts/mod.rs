//! A seed -> documents that resemble English, and near-duplicates of them whose Jaccard similarity is known. Document
//! `n` of a seed is the same on every machine, in whatever order documents are made. This module knows nothing of
//! requests.

mod near;
mod random;
mod words;

pub(crate) use near::{Nearness, words_to_replace};
pub(crate) use random::Random;
use words::Words;

/// The number of documents in ten that repeat an earlier one.
const NEAR_OF_TEN: u64 = 3;
/// In the number of a text, the bits from this position on are the purpose. So no two purposes share texts.
const PURPOSE_SHIFT: u32 = 56;

/// The documents of one seed.
pub(crate) struct Texts {
    seed: u64,
    words: Words,
    bytes: usize,
}

impl Texts {
    /// Makes documents of about `bytes` bytes.
    pub(crate) fn new(seed: u64, bytes: usize) -> Self {
        Self { seed, words: Words::new(seed), bytes }
    }

    /// Returns document `n`. Three in ten repeat an earlier one, with one to three words changed.
    pub(crate) fn document(&self, n: u64) -> String {
        if Self::is_original(n) {
            return self.fresh(n);
        }
        let mut random = self.random(1, n);
        let original = random.below(n / 10) * 10 + NEAR_OF_TEN + random.below(10 - NEAR_OF_TEN);
        let replaced = 1 + random.below(3) as usize;
        self.near(&self.fresh(original), replaced, &mut random)
    }

    /// Whether document `n` is not a repetition of another one.
    pub(crate) fn is_original(n: u64) -> bool {
        n < 10 || n % 10 >= NEAR_OF_TEN
    }

    /// Returns one of the first `documents` documents that is not a repetition of another one.
    pub(crate) fn some_original(documents: u64, random: &mut Random) -> u64 {
        let n = random.below(documents.max(1));
        if Self::is_original(n) { n } else { n - n % 10 + NEAR_OF_TEN + random.below(10 - NEAR_OF_TEN) }
    }

    /// Returns the random number generator for item `n` of a purpose.
    pub(crate) fn random(&self, purpose: u8, n: u64) -> Random {
        Random::of(self.seed, u64::from(purpose) << PURPOSE_SHIFT | n)
    }

    /// Returns text `n`, which has nothing in common with other texts.
    pub(crate) fn fresh(&self, n: u64) -> String {
        let mut random = self.random(0, n);
        let mut text = String::with_capacity(self.bytes + 16);
        self.extend(&mut text, self.bytes, &mut random);
        text
    }

    /// Adds words until the text has this many bytes.
    pub(crate) fn extend(&self, text: &mut String, bytes: usize, random: &mut Random) {
        let mut left = 0;
        while text.len() < bytes {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(self.words.pick(random));
            match left {
                0 => left = 6 + random.below(14),
                1 => {
                    text.push('.');
                    left = 0;
                }
                _ => left -= 1,
            }
        }
    }

    /// Returns `text` with this many words replaced. The replaced words are so far apart that no shingle of five words
    /// contains two of them. In a text that is too short for this, fewer words are replaced.
    pub(crate) fn near(&self, text: &str, replaced: usize, random: &mut Random) -> String {
        let mut words: Vec<&str> = text.split(' ').collect();
        let stride = (words.len() / replaced.max(1)).max(near::WINDOW);
        // Every place has `WINDOW` - 1 words on both sides, so a replacement changes `WINDOW` shingles.
        let margin = near::WINDOW - 1;
        let spare = stride.saturating_sub(2 * margin).max(1);
        for chosen in 0..replaced {
            let place = margin + chosen * stride + random.below(spare as u64) as usize;
            if place + margin >= words.len() {
                break;
            }
            let old = words[place].trim_end_matches('.');
            words[place] = std::iter::repeat_with(|| self.words.pick(random)).find(|&new| new != old).unwrap_or(old);
        }
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_depend_on_seed_and_number_alone() {
        let (a, b) = (Texts::new(1, 2048), Texts::new(1, 2048));
        assert_eq!(a.document(17), b.document(17));
        assert_ne!(a.document(17), a.document(18));
        assert_ne!(a.document(17), Texts::new(2, 2048).document(17));
        assert!((2048..2100).contains(&a.document(5).len()));
    }

    #[test]
    fn a_near_duplicate_differs_in_a_few_words() {
        let texts = Texts::new(7, 2048);
        let near = texts.document(100);
        let differing = |original: &str| original.split(' ').zip(near.split(' ')).filter(|(a, b)| a != b).count();
        let least = (0..100).filter(|&n| Texts::is_original(n)).map(|n| differing(&texts.document(n))).min();
        assert!(least.is_some_and(|words| (1..=3).contains(&words)), "{least:?}");
    }

    #[test]
    fn a_text_has_the_similarity_that_was_asked_for() {
        let (texts, mut nearness) = (Texts::new(3, 2048), Nearness::new());
        for wanted in [0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.4] {
            for n in 0..20 {
                let original = texts.fresh(n);
                let replaced = words_to_replace(nearness.shingles(&original), wanted);
                let near = texts.near(&original, replaced, &mut texts.random(9, n));
                let jaccard = nearness.jaccard(&original, &near);
                let differing = original.split(' ').zip(near.split(' ')).filter(|(a, b)| a != b).collect::<Vec<_>>();
                assert!((jaccard - wanted).abs() < 0.03, "text {n}: wanted {wanted}, made {jaccard} by {differing:?}");
            }
        }
    }

    #[test]
    fn fresh_texts_have_nothing_in_common() {
        let (texts, mut nearness) = (Texts::new(3, 2048), Nearness::new());
        let first = texts.fresh(0);
        let most = (1..200).map(|n| nearness.jaccard(&first, &texts.fresh(n))).fold(0.0, f64::max);
        assert!(most < 0.02, "{most}");
    }
}
