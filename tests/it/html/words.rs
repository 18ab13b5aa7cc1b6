//! Invented prose, so that the pages of the tests have no author. The same seed gives the same words everywhere.

use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SYLLABLES: [&str; 40] = [
    "ba", "cor", "del", "en", "fa", "gri", "hol", "in", "ja", "kel", "lor", "mi", "na", "or", "pel", "qua", "ras",
    "sen", "ti", "ul", "ver", "wen", "xa", "yor", "zan", "ble", "cri", "dro", "fle", "gan", "hu", "ist", "kro", "lum",
    "met", "nos", "pra", "ste", "tur", "vi",
];

/// A source of words.
pub struct Words {
    pub random: ChaCha8Rng,
}

impl Words {
    pub fn new(seed: u64) -> Self {
        Self { random: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// Returns a word. Short words are frequent, as in natural languages.
    pub fn word(&mut self) -> String {
        let common = self.random.random_bool(0.4);
        let syllables = if common { 1 } else { self.random.random_range(2..=4) };
        (0..syllables).map(|_| *SYLLABLES.choose(&mut self.random).unwrap()).collect()
    }

    pub fn words(&mut self, count: usize) -> String {
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    /// Returns a name such as `KelVerIst`.
    pub fn name(&mut self, parts: usize) -> String {
        (0..parts)
            .map(|_| {
                let word = self.word();
                word[..1].to_uppercase() + &word[1..]
            })
            .collect()
    }

    pub fn sentence(&mut self) -> String {
        let count = self.random.random_range(6..=20);
        let mut words: Vec<String> = (0..count).map(|_| self.word()).collect();
        words[0] = words[0][..1].to_uppercase() + &words[0][1..];
        if count > 10 {
            words[count / 2].push(',');
        }
        words.join(" ") + "."
    }

    /// Returns sentences that have at least this many words together.
    pub fn prose(&mut self, words_min: usize) -> String {
        let (mut prose, mut words) = (String::new(), 0);
        while words < words_min {
            let sentence = self.sentence();
            words += sentence.split(' ').count();
            prose.push_str(&sentence);
            prose.push(' ');
        }
        prose.trim_end().to_owned()
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.random.random_bool(probability)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.random.random_range(0..end)
    }
}
