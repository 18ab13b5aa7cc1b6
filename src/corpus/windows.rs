//! Text -> its windows: each run of N tokens, as a hash, with its place in the text.

use hapax_core::{Pipeline, TokenLocator, TokenPlace, fmix64};

/// Hashes the windows of texts. Its buffers are reused.
pub struct Windower<'a> {
    tokens: TokenLocator<'a>,
    length: usize,
    /// The hashes of runs of 2, 4, 8, … tokens.
    doubled: Vec<u64>,
}

/// The windows of a text.
#[derive(Debug, Default)]
pub struct Windows {
    /// The number of tokens in a window.
    length: usize,
    /// The hash of the window that begins at each token. The last tokens begin none.
    hashes: Vec<u64>,
    tokens: Vec<TokenPlace>,
}

impl<'a> Windower<'a> {
    /// Makes windows of `length` tokens, at least one.
    pub fn new(pipeline: &'a Pipeline, length: usize) -> Self {
        Self { tokens: TokenLocator::new(pipeline), length: length.max(1), doubled: Vec::new() }
    }

    pub fn windows(&mut self, text: &str) -> Windows {
        let length = self.length;
        self.tokens.locate(text);
        let tokens = self.tokens.hashes();
        let count = (tokens.len() + 1).saturating_sub(length);
        if count == 0 {
            return Windows { length, ..Windows::default() };
        }
        // A window of 50 tokens is a run of 32, one of 16 and one of 2. The hash of each run of 2^k tokens is made from those
        // of two shorter runs, so a window takes a few steps for any length.
        self.doubled.clear();
        self.doubled.extend_from_slice(tokens);
        let mut hashes = vec![0; count];
        let (mut before, mut run) = (0, 1);
        loop {
            if length & run != 0 {
                for (at, hash) in hashes.iter_mut().enumerate() {
                    *hash = joined(*hash, self.doubled[at + before]);
                }
                before += run;
            }
            if before == length {
                break;
            }
            let doubled = self.doubled.len() - run;
            for at in 0..doubled {
                self.doubled[at] = joined(self.doubled[at], self.doubled[at + run]);
            }
            self.doubled.truncate(doubled);
            run *= 2;
        }
        Windows { length, hashes, tokens: self.tokens.places().to_vec() }
    }
}

/// Makes the hash of two runs, one after the other. The order counts.
fn joined(first: u64, then: u64) -> u64 {
    // The factor is odd, and its difference from 1 is even only once, so that few bits are lost if two runs are exchanged.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c17;
    fmix64(first.wrapping_mul(FACTOR).wrapping_add(then))
}

impl Windows {
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// The number of tokens of the text; 0 if it has no window.
    pub fn tokens(&self) -> usize {
        self.tokens.len()
    }

    /// The bytes of the text that a window has.
    pub fn place(&self, window: usize) -> TokenPlace {
        self.place_of(window, window)
    }

    /// The bytes of the text from the first window to the end of the last one.
    pub(super) fn place_of(&self, first: usize, last: usize) -> TokenPlace {
        (self.tokens[first].0, self.tokens[last + self.length - 1].1)
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use hapax_core::{SplitMix64, TextSpec};

    use super::*;

    #[test]
    fn windows_have_equal_hashes_exactly_if_their_tokens_are_equal() {
        let pipeline = Pipeline::new(&TextSpec::default(), None).unwrap();
        let mut random = SplitMix64::new(9);
        for length in [1, 2, 3, 5, 8, 13, 50, 64, 77] {
            let mut windower = Windower::new(&pipeline, length);
            let mut known: HashMap<Vec<u64>, u64> = HashMap::new();
            let mut hashes = std::collections::HashSet::new();
            for _ in 0..40 {
                let words: Vec<u64> = (0..random.next_u64() % 150).map(|_| random.next_u64() % 2).collect();
                let text: Vec<_> = words.iter().map(|word| format!("w{word}")).collect();
                let windows = windower.windows(&text.join(" "));
                assert_eq!(windows.hashes().len(), (words.len() + 1).saturating_sub(length));
                for (window, &hash) in words.windows(length).zip(windows.hashes()) {
                    assert_eq!(*known.entry(window.to_vec()).or_insert(hash), hash);
                    hashes.insert(hash);
                }
            }
            assert_eq!(hashes.len(), known.len(), "{length}");
        }
    }

    #[test]
    fn a_window_has_the_bytes_of_its_tokens() {
        let pipeline = Pipeline::new(&TextSpec::default(), None).unwrap();
        let text = "One, two; three — four!";
        let windows = Windower::new(&pipeline, 2).windows(text);
        let places: Vec<_> = (0..3).map(|window| windows.place(window)).collect();
        let of = |(from, to): TokenPlace| &text[from as usize..to as usize];
        assert_eq!(places.into_iter().map(of).collect::<Vec<_>>(), ["One, two", "two; three", "three — four"]);
        assert_eq!(of(windows.place_of(0, 2)), "One, two; three — four");
    }
}
