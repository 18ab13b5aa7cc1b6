//! Invented words, drawn by Zipf's law. A draw is a lookup in a table, because a client must make texts faster than a
//! server signs them.

use super::random::Random;

/// The number of distinct words. A text of a few hundred words repeats a few dozen of them, as in English.
const VOCABULARY: usize = 6_000;
/// The number of places of the table. The table fits into the second-level cache of a processor.
const PLACES: usize = 1 << 16;

pub(super) struct Words {
    words: Vec<String>,
    /// Each word has places in proportion to its weight, and at least one. Word r weighs 1 / (r + 1).
    table: Vec<u16>,
}

impl Words {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::of(seed, u64::MAX);
        let words = (0..VOCABULARY).map(|_| word(&mut random)).collect();
        let total: f64 = (1..=VOCABULARY).map(|rank| 1.0 / rank as f64).sum();
        let mut table = Vec::with_capacity(PLACES);
        for rank in 0..VOCABULARY {
            let places = (PLACES as f64 / (total * (rank + 1) as f64)).max(1.0) as usize;
            table.resize((table.len() + places).min(PLACES), rank as u16);
        }
        // The last places belong to the most frequent word, because rounding down leaves some unused.
        table.resize(PLACES, 0);
        Self { words, table }
    }

    pub(super) fn pick(&self, random: &mut Random) -> &str {
        &self.words[usize::from(self.table[(random.next() >> 48) as usize])]
    }
}

fn word(random: &mut Random) -> String {
    const ONSETS: [&str; 16] = ["b", "c", "d", "f", "g", "l", "m", "n", "p", "r", "s", "t", "st", "tr", "ch", "w"];
    const VOWELS: [&str; 8] = ["a", "e", "i", "o", "u", "ea", "ou", "ai"];
    const CODAS: [&str; 8] = ["", "", "n", "r", "s", "t", "l", "nd"];
    fn pick<'a>(of: &[&'a str], random: &mut Random) -> &'a str {
        of[random.below(of.len() as u64) as usize]
    }
    let mut word = String::new();
    for _ in 0..=random.below(3) {
        word.push_str(pick(&ONSETS, random));
        word.push_str(pick(&VOWELS, random));
    }
    word.push_str(pick(&CODAS, random));
    word
}
