//! A seed -> documents that resemble English: words follow Zipf's law, and some documents are near duplicates of
//! earlier ones. Document `n` of a seed is the same on every machine, in whatever order documents are made.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Distinct words. A text of a few hundred words repeats a few dozen of them, as English does.
const VOCABULARY: usize = 20_000;
/// The number of documents in ten that repeat an earlier one.
const NEAR_OF_TEN: u64 = 3;

/// The documents of one seed.
pub(crate) struct Texts {
    seed: u64,
    words: Vec<String>,
    /// Cumulative weight of each word: rank r weighs 1/r.
    weights: Vec<f64>,
    bytes: usize,
}

impl Texts {
    /// Makes documents of about `bytes` bytes.
    pub(crate) fn new(seed: u64, bytes: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let words = (0..VOCABULARY).map(|_| word(&mut rng)).collect();
        let weights = (1..=VOCABULARY)
            .scan(0.0, |sum, rank| {
                *sum += 1.0 / rank as f64;
                Some(*sum)
            })
            .collect();
        Self { seed, words, weights, bytes }
    }

    /// Returns document `n`.
    pub(crate) fn document(&self, n: u64) -> String {
        let mut rng = self.rng(n);
        let near = n >= 10 && n % 10 < NEAR_OF_TEN;
        if !near {
            return self.fresh(&mut rng);
        }
        // Numbers that end in 3 to 9 are originals.
        let original = rng.random_range(0..n / 10) * 10 + rng.random_range(NEAR_OF_TEN..10);
        let text = self.fresh(&mut self.rng(original));
        let mut words: Vec<&str> = text.split(' ').collect();
        // One to three changed words leave a similarity of about 0.97 to 0.91.
        for _ in 0..rng.random_range(1..=3) {
            let place = rng.random_range(0..words.len());
            words[place] = self.pick(&mut rng);
        }
        words.join(" ")
    }

    fn rng(&self, n: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        // Streams of one seed are independent; 0 made the vocabulary.
        rng.set_stream(n + 1);
        rng
    }

    fn fresh(&self, rng: &mut ChaCha8Rng) -> String {
        let mut text = String::with_capacity(self.bytes + 16);
        let mut left = 0u32;
        while text.len() < self.bytes {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(self.pick(rng));
            match left {
                0 => left = rng.random_range(6..20),
                1 => {
                    text.push('.');
                    left = 0;
                }
                _ => left -= 1,
            }
        }
        text
    }

    fn pick(&self, rng: &mut ChaCha8Rng) -> &str {
        let total = self.weights[VOCABULARY - 1];
        let at = rng.random_range(0.0..total);
        &self.words[self.weights.partition_point(|&weight| weight < at).min(VOCABULARY - 1)]
    }
}

fn word(rng: &mut ChaCha8Rng) -> String {
    const ONSETS: [&str; 16] = ["b", "c", "d", "f", "g", "l", "m", "n", "p", "r", "s", "t", "st", "tr", "ch", "w"];
    const VOWELS: [&str; 8] = ["a", "e", "i", "o", "u", "ea", "ou", "ai"];
    const CODAS: [&str; 8] = ["", "", "n", "r", "s", "t", "l", "nd"];
    let mut word = String::new();
    for _ in 0..rng.random_range(1..=3) {
        word.push_str(ONSETS[rng.random_range(0..ONSETS.len())]);
        word.push_str(VOWELS[rng.random_range(0..VOWELS.len())]);
    }
    word.push_str(CODAS[rng.random_range(0..CODAS.len())]);
    word
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
        let least = (0..100).filter(|n| n % 10 >= NEAR_OF_TEN).map(|n| differing(&texts.document(n))).min();
        assert!(least.is_some_and(|words| words <= 3), "{least:?}");
    }
}
